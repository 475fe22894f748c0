"""The torch that a compiled package was built for, where its own metadata names none."""

from __future__ import annotations

from ..model.requirement import try_requirement
from ..model.versions import Version, canonicalize_name, try_version
from .tables import Package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Set

__all__ = ["engine_pins", "exact_pins", "minor_of", "pinned_torch"]

_ENGINE_OF = {"sgl-kernel": "sglang", "sglang-kernel": "sglang"}


def exact_pins(requires: Sequence[str]) -> Dict[str, Version]:
    """Return what requirement lines pin with ``==``, by distribution."""
    pins: Dict[str, Version] = {}
    for line in requires:
        requirement = try_requirement(line) if "==" in line else None
        version = try_version(requirement.exact) if requirement is not None else None
        if requirement is not None and version is not None and len(version.release) > 1:
            pins.setdefault(requirement.name, version)
    return pins


def minor_of(version: Version) -> str:
    """Return ``2.8`` of ``2.8.0``."""
    return ".".join(map(str, version.release[:2]))


def engine_pins(
    package_of: Callable[[str], Optional[Package]], name: str
) -> Mapping[Version, Set[str]]:
    """Return with which torch minors the releases of its engine pin a kernel package, by its
    version; nothing for a package that is no kernel of an engine.
    """
    engine = _ENGINE_OF.get(name)
    package: Any = package_of(engine) if engine is not None else None
    minors: Dict[Version, Set[str]] = {}
    for candidate in package.versions if package is not None else ():
        release = package.release(candidate)
        lines = (release.requires or ()) if release is not None else ()
        # An engine requires a hundred packages; most lines are of others.
        pins = exact_pins(
            [line for line in lines if canonicalize_name(line).startswith((name, "torch"))]
        )
        if name in pins and "torch" in pins:
            minors.setdefault(pins[name], set()).add(minor_of(pins["torch"]))
    return minors


def pinned_torch(
    minors: Mapping[Version, Set[str]], *, inferred: bool = False
) -> Callable[[Version], Optional[str]]:
    """Return what tells the one torch minor with which a kernel package is pinned by the releases
    of its engine (``minors``: ``engine_pins``).

    sgl-kernel's wheels ask for no torch at all; every sglang release pins one of them, and one
    torch. A kernel release between two that are pinned with the same torch has that torch too;
    ``inferred``: between two whose torch differs, that of the younger one, which no verdict rests
    on: whoever chooses may not take what was not read for fitting any torch.
    """

    def find(version: Version) -> Optional[str]:
        public = try_version(version.public) if minors else None
        if public is None:
            return None
        if public in minors:
            candidates = minors[public]
        else:
            below = [other for other in minors if other < public]
            above = [other for other in minors if other > public]
            candidates = minors[max(below)] | minors[min(above)] if below and above else set()
            if inferred and len(candidates) > 1:
                candidates = minors[min(above)]
        return next(iter(candidates)) if len(candidates) == 1 else None

    return find
