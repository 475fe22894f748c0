#!/usr/bin/env bash
# After the style of verl 0.9: arrays, defaults, two nodes of eight GPUs.
set -xeuo pipefail
NNODES=${NNODES:-2}
MODEL=${MODEL:-Qwen/Qwen2.5-32B}
prompt=$((1024 * 1))
DATA=(
  data.max_prompt_length=${prompt}
  data.max_response_length=$((prompt * 1))   # as long as the prompt
  data.train_batch_size=512
)
ACTOR=(
  actor_rollout_ref.model.path="${MODEL}"
  actor_rollout_ref.actor.ppo_mini_batch_size=128
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2
  actor_rollout_ref.actor.fsdp_config.param_offload=False
  actor_rollout_ref.actor.use_kl_loss=True
)
if [ "${ENGINE:-vllm}" = vllm ]; then
  ROLLOUT=(actor_rollout_ref.rollout.name=vllm +actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space=8)
else
  ROLLOUT=(actor_rollout_ref.rollout.name=sglang)
fi
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \
  "${DATA[@]}" "${ACTOR[@]}" "${ROLLOUT[@]}" \
  actor_rollout_ref.rollout.tensor_model_parallel_size=8 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \
  actor_rollout_ref.rollout.n=5 \
  trainer.nnodes=$NNODES trainer.n_gpus_per_node=8 "$@"
