"""The smallest set of changes that makes an environment meet what is known.

The objective is a total order: fewest roots changed (what nothing else asks for); fewest overrides;
the roots nearest to what is installed, that on which most hangs first; then the fewest changes in
all of what is there, for what a release brings is none; then by name, the nearest to what is
installed, and of what is new the newest. Roots come before overrides, unlike in a lock: here the
roots are the request, and an override that a row asks for (cuBLAS 12.3.4.1 under torch 2.4.0) is
less than another engine. Both counts are variables of the problem that stand before those which
they bound, so the first model that the engine finds is the one: c[i] is the number of changes among
the first i items, at least.
"""

from __future__ import annotations

from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ...errors import InternalFault
from ...matrix.loader import Matrix
from ...model.change import Change, kind_of_change
from ...model.facts import Facts
from ...model.request import Request
from ...model.resolution import Explanation, Override, Reason, Requires, Statement
from .building import Builder
from .engine import Nogood, Outcome, Variable, solve
from .installed import INSTALLED, InstalledCatalog, usual_python
from .objective import Attempt, resolution_of
from .problem import Problem, Why

__all__ = ["Counted", "Repair", "counted", "repair", "request_for", "settle"]

#: Causes in the order in which they explain a change best, what rests on the machine before all:
#: what is known, what metadata ask, how it was built.
_RANK = {"host": 0, "row": 1, "override": 2, "metadata": 3, "build": 4}


Item = Tuple[int, int]  # number of a variable, mask of the values that are a change


class Repair(NamedTuple):
    """What has to change, and the machine that the result requires."""

    changes: Tuple[Change, ...]
    overrides: Tuple[Override, ...]
    settings: Mapping[str, str]
    broken: Tuple[str, ...]
    requires: Requires
    cost: Tuple[int, int, int]  # overrides, roots changed, changes


def request_for(
    facts: Facts,
    matrix: Matrix,
    *,
    python: Optional[str] = None,
    as_of: Optional[str] = None,
    allow_index: Sequence[str] = (),
) -> Request:
    """Return the request that a repair of these facts makes."""
    return Request(
        (),
        python or usual_python(facts, matrix),
        facts.value("os.platform") or "linux",
        facts.value("os.architecture") or "x86_64",
        as_of,
        tuple(dict.fromkeys(allow_index)),
    )


def repair(
    catalog: InstalledCatalog, machine: Optional[Facts] = None, with_ways: bool = True
) -> Union[Repair, Explanation]:
    """Find the smallest set of changes, or say why there is none.

    Where what other distributions ask leaves nothing, it is dropped, and the result names what it
    breaks.

    Args:
        catalog: of what is installed; it keeps what was made, for the next search with it.
        machine: what the changes are for; by default the machine of the environment.
        with_ways: whether ways out are looked for where there is no such set.

    Raises:
        GaveUp: the search limit was reached.
    """
    target = machine or catalog.situation.facts
    result = _attempt(catalog, target)
    if result.outcome.model is None and catalog.outside:
        loose = catalog.loosened()
        result = _attempt(loose, target)
        if result.outcome.model is not None:
            return _repair_of(result, loose, target, _broken(result, catalog))
    if result.outcome.model is None:
        from .explanation import explain

        return _reworded(explain(catalog, (target,), with_ways=with_ways), catalog)
    return _repair_of(result, catalog, target, ())


class _Search(NamedTuple):
    """A problem in the order of the objective, and what came of it with so many overrides."""

    given: Counted
    outcome: Outcome
    overrides: int

    @property
    def problem(self) -> Problem:
        return self.given.problem

    @property
    def bits(self) -> Mapping[str, int]:
        """What was chosen for each node."""
        return dict(zip(self.problem.nodes, self.outcome.model or ()))


def _attempt(catalog: InstalledCatalog, target: Facts) -> _Search:
    """Search without overrides, then with one more at a time as long as that leaves more roots as
    they are.
    """
    best: Optional[_Search] = None
    fewest = 0
    allowed = 0
    builder = Builder(catalog, (target,), any_machine=True, whole=True)
    while True:
        given = counted(builder.problem(allowed), catalog)
        problem = given.problem
        outcome = settle(problem.variables, problem.nogoods, given.roots, given.items)
        moved = (
            _count(outcome.model, given.roots)
            if outcome.model is not None
            else len(given.roots) + 1
        )
        if best is None or moved < fewest:
            best, fewest = _Search(given, outcome, allowed), moved
        if not fewest or allowed >= len(problem.overrides):
            return best
        allowed += 1


# --------------------------------------------------------------------------------------------------
# counting


class Counted(NamedTuple):
    """A problem in the order of the objective.

    ``roots`` and ``items`` are (variable, mask that is a change); ``changes`` are those that count,
    and what they bring.
    """

    problem: Problem
    roots: Tuple[Item, ...]
    items: Tuple[Item, ...]
    changes: Tuple[Item, ...]


def counted(problem: Problem, catalog: InstalledCatalog) -> Counted:
    """Put the roots first, then what they lack, let everything else that is installed go, prefer
    what is installed, and name what is a change. What is missing is taken in its newest release
    that goes with what is there: what that brings is none, or the one with the fewest requirements
    would be taken, which is mostly the oldest.
    """
    tops = catalog.tops
    missing = _missing(problem, catalog)
    order = [
        *(name for name in tops if name in problem.nodes),
        *missing,
        *(node for node in problem.nodes if node not in tops and node not in missing),
    ]
    place = {node: number for number, node in enumerate(order)}
    variable_of = dict(zip(problem.nodes, problem.variables))
    variables: List[Variable] = []
    items: List[Item] = []
    changes: List[Item] = []
    for node in order:
        variable, change = _preferred(node, variable_of[node], problem, catalog)
        variables.append(variable)
        if change is not None:
            changes.append((place[node], change))
            items += changes[-1:] if node in catalog.situation.listed else []
    fixed = {*tops, *catalog.outside}
    nogoods = [
        _moved(nogood, problem, place)
        for nogood in problem.nogoods
        if nogood.why.kind != "request" or fixed & {problem.nodes[one] for one, _ in nogood.terms}
    ]
    ordered = problem._replace(
        nodes=tuple(order), variables=tuple(variables), nogoods=tuple(nogoods)
    )
    roots = tuple((number, mask) for number, mask in items if order[number] in tops)
    return Counted(ordered, roots, tuple(items), tuple(changes))


def _missing(problem: Problem, catalog: InstalledCatalog) -> List[str]:
    """Return what is required by what is installed, and is not there."""
    situation = catalog.situation
    if not situation.complete:
        return []
    wanted = {base for name in situation.listed for base in catalog.wants(name)}
    return [
        node
        for node in problem.nodes
        if node in wanted and node in problem.tables and node not in situation.listed
    ]


def _preferred(
    node: str, variable: Variable, problem: Problem, catalog: InstalledCatalog
) -> Tuple[Variable, Optional[int]]:
    """Return a variable that prefers what is installed, and the mask of what is a change of it."""
    situation = catalog.situation
    domain, absent = variable
    if node in catalog.core:
        if node in situation.faulty:
            domain &= ~_installed_mask(node, catalog)
        # To go is the last resort.
        return Variable(domain, 0), domain & ~catalog.kept(node)
    is_added = situation.complete and node in problem.tables and "[" not in node
    if is_added and node not in situation.listed:
        return Variable(domain, absent), domain & ~absent
    return Variable(domain, absent), None


def _installed_mask(node: str, catalog: InstalledCatalog) -> int:
    return sum(
        1 << number
        for number, entry in enumerate(catalog.table(node).candidates)
        if entry.index_name == INSTALLED
    )


def _moved(nogood: Nogood, problem: Problem, place: Mapping[str, int]) -> Nogood:
    """Return a nogood over the variables in another order."""
    terms = [(place[problem.nodes[number]], mask) for number, mask in nogood.terms]
    return Nogood(tuple(sorted(terms)), nogood.why)


def settle(
    variables: Sequence[Variable],
    nogoods: Sequence[Nogood],
    roots: Sequence[Item],
    items: Sequence[Item],
) -> Outcome:
    """Find the optimum: fewest roots changed, these in order, then fewest items changed, then all
    variables in order.

    The roots have to be the first of the variables. In two steps, each with one count in front:
    first of the roots, then, with these settled, of everything.

    Raises:
        GaveUp: the search limit was reached.
    """
    first = solve(variables, nogoods)
    if first.model is None:
        return first
    outcome = _fewest(variables, nogoods, roots, _count(first.model, roots))
    if outcome.model is None:
        raise InternalFault("what has a solution has none with its changes counted")
    settled = {number: outcome.model[number] for number, _ in roots}
    narrowed = [
        variable._replace(domain=settled.get(number, variable.domain))
        for number, variable in enumerate(variables)
    ]
    return _fewest(narrowed, nogoods, items, _count(outcome.model, items))


def _count(model: Sequence[int], items: Sequence[Item]) -> int:
    return sum(1 for number, mask in items if model[number] & mask)


def _fewest(
    variables: Sequence[Variable], nogoods: Sequence[Nogood], items: Sequence[Item], bound: int
) -> Outcome:
    """Solve with the number of changed items as the first thing to be settled.

    ``bound``: a number that is known to suffice.
    """
    movable = [(number, mask) for number, mask in items if variables[number].domain & mask]
    if not movable:
        return solve(variables, nogoods)
    # Bit r of counter i: at most r of the first i items are changed. The last one comes first of
    # all, the others last.
    counters = [Variable((2 << min(place, bound)) - 1, 0) for place in range(1, len(movable) + 1)]

    def counter(place: int) -> int:
        return 0 if place == len(movable) else len(variables) + place

    shifted = [
        Nogood(tuple((number + 1, mask) for number, mask in nogood.terms), nogood.why)
        for nogood in nogoods
    ]
    for place, (number, mask) in enumerate(movable, 1):
        counts = counters[place - 1].domain
        before = counters[place - 2].domain if place > 1 else 1
        for reached in range(min(place - 1, bound) + 1):
            reaching = (counter(place - 1), before & ~((1 << reached) - 1)) if place > 1 else None
            shifted.append(
                _terms(
                    reaching, (number + 1, mask), (counter(place), counts & ((2 << reached) - 1))
                )
            )
            if reached:
                shifted.append(
                    _terms(reaching, None, (counter(place), counts & ((1 << reached) - 1)))
                )
    outcome = solve([counters[-1], *variables, *counters[:-1]], shifted)
    return outcome._replace(
        model=None if outcome.model is None else outcome.model[1 : 1 + len(variables)]
    )


def _terms(*terms: Optional[Item]) -> Nogood:
    return Nogood(
        tuple(sorted(term for term in terms if term is not None)), Why("count", ("count",))
    )


# --------------------------------------------------------------------------------------------------
# the answer


def _repair_of(
    result: _Search, catalog: InstalledCatalog, target: Facts, broken: Tuple[str, ...]
) -> Repair:
    problem, bits = result.problem, result.bits
    attempt = Attempt(problem, result.outcome, result.overrides)
    resolution = resolution_of(attempt, catalog, (target,))
    changes = []
    for number, mask in result.given.changes:
        node = problem.nodes[number]
        if bits[node] & mask:
            changes.append(_change(node, bits, problem, catalog))
    changes.sort(key=lambda change: (change.before is None, not change.top, change.name))
    top = sum(change.top for change in changes)
    return Repair(
        tuple(changes),
        resolution.overrides,
        resolution.settings,
        broken,
        resolution.requires,
        (len(resolution.overrides), top, len(changes)),
    )


def _change(
    name: str, bits: Mapping[str, int], problem: Problem, catalog: InstalledCatalog
) -> Change:
    table = problem.tables[name]
    installed = catalog.situation.listed
    before = catalog.shown(name) if name in installed else None
    top = name in catalog.tops
    reason = _reason(name, bits, problem, catalog)
    if bits[name] == table.absent:
        return Change(name, before, None, "remove", reason, top=top)
    chosen = table.at(bits[name])
    after = str(chosen.version)
    return Change(
        name,
        before,
        after,
        kind_of_change(before, after),
        reason,
        chosen.index_name,
        top,
        chosen.from_source,
    )


def _reason(
    name: str, bits: Mapping[str, int], problem: Problem, catalog: InstalledCatalog
) -> Reason:
    """Why this one may not stay: what it would violate, taken back alone."""
    number = problem.nodes.index(name)
    stayed = catalog.kept(name) & problem.variables[number].domain
    installed = catalog.situation.listed
    violated: List[Tuple[bool, Why]] = []
    for nogood in problem.nogoods:
        masks = dict(nogood.terms)
        others = {problem.nodes[other]: mask for other, mask in masks.items() if other != number}
        holds = all(bits[other] & mask for other, mask in others.items())
        if number in masks and stayed and not stayed & ~masks[number] and holds:
            is_of_new = any(other.partition("[")[0] not in installed for other in others)
            violated.append((is_of_new, nogood.why))

    def rank(item: Tuple[bool, Why]) -> Tuple[bool, bool, int, bool, bool]:
        is_of_new, why = item
        edge = why.edge
        return (
            is_of_new,  # what comes only with the change explains it last
            not why.limits,
            _RANK.get(why.kind, 9),
            edge is None or edge.name != name,
            edge is None or edge.requirer not in installed,
        )

    violated.sort(key=rank)
    for _, why in violated:
        if why.row is not None:
            row = why.row if why.kind == "build" else catalog.matrix.complete(why.row)
            return Reason("row", row.title, "" if why.kind == "build" else row.id, row.sources)
        if why.edge is not None:
            requirer, required = (
                why.edge.requirer.partition("[")[0],
                why.edge.name.partition("[")[0],
            )
            if requirer == name:  # it follows from another change
                was = catalog.shown(name) if name in installed else ""
                return Reason(
                    "follows",
                    f"{name} {was} requires {required}{why.edge.specifier}, and {required} changes",
                )
            version = _words(requirer, bits, problem, catalog)
            return Reason(
                "required", f"{requirer} {version} requires {required}{why.edge.specifier}"
            )
        if why.misfit is not None:
            return Reason(why.kind, why.misfit.words())
        if why.text:
            return Reason(why.kind, why.text)
    return (
        Reason("faulty", f"the installed copy of {name} does not work with the rest")
        if not stayed
        else Reason("", "")
    )


def _words(name: str, bits: Mapping[str, int], problem: Problem, catalog: InstalledCatalog) -> str:
    if problem.tables[name].absent == bits[name]:
        return catalog.shown(name)
    chosen = problem.tables[name].at(bits[name])
    return catalog.shown(name) if chosen.index_name == INSTALLED else str(chosen.version)


def _broken(result: _Search, catalog: InstalledCatalog) -> Tuple[str, ...]:
    """Say which requirements of other distributions the result does not meet."""
    bits = result.bits
    lines = []
    for name in catalog.outside:
        for wanted, allowed, specifier in catalog.asks(name, 1):
            bit = bits.get(wanted, 0)
            if not bit & allowed:
                chosen = _words(wanted, bits, result.problem, catalog) if bit else "absent"
                lines.append(
                    f"{name} {catalog.shown(name)} requires {wanted}{specifier}, and {wanted} will "
                    f"be {chosen}"
                )
    return tuple(lines)


def _reworded(explanation: Explanation, catalog: InstalledCatalog) -> Explanation:
    """Nobody asked for anything here: what is installed is what has to be met."""
    causes = []
    for cause in explanation.causes:
        if cause.kind == "request":
            name = cause.requirement
            shown = catalog.shown(name) if name in catalog.situation.listed else ""
            causes.append(
                Statement("request", f"{name} {shown} is installed, and no release of it would do")
            )
        else:
            causes.append(cause)
    return explanation._replace(causes=tuple(causes))
