"""Use case: what has to change in an environment so that ``check`` finds no error in it.

Never prints, never changes anything.

The solver knows rows, builds and metadata; ``check`` knows more (how installed binaries were
compiled, what an engine checks at import). So each plan is judged with its changes made, and an
installed copy that is still in error is given up and the search repeated. What no change of
packages cures stays in the plan as such, with its own remedies.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Callable,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from ..errors import InputError, InternalFault
from ..matrix.loader import Matrix
from ..model.calls import InstallerCall
from ..model.change import OF_PACKAGES, Change, Plan, kind_of_change
from ..model.facts import Distribution, Facts
from ..model.finding import Finding, Remedy
from ..model.lock_file import Lock
from ..model.request import Request, parse_root
from ..model.requirement import Requirement, parse_requirement
from ..model.resolution import Explanation, Reason
from ..model.versions import meets_pin, try_version
from ..rules.replaced_packages import with_packages

if TYPE_CHECKING:
    from ..lock.solver.installed import InstalledCatalog
    from ..lock.solver.nearest import Repair

__all__ = ["changed_facts", "errors_of", "faults_of", "is_wanted", "plan", "plan_for_lock"]

_ROUNDS = 6
_OF_PYTHON = ("ED303", "ED305")
_INDEXES = ("pytorch", "github")


def errors_of(facts: Facts, matrix: Matrix) -> List[Finding]:
    """Return what ``check`` calls an error of a target."""
    return [finding for finding in _violated(facts, matrix) if finding.severity == "error"]


def faults_of(facts: Facts, matrix: Matrix, goal: str = "working") -> List[Finding]:
    """Return what a goal wants cured: what fails, and for "healthy" every warning too."""
    return [finding for finding in _violated(facts, matrix) if is_wanted(finding, goal)]


def is_wanted(finding: Finding, goal: str) -> bool:
    """Tell whether a goal wants a finding cured."""
    return finding.breaks or (goal == "healthy" and finding.severity == "warning")


def _violated(facts: Facts, matrix: Matrix) -> List[Finding]:
    from ..rules import judge

    findings = judge(facts, matrix, today=str(matrix.date))
    return [finding for finding in findings if finding.verdict == "violated"]


def plan(
    facts: Facts,
    matrix: Matrix,
    *,
    python: Optional[str] = None,
    as_of: Optional[str] = None,
    allow_index: Sequence[str] = (),
    alternatives: bool = True,
    goal: str = "working",
    within: Sequence[str] = (),
) -> Union[Plan, Explanation]:
    """Find the smallest set of changes after which nothing fails that packages can cure, keeping
    the driver.

    Args:
        facts: the environment and its machine.
        matrix: what is known of versions and hardware.
        python: Python to resolve for; by default the environment's.
        as_of: ISO date after which no release counts.
        allow_index: further indexes whose builds may be taken ("pytorch").
        alternatives: also look for what another index or driver would save, and where there is no
            such set for ways out, which takes a search each.
        goal: "working" cures what fails, "healthy" what is warned of too.
        within: requirements that packages have to meet besides ("huggingface-hub>=0.19.2").

    Raises:
        InputError: nothing is known of what is installed; a requirement cannot be read.
        GaveUp: the search limit was reached; nothing is proven.
    """
    from ..lock.solver.nearest import request_for
    from ..lock.solver.objective import target_words

    _check(facts)
    violated = _violated(facts, matrix)
    errors = [finding for finding in violated if is_wanted(finding, goal)]
    request = request_for(facts, matrix, python=python, as_of=as_of, allow_index=allow_index)
    request = request._replace(constraints=tuple(map(parse_root, within)))
    blank = Plan(
        (),
        tuple(errors),
        target=target_words(facts),
        python=request.python,
        goal=goal,
        left=sum(f.severity == "warning" for f in violated if f not in errors),
        presumed=_presumed(facts, request),
        matrix_date=str(matrix.date),
    )
    if not errors:
        return blank
    seen = {finding.key: finding for finding in errors}
    best = _search(facts, seen, request, matrix, goal, alternatives)
    if isinstance(best, Explanation):
        return best
    best = _with_remedies(facts, best, matrix, goal)
    known = {error.key for error in errors}
    fresh = [finding for finding in best.remaining if finding.key not in known]
    if any(finding.severity == "error" for finding in fresh):
        raise InternalFault(
            f"check refuses what was to be the cure: {fresh[0].code} {fresh[0].message}"
        )
    return blank._replace(
        changes=tuple(_worded(change, seen) for change in best.repair.changes),
        remaining=tuple(_with_tried_remedies(facts, best, matrix, goal)),
        broken=best.repair.broken,
        overrides=best.repair.overrides,
        settings=best.repair.settings,
        alternatives=tuple(_alternatives(best, request, matrix, goal)) if alternatives else (),
    )


def _search(
    facts: Facts,
    seen: Dict[str, Finding],
    request: Request,
    matrix: Matrix,
    goal: str,
    with_ways: bool,
) -> Union[_Tried, Explanation]:
    """Try changes until the errors that they leave teach nothing new; return the best try.

    Args:
        facts: the environment.
        seen: the errors to cure, by key; those that changes bring are added.
        request: what the solver is asked.
        matrix: what is known of versions and hardware.
        goal: what counts as an error.
        with_ways: whether ways out are looked for where there is no change.
    """
    faulty: FrozenSet[str] = frozenset()
    best: Optional[_Tried] = None
    for _ in range(_ROUNDS):
        tried = _try(facts, seen, faulty, request, matrix, goal, with_ways and best is None)
        if isinstance(tried, Explanation):
            if best is None:
                return tried
            break
        if best is None or len(tried.remaining) < len(best.remaining):
            best = tried
        suspects = _copies(tried.remaining, facts, matrix, tried.repair.changes) - faulty
        news = {finding.key: finding for finding in tried.remaining if finding.key not in seen}
        if not suspects and not news:
            break
        faulty |= suspects
        seen.update(news)
    if best is None:
        raise InternalFault("no round of the search for changes was run")
    for name in sorted(best.catalog.situation.faulty):  # given up in vain
        tried = _try(facts, seen, best.catalog.situation.faulty - {name}, request, matrix, goal)
        if isinstance(tried, _Tried) and len(tried.remaining) <= len(best.remaining):
            best = tried
    return _within_remedies(facts, seen, best, request, matrix, goal)


def _within_remedies(
    facts: Facts,
    seen: Mapping[str, Finding],
    best: _Tried,
    request: Request,
    matrix: Matrix,
    goal: str,
) -> _Tried:
    """Search again within what a remedy names of packages that are changed anyway, where ``check``
    still finds something in them: it knows of what is installed besides, the solver does not.
    """
    from ..lock.solver.engine import GaveUp

    remedies = [remedy for finding in best.remaining for remedy in finding.remedies]
    for remedy in remedies:
        bounds = [
            parse_root(text)
            for call in remedy.commands
            if isinstance(call, InstallerCall) and call.action == "install"
            for text in call.packages
        ]
        if not {change.name for change in best.repair.changes}.intersection(
            bound.name for bound in bounds
        ):
            continue
        bounded = request._replace(constraints=(*request.constraints, *bounds))
        try:
            tried = _try(facts, seen, best.catalog.situation.faulty, bounded, matrix, goal)
        except GaveUp:  # a side question: what was found before stands
            continue
        if isinstance(tried, _Tried) and len(tried.remaining) < len(best.remaining):
            best, request = tried, bounded
    return best


class _Tried(NamedTuple):
    """One round: what was searched, what came of it, and the errors that are left with the changes
    made.
    """

    catalog: InstalledCatalog
    repair: Repair
    remaining: Tuple[Finding, ...]


def _try(
    facts: Facts,
    seen: Mapping[str, Finding],
    faulty: FrozenSet[str],
    request: Request,
    matrix: Matrix,
    goal: str,
    with_ways: bool = False,
) -> Union[_Tried, Explanation]:
    from ..lock.solver.installed import InstalledCatalog, Situation
    from ..lock.solver.nearest import repair

    situation = Situation(facts, _enforced(list(seen.values())), faulty)
    catalog = InstalledCatalog(matrix, request, situation)
    outcome = repair(catalog, with_ways=with_ways)
    if isinstance(outcome, Explanation):
        return outcome
    after = changed_facts(facts, outcome.changes)
    return _Tried(catalog, outcome, tuple(faults_of(after, matrix, goal)))


# --------------------------------------------------------------------------------------------------
# what a finding's own remedy cures


def _with_remedies(facts: Facts, tried: _Tried, matrix: Matrix, goal: str) -> _Tried:
    """Add the changes that remedies of the findings that are left name, as far as ``check`` finds
    less with them: packages of which no release is known, files that are damaged.
    """
    for finding in tried.remaining:
        if finding.key not in {left.key for left in tried.remaining}:
            continue  # an earlier remedy cured it
        for remedy in finding.remedies:
            changes = _changes_of_remedy(finding, remedy, facts, matrix)
            made = {change.name for change in tried.repair.changes}
            if not changes or made.intersection(change.name for change in changes):
                continue
            changes = [*tried.repair.changes, *changes]
            remaining = faults_of(changed_facts(facts, changes), matrix, goal)
            if {left.key for left in remaining} < {left.key for left in tried.remaining}:
                repair = tried.repair._replace(changes=tuple(changes))
                tried = tried._replace(repair=repair, remaining=tuple(remaining))
                break
    return tried


def _changes_of_remedy(
    finding: Finding, remedy: Remedy, facts: Facts, matrix: Matrix
) -> List[Change]:
    """Return a remedy as changes; nothing where it is more than installing packages."""
    calls = [call for call in remedy.commands if isinstance(call, InstallerCall)]
    if not calls or len(calls) < len(remedy.commands):
        return []
    changes: Dict[str, Optional[Change]] = {}
    for call in calls:
        if call.action not in ("install", "uninstall"):
            return []
        for text in call.packages:
            change = _change_of(text, call, finding, facts, matrix)
            changes[parse_requirement(text).name] = change
    return [change for change in changes.values() if change is not None]


def _change_of(
    text: str, call: InstallerCall, finding: Finding, facts: Facts, matrix: Matrix
) -> Optional[Change]:
    """Return what a call does to one package; None where it is there as the call wants it."""
    from ..rules.requirement_lines import meets

    requirement = parse_requirement(text)
    name = requirement.name
    distributions: Mapping[str, Distribution] = facts.value("distributions", {})
    installed = distributions.get(name)
    before = installed.version if installed is not None else None
    reason = Reason(
        "finding", f"{finding.code} {finding.message}", finding.row, finding.sources[:1]
    )
    if call.action == "uninstall":
        return Change(name, before, None, "remove", reason) if before is not None else None
    is_anew = "--force-reinstall" in call.options
    version = try_version(before)
    if version is not None and meets(version, requirement.specifier):
        return Change(name, before, str(version), "reinstall", reason) if is_anew else None
    newest = _newest(requirement, facts, matrix)
    if newest is not None:
        return Change(name, before, newest, kind_of_change(before, newest), reason)
    kind = "install" if before is None else "pin"
    return Change(name, before, requirement.specifier, kind, reason, is_range=True)


def _newest(requirement: Requirement, facts: Facts, matrix: Matrix) -> Optional[str]:
    """Return the newest release that a requirement admits and that this Python can have; None
    where no release of the package is known.
    """
    package = matrix.package(requirement.name)
    if package is None:
        return None
    from ..rules.requirement_lines import meets

    python = try_version(facts.value("python.version"))
    admitted = [
        version
        for version, release in package.releases()
        if not version.is_prerelease
        and not release.yanked
        and meets(version, requirement.specifier)
        and (python is None or meets(python, release.requires_python or "") is not False)
    ]
    return str(max(admitted)) if admitted else None


def _with_tried_remedies(
    facts: Facts, tried: _Tried, matrix: Matrix, goal: str
) -> Iterator[Finding]:
    """Yield what is left with those of its remedies that ``check`` does not refuse: what installs
    packages has to cure it, beside the changes of the plan, and bring nothing new.
    """
    known = {finding.key for finding in tried.remaining}
    for finding in tried.remaining:
        remedies = []
        for remedy in finding.remedies:
            changes = _changes_of_remedy(finding, remedy, facts, matrix)
            if changes:
                after = changed_facts(facts, [*tried.repair.changes, *changes])
                left = {other.key for other in faults_of(after, matrix, goal)}
                if finding.key in left or not left <= known:
                    continue
            remedies.append(remedy)
        yield finding._replace(remedies=tuple(remedies))


def plan_for_lock(facts: Facts, lock: Lock, matrix: Matrix) -> Plan:
    """Return the changes that make an environment what a lock pins."""
    from ..lock.solver.objective import target_words

    _check(facts)
    distributions: Mapping[str, Distribution] = facts.value("distributions", {})
    roots = {parse_root(text).name for text in lock.roots}
    changes = []
    for pin in lock.pins:
        installed, pinned = distributions.get(pin.name), str(pin.version)
        if installed is not None and meets_pin(installed.version, pinned):
            continue
        before = (
            (installed.version or installed.constraint or "of an unknown version")
            if installed is not None
            else None
        )
        reason = next(
            (reason for reason in pin.reasons if reason.kind != "refused"), Reason("asked", "")
        )
        text = f"the lock pins it: {reason.text}" if reason.text else "the lock pins it"
        changes.append(
            Change(
                pin.name,
                before,
                pinned,
                kind_of_change(before, pinned),
                reason._replace(text=text),
                pin.index_name,
                pin.name in roots,
                pin.from_source,
            )
        )
    changes.sort(key=lambda change: (change.before is None, not change.top, change.name))
    errors = faults_of(facts, matrix)
    return Plan(
        tuple(changes),
        tuple(errors),
        tuple(faults_of(changed_facts(facts, changes), matrix)),
        overrides=lock.overrides,
        settings=lock.settings,
        target=target_words(facts),
        python=lock.requires.python,
        matrix_date=str(matrix.date),
    )


def _check(facts: Facts) -> None:
    if not facts.value("distributions"):
        raise InputError(
            "expected an environment to repair, but it is not known what is installed; give "
            "--python, --facts, --report or --requirements"
        )
    platform = facts.value("os.platform")
    if platform not in (None, "linux"):
        raise InputError(f"only environments on linux are repaired, and this one is on {platform}")


def _presumed(facts: Facts, request: Request) -> Tuple[str, ...]:
    presumptions = []
    if facts.value("python.version") is None:
        presumptions.append(f"Python {request.python} (not known: give --python-version)")
    if facts.value("os.architecture") is None:
        presumptions.append(request.architecture)
    if facts.value("driver.release") is None:
        presumptions.append("nothing of the driver (not known)")
    return tuple(presumptions)


def _enforced(errors: Sequence[Finding]) -> Callable[[str, str], bool]:
    """Return a test for requirements that one error about requirements is about, both ends."""
    groups = [frozenset(error.packages) for error in errors if error.code.startswith("ED30")]
    return lambda requirer, required: any({requirer, required} <= group for group in groups)


def _copies(
    remaining: Sequence[Finding], facts: Facts, matrix: Matrix, changes: Sequence[Change]
) -> FrozenSet[str]:
    """Installed copies that errors are still about, and that the solver had no reason to change."""
    distributions, known = facts.value("distributions", {}), matrix.packages_known
    named: Set[str] = set()
    for finding in remaining:
        if finding.code in _OF_PYTHON:  # its component is Python, or the whole release
            named.update(finding.packages)
        if finding.code.startswith(OF_PACKAGES):
            named.add(finding.component)
    return frozenset(name for name in named if name in distributions and name in known) - {
        change.name for change in changes
    }


def _worded(change: Change, errors: Mapping[str, Finding]) -> Change:
    """A copy that was given up because of what ``check`` says of it: its words are the reason."""
    if change.reason.kind not in ("faulty", "follows"):
        return change
    about = [
        finding
        for finding in errors.values()
        if finding.code.startswith(OF_PACKAGES)
        and change.name in (finding.component, *finding.packages)
    ]
    if not about:
        return change
    return change._replace(
        reason=Reason(
            "finding", f"{about[0].code} {about[0].message}", about[0].row, about[0].sources
        )
    )


# --------------------------------------------------------------------------------------------------
# afterwards


def changed_facts(facts: Facts, changes: Sequence[Change]) -> Facts:
    """Return an environment as it will be with the changes made; what was read of replaced files is
    not known any more.
    """
    if not changes:
        return facts
    changed: Dict[str, Optional[Distribution]] = {}
    for change in changes:
        if change.after is None:
            changed[change.name] = None
        elif change.is_range:
            changed[change.name] = Distribution(change.name, None, constraint=change.after)
        elif change.kind != "reinstall":
            changed[change.name] = Distribution(change.name, change.after)
        else:  # the same release, of files that are whole
            changed[change.name] = facts.value("distributions", {}).get(change.name)
    return with_packages(facts, changed)


# --------------------------------------------------------------------------------------------------
# what else would help


class _Weight(NamedTuple):
    tops: int
    versions: int
    changes: int


def _weight(changes: Sequence[Change]) -> _Weight:
    return _Weight(
        sum(change.top for change in changes),
        sum(change.kind != "build" for change in changes),
        len(changes),
    )


def _alternatives(tried: _Tried, request: Request, matrix: Matrix, goal: str) -> List[str]:
    """Say what another index or another driver would save, where ``check`` agrees."""
    from ..lock.solver.engine import GaveUp
    from ..lock.solver.nearest import Repair, repair

    facts, changes = tried.catalog.situation.facts, tried.repair.changes
    if not changes:
        return []
    lines = []
    weight = _weight(changes)
    known = {finding.key for finding in tried.remaining}

    def attempt(catalog: InstalledCatalog, machine: Facts) -> Optional[Repair]:
        try:
            other = repair(catalog, machine, with_ways=False)
        except GaveUp:
            return None  # a side question: no answer is none
        if not isinstance(other, Repair):
            return None
        left = faults_of(changed_facts(machine, other.changes), matrix, goal)
        return other if {finding.key for finding in left} <= known else None

    for index in _INDEXES:
        if index in request.allow_index:
            continue
        wider = request._replace(allow_index=(*request.allow_index, index))
        other = attempt(tried.catalog.changed(wider), facts)
        if other is not None and _weight(other.changes) < weight:
            lines.append(
                f"with builds of the index {index} (--allow-index {index}): "
                f"{_summary(other.changes)}"
            )
    if facts.value("driver.release") is not None:
        other = attempt(tried.catalog.changed(request), facts.without("driver"))
        if (
            other is not None
            and _weight(other.changes) < weight
            and other.requires.driver is not None
        ):
            lines.append(
                f"with driver {other.requires.driver} or newer on the host "
                f"(not changed by envdoctor): {_summary(other.changes)}"
            )
    return lines


def _summary(changes: Sequence[Change]) -> str:
    if not changes:
        return "nothing has to change"
    named = ", ".join(
        f"{change.name} {change.before or 'new'} -> {change.after or 'removed'}"
        for change in changes[:3]
    )
    return (
        f"{len(changes)} change{'s' if len(changes) != 1 else ''} "
        f"({named}{', ...' if len(changes) > 3 else ''})"
    )
