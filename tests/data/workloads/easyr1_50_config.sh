# hiyouga/EasyR1#50 with a configuration file at hand.
export VLLM_ATTENTION_BACKEND=XFORMERS
export VLLM_USE_V1=0
pip install "vllm==0.7.3"
python3 -m verl.trainer.main config=easyr1_config.yaml data.max_prompt_length=4096 worker.actor.model.model_path=Qwen/Qwen2.5-VL-7B-Instruct
