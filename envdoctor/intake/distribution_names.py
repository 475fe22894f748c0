"""Distributions that prose may name without ``==``, and what people and other packagers call
them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Optional, Tuple

from ..model.versions import canonicalize_name, parse_version, try_version
from .word_lists import words

__all__ = [
    "COMMON_WORDS",
    "FIRST_WORDS",
    "is_distribution",
    "known_distribution",
    "named_distributions",
    "of_conda",
    "of_import",
]

#: A Chinese letter beside a name is none of it.
_WORD = re.compile(r"(?<![\w./@:=\\-])[A-Za-z][A-Za-z0-9_-]{1,40}(?![\w/\\@=(:-]|\.\w)", re.ASCII)
_KNOWN = words(
    """
    accelerate aiohttp apache-tvm-ffi apex arctic-inference auto-gptq autoawq awscli bitsandbytes
    blobfile causal-conv1d click cloudpickle cmake codetiming compressed-tensors cuda-bindings
    cuda-pathfinder cuda-python cupy-cuda11x cupy-cuda12x cupy-cuda13x datasets decord deep-ep
    deep-gemm deepspeed deepspeed-mii depyf dill diffusers einops fairscale fastapi fastsafetensors
    filelock flash-attn flash-attn-3 flash-linear-attention flash-mla flashinfer flashinfer-cubin
    flashinfer-jit-cache flashinfer-python fschat fsspec gguf gptqmodel gradio grpcio hqq httpx
    huggingface-hub humming-kernels hydra-core importlib-metadata intel-extension-for-pytorch jinja2
    kernels lark latex2sympy2 liger-kernel lightning litellm llama-cpp-python llamafactory
    llguidance llmcompressor llvmlite lm-format-enforcer lmcache lmdeploy mamba-ssm mathruler
    math-verify megatron-core mistral-common mlflow modelscope mooncake-transfer-engine mpi4py
    ms-swift msgpack msgspec nemo-toolkit ninja nixl numba numpy nvidia-cutlass-dsl nvidia-ml-py
    nvidia-modelopt omegaconf onnxruntime openai opencv-python opencv-python-headless openrlhf
    optimum optree orjson outlines outlines-core packaging pandas partial-json-parser peft pillow
    pip prometheus-client protobuf psutil pyairports pyarrow pybind11 pycocotools pydantic
    pydantic-core pylatexenc pynvml pytest pytorch-lightning pytorch-triton pyyaml pyzmq
    qwen-vl-utils quack-kernels ray regex requests rouge-score safetensors scikit-learn scipy
    sentence-transformers sentencepiece setuptools sgl-kernel sgl-router sglang sglang-kernel
    sglang-router starlette sympy tensorboard tensordict tensorflow tensorizer tensorrt tensorrt-llm
    tiktoken tilelang tokenizers torch torch-memory-saver torchao torchaudio torchdata torchmetrics
    torchtext torchvision tqdm transformer-engine transformers triton triton-kernels trl typer
    typing-extensions unsloth unsloth-zoo uv uvicorn uvloop verl vllm vllm-flash-attn vllm-nccl-cu11
    vllm-nccl-cu12 vllm-ascend wandb watchfiles wheel xformers xgrammar xinference tvm-ffi
    torchtitan torchrec torchtune slime rl-games nemo-rl fbgemm-gpu fbgemm-gpu-genai axolotl
    lightllm mlc-llm ctranslate2 dlinfer exllamav2 exllamav3 faster-whisper jax jaxlib keras
    bigdl-llm ipex-llm pyannote-audio torch-npu whisperx
    """
)
_PREFIXES = (
    "nvidia-",
    "flashinfer-",
    "vllm-",
    "sglang-",
    "sgl-",
    "cupy-cuda",
    "torch-",
    "transformer-engine-",
    "cuda-bindings",
)
# What the distributor's package manager installs: no Python distribution.
_DRIVER_PACKAGES = tuple(
    words(
        """
    nvidia-container nvidia-dkms nvidia-docker nvidia-driver nvidia-fabric nvidia-gpu
    nvidia-headless nvidia-kernel nvidia-libs nvidia-open nvidia-persistenced nvidia-smi
    nvidia-utils torch-version torch-cuda torch-compile
    """
    )
)
_ALIASES = {
    "pytorch": "torch",
    "flash-attention": "flash-attn",
    "flash-attention-2": "flash-attn",
    "flashattention": "flash-attn",
    "flashattention-2": "flash-attn",
    "flashattn": "flash-attn",
    "flashattention2": "flash-attn",
    "llama-factory": "llamafactory",
    "transformer": "transformers",
    "huggingface-transformers": "transformers",
    "hf-transformers": "transformers",
    "hf-hub": "huggingface-hub",
    "bnb": "bitsandbytes",
    "zmq": "pyzmq",
    "te": "transformer-engine",
    "transformerengine": "transformer-engine",
    "megatron-lm": "megatron-core",
    "mcore": "megatron-core",
    "protobuf-python": "protobuf",
    "liger": "liger-kernel",
    "liger-kernels": "liger-kernel",
    "nemo": "nemo-toolkit",
    "lmfe": "lm-format-enforcer",
    "torch-vision": "torchvision",
    "torch-audio": "torchaudio",
    "nemorl": "nemo-rl",
    "deepep": "deep-ep",
    "deepgemm": "deep-gemm",
    "flashmla": "flash-mla",
}
# What conda-forge and the pytorch channel call what the index calls otherwise.
_CONDA = {
    "pytorch": "torch",
    "pytorch-gpu": "torch",
    "pytorch-cpu": "torch",
    "ray-core": "ray",
    "ray-default": "ray",
    "opencv": "opencv-python",
    "msgpack-python": "msgpack",
}


#: Names that are words of any text: without a version they name no distribution.
COMMON_WORDS = words(
    "apex click kernels lark lightning outlines packaging pillow regex requests wheel"
)
#: Names that are words of any text, or of programs, which without a version state no package.
_OF_ANY_TEXT = COMMON_WORDS | words(
    """
    accelerate click cmake datasets dill keras ninja openai optimum pip ray setuptools slime te
    tensorizer torch-compile uv
    """
)
#: The first word of every name, for readers that look for names in a text.
FIRST_WORDS = frozenset(
    [name.split("-")[0] for name in (*_KNOWN, *_ALIASES, *_PREFIXES)] + ["flash", "transformer"]
)


_MOST_SPACES = 3  # in what people call a distribution


@lru_cache(maxsize=4096)
def known_distribution(words: str) -> Optional[str]:
    """Return the canonical name of a distribution that ``words`` name (``PyTorch``,
    ``flash_attn``), or None.
    """
    if "/" in words or words.count(" ") > _MOST_SPACES:
        return None
    name = canonicalize_name("-".join(words.split()))
    name = _ALIASES.get(name, name)
    return (
        name
        if name in _KNOWN or (name.startswith(_PREFIXES) and not name.startswith(_DRIVER_PACKAGES))
        else None
    )


def is_distribution(words: str) -> bool:
    """Tell whether words are, one by one, the name of a distribution that is known."""
    return " " in words and canonicalize_name("-".join(words.split())) in _KNOWN


def named_distributions(text: str) -> Tuple[str, ...]:
    """Return the distributions that a text names, with or without a version, in order."""
    names = (known_distribution(word.rstrip("-_")) for word in _WORD.findall(text))
    return tuple(dict.fromkeys(n for n in names if n is not None and n not in _OF_ANY_TEXT))


def of_import(name: str, version: Optional[str]) -> str:
    """Return the distribution behind a name that is also a module's, or misspelt: FlashInfer is
    ``flashinfer-python`` since 0.2.1.
    """
    number = try_version(version)
    if name == "flashinfer" and number is not None and number >= parse_version("0.2.1"):
        return "flashinfer-python"
    if name == "transformer" and number is not None and number >= parse_version("4.0"):
        return "transformers"  # the distribution "transformer" has no such release
    return name


def of_conda(name: str) -> str:
    """Return the distribution that a conda package holds."""
    name = canonicalize_name(name)
    return _CONDA.get(name, name)
