# examples/basic/wiki-search of PrimeIntellect-ai/prime-rl: its README's command, with less for the engine.
uv run rl @ prime_rl_wiki.toml \
  --monitors.wandb.project wiki --trainer.model.optim-cpu-offload false \
  --inference.vllm.gpu-memory-utilization 0.8
