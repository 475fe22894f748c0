# Every line has a fault.
python3 -m verl.trainer.main_ppo \
  actor_rollout_ref.rollout.gpu_memory_utilisation=0.6 \
  actor_rollout_ref.rollout.gpu_memory_utilization=60 \
  actor_rollout_ref.actor.fsdp_config.grad_offload=True \
  actor_rollout_ref.rollout.tensor_model_parallel_size=16 \
  actor_rollout_ref.actor.ppo_mini_batch_size=100 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
  trainer.n_gpus_per_node=8 trainer.nnodes=1
  trainer.save_freq=5
