"""What may be presumed where a report is partial: unmentioned variables, pinned dependencies.

Unknown stays unknown for rules. But a row that only such a presumption completes is worth a
warning: ``torch 2.2.1+cu121`` on an H20 brings cuBLAS 12.1.3.1, unless someone replaced it. What is
presumed is named in the finding, which never is an error because of it.
"""

from __future__ import annotations

from ..matrix.bind import Subject, Target
from ..matrix.derive import derive_target, on_arm_board
from ..model.evidence import Evidence, Known
from ..model.facts import Distribution, Facts
from ..model.record import NamedTuple
from ..model.versions import InvalidSpecifier, Version, VersionSet, try_version
from .rule import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Callable,
        Container,
        Dict,
        Iterable,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        Tuple,
    )

    from ..model.requirement import Requirement

__all__ = ["Presumption", "presume", "with_unset_variables"]

_UNSET = Subject(False)
_WITH_TORCH = ("torchvision", "torchaudio")


class Presumption(NamedTuple):
    """A target in which presumptions stand for facts.

    ``why`` tells for each presumed package what brings it.
    """

    context: Context
    why: Mapping[str, str]


def with_unset_variables(target: Target) -> Target:
    """Return a target without the variables that are not known: few rows name a default."""

    def variable(name: str) -> Subject:
        known = target.variable(name)
        return _UNSET if known.present is None else known

    return target._replace(variable=variable)


def presume(context: Context) -> Optional[Presumption]:
    """Return what a partial report implies, or None where nothing has to be presumed."""
    facts = context.facts
    changes: Dict[str, Any] = {}
    why: Dict[str, str] = {}
    if facts.value("os.architecture") is None and not _arm(facts):
        changes["os.architecture"] = Known(
            "x86_64", Evidence("presumed", "nothing suggests another architecture")
        )
    partial = context.distributions and facts.value("distributions.complete") is not True
    added = _pinned(facts.updated(changes), context.matrix, why) if partial else {}
    if added:
        changes["distributions"] = Known(
            {**context.distributions, **added},
            facts.evidence("distributions") or Evidence("presumed"),
        )
    known = {**context.distributions, **added}
    major = _wheel_major(context.distributions) if partial and "torch" not in known else None
    if not changes and major is None:
        return None
    presumed = facts.updated(changes)
    target = with_unset_variables(derive_target(presumed, context.matrix))
    if major is not None:
        target = _with_torch_of(target, major)
        why["torch"] = f"torch for CUDA {major}, judging by its CUDA wheels"
    return Presumption(context._replace(facts=presumed, target=target, memo={}), why)


def _arm(facts: Facts) -> bool:
    return any(on_arm_board(device.name or "") for device in facts.value("gpus", ()))


def _pinned(facts: Facts, matrix: Any, why: Dict[str, str]) -> Dict[str, Distribution]:
    """Return what exact pins of the known distributions bring along, torch's own pins included."""
    asked_by = _reader(facts, matrix)
    known: Mapping[str, Distribution] = facts.value("distributions", {})
    added = _newest(known, facts, matrix, why, asked_by)
    waiting: List[Distribution] = [*known.values(), *added.values()]
    while waiting:
        requirer = waiting.pop()
        requirements = asked_by(requirer)
        if any(_broken(requirement, known) for requirement in requirements):
            continue  # it was not installed as its metadata asks, so neither need the rest be
        for name, version in _exact_pins(requirements):
            if name in known or name in added:
                continue
            version = _of_the_same_index(name, version, known)
            added[name] = Distribution(name, version)
            why[name] = f"{name} {version}, which {requirer.name} {requirer.version} requires"
            if name == "torch":
                waiting.append(added["torch"])
    return added


def _reader(facts: Facts, matrix: Any) -> Callable[[Distribution], Sequence[Requirement]]:
    """Return what reads the requirements of a distribution that apply here, each once."""
    from .requirement_lines import unconditional

    read: Dict[Distribution, Sequence[Requirement]] = {}

    def asked_by(distribution: Distribution) -> Sequence[Requirement]:
        if distribution not in read:
            read[distribution] = unconditional(distribution, facts, matrix)
        return read[distribution]

    return asked_by


def _of_the_same_index(name: str, version: str, known: Mapping[str, Distribution]) -> str:
    """Return a version with the local label of the torch, or of what belongs to it, that is known:
    who took one of them from an index of builds took the others from there.
    """
    family = ("torch", *_WITH_TORCH)
    numbers = (try_version(known[entry].version) for entry in family if entry in known)
    label = next((number.local for number in numbers if number and number.local), None)
    if label is None or name not in family or "+" in version:
        return version
    return f"{version}+{label}"


def _exact_pins(requirements: Sequence[Requirement]) -> Iterator[Tuple[str, str]]:
    for requirement in requirements:
        specifier = requirement.specifier.replace(" ", "")
        if specifier.startswith("==") and "*" not in specifier and "," not in specifier:
            yield requirement.name, specifier.lstrip("=")


def _broken(requirement: Requirement, known: Mapping[str, Distribution]) -> bool:
    """Tell whether a known distribution is not what an exact pin asks for."""
    from .requirement_lines import meets

    version = try_version(known[requirement.name].version) if requirement.name in known else None
    return (
        version is not None
        and requirement.specifier.startswith("==")
        and meets(version, requirement.specifier) is False
    )


def _newest(
    known: Mapping[str, Distribution],
    facts: Facts,
    matrix: Any,
    why: Dict[str, str],
    asked_by: Callable[[Distribution], Sequence[Requirement]],
) -> Dict[str, Distribution]:
    """Return what an installer takes for ranges: the newest releases that all others admit.

    Nothing where they do not come to rest: what an installer finds there by going back is not
    known.
    """
    ended = {
        requirement.name
        for entry in known.values()
        if entry.version
        for requirement in asked_by(entry)
        if _has_end(requirement.specifier)
    }
    if facts.value("report.lines") is None:
        ended |= known.keys()  # what is to be installed now, not what was when somebody wrote
    ranges = _open_ranges(known, ended, matrix)
    chosen: Dict[str, Distribution] = {}
    for _ in range(len(ranges) + 1):
        requirements = [
            requirement
            for entry in (*known.values(), *chosen.values())
            for requirement in asked_by(entry)
        ]
        newest = {
            name: _first_admitted(name, releases, requirements) for name, releases in ranges.items()
        }
        if None in newest.values():
            return {}
        previous = chosen
        chosen = {
            name: known[name]._replace(version=str(version)) for name, version in newest.items()
        }
        if chosen == previous:
            for name, entry in chosen.items():
                admitted = f"the newest that {entry.constraint} and the others admit"
                why[name] = f"{name} {entry.version}, {admitted}"
            return chosen
    return {}


def _has_end(specifier: str) -> bool:
    return any(sign in specifier for sign in ("<", "==", "~="))


def _open_ranges(
    known: Mapping[str, Distribution], ended: Container[str], matrix: Any
) -> Dict[str, List[Version]]:
    """Return the releases in each range that stands for a version, where the matrix knows some.

    A range without an upper end says when somebody wrote it, not that what came out since is there:
    it counts where others end it.
    """
    ranges = {
        name: _releases_in(entry, matrix)
        for name, entry in known.items()
        if entry.version is None and (_has_end(entry.constraint) or name in ended)
    }
    return {name: releases for name, releases in ranges.items() if releases}


def _first_admitted(
    name: str, releases: Sequence[Version], requirements: Sequence[Requirement]
) -> Optional[Version]:
    """Return the first release that no requirement on it excludes, or None."""
    from .requirement_lines import meets

    demands = [requirement.specifier for requirement in requirements if requirement.name == name]
    for release in releases:
        if all(meets(release, demand) is not False for demand in demands):
            return release
    return None


def _releases_in(entry: Distribution, matrix: Any) -> List[Version]:
    """Return the final releases that the matrix knows in the range asked for, newest first."""
    package = matrix.package(entry.name)
    try:
        admitted = VersionSet.parse(entry.constraint)
    except InvalidSpecifier:
        return []
    versions = reversed(package.versions) if package is not None else ()
    return [version for version in versions if version in admitted and not version.is_prerelease]


def _wheel_major(names: Iterable[str]) -> Optional[int]:
    """Return the CUDA major of NVIDIA's wheels where all agree: torch is then of that major."""
    majors = {
        name[-2:]
        for name in names
        if name.startswith("nvidia-") and name[-5:-2] == "-cu" and name[-2:].isdigit()
    }
    return int(majors.pop()) if len(majors) == 1 else None


def _with_torch_of(target: Target, major: int) -> Target:
    known = target.environment
    torch = Subject(True, {"cuda": VersionSet.parse(f">={major},<{major + 1}")})

    def environment(name: str) -> Subject:
        if name == "torch" or known is None:
            return torch
        return known(name)

    return target._replace(environment=environment)


def presumed_of(row_components: Tuple[str, ...], why: Mapping[str, str]) -> List[str]:
    """Return the presumptions that a row rests on, in words."""
    return [why[name] for name in dict.fromkeys(row_components) if name in why]
