# The installation of Jiayi-Pan/TinyZero#61 on an H20, and its run.
pip install torch==2.4.0 --index-url https://download.pytorch.org/whl/cu121
pip3 install vllm==0.6.3
N_GPUS=2 BASE_MODEL=Qwen/Qwen2.5-3B
python3 -m verl.trainer.main_ppo \
  data.train_batch_size=256 data.max_prompt_length=256 data.max_response_length=1024 \
  actor_rollout_ref.model.path=$BASE_MODEL critic.model.path=$BASE_MODEL \
  actor_rollout_ref.actor.ppo_micro_batch_size=8 critic.ppo_micro_batch_size=8 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \
  trainer.n_gpus_per_node=$N_GPUS trainer.nnodes=1
