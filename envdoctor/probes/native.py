"""The probes of compiled files: which CUDA libraries torch loads, and what extension modules need.

Where neither torch nor such an extension is installed they answer here; what reads ELF files is
imported only where one is read.
"""

from __future__ import annotations

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from .interpreter import interpreter_of
from .machine import Probe
from .torch_build import torch_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional, Tuple

    from .machine import Machine

__all__ = [
    "PLACES",
    "PROBES_HERE",
    "probe_binaries",
    "probe_libraries",
]

_LIBRARY_FIELDS = ("libraries", "cudnn.system_version")
_BINARY_FIELDS = ("binaries", "glibcxx.version")

#: Where the distributions that matter keep their extensions: a folder, or the start of file names
#: beside the packages.
PLACES: Mapping[str, Tuple[str, ...]] = {
    "apex": (
        "apex_C",
        "amp_C",
        "fused_",
        "mlp_cuda",
        "syncbn",
        "scaled_",
        "xentropy_cuda",
        "fast_layer_norm",
    ),
    "auto-gptq": ("autogptq_", "exllama_kernels", "exllamav2_kernels"),
    "autoawq-kernels": ("awq_",),
    "bitsandbytes": ("bitsandbytes/",),
    "causal-conv1d": ("causal_conv1d_cuda",),
    "deep-ep": ("deep_ep_cpp", "deep_ep/"),
    "deep-gemm": ("deep_gemm/", "deep_gemm_cpp"),
    "deepspeed": (
        "deepspeed/ops/adam/",
        "deepspeed/ops/lamb/",
        "deepspeed/ops/transformer/",
        "deepspeed/ops/aio/",
    ),
    "exllamav2": ("exllamav2_ext",),
    "fbgemm-gpu": ("fbgemm_gpu/",),
    "flash-attn": ("flash_attn_2_cuda", "flash_attn_cuda"),
    "flash-attn-3": ("flash_attn_3/", "flash_attn_3_cuda"),
    "flash-mla": ("flash_mla_cuda", "flash_mla/"),
    "flashinfer": ("flashinfer/",),
    "flashinfer-python": ("flashinfer/",),
    "grouped-gemm": ("grouped_gemm_backend",),
    "mamba-ssm": ("selective_scan_cuda",),
    "natten": ("natten/",),
    "ray": ("ray/",),
    "sageattention": ("sageattention/",),
    "sgl-kernel": ("sgl_kernel/", "sgl_kernel/sm90/", "sgl_kernel/sm100/"),
    "sglang-kernel": ("sgl_kernel/", "sgl_kernel/sm90/", "sgl_kernel/sm100/"),
    "tensordict": ("tensordict/",),
    "torch": ("torch/",),
    "torch-cluster": ("torch_cluster/",),
    "torch-scatter": ("torch_scatter/",),
    "torch-sparse": ("torch_sparse/",),
    "torch-spline-conv": ("torch_spline_conv/",),
    "torchao": ("torchao/",),
    "torchaudio": ("torchaudio/lib/",),
    "torchvision": ("torchvision/",),
    "transformer-engine": ("transformer_engine/", "transformer_engine_torch"),
    "transformer-engine-cu12": ("transformer_engine/",),
    "transformer-engine-cu13": ("transformer_engine/",),
    "transformer-engine-torch": ("transformer_engine_torch", "transformer_engine/wheel_lib/"),
    "triton": ("triton/_C/",),
    "vllm": ("vllm/", "vllm/vllm_flash_attn/"),
    "vllm-flash-attn": ("vllm_flash_attn_2_cuda", "vllm_flash_attn/"),
    "xformers": ("xformers/",),
    "xgrammar": ("xgrammar/",),
}


def probe_libraries(machine: Machine) -> Dict[str, Fact[Any]]:
    """List the CUDA libraries that torch loads, and other copies of them."""
    nothing = _without_torch(machine)
    if nothing is not None:
        return dict.fromkeys(_LIBRARY_FIELDS, nothing)
    from .libraries import read_libraries

    return read_libraries(machine)


def probe_binaries(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read the extension modules that matter; with ``deep`` all that link torch."""
    nothing = _without_torch(machine)
    if isinstance(nothing, Unknown):
        return dict.fromkeys(_BINARY_FIELDS, nothing)
    if (
        nothing is not None
        and not machine.deep
        and PLACES.keys().isdisjoint(machine.value("distributions", ()))
    ):
        return {
            "binaries": Known((), Evidence(nothing.evidence.source, "ELF files")),
            "glibcxx.version": nothing,
        }
    from .binaries import read_binaries

    return read_binaries(machine, PLACES)


def _without_torch(machine: Machine) -> Optional[Fact[Any]]:
    """What to say of torch's libraries where no torch is installed; None where one is."""
    search_path = interpreter_of(machine).search_path
    if not search_path:
        return Unknown("the folders of the Python environment are not known")
    if torch_folder(machine) is not None:
        return None
    return Absent(Evidence(", ".join(search_path), "torch is not installed"))


PROBES_HERE: Tuple[Probe, ...] = (
    Probe("libraries", probe_libraries, _LIBRARY_FIELDS, isolated=False, deadline=3.0),
    Probe("binaries", probe_binaries, _BINARY_FIELDS, isolated=False, deadline=4.0),
)
