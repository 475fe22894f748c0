#!/bin/bash
#SBATCH --gres=gpu:4
#SBATCH --mem=240G
# The settings of Jiayi-Pan/TinyZero#58: four A100, an object store of 50 GiB, a name that bash refuses.
ray start --head --object-store-memory=53687091200 --num-gpus=$N_GPUS
export actor_rollout_ref.rollout.gpu_memory_utilization=0.6
export N_GPUS=4 BASE_MODEL=Qwen/Qwen2.5-3B ROLLOUT_TP_SIZE=4
export VLLM_ATTENTION_BACKEND=XFORMERS
python3 -m verl.trainer.main_ppo \
  data.train_batch_size=128 data.val_batch_size=640 \
  data.max_prompt_length=256 data.max_response_length=1024 \
  actor_rollout_ref.model.path=$BASE_MODEL \
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \
  actor_rollout_ref.actor.ppo_micro_batch_size=4 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=$ROLLOUT_TP_SIZE \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \
  critic.model.path=$BASE_MODEL critic.ppo_micro_batch_size=4 \
  trainer.n_gpus_per_node=$N_GPUS trainer.nnodes=1
