"""What a failing run asks for and no build here has, as facts of the builds say: CUDA of a torch
that is made for the processor alone, of another package of that kind, and packages without a wheel
for the platform, code for this GPU of a program that brings its own kernels.

That a name or an operator is missing says nothing of releases then: another build has it.
"""

from __future__ import annotations

from typing import Mapping, Sequence, Tuple

from ..model.calls import InstallerCall
from ..model.finding import Remedy
from ..model.log import Raised
from ..model.pattern import pattern
from ..model.row import Source
from ..model.versions import parse_version, try_version
from ..rules.gpu_generations import cpu_build
from ..rules.rule import Context
from ..rules.wheel_tags import place_without_wheels, ways_without_wheels
from .logged_run import LoggedRun
from .trace_draft import TraceDraft, code_of_log, groups_of

__all__ = ["tell_lacking_builds"]

_ALONE = "is a build for the processor alone"
#: What asks for CUDA; a device that ran out of memory had it.
_ASKS = pattern(
    r"\bCUDA\b(?! (?:out of memory|error))|\b_cuda_?[a-z]\w*|\bcuda(?:rt|Get|Malloc)\w*"
)
#: What ggml prints, which llama.cpp, ollama and others are built of: its records and its files
#: (https://github.com/ggml-org/llama.cpp/blob/b5000/ggml/src/ggml-cuda/ggml-cuda.cu).
_OF_GGML = pattern(r"\bggml_(?:cuda|backend)\w{0,60}: |\bggml-cuda(?:/\w{1,60})?\.cu:\d")
_OF_TORCH = pattern(r"/torch/|\bimport torch\b|\btorch\.(?:cuda|AcceleratorError)|\bc10::")
#: ``libbitsandbytes_cuda128.so``: of a package, and for CUDA 12.8. Only wheels for Linux are
#: measured, and those for Windows may hold other libraries: 0.43.1's lacks that for CUDA 12.4.
_BY_CUDA = pattern(r"\blib([a-z]\w{1,60})_cuda(\d{2})(\d)\.so\b")
_NO_CODE = ("cuda-no-kernel-image", "cuda-invalid-device-function")
_BUILD_OF_GGML = Source(
    "https://github.com/ggml-org/llama.cpp/blob/master/docs/build.md",
    "Override Compute Capability Specifications",
)
_OPERATOR = pattern(r"\b([a-z][a-z0-9_]{2,40})::[a-z]\w*")


def tell_lacking_builds(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Name the build as the cause of the failing exception, and of modules that are not there."""
    for draft in drafts:
        if draft.signature is None:
            if run.exception is not None and _is_unexplained(draft, run.exception):
                _tell_cpu_build(draft, run.exception, run.context)
        elif draft.signature.id == "module-missing" and draft.events:
            _tell_platform(draft, run.context, run.modules)
        elif draft.signature.id == "operators-not-registered" and draft.events:
            _tell_operators(draft, run.context, run.modules)
        elif draft.signature.id in _NO_CODE:
            _tell_ggml(draft, run.report, run.context)
        elif draft.signature.id == "bitsandbytes-no-binary" and draft.events:
            _tell_library(draft, run.context, run.modules)


def _is_unexplained(draft: TraceDraft, raised: Raised) -> bool:
    """Tell whether a draft is that of this exception, which no finding of a check explains."""
    return raised.line in draft.quoted and draft.finding.kind == "not-judged"


def _tell_cpu_build(draft: TraceDraft, raised: Raised, context: Context) -> None:
    """Of an exception that no signature knows, and that asks for CUDA by its words or its place."""
    file = raised.frames[-1].file if raised.frames else ""
    words = raised.message.partition("\n\n")[0]  # behind a blank line something else begins
    if not (_ASKS.search(words) or "/torch/cuda/" in file):
        return
    package, version = _without_cuda(raised, context)
    if not package:
        return
    kind = "arch-missing"
    draft.finding = draft.finding._replace(
        code=code_of_log(package, kind),
        component=package,
        kind=kind,
        message=f"{draft.finding.message} {package} {version} {_ALONE}, which has no CUDA.",
        packages=(package,),
        remedies=(
            Remedy(
                f"Install a build of {package} for CUDA, of the same release; where the machine "
                "has no NVIDIA GPU, let the program use the processor."
            ),
        ),
    )


def _without_cuda(raised: Raised, context: Context) -> Tuple[str, str]:
    """Return name and version of what is built for the processor alone: the package whose operator
    the exception names, else torch.
    """
    match = _OPERATOR.search(raised.message)
    named = context.distributions.get(match.group(1)) if match is not None else None
    if named is not None and named.version and named.version.endswith("+cpu"):
        return named.name, named.version
    version = cpu_build(context)
    return ("torch", version) if version is not None else ("", "")


def _tell_ggml(draft: TraceDraft, report: str, context: Context) -> None:
    """Of code for this GPU where ggml printed the line, and nothing of torch ran."""
    if "torch" in context.distributions or not _OF_GGML.search(report) or _OF_TORCH.search(report):
        return
    draft.suspects = []
    draft.meaning = ""
    draft.role, draft.certainty = "cause", "likely"
    draft.finding = draft.finding._replace(
        code=code_of_log("ggml", "arch-missing"),
        component="ggml",
        kind="arch-missing",
        message="The build of ggml (llama.cpp and what is made of it) holds no code for this GPU.",
        sources=(*draft.finding.sources, _BUILD_OF_GGML),
        remedies=(
            Remedy(
                "Take a build for this GPU, or compile it with a CUDA toolkit that knows it: cmake "
                "-DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native on this machine."
            ),
        ),
    )


def _tell_operators(draft: TraceDraft, context: Context, modules: Mapping[str, str]) -> None:
    """Of compiled operators: builds for the processor register fewer of them (vLLM's
    csrc/cpu/torch_bindings.cpp, https://github.com/vllm-project/vllm/tree/v0.8.5/csrc).
    """
    version = cpu_build(context)
    if version is None:
        return
    groups = groups_of(draft.events[0], modules)
    draft.meaning = ""
    draft.finding = draft.finding._replace(
        component="torch",
        kind="arch-missing",
        message=f"{groups['which']} has no compiled operator {groups['name']}: torch {version} "
        f"{_ALONE}, and what is compiled for such a one has fewer operators.",
        remedies=(Remedy("Install the engine's build for CUDA with the torch that it pins."),),
    )


def _tell_library(draft: TraceDraft, context: Context, modules: Mapping[str, str]) -> None:
    """Of a library that a package takes by torch's CUDA: which of its releases hold one, as their
    wheels were measured. The line itself says which CUDA that is.
    """
    match = _BY_CUDA.search(groups_of(draft.events[0], modules).get("library", ""))
    if match is None:
        return
    package, cuda = match.group(1), f"{match.group(2)}.{match.group(3)}"
    row = context.matrix.row(f"no-library-cuda-{cuda}:{package}")
    if row is None or not row.pins:
        return
    stated = context.distributions.get(package)
    version = stated.version if stated is not None else None
    needed = row.pins[0].partition(">=")[2]
    here = try_version(version) if version else None
    if here is not None and here >= parse_version(needed):
        return
    draft.meaning = ""
    draft.finding = draft.finding._replace(
        code=row.code,
        kind=row.kind,
        message=f"{package} {f'{version} holds' if version else f'before {needed} holds'} no "
        f"library for CUDA {cuda}, which it takes by torch's; {needed} is the first release that "
        "does.",
        sources=(*draft.finding.sources, *row.sources),
        remedies=(Remedy(f"Install {row.pins[0]}.", (InstallerCall("install", row.pins),)),),
    )


def _tell_platform(draft: TraceDraft, context: Context, modules: Mapping[str, str]) -> None:
    """Of a module whose package no release builds for this platform."""
    groups = groups_of(draft.events[0], modules)
    package = groups.get("@module") or groups.get("module", "")
    place = place_without_wheels(context, package) if package else ""
    if not place or package in context.distributions:
        return
    draft.finding = draft.finding._replace(
        message=f"{draft.finding.message[:-1]}: no release of {package} has a wheel for {place}.",
        remedies=ways_without_wheels(context, package) or draft.finding.remedies,
    )
