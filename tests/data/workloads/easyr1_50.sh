# The settings of hiyouga/EasyR1#50: February 2025, vllm 0.7.3, five samples per prompt.
pip install "vllm==0.7.3"
export VLLM_ATTENTION_BACKEND=XFORMERS
export VLLM_USE_V1=0
python3 -m verl.trainer.main config=examples/grpo_example.yaml \
  data.max_prompt_length=4096 \
  worker.actor.model.model_path=Qwen/Qwen2.5-VL-7B-Instruct \
  worker.rollout.enable_chunked_prefill=false
