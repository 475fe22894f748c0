"""What statements say of two packages: what else has to be there, which of the two is of the wrong
age, and which release mends it.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List, Sequence, Tuple

from packaging.version import Version

from .conditions import CUDA, Limits, clause_holds
from .packages import PYTHON

__all__ = ["direction", "meets", "mending", "third_packages"]


def meets(version: Version, limits: Limits, package: str) -> bool:
    """Tell whether a release of a package is one of those that limits ask for."""
    return package not in limits.absent and all(
        clause_holds(operator, text, version)
        for name, operator, text in limits.versions
        if name == package
    )


def third_packages(limits: Limits, consumer: str, provider: str) -> Iterable[List[str]]:
    """What has to hold of third packages: [package, specifier], "" for there, "-" for not there,
    "cuda" for a build for CUDA.
    """
    both = (consumer, provider)
    ranged: Dict[str, List[str]] = {}
    for name, operator, text in limits.versions:
        if name not in both:
            ranged.setdefault(name, []).append(f"{operator}{text}")
    yield from ([name, ",".join(clauses)] for name, clauses in sorted(ranged.items()))
    for name in limits.present:
        if name == CUDA:
            yield ["torch", "cuda"]
        elif name not in both and name not in ranged:
            yield [name, ""]
    yield from ([name, "-"] for name in limits.absent if name not in both)


def direction(consumer: str, provider: str, missing: Sequence[int], count: int) -> Tuple[str, str]:
    """Which of two packages is of the wrong age: (kind, component)."""
    if missing[-1] == count - 1 and missing[0] > 0:
        return "too-old", consumer  # the name was removed for good
    if missing[0] == 0 and missing[-1] < count - 1:
        return "too-old", provider  # the name came later
    return "version-mismatch", consumer


def mending(
    consumer: Tuple[str, Sequence[str]],
    numbers: Sequence[int],
    provider: Tuple[str, Sequence[str]],
    missing: Sequence[int],
    allowed: Callable[[int], Sequence[bool]],
) -> str:
    """The requirement that mends it: releases of the provider that have the name for sure and that
    the newest importing release admits; else a newer importing package; else "".

    Args:
        consumer: The importing package and its releases.
        numbers: Those that import it.
        provider: The package that is imported, and its releases.
        missing: Those that lack it, or may.
        allowed: Gives for a release of the importing package which ones its metadata admit.
    """
    name, others = provider
    lacking, admitted = frozenset(missing), allowed(numbers[-1])
    fitting = [place for place in range(len(others)) if place not in lacking and admitted[place]]
    if fitting and name != PYTHON:
        last = first = fitting[-1]
        while first - 1 in fitting:
            first -= 1
        clauses = [f">={others[first]}"] if first else []
        if last + 1 < len(others):
            clauses.append(f"<={others[last]}")
        return f"{name}{','.join(clauses)}" if clauses else ""
    own, releases = consumer
    if numbers[-1] + 1 < len(releases):
        return f"{own}>={releases[numbers[-1] + 1]}"
    return f"{own}<{releases[numbers[0]]}" if numbers[0] > 0 else ""
