"""ED2xx: CUDA versions that do not go together: torch's, its extensions', compilers', toolkits'."""

from __future__ import annotations

import re

from ..model.calls import InstallerCall
from ..model.evidence import Evidence
from ..model.facts import Distribution
from ..model.finding import Finding, Remedy
from ..model.row import Source
from ..model.versions import Version, cuda_of_variant, try_version
from .rule import Context, Rule, cuda_home, is_unindexed, minor_text, release_minor, torch_cuda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Optional, Tuple

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
#: What brings one of them along.
_BRINGS_BUILDERS = ("sglang",)


def compilers_of_cuda(context: Context) -> List[str]:
    """Return what is installed and compiles CUDA code here, what does so at run time first."""
    builders = [*_RUNTIME_BUILDERS, *_BUILDERS]
    return [name for name in dict.fromkeys(builders) if name in context.distributions]


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


#: Their import is refused, or their kernels do not load, beside a torch of another CUDA major.
_REFUSED = ("torchvision", "vllm", "sgl-kernel", "sglang-kernel", "flash-attn")


def check_cuda_majors(context: Context) -> Iterator[Finding]:
    """A package that links against torch is built for another CUDA major.

    What it checks:
        The CUDA that the version label of an installed package names (``+cu129``, ``-cu12``)
        against the CUDA of torch.

    Why it matters:
        Such a package needs libcudart.so.12 while torch loads libcudart.so.13: its import fails,
        or two CUDA runtimes live in one process. torchvision checks it and refuses.

    How to fix:
        Install the build of the same CUDA as torch.

    References:
        https://github.com/pytorch/vision/blob/main/torchvision/extension.py
    """
    cuda = torch_cuda(context)
    if cuda is None:
        return
    for name, installed in context.distributions.items():
        other = _labelled_cuda(name, installed)
        if other is not None and other.release[0] != cuda.release[0]:
            yield _other_major(context, installed, other, cuda)


def _labelled_cuda(name: str, installed: Distribution) -> Optional[Version]:
    """Return the CUDA that a name (``tensorrt-cu12``) or a local version (``+cu129``) names."""
    stem, _, suffix = name.rpartition("-")
    if stem in _BY_NAME and suffix.startswith("cu"):
        return try_version(cuda_of_variant(suffix))
    version = try_version(installed.version) if name in _LINKED else None
    if version is None or not version.local:
        return None
    match = re.search(r"\bcu\d{2,3}", version.local)
    return try_version(cuda_of_variant(match[0])) if match is not None else None


def _other_major(
    context: Context, installed: Distribution, other: Version, cuda: Version
) -> Finding:
    name = installed.name
    torch: Optional[str] = context.facts.value("torch.version")
    if not torch and "torch" in context.distributions:
        torch = context.distributions["torch"].version
    consequence, source = "its libraries need another CUDA runtime than torch loads", _EXTENSION
    if name == "torchvision":
        consequence, source = "torchvision refuses to be imported beside it", _TORCHVISION
    index = f"https://download.pytorch.org/whl/cu{''.join(map(str, release_minor(cuda)))}"
    from_index = (InstallerCall("install", (name,), ("--index-url", index)),)
    return Finding(
        code="ED203",
        component=name,
        kind="cuda-major-mismatch",
        severity="error" if name in _REFUSED and not is_unindexed(installed) else "warning",
        message=f"{name} {installed.version} is built for CUDA {other}, "
        f"torch{f' {torch}' if torch else ''} for CUDA {cuda}: {consequence}.",
        evidence=(*context.installed(name, "torch"), *context.evidence("torch.cuda")),
        sources=(source,),
        remedies=(
            Remedy(
                f"Install the build of {name} for CUDA {cuda.release[0]}.",
                from_index if name in ("torchvision", "torchaudio") else (),
            ),
        ),
        packages=(name, "torch"),
    )


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
    wheels = [f"nvidia-cuda-nvcc{suffix}" for suffix in ("", "-cu13", "-cu12")]
    wheel = next((name for name in wheels if context.version(name) is not None), None)
    if wheel is not None:
        yield from _nvcc_wheel(context, wheel)
    elif "/site-packages/nvidia" in cuda_home(context):
        yield from _nvcc_in_environment(context)


def _nvcc_wheel(context: Context, name: str) -> Iterator[Finding]:
    """Compare the wheel of nvcc with that of the headers, else with torch's CUDA of that major."""
    nvcc, cuda = context.version(name), torch_cuda(context)
    runtime_name = name.replace("nvcc", "runtime")
    runtime = context.version(runtime_name)
    headers, what = runtime, f"{runtime_name} {runtime}"
    if runtime is None:
        headers, what = cuda, f"torch's CUDA {cuda}"
    if nvcc is not None and headers is not None and _are_other_minors(nvcc, headers):
        evidence = context.installed(name, runtime_name, "torch")
        yield _mixed_minors(context, name, str(nvcc), what, headers, evidence)


def _nvcc_in_environment(context: Context) -> Iterator[Finding]:
    """Compare a toolkit in CUDA_HOME inside the environment: its nvcc came from the wheel."""
    toolkit, cuda = context.fact_version("toolkit.version"), torch_cuda(context)
    if toolkit is not None and cuda is not None and _are_other_minors(toolkit, cuda):
        evidence = context.evidence("toolkit.version", "torch.cuda", "torch.version")
        yield _mixed_minors(
            context, "nvidia-cuda-nvcc", str(toolkit), f"torch's CUDA {cuda}", cuda, evidence
        )


def _are_other_minors(nvcc: Version, headers: Version) -> bool:
    """Tell whether two versions are different minors of one CUDA major."""
    same_major = nvcc.release[0] == headers.release[0]
    return same_major and release_minor(nvcc) != release_minor(headers)


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
                    InstallerCall(
                        "install",
                        (
                            f"{name}=={minor_text(base)}.*",
                            f"{name.replace('nvcc', 'cccl')}=={minor_text(base)}.*",
                        ),
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
    builders = compilers_of_cuda(context)
    runtime = [name for name in _RUNTIME_BUILDERS if name in builders]
    severity = "warning"
    if runtime:
        consequence = f"{runtime[0]} compiles at run time with this toolkit and stops"
    elif not context.facts.value("distributions.complete"):
        # Nothing says that anything is compiled here.
        brings = builders or not set(_BRINGS_BUILDERS).isdisjoint(context.distributions)
        severity = "warning" if brings else "advice"
        consequence = "compiling CUDA code against torch here (DeepSpeed's ops, extensions) fails"
    elif builders:
        severity = "advice"
        consequence = (
            f"building from source ({builders[0]}, other extensions) fails; wheels are not affected"
        )
    else:
        return
    yield Finding(
        code="ED206",
        component="cuda-toolkit",
        kind="cuda-major-mismatch",
        severity=severity,
        message=f"The local CUDA toolkit is {toolkit}, but torch is built with CUDA {cuda}: "
        f"{consequence}.",
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
        presumed=True,  # nobody said that anything is compiled here
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
