"""Which environment variables are kept, and what of them: a paste may hold tokens, and none may
leave.
"""

from __future__ import annotations

import re
from typing import Optional

from .word_lists import words

__all__ = ["kept_value"]

_PREFIXES = tuple(
    words(
        """
    ACCELERATE_ AMD_ BNB_ CUBLAS CUDA CUDNN CUTE_ CUTLASS_ DEEPSPEED_ DS_ FI_ FLASHINFER_
    FLASH_ATTENTION_ FLASH_ATTN_ FSDP_ GLOO_ HIP_ HSA_ IBV_ KINETO_ KUBERNETES_ LD_ LIBRARY_PATH
    LOCAL_RANK LOCAL_WORLD_SIZE MALLOC_ MASTER_ MAX_JOBS MIG_ MKL_ MLX5_ NCCL_ NODE_RANK NUMEXPR_
    NV_ NVCC_ NVIDIA_ NVSHMEM_ NVTE_ OMP_ OMPI_ OPENBLAS_ PJRT_ PYTORCH_ RANK RAY_ RCCL_ ROCM_ ROCR_
    SGLANG_ SGL_ SHARP_ SLURM_ TENSORRT_ TF_ TOKENIZERS_PARALLELISM TORCH TRITON_ UCX_ VLLM_
    WORLD_SIZE XFORMERS_ XLA_
    """
    )
)
_NAMES = words(
    """
    BASE_IMAGE CONDA_DEFAULT_ENV CONDA_PREFIX CC CXX PATH PYTHONHOME PYTHONPATH PYTHONNOUSERSITE
    TMPDIR UV_TORCH_BACKEND VIRTUAL_ENV WSL_DISTRO_NAME HF_HOME HF_HUB_OFFLINE
    HF_HUB_ENABLE_HF_TRANSFER TRANSFORMERS_CACHE TRANSFORMERS_OFFLINE TVM_FFI_CACHE_DIR
    """
)
_SECRET = re.compile(
    r"TOKEN(?!IZER)|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE|COOKIE|(?:^|_)(?:AUTH|KEY|PWD)(?:_|$)",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^/\s@]{1,300}@")
_QUERY = re.compile(
    r"([?&][\w.-]{0,40}(?:token|key|secret|sig|password|auth)[\w.-]{0,40}=)[^&\s]{1,2000}",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\b(?:hf_|sk-|ghp_|gho_|github_pat_|xox[abp]-|glpat-|AKIA|wandb_)[\w-]{8,}")


def kept_value(name: str, value: str) -> Optional[str]:
    """Return the value to keep of one variable, or None: not of the allow-list, or by its name a
    secret.
    """
    if _SECRET.search(name) or not (name in _NAMES or name.startswith(_PREFIXES)):
        return None
    return redact(value)


def redact(value: str) -> str:
    """Return the text without credentials in URLs and without what looks like a token."""
    value = _USERINFO.sub("", value[:4096])
    value = _QUERY.sub(r"\1…", value)
    return _TOKEN.sub("…", value)


def is_secret_name(name: str) -> bool:
    """Tell whether a variable or option holds a secret by its name."""
    return _SECRET.search(name.replace("-", "_")) is not None
