# The settings of OpenRLHF/OpenRLHF#187 and #171: two 13B models with Adam on the host, in a container of 500 GB.
docker run --rm --gpus all --shm-size=10g -m 500g -e NCCL_DEBUG=WARN nvcr.io/nvidia/pytorch:23.12-py3 \
  bash -c "ray job submit --address=http://127.0.0.1:8265 -- python3 examples/train_ppo_ray.py \
    --ref_num_nodes 1 --ref_num_gpus_per_node 1 --reward_num_nodes 1 --reward_num_gpus_per_node 1 \
    --critic_num_nodes 1 --critic_num_gpus_per_node 2 --actor_num_nodes 1 --actor_num_gpus_per_node 4 \
    --pretrain baichuan-inc/Baichuan-13B-Chat --reward_pretrain our/reward-13b \
    --micro_train_batch_size 8 --train_batch_size 128 --micro_rollout_batch_size 16 --rollout_batch_size 1024 \
    --prompt_max_len 1024 --generate_max_len 1024 --zero_stage 2 --bf16 --inference_tp_size 1 \
    --actor_init_on_gpu --adam_offload --flash_attn --gradient_checkpointing"
