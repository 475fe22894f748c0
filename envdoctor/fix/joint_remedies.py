"""The remedies of one report, taken together: carried out one after the other they must not undo
each other. What two findings ask of one package is one range. Where no release is in it, or what
all of them install does not go together, the change that ``fix`` finds for the whole environment
stands in their place; where there is none, that is said of those that contradict what stands first.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Callable,
    Dict,
    FrozenSet,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from ..errors import InputError, InternalFault
from ..model.calls import InstallerCall, OwnCall
from ..model.change import Plan
from ..model.finding import Finding, Remedy, severity_rank
from ..model.requirement import try_requirement
from ..model.versions import try_version
from ..rules.installable import refused_here
from ..rules.remedy_bounds import bounds_of, contradict
from ..rules.remedy_trial import as_first, environment_after, is_of_line, refused
from ..rules.requirement_lines import meets

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..model.calls import Call
    from ..model.facts import Distribution, Facts
    from ..model.resolution import Explanation
    from ..rules.remedy_bounds import Bounds

__all__ = ["installs", "reconciled"]

_GOALS = ("healthy", "working")
_TOGETHER = 2  # findings, for which one change is looked for
_MOST_NAMED = 8  # packages of one change that are written out: more are a lock, which fix shows
Judge = Callable[["Facts"], Sequence[Finding]]


def installs(finding: Finding) -> bool:
    """Tell whether a finding is shown with a remedy that changes packages."""
    return finding.verdict == "violated" and any(map(bounds_of, finding.remedies))


def reconciled(
    findings: Sequence[Finding],
    facts: Facts,
    matrix: Matrix,
    judge: Judge,
    asked_by_lines: Sequence[str] = (),
) -> List[Finding]:
    """Return findings whose remedies hold together.

    Args:
        findings: What was found, each remedy tried by itself.
        facts: What was judged.
        matrix: What is known of versions and hardware.
        judge: Judges other facts in the same way.
        asked_by_lines: Requirements: what lines of logs ask of packages, which no facts show.
    """
    others = _without_contradicted(_without_cured(findings, facts, matrix, judge), matrix)
    asked = [finding for finding in others if installs(finding)]
    first = {finding.key: next(filter(bounds_of, finding.remedies)) for finding in asked}
    if not _any_contradict(asked, matrix) and _hold_together(first, facts, judge, matrix, findings):
        return others
    joint = _joint_change(asked, facts, matrix, asked_by_lines)
    if joint is None or _is_beside(joint, findings, asked[0], matrix):
        return _first_come(others, facts, matrix, judge)
    return _with_joint(others, joint, matrix)


def _without_cured(
    findings: Sequence[Finding], facts: Facts, matrix: Matrix, judge: Judge
) -> List[Finding]:
    """Return findings; in the place of what the remedy of the first cures as well stands that."""
    first = next(filter(installs, findings), None)
    remedy = next(filter(bounds_of, first.remedies)) if first is not None else Remedy("")
    after = environment_after(remedy, facts, matrix)
    if first is None or after is None:
        return list(findings)
    left = {finding.key for finding in judge(after) if finding.verdict == "violated"}
    there, then = facts.value("distributions", {}), after.value("distributions", {})
    changed = {name for name, entry in then.items() if there.get(name) != entry}
    cured = [
        finding
        for finding in findings
        if finding is not first
        and finding.verdict == "violated"
        and finding.severity != "advice"
        and not is_of_line(finding)
        # What another release of the same package cures; a package of its own has its own cure.
        and finding.key not in left
        and not changed.isdisjoint((finding.component, *finding.packages))
    ]
    brought = sorted(changed - bounds_of(remedy).keys())
    ways = tuple([_naming(way, remedy, brought, then) for way in first.remedies])
    # It stands at the one that comes first of all that it cures.
    leader = next(finding for finding in findings if finding is first or finding in cured)
    words = Remedy(f"What cures {leader.code} of {leader.component} cures this, too.")
    return [
        finding._replace(remedies=ways)
        if finding is leader
        else _cured_by(words, finding)
        if finding is first or finding in cured
        else finding
        for finding in findings
    ]


def _naming(
    way: Remedy, chosen: Remedy, brought: Sequence[str], then: Mapping[str, Distribution]
) -> Remedy:
    """Return the chosen one of several remedies with what an installer changes beside what it asks
    for.
    """
    if way != chosen or not brought:
        return way
    others = ", ".join(f"{name} {then[name].version}" for name in brought)
    return way._replace(text=f"{way.text.rstrip('.')}; an installer changes with it: {others}.")


def _cured_by(words: Remedy, finding: Finding) -> Finding:
    """Return a finding with what cures it in the place of what changes packages, or would."""
    others = [
        one
        for one in finding.remedies
        if not one.is_refused and not bounds_of(one) and not any(map(_resolves, one.commands))
    ]
    return finding._replace(remedies=(words, *others))


def _resolves(call: Call) -> bool:
    """Tell whether a command lets envdoctor choose what to change."""
    return isinstance(call, OwnCall) and call.name == "fix"


def _is_beside(
    joint: _JointChange, findings: Sequence[Finding], first: Finding, matrix: Matrix
) -> bool:
    """Tell whether a change cures what is only advice here, or takes from what stands first its
    remedy without curing it.
    """
    shown = {finding.key for finding in findings if finding.severity != "advice"}
    if not joint.cured <= shown:
        return True
    bounds = bounds_of(joint.remedy)
    offers = [bounds_of(remedy) for remedy in first.remedies if bounds_of(remedy)]
    return first.key not in joint.cured and all(
        contradict(offer, bounds, matrix) for offer in offers
    )


def _without_contradicted(findings: Sequence[Finding], matrix: Matrix) -> List[Finding]:
    """Return findings without the alternatives that contradict what another finding asks for, where
    they have one that does not. No graver one yields to what is less grave.
    """
    asked = [
        (severity_rank(finding.severity), finding.key, list(map(bounds_of, finding.remedies)))
        for finding in findings
        if installs(finding)  # what is not determined asks for nothing
    ]
    kept = []
    for finding in findings:
        fitting = [
            remedy
            for remedy in finding.remedies
            if not any(
                contradict(bounds_of(remedy), bounds, matrix)
                for rank, key, offers in asked
                if key != finding.key and rank <= severity_rank(finding.severity)
                for bounds in offers
            )
        ]
        is_left = any(map(bounds_of, fitting)) and len(fitting) < len(finding.remedies)
        fitting[:1] = map(as_first, fitting[:1])
        kept.append(finding._replace(remedies=tuple(fitting)) if is_left else finding)
    return kept


def _any_contradict(findings: Sequence[Finding], matrix: Matrix) -> bool:
    offers = [[bounds_of(remedy) for remedy in finding.remedies] for finding in findings]
    return any(
        contradict(one, other, matrix)
        for place, ours in enumerate(offers)
        for theirs in offers[place + 1 :]
        for one in ours
        for other in theirs
    )


def _hold_together(
    remedies: Dict[str, Remedy],
    facts: Facts,
    judge: Judge,
    matrix: Matrix,
    findings: Sequence[Finding],
) -> bool:
    """Tell whether all remedies, carried out together, cure what each is for and break nothing."""
    calls = tuple([call for remedy in remedies.values() for call in remedy.commands])
    after = environment_after(Remedy("", calls), facts, matrix)
    if after is None:
        return True  # nothing that is there changes
    known = {finding.key for finding in findings}
    asked = [finding for finding in findings if finding.key in remedies]
    return not any(
        any(_are_alike(finding, one) for one in asked)
        or (finding.severity == "error" and finding.key not in known)
        for finding in judge(after)
        if finding.verdict == "violated" and finding.severity != "advice"
    )


class _JointChange(NamedTuple):
    """What ``fix`` changes, as a remedy, and the keys of what that cures."""

    remedy: Remedy
    cured: FrozenSet[str]


def _joint_change(
    asked: Sequence[Finding], facts: Facts, matrix: Matrix, asked_by_lines: Sequence[str]
) -> Optional[_JointChange]:
    """Return the change after which nothing is warned of, or at least nothing fails; None where
    none is known, none that can be carried out here, or no two that ask for something are cured by
    it: of these the first comes first.
    """
    from .repair import is_wanted

    # What a line of a log asks for no facts show: a search for changes has to be told of it.
    of_lines = [finding for finding in asked if is_of_line(finding)]
    within = [line for finding in of_lines for line in _installed_by(finding)]
    for goal in _GOALS:
        if sum(is_wanted(finding, goal) for finding in asked) < _TOGETHER:
            continue
        plan = _planned(facts, matrix, goal, within)
        if not isinstance(plan, Plan) or not plan.changes or _is_against(plan, asked_by_lines):
            continue
        known = frozenset([finding.key for finding in plan.errors])
        from .change_plan import steps_of

        steps = steps_of(plan)
        if len(steps) > 1 or any(step.wheels for step in steps):
            continue  # builds from source, or wheels that no index has: more than one command
        text = ", ".join(f"{change.name} {change.after or 'removed'}" for change in plan.changes)
        fresh = [finding for finding in plan.remaining if finding.key not in known]
        though = f"; then, though: {fresh[0].message}" if fresh else "."
        remedy = Remedy(
            f"Together, as what cures one finding alone does not go with what cures another: {text}"
            f"{though}",
            tuple([step.call("", "python") for step in steps]),
        )
        if not refused_here(remedy, facts, matrix):
            cured = known - {finding.key for finding in plan.remaining}
            return _JointChange(remedy, cured.union(finding.key for finding in of_lines))
    return None


def _is_against(plan: Plan, asked_by_lines: Sequence[str]) -> bool:
    """Tell whether a change brings a release with which a line of a log would have come."""
    after = {change.name: try_version(change.after) for change in plan.changes if change.after}
    asked = [entry for line in asked_by_lines if (entry := try_requirement(line)) is not None]
    return any(
        (version := after.get(entry.name)) is not None and meets(version, entry.specifier) is False
        for entry in asked
    )


def _installed_by(finding: Finding) -> List[str]:
    """Return the requirements that the first remedy of a finding installs."""
    remedy = next(filter(bounds_of, finding.remedies))
    return [
        line
        for call in remedy.commands
        if isinstance(call, InstallerCall) and call.action == "install"
        for line in call.packages
        if try_requirement(line) is not None
    ]


def _planned(
    facts: Facts, matrix: Matrix, goal: str, within: Sequence[str]
) -> Union[Plan, Explanation, None]:
    from ..lock.solver.engine import GaveUp
    from .repair import plan

    try:
        return plan(facts, matrix, alternatives=False, goal=goal, within=within)
    except (GaveUp, InputError, InternalFault):
        # Another platform, a search without end, or what check refuses afterwards: no joint change
        # is known, which is no fault of the report.
        return None


def _with_joint(findings: Sequence[Finding], joint: _JointChange, matrix: Matrix) -> List[Finding]:
    """Return findings with the joint change at the first that it cures, and what it does not cure
    without remedies that contradict it.
    """
    bounds = bounds_of(joint.remedy)
    first: Optional[Finding] = None
    changed = []
    for finding in findings:
        remedies = finding.remedies
        others = [one for one in remedies if not one.is_refused and not bounds_of(one)]
        if finding.key in joint.cured and len(others) < len(remedies):
            words = (
                f"What cures {first.code} of {first.component} cures this, too." if first else ""
            )
            remedies = (Remedy(words) if first else _in_short(joint.remedy), *others)
            first = first or finding
        elif installs(finding):
            remedies = tuple(
                [one for one in remedies if not contradict(bounds_of(one), bounds, matrix)]
            )
        changed.append(finding._replace(remedies=remedies))
    return changed


def _in_short(remedy: Remedy) -> Remedy:
    """Return a change of many packages as the command that lists them: nobody reads them one by
    one, and few would want all of them.
    """
    names = bounds_of(remedy)
    if len(names) <= _MOST_NAMED:
        return remedy
    words = f"{len(names)} packages have to change together; 'envdoctor fix' lists them."
    return Remedy(words, (OwnCall("fix"),))


def _first_come(
    findings: Sequence[Finding], facts: Facts, matrix: Matrix, judge: Judge
) -> List[Finding]:
    """Return findings of which each keeps what does not contradict those before it, and cures
    beside them.
    """
    kept: List[Tuple[Finding, Bounds]] = []
    changed = []
    for finding in findings:
        if not installs(finding):
            changed.append(finding)
            continue
        fitting, against = [], None
        for remedy in finding.remedies:
            bounds = bounds_of(remedy)
            before = next((one for one, theirs in kept if contradict(bounds, theirs, matrix)), None)
            if before is None and kept and not is_of_line(finding):
                first = [next(filter(bounds_of, one.remedies)) for one, _ in kept]
                if not _cures_beside(remedy, finding, first, facts, matrix, judge):
                    before = kept[0][0]
            against = against or before
            fitting += [remedy] if before is None else []
        if against is not None and not fitting:
            objection = (
                f"{against.code} of {against.component} asks for something else, and no change is "
                "known that cures both."
            )
            fitting = [refused(finding.remedies[0], objection)]
        finding = finding._replace(remedies=tuple(fitting))
        changed.append(finding)
        kept += [(finding, bounds) for bounds in map(bounds_of, finding.remedies) if bounds]
    return changed


def _cures_beside(
    remedy: Remedy,
    finding: Finding,
    others: Sequence[Remedy],
    facts: Facts,
    matrix: Matrix,
    judge: Judge,
) -> bool:
    """Tell whether a remedy cures, carried out together with others."""
    calls = tuple([call for one in (*others, remedy) for call in one.commands])
    after = environment_after(Remedy("", calls), facts, matrix)
    return after is None or not any(
        _are_alike(entry, finding) and entry.verdict == "violated" for entry in judge(after)
    )


def _are_alike(one: Finding, other: Finding) -> bool:
    """Tell whether two findings say the same of a package, of whichever side of a range it is."""
    return one.key == other.key or (
        (one.code, one.component, one.row) == (other.code, other.component, other.row)
        and set(one.packages) == set(other.packages)
    )
