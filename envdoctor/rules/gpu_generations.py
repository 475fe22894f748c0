"""ED124: a GPU older than anything that the releases of an engine hold code for."""

from __future__ import annotations

from ..matrix.derived_rows import runs_on
from ..model.finding import Finding, Remedy
from ..model.row import Source
from .rule import Context, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, FrozenSet, Iterator, List, Tuple

__all__ = ["RULES_HERE"]

#: What is looked at, with what its kernels stand for.
_ENGINES = ("vllm", "sgl-kernel", "flash-attn")
#: An engine's kernels are a distribution of their own.
_NAMED_BY = {"sgl-kernel": ("sglang", "sgl-kernel")}
#: What collect_env looks for in names (torch 2.8.0 torch/utils/collect_env.py, PIP_PATTERNS; vLLM
#: 0.9.1 vllm/collect_env.py adds the last two).
_OF_COLLECT_ENV = ("torch", "numpy", "mypy", "flake8", "triton", "optree", "onnx", "nvidia-",
                   "zmq", "transformers")  # fmt: skip
_SOURCE = Source(
    "https://docs.nvidia.com/cuda/ampere-compatibility-guide/index.html",
    "machine code runs on GPUs of its own major, PTX on newer ones",
)


def check_served_by_no_release(context: Context) -> Iterator[Finding]:
    """A GPU is older than anything that the releases of an engine hold code for.

    What it checks:
        The code in the wheels of all releases of vllm, sgl-kernel and flash-attn against each
        visible GPU, where their release is not known: rows of the matrix judge a known one. vllm
        is looked at too where a report names only packages of the kinds that collect_env looks
        for, among which it is not.

    Why it matters:
        "no kernel image is available for execution on the device", whichever release is taken.

    How to fix:
        Use a newer GPU, a build from source for this one where the project allows it, or another
        engine (llama.cpp, transformers) on it.

    References:
        https://docs.nvidia.com/cuda/ampere-compatibility-guide/index.html
    """
    judged = set()
    for device in context.visible_gpus():
        model = context.matrix.gpu(device.name, device.pci_id)
        capability = device.compute_capability or (model.compute_capability if model else None)
        if capability is None or (device.name, capability) in judged:
            continue
        if capability not in context.matrix.capabilities:
            continue
        judged.add((device.name, capability))
        engines = [name for name in _ENGINES if _is_named(context, name)] or _left_out(context)
        spans = {name: _unserved(context, name, capability) for name in engines}
        lacking = [(name, span) for name, span in spans.items() if span]
        if not lacking:
            continue
        sm = f"sm_{capability.replace('.', '')}"
        words = " or ".join(f"{name} ({span})" for name, span in lacking)
        yield Finding(
            code="ED124",
            component=lacking[0][0],
            kind="arch-missing",
            severity="warning",
            subject=sm,
            message=f"No wheel of any release of {words} has code for "
            f"{device.name or 'this GPU'} ({sm}).",
            evidence=context.evidence("gpus"),
            sources=(_SOURCE,),
            remedies=(
                Remedy(
                    "Use a newer GPU, a build from source for this one where the project allows "
                    "it, or an engine that still has code for it."
                ),
            ),
            packages=tuple(name for name, _ in lacking),
        )


def _is_named(context: Context, name: str) -> bool:
    return any(entry in context.distributions for entry in _NAMED_BY.get(name, (name,)))


def _left_out(context: Context) -> List[str]:
    """Return the engine that most run, where the tool that wrote the report would not list it."""
    if context.facts.value("distributions.complete") is not False:
        return []
    of_collect_env = all(
        any(kind in name for kind in _OF_COLLECT_ENV) for name in context.distributions
    )
    return [_ENGINES[0]] if of_collect_env else []


def _unserved(context: Context, name: str, capability: str) -> str:
    """Return "first to last" of the releases whose wheels were read, "" where one has code for such
    a device, or where the installed release is known.
    """
    installed = [context.distributions.get(entry) for entry in _NAMED_BY.get(name, (name,))]
    if any(entry is not None and entry.version for entry in installed):
        return ""
    serving = runs_on(capability)
    read: List[Any] = []
    for version, release in _releases(context, name):
        codes = [code for code in map(_code, release.builds) if code]
        if not codes:
            continue
        if any(serving & code for code in codes):
            return ""
        read.append(version)
    return f"{read[0]} to {read[-1]}" if len(read) > 1 else ""


def _releases(context: Context, name: str) -> Tuple[Tuple[Any, Any], ...]:
    package = context.matrix.package(name)
    return tuple(package.releases()) if package is not None else ()


def _code(build: Any) -> FrozenSet[str]:
    """Return the machine code and PTX of a build, nothing where they were not read."""
    return frozenset([f"sass:{one}" for one in build.sass] + [f"ptx:{one}" for one in build.ptx])


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED124",
        "served-by-no-release",
        "arch-missing",
        "A GPU that no release of an engine has code for",
        check_served_by_no_release,
    ),
)
