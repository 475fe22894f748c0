"""What holds for every release that the statements allow, where none names it.

A range or a day leaves some releases of a distribution. What is true for all of them is true; what
is true for most is worth a warning that says so. Newer ones count more: half as much for each half
year before the newest, for what somebody uses is seldom old.
"""

from __future__ import annotations

from ..model.versions import InvalidSpecifier, VersionSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Tuple

    from ..model.facts import Distribution
    from ..model.versions import Version
    from .rule import Context

__all__ = ["allowed_releases", "share_of"]

_HALF_LIFE = 6  # months


def allowed_releases(context: Context, distribution: Distribution) -> List[Tuple[Version, Any]]:
    """Return the final releases in the range that stands for a version, newest first; none where
    the version is known, or nothing bounds it.
    """
    if distribution.version is not None or not distribution.constraint:
        return []
    package = context.matrix.package(distribution.name)
    try:
        admitted = VersionSet.parse(distribution.constraint)
    except InvalidSpecifier:
        return []
    releases = package.releases() if package is not None else ()
    return [
        (version, release)
        for version, release in reversed(releases)
        if version in admitted and not version.is_prerelease
    ]


def share_of(releases: List[Tuple[Version, Any]], holds: Callable[[Any], bool]) -> float:
    """Return for how much of some releases a statement holds, 0..1."""
    newest = max((release.released or "" for _, release in releases), default="")
    total = met = 0.0
    for _, release in releases:
        weight = 0.5 ** (_months_between(release.released, newest) / _HALF_LIFE)
        total += weight
        met += weight * holds(release)
    return met / total if total else 0.0


def _months_between(day: Optional[str], later: str) -> int:
    if not day or not later:
        return 0
    return (int(later[:4]) - int(day[:4])) * 12 + int(later[5:7]) - int(day[5:7])
