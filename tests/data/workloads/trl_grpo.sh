# GRPO with TRL on one node, sharded by DeepSpeed.
accelerate launch --config_file trl_accelerate.yaml --num_processes 8 grpo.py --config trl_grpo.yaml \
  --gradient_accumulation_steps=4 --beta 0.04
