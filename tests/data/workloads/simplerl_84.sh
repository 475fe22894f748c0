#!/bin/bash
# The settings of hkust-nlp/simpleRL-reason#84: the 7B command of its README on one node of eight A100.
PROMPT=1024 RESPONSE=3072
MICRO=1024
while [ $# -gt 0 ]; do
  case "$1" in
    --response) RESPONSE="$2"; shift 2 ;;
    --batch) BATCH="$2"; shift 2 ;;
    *) exit 1 ;;
  esac
done
tokens=$(expr $PROMPT + $RESPONSE + 1000)
ray start --head --num-gpus 8
ray job submit --address=127.0.0.1:8265 \
  --runtime-env-json='{"env_vars": {"VLLM_ATTENTION_BACKEND": "XFORMERS"}}' \
  -- python -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_batch_size=${BATCH:-256} data.val_batch_size=500 \
  data.max_prompt_length=$PROMPT data.max_response_length=$RESPONSE \
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.fsdp_config.grad_offload=False \
  actor_rollout_ref.ref.fsdp_config.param_offload=True \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.75 \
  actor_rollout_ref.rollout.max_num_batched_tokens=$tokens \
  actor_rollout_ref.rollout.micro_rollout_batch_size=$MICRO \
  trainer.n_gpus_per_node=8 trainer.nnodes=1 trainer.save_freq=5
