# The settings of hiyouga/EasyR1#261: long multi-modal prompts, offload as the example configuration has it.
MODEL=Qwen/Qwen2.5-VL-7B-Instruct
ROLLOUT=(
  worker.rollout.n=5
  worker.rollout.tensor_parallel_size=2
  worker.rollout.limit_images=10
)
python3 -m verl.trainer.main config=examples/config.yaml \
  data.max_prompt_length=22000 \
  data.max_response_length=2048 \
  worker.actor.model.model_path="$MODEL" \
  "${ROLLOUT[@]}" \
  trainer.n_gpus_per_node=8
