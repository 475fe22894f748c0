"""What the judges of locks draw from: packages, machines and Pythons."""

__all__ = ["MACHINES", "PYTHONS", "ROOTS"]

#: Root packages of what people launch, from most to least downloaded on the index.
ROOTS = (
    "torch",
    "transformers",
    "vllm",
    "accelerate",
    "datasets",
    "peft",
    "torchvision",
    "bitsandbytes",
    "xformers",
    "ray",
    "trl",
    "deepspeed",
    "sglang",
    "liger-kernel",
    "torchao",
    "flash-attn",
    "flashinfer-python",
    "outlines",
    "verl",
    "openrlhf",
)
#: A GPU and a driver that it runs with.
MACHINES = (
    ("H100", "580.95.05"),
    ("H100", "550.54.15"),
    ("A100", "535.129.03"),
    ("RTX 4090", "570.86.15"),
    ("B200", "580.95.05"),
    ("T4", "550.54.15"),
)
#: Pythons that people install for these packages.
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
