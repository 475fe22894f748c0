"""What a lock builds from source: with what, in which order, and how that is said.

What is compiled against torch comes after everything else; what only packs files comes before,
since some of it (deepspeed) looks for a compiler as soon as it can import torch. What builds them
is pinned like the rest and stands in the environment first: an isolated build would take the newest
setuptools of that day.
"""

from __future__ import annotations

from typing import List, Set

from ...model.requirement import try_requirement
from ...model.resolution import BuildStep, Pin, Resolution
from .words import pin_line

__all__ = [
    "build_lines",
    "built_on_torch",
    "built_plain",
    "compiled",
    "tool_requirements",
    "tools",
]


def _steps(resolution: Resolution) -> List[Pin]:
    return [pin for pin in resolution.pins if pin.build is not None]


def _needs(build: BuildStep) -> Set[str]:
    requirements = map(try_requirement, build.needs)
    return {requirement.name for requirement in requirements if requirement is not None}


def built_on_torch(resolution: Resolution) -> List[str]:
    """Return the pins whose build imports torch."""
    return [
        pin.name
        for pin in _steps(resolution)
        if pin.build is not None and "torch" in _needs(pin.build)
    ]


def built_plain(resolution: Resolution) -> List[str]:
    """Return the pins that are built without torch."""
    on_torch = built_on_torch(resolution)
    return [pin.name for pin in _steps(resolution) if pin.name not in on_torch]


def compiled(resolution: Resolution) -> List[str]:
    """Return the pins that a compiler is needed for."""
    return [pin.name for pin in _steps(resolution) if pin.build is not None and pin.build.compiler]


def tool_requirements(resolution: Resolution) -> List[str]:
    """Return what builds need and no pin gives, as requirement lines."""
    pinned = {pin.name for pin in resolution.pins}
    lines = [
        line for pin in _steps(resolution) if pin.build is not None for line in pin.build.needs
    ]
    return [
        line
        for line in dict.fromkeys(lines)
        for requirement in [try_requirement(line)]
        if requirement is not None and requirement.name not in pinned
    ]


def tools(resolution: Resolution) -> Set[str]:
    """Return the names of what has to be there before anything is built without torch, with what
    that needs itself.
    """
    names: Set[str] = set()
    for pin in _steps(resolution):
        if pin.build is not None and pin.name in built_plain(resolution):
            names |= _needs(pin.build)
    size = 0
    while size < len(names):
        size = len(names)
        names |= {line.name for line in resolution.closure.lines if names.intersection(line.via)}
    return names - set(built_plain(resolution))


def build_lines(resolution: Resolution) -> List[str]:
    """Return what is built from source, a line each, with what that takes of the machine."""
    cuda = (resolution.requires.cuda or "").split(".")[0]
    lines = []
    for pin in resolution.pins:
        if not pin.from_source:
            continue
        words = ""
        if pin.build is not None and pin.build.compiler:
            words = f", which takes nvcc{f' of CUDA {cuda}' if cuda else ''} and g++"
        elif pin.build is not None and pin.build.fetched:
            words = ", unless its setup can fetch the wheel that its project has for this torch"
        lines.append(f"built from source when installed: {pin_line(pin)}{words}")
    return lines
