export VLLM_ATTENTION_BACKEND=XFORMERS
export VLLM_USE_V1=0
MODEL_PATH=Qwen/Qwen2.5-VL-7B-Instruct
pip install vllm==0.7.3
python3 -m verl.trainer.main config=easyr1-261.yaml data.max_prompt_length=4096 worker.actor.model.model_path=${MODEL_PATH} worker.rollout.tensor_parallel_size=2 worker.rollout.n=5
