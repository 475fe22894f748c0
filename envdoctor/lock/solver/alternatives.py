"""A root that is more than a year behind is not given in silence: the constraint that decides, and
what else there is.
"""

from __future__ import annotations

from typing import Iterator, List, Mapping, Sequence, Tuple

from ...model.facts import Facts
from ...model.request import Root
from . import objective
from .candidates import Catalog, bits_of
from .engine import Nogood, solve
from .explanation import minimal_groups, statements
from .objective import Attempt
from .problem import Why
from .staleness import days_behind, months, years

__all__ = ["notes_on_age"]

_CAUSES = 2


def notes_on_age(found: Attempt, catalog: Catalog, facts: Sequence[Facts]) -> Tuple[str, ...]:
    """Return a sentence for each root of a solved attempt that is more than a year behind the
    newest release which the targets admit alone.
    """
    return tuple(
        _note(name, days, found, catalog, facts)
        for name, days in _behind(found).items()
        if years(days)
    )


def _behind(found: Attempt) -> Mapping[str, int]:
    """By how many days each root is behind."""
    bits = dict(zip(found.problem.nodes, found.outcome.model or ()))
    return {
        name: days_behind(found.problem.tables[name], bits[name], newest)[bits[name]]
        for name, newest in found.newest.items()
    }


def _note(name: str, days: int, found: Attempt, catalog: Catalog, facts: Sequence[Facts]) -> str:
    table = found.problem.tables[name]
    bits = dict(zip(found.problem.nodes, found.outcome.model or ()))
    chosen, newest = table.at(bits[name]), table.at(found.newest[name])
    text = (
        f"{name} {chosen.version} is of {chosen.release.released}, {months(days)} months behind "
        f"{newest.version}, which would do alone"
    )
    causes = _causes(name, found, catalog)
    others = list(_alternatives(name, found, catalog, facts))
    return (
        text
        + (f": {'; '.join(causes)}" if causes else "")
        + (f"; instead: {', or '.join(others)}" if others else "")
    )


def _young(name: str, found: Attempt) -> int:
    """The candidates of a root that are at most a year behind."""
    table = found.problem.tables[name]
    days = days_behind(table, table.all, found.newest[name])
    return sum(bit for bit, count in days.items() if not years(count))


def _causes(name: str, found: Attempt, catalog: Catalog) -> List[str]:
    """Why no younger release goes with the others as they are."""
    problem = found.problem
    number_of = {node: number for number, node in enumerate(problem.nodes)}
    bits = dict(zip(problem.nodes, found.outcome.model or ()))
    wanted = []
    for other, newest in found.newest.items():
        days = days_behind(problem.tables[other], problem.tables[other].all, newest)
        kept = (
            _young(name, found)
            if other == name
            else sum(bit for bit, count in days.items() if count <= days[bits[other]])
        )
        domain = problem.variables[number_of[other]].domain
        wanted.append(
            Nogood(((number_of[other], domain & ~kept),), Why("behind", ("behind", other)))
        )
    hard = [nogood for nogood in problem.nogoods if nogood.why.kind not in ("cost", "behind")]
    asked = problem._replace(nogoods=(*hard, *wanted), sums=())
    outcome = solve(asked.variables, asked.nogoods)
    if outcome.model is not None:
        return []
    groups = minimal_groups(asked, outcome.core)
    for key in [key for key in groups if key[0] == "behind"]:
        del groups[key]
    bounds = {root.text for root in catalog.request.roots if root.specifier}
    listed = [
        statement.text
        for statement in statements(asked, groups, catalog)
        if statement.kind != "request" or statement.requirement in bounds
    ]
    return listed[:_CAUSES]


def _alternatives(
    name: str, found: Attempt, catalog: Catalog, facts: Sequence[Facts]
) -> Iterator[str]:
    """Yield what a young release of the root goes with, no other root being years behind: the same
    roots, then one of them without its bound, then all but one.
    """
    young = min(found.problem.tables[name].at(bit).version for bit in bits_of(_young(name, found)))
    roots = [
        root._replace(specifier=",".join(filter(None, (root.specifier, f">={young}"))))
        if root.name == name
        else root
        for root in catalog.request.roots
    ]
    others = [root for root in roots if root.name != name]
    tries = [(roots, "")]
    tries += [
        (
            [root._replace(specifier="") if root == loose else root for root in roots],
            f", asked for without {loose.name}{loose.specifier}",
        )
        for loose in others
        if loose.specifier
    ]
    tries += [
        ([root for root in roots if root != left], f", without {left.name}") for left in others
    ]
    for wanted, words in tries:
        pins = _pins_of(name, wanted, catalog, facts)
        if pins:
            yield pins + words
            return


def _pins_of(name: str, roots: Sequence[Root], catalog: Catalog, facts: Sequence[Facts]) -> str:
    """What these roots resolve to, one of them first: ``vllm 0.33.0 with torch 2.14.1``; nothing
    where a root would be years behind.
    """
    asking = catalog.asking(roots)
    found = objective.attempt(asking, facts)
    if found.outcome.model is None or any(map(years, _behind(found).values())):
        return ""
    resolution = objective.resolution_of(found, asking, facts)
    names = dict.fromkeys([name, *(root.name for root in roots), "torch"])
    pins = [pin for entry in names for pin in [resolution.pin(entry)] if pin is not None]
    first, *others = [f"{pin.name} {pin.version}" for pin in pins]
    return f"{first} with {', '.join(others)}" if others else first
