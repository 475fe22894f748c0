"""What may be presumed where a report is partial: variables that nobody mentions are not set,
pinned dependencies are there.

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
    from typing import Any, Dict, List, Mapping, Optional, Tuple

    from ..model.requirement import Requirement

__all__ = ["Presumption", "presume", "with_unset_variables"]

_UNSET = Subject(False)


class Presumption(NamedTuple):
    """A target in which presumptions stand for facts.

    ``why`` tells for each presumed package what brings it.
    """

    context: Context
    why: Mapping[str, str]


def with_unset_variables(target: Target) -> Target:
    """Return a target on which variables that are not known are not set: hardly any setting of a
    row is a default.
    """

    def variable(name: str) -> Subject:
        found = target.variable(name)
        return _UNSET if found.present is None else found

    return target._replace(variable=variable)


def presume(context: Context) -> Optional[Presumption]:
    """Return what a partial report implies, or None where nothing has to be presumed."""
    facts = context.facts
    complete = facts.value("distributions.complete") is True or not context.distributions
    changes: Dict[str, Any] = {}
    why: Dict[str, str] = {}
    if facts.value("os.architecture") is None and not _arm(facts):
        changes["os.architecture"] = Known(
            "x86_64", Evidence("presumed", "nothing tells of another architecture")
        )
    if not complete:
        added = _pinned(facts.updated(changes), context.matrix, why)
        if added:
            changes["distributions"] = Known(
                {**context.distributions, **added},
                facts.evidence("distributions") or Evidence("presumed"),
            )
    major = (
        _wheel_major(context.distributions)
        if "torch" not in context.distributions and not complete
        else None
    )
    if not changes and major is None:
        return None
    presumed = facts.updated(changes)
    target = with_unset_variables(derive_target(presumed, context.matrix))
    if major is not None and "torch" not in why:
        target = _with_torch_of(target, major)
        why["torch"] = f"torch for CUDA {major}, as its CUDA wheels tell"
    return Presumption(context._replace(facts=presumed, target=target, memo={}), why)


def _arm(facts: Facts) -> bool:
    return any(on_arm_board(device.name or "") for device in facts.value("gpus", ()))


def _pinned(facts: Facts, matrix: Any, why: Dict[str, str]) -> Dict[str, Distribution]:
    """Return what exact pins of the listed distributions bring along, torch's own pins included."""
    from .requirement_lines import unconditional

    listed: Mapping[str, Distribution] = facts.value("distributions", {})
    added = _newest(listed, facts, matrix, why)
    waiting: List[Distribution] = [*listed.values(), *added.values()]
    while waiting:
        requirer = waiting.pop()
        asked = unconditional(requirer, facts, matrix)
        if any(_broken(requirement, listed) for requirement in asked):
            continue  # it was not installed as its metadata asks, so neither need the rest be
        for requirement in asked:
            specifier = requirement.specifier.replace(" ", "")
            if (
                not specifier.startswith("==")
                or "*" in specifier
                or "," in specifier
                or requirement.name in listed
                or requirement.name in added
            ):
                continue
            added[requirement.name] = Distribution(requirement.name, specifier.lstrip("="))
            why[requirement.name] = (
                f"{requirement.name} {specifier.lstrip('=')}, which {requirer.name} "
                f"{requirer.version} requires"
            )
            if requirement.name == "torch":
                waiting.append(added["torch"])
    return added


def _broken(requirement: Requirement, listed: Mapping[str, Distribution]) -> bool:
    """Tell whether a listed distribution is not what an exact pin asks for."""
    from .requirement_lines import meets

    version = try_version(listed[requirement.name].version) if requirement.name in listed else None
    return (
        version is not None
        and requirement.specifier.startswith("==")
        and meets(version, requirement.specifier) is False
    )


def _newest(
    listed: Mapping[str, Distribution], facts: Facts, matrix: Any, why: Dict[str, str]
) -> Dict[str, Distribution]:
    """Return what an installer takes for ranges (``vllm>=0.16``): the newest releases that the
    listed ones and each other admit.

    Nothing where they do not come to rest: what an installer finds there by going back is not
    known.
    """
    from .requirement_lines import meets, unconditional

    ranges = {
        name: _releases_in(entry, matrix)
        for name, entry in listed.items()
        if entry.version is None and entry.constraint
    }
    ranges = {name: releases for name, releases in ranges.items() if releases}
    found: Dict[str, Distribution] = {}
    for _ in range(len(ranges) + 1):
        asked = [
            requirement
            for entry in (*listed.values(), *found.values())
            for requirement in unconditional(entry, facts, matrix)
        ]
        chosen: Dict[str, Distribution] = {}
        for name, releases in ranges.items():
            demands = [requirement.specifier for requirement in asked if requirement.name == name]
            newest = next(
                (
                    release
                    for release in releases
                    if all(meets(release, demand) is not False for demand in demands)
                ),
                None,
            )
            if newest is None:
                return {}
            chosen[name] = listed[name]._replace(version=str(newest))
        if chosen == found:
            why.update(
                (
                    name,
                    (
                        f"{name} {entry.version}, the newest that {entry.constraint} and the "
                        "others "
                        "admit"
                    ),
                )
                for name, entry in found.items()
            )
            return found
        found = chosen
    return {}


def _releases_in(entry: Distribution, matrix: Any) -> List[Version]:
    """Return the final releases in the range that is asked for, newest first; none where the matrix
    knows none.
    """
    package = matrix.package(entry.name)
    try:
        wanted = VersionSet.parse(entry.constraint)
    except InvalidSpecifier:
        return []
    return (
        [
            version
            for version in reversed(package.versions)
            if version in wanted and not version.is_prerelease
        ]
        if package is not None
        else []
    )


def _wheel_major(listed: Mapping[str, Distribution]) -> Optional[int]:
    """Return the CUDA major of NVIDIA's wheels where all agree: they come with a torch of that
    major.
    """
    majors = {
        name[-2:]
        for name in listed
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
    """Return the words for those presumptions that a row rests on."""
    return [why[name] for name in dict.fromkeys(row_components) if name in why]
