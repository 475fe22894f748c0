"""What holds for every release that the statements allow, where none names it.

A range or a day leaves some releases of a distribution, and a name alone leaves those that were
there when the rest of the report was installed. What is true for all of them is true; what is true
for most is worth a warning that says so. Newer ones count more: half as much for each half year
before the newest, for what somebody uses is seldom old.
"""

from __future__ import annotations

from ..matrix.bind import bind
from ..matrix.derive import derive_target
from ..model.evidence import Evidence, Known
from ..model.versions import InvalidSpecifier, VersionSet, try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Tuple

    from ..matrix.bind import Binding
    from ..model.facts import Distribution
    from ..model.row import Row
    from ..model.versions import Version
    from .rule import Context

__all__ = ["most_violate", "releases_in", "share_of"]

_HALF_LIFE = 6  # months
_WORLDS = 10  # releases of one distribution that are tried
_UNKNOWN = 3  # distributions without a version for which that is done


def releases_in(matrix: Any, distribution: Distribution) -> List[Tuple[Version, Any]]:
    """Return the final releases in the range that stands for a version, newest first; none where
    the version is known, or nothing bounds it.
    """
    if distribution.version is not None or not distribution.constraint:
        return []
    package = matrix.package(distribution.name)
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


def most_violate(
    context: Context, row: Row, name: str, most: float
) -> Optional[Tuple[Context, Binding, float]]:
    """Return a target with a release of ``name`` that violates a row, and for how much of the
    releases that may be meant that holds; None where it holds for no more than ``most``.
    """
    worlds = context.once(f"releases of {name}", lambda: _worlds(context, name))
    total = sum(weight for weight, _ in worlds)
    bound = [(weight, world, bind(row, world.target)) for weight, world in worlds]
    violated = [entry for entry in bound if entry[2].outcome == "violated"]
    share = sum(weight for weight, _, _ in violated) / total if total else 0.0
    return (violated[0][1], violated[0][2], share) if share > most else None


def _worlds(context: Context, name: str) -> List[Tuple[float, Context]]:
    """Return a target for each release that may be meant, the newest first, with its weight."""
    open_names = [entry.name for entry in context.distributions.values() if not entry.version]
    if name not in open_names[:_UNKNOWN]:
        return []
    distribution = context.distributions[name]
    ranged = releases_in(context.matrix, distribution)
    releases = ranged or _of_the_time(context, distribution)
    # Of a range that is stated the newest say nothing of the oldest; what is merely of the time is
    # seldom old.
    step = -(-len(ranged) // _WORLDS) or 1
    worlds = []
    for version, release in releases[::step][:_WORLDS]:
        known = {**context.distributions, name: distribution._replace(version=str(version))}
        evidence = context.facts.evidence("distributions") or Evidence("report")
        facts = context.facts.updated({"distributions": Known(known, evidence)})
        target = derive_target(facts, context.matrix)
        weight = _weight(release.released, releases[0][1].released or "")
        worlds.append((weight, context._replace(facts=facts, target=target, memo={})))
    return worlds


def _of_the_time(context: Context, distribution: Distribution) -> List[Tuple[Version, Any]]:
    """Return the final releases that were there when the newest known one was, newest first."""
    days = []
    for entry in context.distributions.values():
        version, package = try_version(entry.version), context.matrix.package(entry.name)
        release = package.release(version) if package is not None and version else None
        days.append((release.released or "") if release is not None else "")
    day = max(days, default="")
    package = context.matrix.package(distribution.name)
    if package is None or not day:
        return []
    return [
        (version, release)
        for version, release in reversed(package.releases())
        if not version.is_prerelease and (release.released or "9") <= day
    ]


def share_of(releases: List[Tuple[Version, Any]], holds: Callable[[Any], bool]) -> float:
    """Return for how much of some releases a statement holds, 0..1."""
    newest = max((release.released or "" for _, release in releases), default="")
    total = met = 0.0
    for _, release in releases:
        weight = _weight(release.released, newest)
        total += weight
        met += weight * holds(release)
    return met / total if total else 0.0


def _weight(day: Optional[str], newest: str) -> float:
    return float(0.5 ** (_months_between(day, newest) / _HALF_LIFE))


def _months_between(day: Optional[str], later: str) -> int:
    if not day or not later:
        return 0
    return (int(later[:4]) - int(day[:4])) * 12 + int(later[5:7]) - int(day[5:7])
