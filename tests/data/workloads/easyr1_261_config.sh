# hiyouga/EasyR1#261 with its configuration file at hand.
MODEL_PATH=Qwen/Qwen2.5-VL-7B-Instruct
python3 -m verl.trainer.main config=easyr1_config.yaml data.max_prompt_length=22000 worker.actor.model.model_path=${MODEL_PATH} worker.rollout.tensor_parallel_size=2 trainer.n_gpus_per_node=8
