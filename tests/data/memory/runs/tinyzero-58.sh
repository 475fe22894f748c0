ray start --head --object-store-memory=53687091200
export N_GPUS=4
export BASE_MODEL=Qwen/Qwen2.5-3B
export ROLLOUT_TP_SIZE=4
export VLLM_ATTENTION_BACKEND=XFORMERS
python3 -m verl.trainer.main_ppo data.train_batch_size=128 data.val_batch_size=640 data.max_prompt_length=256 data.max_response_length=1024 actor_rollout_ref.model.path=$BASE_MODEL actor_rollout_ref.model.use_remove_padding=True actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.optim.lr=1e-6 actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size=4 actor_rollout_ref.rollout.log_prob_micro_batch_size=4 actor_rollout_ref.rollout.tensor_model_parallel_size=$ROLLOUT_TP_SIZE actor_rollout_ref.rollout.gpu_memory_utilization=0.4 actor_rollout_ref.ref.log_prob_micro_batch_size=2 critic.model.path=$BASE_MODEL critic.ppo_micro_batch_size=4 trainer.n_gpus_per_node=$N_GPUS trainer.nnodes=1 trainer.save_freq=100
