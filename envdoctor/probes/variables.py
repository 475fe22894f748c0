"""Environment variables that steer the stack, by an allow-list, and the redaction of secrets in any
text.

Facts are pasted into public issues. So a variable is shown only when its name is on the list; what
belongs to a listed family but looks like a secret by name is left out; and every value is redacted,
whatever its name.
"""

from __future__ import annotations

from ..model.evidence import Evidence, Fact, Known, Unknown
from ..model.pattern import pattern
from .machine import FOLDER_ONLY, Machine, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, Dict, Mapping, Tuple

__all__ = ["PROBES_HERE", "is_listed", "probe_variables", "redact", "select_variables"]

HIDDEN = "***"
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

# What ends an address in a text, or parts one that has more than a path.
_PARTS_OF_URLS = frozenset(" \"'<>\\@?#")
_URL = pattern(r"""([A-Za-z][A-Za-z0-9+.-]{0,30})://([^\s"'<>\\]+)""")
_HOST = pattern(r"(?:[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_SHAPES = pattern(
    r"hf_[A-Za-z0-9]{8,}|api_org_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}|glc_[\w=+/]{8,}|gl[a-z]{2,4}-[\w-]{16,}"
    r"|sk-[\w-]{8,}|sk_[\w-]{8,}|pk_[\w-]{8,}|rk_[\w-]{8,}|xox[a-z]-[\w-]{8,}|pypi-[\w-]{8,}|npm_[A-Za-z0-9]{8,}|nvapi-[\w-]{8,}"
    r"|AKIA[0-9A-Z]{12,}|ASIA[0-9A-Z]{12,}|AIza[\w-]{20,}|ya29\.[\w-]{8,}|eyJ[\w-]{8,}\.[\w.-]+|wandb_v1_\w{8,}|r8_\w{16,}"
)
# Each alternative of _SHAPES begins with one of these, each of _ASSIGNED and _FLAG_SECRET holds one
# of the words.
_SHAPE_STARTS = (
    *(
        "hf_",
        "api_org_",
        "gh",
        "github_pat_",
        "gl",
        "sk-",
        "sk_",
        "pk_",
        "rk_",
        "xox",
        "pypi-",
        "npm_",
        "nvapi-",
    ),
    *("AKIA", "ASIA", "AIza", "ya29.", "eyJ", "wandb_v1_", "r8_"),
)
_SECRET_WORDS = (
    "key",
    "token",
    "secret",
    "pass",
    "pwd",
    "credential",
    "auth",
    "cookie",
    "signature",
)
_ASSIGNED = pattern(
    r"(?i)([\w-]{0,40}(?:key|token|secret|passwd|password|passphrase|pwd|credential|authorization|auth|cookie|signature)[\w-]{0,40}['\"]?\s{0,4}[=:]\s{0,4})"
    r"(?:(?:bearer|basic|token)\s+)?(?!\*\*\*)([^\s,;&]+)"
)
_BEARER = pattern(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}")
_BARE_USER = pattern(r"(?<![\w/.@:-])[^\s:/@=,;]{1,128}:[^\s/@,;]{1,256}@(?=[\w\[])")
_FLAG_SECRET = pattern(
    r"(?i)(--?[\w-]{0,40}(?:key|token|secret|passw(?:or)?d|credential|auth)[\w-]{0,40}\s{1,4})(?!-)(\S+)"
)
_OPAQUE = pattern(r"(?<![\w/.+=@:-])[A-Za-z0-9_+=-]{32,}(?![\w/.-])")
_DEVICE = pattern(
    r"(?:GPU|MIG|MIG-GPU)-[0-9a-fA-F-]{8,40}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)


def redact(text: str) -> str:
    """Return text without credentials: users, passwords, queries and tokens of URLs, and what looks
    like a token.
    """
    # What cannot match is not asked: compiling these takes longer than the whole probe, and most
    # values are plain paths.
    if "://" in text:
        if (
            text.startswith("file:///")
            and text.count("://") == 1
            and text.isascii()
            and text.isprintable()
            and not _PARTS_OF_URLS.intersection(text)
        ):
            # What _redact_url makes of it.
            text = "file:///" + "/".join(
                [HIDDEN if _is_token(segment) else segment for segment in text[8:].split("/")]
            )
        else:
            text = _URL.sub(_redact_url, text)
    if any(start in text for start in _SHAPE_STARTS):
        text = _SHAPES.sub(HIDDEN, text)
    if _mentions(text, _SECRET_WORDS):
        text = _ASSIGNED.sub(lambda found: found.group(1) + HIDDEN, text)
    if _mentions(text, ("bearer", "basic")):
        text = _BEARER.sub(lambda found: f"{found.group(1)} {HIDDEN}", text)
    if _mentions(text, _SECRET_WORDS):
        text = _FLAG_SECRET.sub(lambda found: found.group(1) + HIDDEN, text)
    if "@" in text:
        text = _BARE_USER.sub(HIDDEN + "@", text)
    return _OPAQUE.sub(_redact_opaque, text) if _has_long_word(text) else text


def _has_long_word(text: str) -> bool:
    """Tell whether ``_OPAQUE`` may match: no word of it holds any of these separators."""
    if len(text) < 32:
        return False
    for separator in "/:.,;":
        text = text.replace(separator, " ")
    return max(map(len, text.split()), default=0) >= 32


def _mentions(text: str, words: Tuple[str, ...]) -> bool:
    """Tell whether a pattern of these words may match.

    Beyond ASCII a pattern that ignores case also takes the long s and a dotless i.
    """
    if not text.isascii():
        return True
    text = text.lower()
    return any(word in text for word in words)


def _redact_url(found: re.Match[str]) -> str:
    scheme, rest = found.group(1), found.group(2)
    for mark in "?#":
        head, present, _ = rest.partition(mark)
        if present:
            rest = head
    ending = ""
    if scheme.startswith(("git+", "hg+", "svn+", "bzr+")):
        # A host is followed by a path there, so what has no "/" behind the last "@" is a revision.
        head, at, revision = rest.rpartition("@")
        if at and "/" in head and "/" not in revision:
            rest, ending = head, at + revision
    # A raw "/" or "@" in a password shifts the last "@" to the right: all before it goes.
    user, at, rest = rest.rpartition("@")
    host, slash, path = rest.partition("/")
    if not _HOST.fullmatch(host):
        return f"{scheme}://{HIDDEN}"
    segments = [HIDDEN if _is_token(segment) else segment for segment in path.split("/")]
    query = (
        "?" + HIDDEN if len(found.group(2)) > len(user) + len(at) + len(rest) + len(ending) else ""
    )
    return (
        f"{scheme}://{HIDDEN + '@' if at else ''}{host}{slash}{'/'.join(segments)}{ending}{query}"
    )


def _is_token(segment: str) -> bool:
    """Tell whether a path segment may be a token, as private indexes have them; file names and
    labels are none.
    """
    if len(segment) < 12 or segment.endswith(
        (".whl", ".gz", ".zip", ".git", ".html", ".txt", ".toml")
    ):
        return False
    digits = sum(character.isdigit() for character in segment)
    letters = sum(character.isalpha() for character in segment)
    return (digits >= 2 and letters >= 2) or len(segment) >= 20


def _redact_opaque(found: re.Match[str]) -> str:
    word = found.group(0)
    if (
        _DEVICE.fullmatch(word)
        or not any(map(str.isdigit, word))
        or not any(map(str.isalpha, word))
    ):
        return word
    return HIDDEN


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
