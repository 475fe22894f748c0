"""ED2xx: CUDA versions that do not belong together: of torch, of what is built against it, of
compilers and headers, of the local toolkit.
"""

from __future__ import annotations

import re

from ..model.evidence import Evidence, Known
from ..model.finding import Finding, Remedy
from ..model.row import Source
from ..model.versions import Version, cuda_of_variant, try_version
from .rule import Context, Rule, is_unindexed, minor_text, release_minor, torch_cuda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Optional, Tuple

__all__ = ["RULES_HERE"]

_EXTENSION = Source(
    "https://github.com/pytorch/pytorch/blob/main/torch/utils/cpp_extension.py",
    "the detected CUDA version mismatches the version that was used to compile PyTorch",
)
_TORCHVISION = Source(
    "https://github.com/pytorch/vision/blob/main/torchvision/extension.py",
    "PyTorch and torchvision were compiled with different CUDA major versions",
)
_FLASHINFER = Source(
    "https://github.com/vllm-project/vllm/issues/44305",
    "CUDA compiler and CUDA toolkit headers are incompatible",
)

#: What compiles CUDA code with the local toolkit when it is installed or first used.
_BUILDERS = (
    "deepspeed",
    "deepspeed-mii",
    "flashinfer-python",
    "flash-attn",
    "apex",
    "transformer-engine",
    "transformer-engine-torch",
    "causal-conv1d",
    "mamba-ssm",
    "tilelang",
    "gptqmodel",
    "sageattention",
    "vllm",
    "sglang",
)
#: Of these, the ones whose ordinary use compiles: a build with the wrong toolkit stops them, not
#: only their installation.
_RUNTIME_BUILDERS = ("deepspeed", "deepspeed-mii", "flashinfer-python", "tilelang")


#: Packages that link against torch's CUDA libraries, so that their CUDA major has to be torch's.
_LINKED = (
    "torchvision",
    "torchaudio",
    "vllm",
    "sgl-kernel",
    "sglang-kernel",
    "xformers",
    "flash-attn",
    "flash-attn-3",
    "torchao",
    "transformer-engine-torch",
)
_BY_NAME = frozenset(["transformer-engine", "onnxruntime-gpu", "tensorrt", "flashinfer-jit-cache"])


def check_cuda_majors(context: Context) -> Iterator[Finding]:
    """A package that links against torch is built for another CUDA major.

    What it checks:
        The CUDA that the version label of an installed package names (``+cu129``, ``-cu12``)
        against the CUDA of torch.

    Why it matters:
        Such a package asks for libcudart.so.12 while torch loads libcudart.so.13: its import fails,
        or two CUDA runtimes live in one process. torchvision checks it and refuses.

    How to fix:
        Install the build of the same CUDA as torch.

    References:
        https://github.com/pytorch/vision/blob/main/torchvision/extension.py
    """
    cuda = torch_cuda(context)
    if cuda is None:
        return
    for name, found in context.distributions.items():
        stem, _, suffix = name.rpartition("-")
        by_name = stem in _BY_NAME and suffix[:2] == "cu"
        version = try_version(found.version)
        if not by_name and (name not in _LINKED or version is None or not version.local):
            continue
        label = suffix if by_name else _label(version)
        other = try_version(cuda_of_variant(label)) if label else None
        if other is None or other.release[0] == cuda.release[0]:
            continue
        refused = name in ("torchvision", "vllm", "sgl-kernel", "sglang-kernel", "flash-attn")
        torch = context.facts.value("torch.version") or (
            context.distributions["torch"].version if "torch" in context.distributions else ""
        )
        yield Finding(
            code="ED203",
            component=name,
            kind="cuda-major-mismatch",
            severity="error" if refused and not is_unindexed(found) else "warning",
            message=(
                f"{name} {found.version} is built for CUDA {other}, torch {torch} for CUDA {cuda}"
            ).replace("  ", " ")
            + (
                ": torchvision refuses to be imported beside it."
                if name == "torchvision"
                else ": its libraries ask for another CUDA runtime than torch loads."
            ),
            evidence=(*context.installed(name, "torch"), *context.evidence("torch.cuda")),
            sources=(_TORCHVISION,) if name == "torchvision" else (_EXTENSION,),
            remedies=(
                Remedy(
                    f"Install the build of {name} for CUDA {cuda.release[0]}.",
                    (f"pip install '{name}' --index-url <the index that torch came from>",)
                    if name in ("torchvision", "torchaudio")
                    else (),
                ),
            ),
            packages=(name, "torch"),
        )


def _label(version: Optional[Version]) -> Optional[str]:
    found = re.search(r"\bcu(\d{2,3})", version.local or "") if version is not None else None
    return f"cu{found.group(1)}" if found is not None else None


def check_compiler_minors(context: Context) -> Iterator[Finding]:
    """The CUDA compiler and the CUDA headers in the environment are of different minors.

    What it checks:
        nvidia-cuda-nvcc (or an nvcc inside the environment) against nvidia-cuda-runtime, whose
        headers it compiles, and against torch's CUDA.

    Why it matters:
        What compiles at run time (FlashInfer, TileLang) takes both from the environment; the
        headers refuse a newer compiler: "CUDA compiler and CUDA toolkit headers are incompatible".

    How to fix:
        Bring nvidia-cuda-nvcc and nvidia-cuda-cccl to the minor of nvidia-cuda-runtime, which is
        torch's.

    References:
        https://github.com/vllm-project/vllm/issues/44305
    """
    cuda = torch_cuda(context)
    for suffix in ("", "-cu13", "-cu12"):
        nvcc_name, runtime_name = f"nvidia-cuda-nvcc{suffix}", f"nvidia-cuda-runtime{suffix}"
        nvcc = context.version(nvcc_name)
        runtime = context.version(runtime_name)
        if nvcc is None:
            continue
        base, what = runtime, f"{runtime_name} {runtime}"
        if base is None:
            base, what = (
                (cuda, f"torch's CUDA {cuda}")
                if cuda is not None and cuda.release[0] == nvcc.release[0]
                else (None, "")
            )
        if (
            base is not None
            and nvcc.release[0] == base.release[0]
            and release_minor(nvcc) != release_minor(base)
        ):
            yield _mixed_minors(
                context,
                nvcc_name,
                str(nvcc),
                what,
                base,
                context.installed(nvcc_name, runtime_name, "torch"),
            )
        return
    cuda_home = context.facts.variable("CUDA_HOME")
    home = cuda_home.value if isinstance(cuda_home, Known) else ""
    toolkit = context.fact_version("toolkit.version")
    if (
        "/site-packages/nvidia" in home
        and toolkit is not None
        and cuda is not None
        and toolkit.release[0] == cuda.release[0]
        and release_minor(toolkit) != release_minor(cuda)
    ):
        # CUDA_HOME inside the environment: that nvcc came from the wheel.
        yield _mixed_minors(
            context,
            "nvidia-cuda-nvcc",
            str(toolkit),
            f"torch's CUDA {cuda}",
            cuda,
            context.evidence("toolkit.version", "torch.cuda", "torch.version"),
        )


def _mixed_minors(
    context: Context, name: str, nvcc: str, what: str, base: Version, evidence: Tuple[Evidence, ...]
) -> Finding:
    users = [
        user
        for user in ("flashinfer-python", "tilelang", "deepspeed", "vllm", "sglang")
        if user in context.distributions
    ]
    return Finding(
        code="ED204",
        component=name,
        kind="cuda-minor-mixed",
        severity="warning"
        if users or not context.facts.value("distributions.complete")
        else "advice",
        message=f"{name} {nvcc} compiles against headers of another minor, {what}"
        + (
            f": run-time compilation by {users[0]} is refused."
            if users
            else ": run-time compilation (FlashInfer, TileLang) is refused."
        ),
        evidence=evidence,
        sources=(_FLASHINFER,),
        remedies=(
            Remedy(
                f"Bring nvcc and CCCL to CUDA {minor_text(base)}, and let CUDA_HOME and PATH point "
                "to that tree.",
                (
                    (
                        f"pip install '{name}=={minor_text(base)}.*' "
                        f"'{name.replace('nvcc', 'cccl')}=={minor_text(base)}.*'"
                    ),
                ),
            ),
        ),
        packages=(name, *users[:1]),
    )


def check_local_toolkit(context: Context) -> Iterator[Finding]:
    """The local CUDA toolkit is of another major than torch's CUDA.

    What it checks:
        nvcc's version (PATH, CUDA_HOME) against the CUDA that torch was built with.

    Why it matters:
        What is compiled here against torch (DeepSpeed's ops, extensions) stops: "The detected CUDA
        version mismatches the version that was used to compile PyTorch". Ready-made wheels do not
        use the toolkit.

    How to fix:
        Install a toolkit of torch's CUDA major and point CUDA_HOME to it, or a torch of the
        toolkit's major.

    References:
        https://github.com/pytorch/pytorch/blob/main/torch/utils/cpp_extension.py
    """
    toolkit = context.fact_version("toolkit.version")
    cuda = torch_cuda(context)
    if toolkit is None or cuda is None or toolkit.release[0] == cuda.release[0]:
        return
    present = [name for name in _BUILDERS if name in context.distributions]
    runtime = [name for name in _RUNTIME_BUILDERS if name in present]
    unknown = not context.facts.value("distributions.complete")
    if not present and not unknown:
        return
    if runtime:
        severity, tail = (
            "warning",
            f"{runtime[0]} compiles at run time with this toolkit and stops.",
        )
    elif unknown:
        severity, tail = (
            "warning",
            "what compiles CUDA code against torch here (DeepSpeed's ops, extensions) stops.",
        )
    else:
        severity, tail = (
            "advice",
            (
                f"building from source ({present[0]}, other extensions) stops; wheels are not "
                "affected."
            ),
        )
    yield Finding(
        code="ED206",
        component="cuda-toolkit",
        kind="cuda-major-mismatch",
        severity=severity,
        message=f"The local CUDA toolkit is {toolkit}, torch is built with CUDA {cuda}: {tail}",
        evidence=(
            *context.evidence("toolkit.version", "torch.cuda"),
            *context.installed("torch", *runtime[:1]),
        ),
        sources=(_EXTENSION,),
        remedies=(
            Remedy(
                f"Install a CUDA {cuda.release[0]}.x toolkit and point CUDA_HOME to it.",
                (f"export CUDA_HOME=/usr/local/cuda-{minor_text(cuda)}",),
                "changes-host",
            ),
            Remedy(f"Or install a build of torch for CUDA {toolkit.release[0]}."),
        ),
        packages=("torch", *runtime[:1]),
    )


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED203",
        "cuda-majors",
        "cuda-major-mismatch",
        "A package is built for another CUDA major than torch",
        check_cuda_majors,
        half="environment",
    ),
    Rule(
        "ED204",
        "compiler-minors",
        "cuda-minor-mixed",
        "nvcc and CUDA headers of different minors",
        check_compiler_minors,
        half="environment",
    ),
    Rule(
        "ED206",
        "local-toolkit",
        "cuda-major-mismatch",
        "The local toolkit's CUDA major is not torch's",
        check_local_toolkit,
        half="environment",
    ),
)
