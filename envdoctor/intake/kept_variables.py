"""Which environment variables are kept, and what of them: a paste may hold tokens, and none may
leave.
"""

from __future__ import annotations

from typing import Optional

from ..model.redaction import is_secret_name
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


def kept_value(name: str, value: str) -> Optional[str]:
    """Return the value to keep of one variable, or None: not of the allow-list, or by its name a
    secret.
    """
    if is_secret_name(name) or not (name in _NAMES or name.startswith(_PREFIXES)):
        return None
    return value[:4096]
