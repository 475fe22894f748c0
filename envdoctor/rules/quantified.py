"""What holds for every release that the statements allow, where none names it.

A range or a day leaves some releases of a distribution, and a name alone leaves those that were
there when the rest of the report was installed. What is true for all of them is true; what is true
for most is worth a warning that says so. Newer ones count more: half as much for each half year
before the newest, for what somebody uses is seldom old.
"""

from __future__ import annotations

from ..matrix.bind import bind
from ..matrix.derive import derive_target, find_builds
from ..model.evidence import Evidence, Known
from ..model.record import NamedTuple
from ..model.versions import InvalidSpecifier, VersionSet, try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Tuple

    from ..matrix.bind import Binding
    from ..model.facts import Distribution
    from ..model.row import Row
    from ..model.versions import Version
    from .rule import Context

__all__ = ["day_of", "releases_in", "releases_meant", "share_of", "violating_share"]

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


class Meant(NamedTuple):
    """A release that a distribution without a version may be, and how likely it is beside the
    others that may be meant.
    """

    weight: float
    version: Version
    release: Any


def releases_meant(context: Context, distribution: Distribution) -> List[Meant]:
    """Return the final releases that a distribution without a version may be, newest first: those
    in its range, else those of the time of the rest; of torch, those with the build that is stated.
    """
    day = "" if distribution.constraint else day_of(context, distribution)
    releases = (
        releases_in(context.matrix, distribution)
        if distribution.constraint
        else _released_by(context.matrix.package(distribution.name), day)
    )
    cuda = context.facts.value("torch.cuda") if distribution.name == "torch" else None
    if cuda is not None:
        architecture = context.facts.value("os.architecture")
        releases = [one for one in releases if find_builds(one[1], one[0], architecture, cuda)]
    newest = max((release.released or "" for _, release in releases), default="")
    is_dated = bool(distribution.constraint or day)
    return [
        Meant(_weight(release.released, newest) if is_dated else 1.0, version, release)
        for version, release in releases
    ]


class Share(NamedTuple):
    """For how much of the releases that may be meant a row is violated, 0..1, and a target with the
    newest that violates it.
    """

    of_all: float
    world: Optional[Context] = None
    binding: Optional[Binding] = None


def violating_share(context: Context, row: Row, name: str) -> Optional[Share]:
    """Return for how much of the releases of ``name`` that may be meant a row is violated; None
    where nothing tells which these are, or where for one of them more is missing.
    """
    worlds = context.once(f"releases of {name}", lambda: _worlds(context, name))
    bound = [(weight, world, bind(row, world.target)) for weight, world in worlds]
    violated = [entry for entry in bound if entry[2].outcome == "violated"]
    if violated:
        total = sum(weight for weight, _, _ in bound)
        _, world, binding = violated[0]
        return Share(sum(weight for weight, _, _ in violated) / total, world, binding)
    is_decided = bound and all(binding.outcome == "satisfied" for _, _, binding in bound)
    return Share(0.0) if is_decided else None


def _worlds(context: Context, name: str) -> List[Tuple[float, Context]]:
    """Return a target for each release that may be meant, the newest first, with its weight."""
    open_names = [entry.name for entry in context.distributions.values() if not entry.version]
    if name not in open_names[:_UNKNOWN]:
        return []
    distribution = context.distributions[name]
    releases = releases_meant(context, distribution)
    # Where a range is stated, or nothing dates them, the newest say nothing of the oldest; what is
    # of the time of the rest is seldom old.
    is_of_time = not distribution.constraint and day_of(context, distribution)
    step = 1 if is_of_time else -(-len(releases) // _WORLDS) or 1
    worlds = []
    for meant in releases[::step][:_WORLDS]:
        known = {**context.distributions, name: distribution._replace(version=str(meant.version))}
        evidence = context.facts.evidence("distributions") or Evidence("report")
        facts = context.facts.updated({"distributions": Known(known, evidence)})
        target = derive_target(facts, context.matrix)
        worlds.append((meant.weight, context._replace(facts=facts, target=target, memo={})))
    return worlds


def day_of(context: Context, distribution: Distribution) -> str:
    """Return the day of the newest release that is known to be there, "" where none is, or where a
    distribution had no release yet.
    """
    days = []
    for entry in context.distributions.values():
        version, package = try_version(entry.version), context.matrix.package(entry.name)
        release = package.release(version) if package is not None and version else None
        days.append((release.released or "") if release is not None else "")
    day = max(days, default="")
    return day if _released_by(context.matrix.package(distribution.name), day) else ""


def _released_by(package: Any, day: str) -> List[Tuple[Version, Any]]:
    """Return the final releases of a package up to a day, newest first; all where none is known."""
    return [
        (version, release)
        for version, release in reversed(package.releases() if package is not None else ())
        if not version.is_prerelease and (not day or (release.released or "9") <= day)
    ]


def share_of(releases: List[Meant], holds: Callable[[Any], bool]) -> float:
    """Return for how much of the releases that may be meant a statement holds, 0..1."""
    total = sum(meant.weight for meant in releases)
    return sum(meant.weight for meant in releases if holds(meant.release)) / (total or 1.0)


def _weight(day: Optional[str], newest: str) -> float:
    return float(0.5 ** (_months_between(day, newest) / _HALF_LIFE))


def _months_between(day: Optional[str], later: str) -> int:
    if not day or not later:
        return 0
    return (int(later[:4]) - int(day[:4])) * 12 + int(later[5:7]) - int(day[5:7])
