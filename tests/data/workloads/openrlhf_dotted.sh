# A hybrid engine run of OpenRLHF 0.11 in dotted options.
python3 -m openrlhf.cli.train_ppo_ray \
  --actor.num_nodes 1 --actor.num_gpus_per_node 8 --critic.num_nodes 1 --critic.num_gpus_per_node 8 \
  --ref.num_nodes 1 --ref.num_gpus_per_node 8 --reward.num_nodes 1 --reward.num_gpus_per_node 8 \
  --vllm.num_engines 4 --vllm.tensor_parallel_size 2 --vllm.gpu_memory_utilization 0.5 \
  --vllm.enable_sleep --ds.enable_sleep --vllm.enforce_eager --train.colocate_all \
  --actor.model_name_or_path OpenRLHF/Llama-3-8b-sft-mixture \
  --reward.model_name_or_path OpenRLHF/Llama-3-8b-rm-700k \
  --train.batch_size 128 --rollout.batch_size 1024 --rollout.n_samples_per_prompt 4 --data.max_len 2048 \
  --train.dynamic_batch_enable --train.max_tokens_per_gpu 16384 --ds.packing_samples \
  --ds.zero_stage=3 --ds.param_dtype bf16 --actor.gradient_checkpointing_enable
