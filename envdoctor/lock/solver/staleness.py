"""How far the roots of a request are behind, and the optimum that sees it.

A root is behind by the days between its release and the newest one that the targets admit when it
is asked for alone, within its own bounds. No root falls years back because another is newest: the
worst of all roots decides first, in whole years, of which one is free for what another root
requires. Then the months (of 30 days) count that those roots are behind in all which no other
requires; a release of a root of which a row says that it works badly counts as some months more.
Then these roots are chosen, in their order, and so are the others after them: the newest engine,
with the torch that it pins.
"""

from __future__ import annotations

from datetime import date
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...model.request import Root
from ...model.row import Row
from .building import Builder
from .candidate_table import CandidateTable, bits_of
from .engine import Nogood, Outcome, Sum, Variable, solve
from .problem import MONTHS_BEHIND, MONTHS_OF_REQUIRED, YEARS_BEHIND, Problem, Why

__all__ = [
    "MONTH",
    "VIOLATED",
    "YEAR",
    "Aged",
    "days_behind",
    "months",
    "optimum",
    "rests_on_machine",
    "solution",
    "years",
]

#: In days.
MONTH = 30
YEAR = 365
#: How many months older a release of a root may be that spares a row of this effect: between
#: packages, and where the row rests on the machine, which often hits single features alone.
_MONTHS_WORTH = {
    "wrong-results": (12, 12),
    "blocks": (9, 9),
    "degrades": (6, 3),
}
VIOLATED = 0b01  # of a variable that says of a row whether it is


class Aged(NamedTuple):
    """A problem with its optimum, and for each root the bit of the newest release that the targets
    admit of it alone.
    """

    problem: Problem
    outcome: Outcome
    newest: Mapping[str, int]


def months(days: int) -> int:
    """Return whole months of 30 days."""
    return days // MONTH


def years(days: int) -> int:
    """Return how many years of 365 days are exceeded: a year to the day is none."""
    return max(days - 1, 0) // YEAR


def days_behind(table: CandidateTable, bits: int, newest: int) -> Dict[int, int]:
    """Return by how many days each of some candidates is behind another one; nothing is known of
    what has no date.
    """
    latest = _day(table.at(newest).release.released)
    days = {bit: _day(table.at(bit).release.released) for bit in bits_of(bits & table.all)}
    return {bit: max(latest - day, 0) if day else 0 for bit, day in days.items()}


def _day(released: str) -> int:
    return date.fromisoformat(released[:10]).toordinal() if released else 0


def optimum(
    builder: Builder, overrides_allowed: int, roots: Sequence[Root], spared: Sequence[str] = ()
) -> Aged:
    """Solve a problem that is built with costs, reading on until all that was chosen is read.

    spared: ids of rows that are not to be violated, though they do not bind.

    Raises:
        GaveUp: the search limit was reached.
    """
    while True:
        problem = _sparing(builder.problem(overrides_allowed), spared)
        aged = _optimum(builder, problem, roots)
        if aged is not None:
            return aged


def solution(builder: Builder, overrides_allowed: int, _roots: Sequence[Root] = ()) -> Aged:
    """Solve a problem without a look at how old the solution is, reading on until all that was
    chosen is read.

    Raises:
        GaveUp: the search limit was reached.
    """
    while True:
        problem = builder.problem(overrides_allowed)
        outcome = solve(problem.variables, problem.nogoods)
        if outcome.model is None or not builder.revise(problem, outcome.model):
            return Aged(problem, outcome, {})


def _sparing(problem: Problem, rows: Sequence[str]) -> Problem:
    """The problem in which these rows bind."""
    nodes = [f"cost:{row}" for row in rows]
    wanted = [
        Nogood(((problem.nodes.index(node), VIOLATED),), Why("behind", ("spared", node)))
        for node in nodes
        if node in problem.nodes
    ]
    return problem._replace(nogoods=(*problem.nogoods, *wanted)) if wanted else problem


def _optimum(builder: Builder, problem: Problem, roots: Sequence[Root]) -> Optional[Aged]:
    """The optimum of a problem, or None where it chooses what was not read.

    Where nothing is behind without a word about it, what is found first is the optimum already.
    """
    plain = solve(problem.variables, problem.nogoods)
    if plain.model is None:
        return Aged(problem, plain, {})
    if builder.revise(problem, plain.model):
        return None
    names = list(dict.fromkeys(root.name for root in roots))
    bits = dict(zip(problem.nodes, plain.model))
    newest: Dict[str, int] = {}
    for name in names:
        newest[name] = _newest(builder, problem, name, bits[name])
        if not newest[name]:
            return None
    behind = {
        name: days_behind(problem.tables[name], bits[name], newest[name])[bits[name]]
        for name in names
    }
    faults = _faults(problem, names)
    violated = [
        number for group in faults.values() for number in group if plain.model[number] & VIOLATED
    ]
    if not violated and not any(map(months, behind.values())):
        return Aged(problem, plain, newest)
    weighed = _weighed(problem, newest, faults)
    outcome = solve(weighed.variables, weighed.nogoods, sums=weighed.sums)
    if outcome.model is not None and builder.revise(weighed, outcome.model):
        return None
    return Aged(weighed, outcome, newest)


def _faults(problem: Problem, names: Sequence[str]) -> Dict[str, Dict[int, int]]:
    """For each root the variables of the rows about it that do not bind, each with its months."""
    number_of = {node: number for number, node in enumerate(problem.nodes)}
    faults: Dict[str, Dict[int, int]] = {name: {} for name in names}
    for nogood in problem.nogoods:
        row = nogood.why.row
        if nogood.why.kind == "cost" and row.component in faults:
            worth = _MONTHS_WORTH[row.effect][rests_on_machine(row)]
            faults[row.component][number_of[f"cost:{row.id}"]] = worth
    return faults


def rests_on_machine(row: Row) -> bool:
    """Tell whether a row speaks of the machine too, and not of packages alone."""
    return any(term.scope in ("host", "gpu") for term in row.terms)


def _newest(builder: Builder, problem: Problem, name: str, chosen: int) -> int:
    """The best release of a root that the problem admits when no other root is asked for; 0 where
    what comes with it was not read.
    """
    number = problem.nodes.index(name)
    alone = [
        nogood
        for nogood in problem.nogoods
        if nogood.why.kind != "request" or _subject(problem, nogood) == name
    ]
    admitted = problem.variables[number].domain
    for nogood in alone:
        if len(nogood.terms) == 1 and nogood.terms[0][0] == number:
            admitted &= ~nogood.terms[0][1]
    if chosen == admitted & -admitted:
        return chosen
    model = solve(problem.variables, alone, first=(number,)).model
    if model is None:
        return chosen
    return 0 if builder.revise(problem, model) else model[number]


def _subject(problem: Problem, nogood: Nogood) -> str:
    """The package that a request is about."""
    return problem.nodes[nogood.terms[0][0]].partition("[")[0] if nogood.terms else ""


def _weighed(
    problem: Problem, newest: Mapping[str, int], faults: Mapping[str, Mapping[int, int]]
) -> Problem:
    """The problem in which the variables before the roots say how far these are behind."""
    number_of = {node: number for number, node in enumerate(problem.nodes)}
    variables = list(problem.variables)
    in_years: List[Tuple[int, int, int]] = []  # variable, years, values
    costs: Dict[str, Dict[int, Tuple[Tuple[int, int], ...]]] = {
        MONTHS_BEHIND: {},
        MONTHS_OF_REQUIRED: {},
    }
    for name, best in newest.items():
        number = number_of[name]
        days = days_behind(problem.tables[name], problem.variables[number].domain, best)
        is_peer = name in problem.peers
        free = 0 if is_peer else 1
        in_years += [
            (number, count - free, values)
            for count, values in _grouped(days, years)
            if count > free
        ]
        own = costs[MONTHS_BEHIND if is_peer else MONTHS_OF_REQUIRED]
        own[number] = tuple(entry for entry in _grouped(days, months) if entry[0])
        own.update({fault: ((worth, VIOLATED),) for fault, worth in faults[name].items()})
    worst = max((count for _, count, _ in in_years), default=0)
    variables[number_of[YEARS_BEHIND]] = Variable((2 << worst) - 1, 0)
    for node, counted in costs.items():
        most = sum(entries[-1][0] for entries in counted.values() if entries)
        variables[number_of[node]] = Variable((2 << most) - 1, 0)
    why = Why("behind", ("behind",))
    bounds = [
        Nogood(((number_of[YEARS_BEHIND], (1 << count) - 1), (number, values)), why)
        for number, count, values in in_years
    ]
    return problem._replace(
        variables=tuple(variables),
        nogoods=(*problem.nogoods, *bounds),
        sums=tuple(Sum(number_of[node], counted) for node, counted in costs.items()),
    )


def _grouped(days: Mapping[int, int], unit: Callable[[int], int]) -> List[Tuple[int, int]]:
    """Values by what they cost in a unit, the least first."""
    groups: Dict[int, int] = {}
    for bit, count in days.items():
        groups[unit(count)] = groups.get(unit(count), 0) | bit
    return sorted(groups.items())
