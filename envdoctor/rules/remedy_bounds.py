"""What remedies leave of the packages that they change, and whether two can both be carried out."""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.finding import Remedy
from ..model.requirement import try_requirement
from ..model.versions import InvalidSpecifier, VersionSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional

    from ..matrix.loader import Matrix

    #: What a remedy leaves of each package: a range of releases, None for none at all.
    Bounds = Dict[str, Optional[VersionSet]]

__all__ = ["bounds_of", "contradict"]


def bounds_of(remedy: Remedy) -> Bounds:
    """Return what a remedy leaves of the packages that it changes."""
    bounds: Bounds = {}
    for call in remedy.commands if not remedy.is_refused else ():
        if not isinstance(call, InstallerCall) or call.action not in ("install", "uninstall"):
            continue
        for line in call.packages:
            requirement = try_requirement(line)
            if requirement is not None:
                is_kept = call.action == "install"
                bounds[requirement.name] = _range(requirement.specifier) if is_kept else None
    return bounds


def _range(specifier: str) -> VersionSet:
    try:
        return VersionSet.parse(specifier)
    except InvalidSpecifier:
        return VersionSet.all()


def contradict(one: Bounds, other: Bounds, matrix: Matrix) -> bool:
    """Tell whether two remedies leave different things of a package, whichever release is taken."""
    for name in one.keys() & other.keys():
        first, second = one[name], other[name]
        if first is None or second is None:
            if first is not second:
                return True
            continue
        both = first & second
        package = matrix.package(name)
        releases = package.versions if package is not None else ()
        if not any(version in both for version in releases) if releases else not both:
            return True
    return False
