"""Environment variables that steer the stack, by an allow-list.

Facts are pasted into public issues. So a variable is shown only when its name is on the list; what
belongs to a listed family but looks like a secret by name is left out; and every value is redacted,
whatever its name.
"""

from __future__ import annotations

from ..model.evidence import Evidence, Fact, Known, Unknown
from ..model.redaction import redact
from .machine import FOLDER_ONLY, Machine, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Tuple

__all__ = ["PROBES_HERE", "is_listed", "probe_variables", "select_variables"]

_LONGEST = 8192

_LISTED = """
LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT LIBRARY_PATH CPATH PATH PYTHONPATH PYTHONHOME PYTHONNOUSERSITE
PYTHONUSERBASE PYTHONSAFEPATH
PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION VIRTUAL_ENV
CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_OVERRIDE_CUDA
CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VERSION CUDACXX NVCC_PREPEND_FLAGS NVCC_APPEND_FLAGS NVARCH
CUDNN_PATH CUDNN_HOME NCCL_HOME
NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES NVIDIA_REQUIRE_CUDA NVIDIA_DISABLE_REQUIRE
NVIDIA_PRODUCT_NAME NVIDIA_TF32_OVERRIDE
NVIDIA_PYTORCH_VERSION NVIDIA_MIG_CONFIG_DEVICES NVIDIA_IMEX_CHANNELS
MAX_JOBS CC CXX CFLAGS CXXFLAGS LDFLAGS CMAKE_ARGS CMAKE_CUDA_ARCHITECTURES USE_NINJA FORCE_CUDA
OMP_NUM_THREADS OMP_PROC_BIND KMP_AFFINITY OPENBLAS_NUM_THREADS MKL_NUM_THREADS NUMEXPR_MAX_THREADS
MKL_THREADING_LAYER MKL_SERVICE_FORCE_INTEL
TOKENIZERS_PARALLELISM ATTN_BACKEND XFORMERS_FORCE_DISABLE_TRITON ACCELERATE_USE_FSDP
ACCELERATE_USE_DEEPSPEED ACCELERATE_MIXED_PRECISION
HYDRA_FULL_ERROR PL_GLOBAL_SEED WORLD_SIZE RANK LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK MASTER_PORT
HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HSA_OVERRIDE_GFX_VERSION ZE_AFFINITY_MASK
ONEAPI_DEVICE_SELECTOR
HF_HUB_OFFLINE HF_HUB_ENABLE_HF_TRANSFER HF_XET_HIGH_PERFORMANCE HF_HUB_DISABLE_XET HF_HOME
HF_DATASETS_OFFLINE TRANSFORMERS_OFFLINE
TRANSFORMERS_CACHE
PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_CONSTRAINT PIP_NO_BINARY PIP_ONLY_BINARY
PIP_NO_BUILD_ISOLATION PIP_BREAK_SYSTEM_PACKAGES
PIP_USER
UV_INDEX_URL UV_EXTRA_INDEX_URL UV_DEFAULT_INDEX UV_INDEX UV_FIND_LINKS UV_INDEX_STRATEGY
UV_TORCH_BACKEND UV_CUDA_DRIVER_VERSION
UV_NO_BUILD_ISOLATION UV_OVERRIDE UV_CONSTRAINT UV_SYSTEM_PYTHON
MALLOC_ARENA_MAX MALLOC_TRIM_THRESHOLD_ GLIBC_TUNABLES TMPDIR
"""
_NAMES = frozenset(_LISTED.split())

_FAMILIES = (
    "ACCELERATE_",
    "BITSANDBYTES_",
    "BNB_",
    "CUBLAS_",
    "CUBLASLT_",
    "CUDA_",
    "CUDNN_",
    "CUPY_",
    "DEEPGEMM_",
    "DG_",
    "DS_",
    "DEEPSPEED_",
    "FI_",
    "FLASHINFER_",
    "FLASH_ATTENTION_",
    "FLASH_ATTN_",
    "GLOO_",
    "LMDEPLOY_",
    "MAGMA_",
    "NCCL_",
    "NVSHMEM_",
    "NVTE_",
    "OMPI_MCA_",
    "PYTORCH_",
    "RAY_",
    "SGLANG_",
    "SGL_",
    "TE_",
    "TLLM_",
    "TORCHDYNAMO_",
    "TORCHINDUCTOR_",
    "TORCH_",
    "TRITON_",
    "TRTLLM_",
    "UCX_",
    "VERL_",
    "VLLM_",
    "XFORMERS_",
)

# In a name of a family. TOKENIZERS_PARALLELISM is on the list by its whole name.
_SECRET_NAMES = (
    *(
        "KEY",
        "TOKEN",
        "SECRET",
        "PASS",
        "PWD",
        "CRED",
        "AUTH",
        "COOKIE",
        "SIGN",
        "DSN",
        "WEBHOOK",
        "CERT",
        "PRIVATE",
        "LICENSE",
        "SALT",
    ),
    *("USER", "EMAIL", "ACCOUNT", "HEADER"),
)


def is_listed(name: str) -> bool:
    """Tell whether a variable may be shown."""
    if name in _NAMES:
        return True
    return name.startswith(_FAMILIES) and not any(word in name for word in _SECRET_NAMES)


def select_variables(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the listed variables with redacted values, cut at 8192 characters."""
    return {name: _clean(value) for name, value in sorted(environment.items()) if is_listed(name)}


def _clean(value: str) -> str:
    text = (
        value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if not value.isascii()
        else value
    )
    if len(text) > _LONGEST:
        # Cut before redaction would leave half a token that no pattern knows: cut at a separator.
        cut = max(text.rfind(mark, 0, _LONGEST) for mark in ":,; ")
        text = text[: max(cut, 0)] + "…"
    return redact(text)


def probe_variables(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read the environment variables of the allow-list."""
    if machine.root and not machine.environment:
        return {"variables": Unknown(FOLDER_ONLY)}
    return {"variables": Known(select_variables(machine.environment), Evidence("environment"))}


PROBES_HERE: Tuple[Probe, ...] = (Probe("variables", probe_variables, ("variables",), False, 2.0),)
