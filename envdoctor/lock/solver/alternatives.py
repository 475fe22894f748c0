"""A root that is behind is not given in silence: what decides stands among its reasons, and of what
is more than a year behind a note says what else there is, be it on another machine or Python. Where
a root works badly with the others, a note says with which it does not.
"""

from __future__ import annotations

from typing import (
    Container,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from ...model.facts import Facts
from ...model.request import Root
from ...model.resolution import Pin, Reason, Resolution, Statement
from .candidate_table import bits_of
from .candidates import Catalog
from .engine import Nogood, Outcome, solve
from .explanation import explain, minimal_groups, statements
from .objective import Attempt, attempt
from .problem import Problem, Why
from .staleness import (
    MONTH,
    VIOLATED,
    YEAR,
    days_behind,
    months,
    optimum,
    rests_on_machine,
    years,
)
from .torch_needed import attempt_whole

__all__ = ["with_ages"]

_CAUSES = 3
#: Roots of a request from which on no alternative is looked for: each would be a lock of its own.
_MANY = 16


class _Causes(NamedTuple):
    """Why no younger release of a root goes with the others: in words, and the roots without which
    nothing of that would hold.
    """

    said: Sequence[Statement]
    roots: FrozenSet[str]


def with_ages(
    resolution: Resolution, search: Attempt, catalog: Catalog, facts: Sequence[Facts]
) -> Resolution:
    """Return a resolution with a note on each root that is more than a year behind the newest
    release which the targets admit alone, and a reason for each that is behind without a
    requirement that says so.
    """
    behind = _behind(search)
    roots = [root for root in catalog.request.roots if root.name in search.newest]
    unexplained = {pin.name for pin in resolution.pins if not _is_capped(pin, search)}
    causes = {
        name: _causes(name, search, catalog)
        for name, days in behind.items()
        if years(days) or (days and name in unexplained)
    }
    pins = [
        pin._replace(reasons=(*pin.reasons, _reason(pin.name, causes[pin.name].said, search)))
        if pin.name in causes and causes[pin.name].said
        else pin
        for pin in resolution.pins
    ]
    notes = [
        _note(name, days, causes[name], search, catalog, facts)
        for name, days in behind.items()
        if years(days)
    ]
    if len(catalog.request.roots) < _MANY:
        notes += filter(None, (_age_of_all(root, search, catalog, facts) for root in roots))
        notes += _spared_notes(search, catalog)
    return resolution._replace(pins=tuple(pins), notes=(*resolution.notes, *notes))


def _age_of_all(root: Root, search: Attempt, catalog: Catalog, facts: Sequence[Facts]) -> str:
    """Say of a root that all which the targets admit is more than a year older than its newest
    release, why, and what would do; "" where that is not so.
    """
    table, admitted = search.problem.tables[root.name], search.newest[root.name]
    newest = catalog.newest(root)
    days = days_behind(table, admitted, newest)[admitted] if newest else 0
    if not years(days):
        return ""
    young = table.at(newest).version
    asked = catalog.asking([root._replace(specifier=f"=={young}")])
    if attempt(asked, facts).chosen:
        return ""
    refused = explain(asked, facts, loosened=())
    said = [cause for cause in refused.causes if cause.kind != "request"]
    instead = f"; instead: {refused.ways_out[0]}" if refused.ways_out else ""
    return (
        f"{root.name} {table.at(admitted).version}, the newest that fits here, is {months(days)} "
        f"months older than {young}: {_words(said)}{instead}"
    )


def _spared_notes(search: Attempt, catalog: Catalog) -> Iterator[str]:
    """Yield for each root of which a row between packages says that it works badly what the newest
    set is in which it does not, if no root is years behind in that.
    """
    builder, problem, bits = search.builder, search.problem, search.bits
    rows = {nogood.why.row.id: nogood.why.row for nogood in problem.nogoods if nogood.why.row}
    for row in rows.values():
        violated = bits.get(f"cost:{row.id}", 0) & VIOLATED
        if builder is None or not violated or row.component not in search.newest:
            continue
        if rests_on_machine(row):
            continue
        roots = catalog.request.roots
        spared = optimum(builder, search.overrides, roots, (row.id,))
        other = search._replace(problem=spared.problem, outcome=spared.outcome)
        behind = _behind(other) if other.chosen else {}
        if not behind or any(map(years, behind.values())):
            continue
        late = {name: days for name, days in behind.items() if months(days)}
        words = ", ".join(f"{name} is {months(days)} months behind" for name, days in late.items())
        yield (
            f"{row.component} {search.chosen[row.component].version}: "
            f"{catalog.matrix.complete(row).title}; instead: {_pin_words(other, roots[0].name)}"
            + (f" ({words})" if words else "")
        )


def _is_capped(pin: Pin, search: Attempt) -> bool:
    """Tell whether what requires a root excludes its newest release."""
    if pin.name not in search.newest:
        return True
    table = search.problem.tables[pin.name]
    required = [reason.requirement for reason in pin.reasons if reason.kind == "required"]
    return any(not table.mask(text) & search.newest[pin.name] for text in required)


def _reason(name: str, causes: Sequence[Statement], search: Attempt) -> Reason:
    newest = search.problem.tables[name].at(search.newest[name]).version
    of_row = next((cause for cause in causes if cause.row), Statement("", ""))
    return Reason("refused", f"not {newest}: {_words(causes)}", of_row.row, of_row.sources)


def _words(causes: Sequence[Statement]) -> str:
    """The first causes, and how many more there are."""
    texts = [cause.text for cause in causes]
    more = [f"and {len(texts) - _CAUSES} more of this kind"] if len(texts) > _CAUSES else []
    return "; ".join([*texts[:_CAUSES], *more])


def _behind(search: Attempt) -> Mapping[str, int]:
    """By how many days each root is behind."""
    bits = search.bits
    return {
        name: days_behind(search.problem.tables[name], bits[name], newest)[bits[name]]
        for name, newest in search.newest.items()
    }


def _note(
    name: str,
    days: int,
    causes: _Causes,
    search: Attempt,
    catalog: Catalog,
    facts: Sequence[Facts],
) -> str:
    table = search.problem.tables[name]
    bits = search.bits
    chosen, newest = table.at(bits[name]), table.at(search.newest[name])
    text = (
        f"{name} {chosen.version} is of {chosen.release.released}, {months(days)} months behind "
        f"{newest.version}, which would do alone"
    )
    few = len(catalog.request.roots) < _MANY
    other = next(_alternatives(name, causes.roots, search, catalog, facts), "") if few else ""
    why = f": {_words(causes.said)}" if causes.said else ""
    return text + why + (f"; instead: {other}" if other else "")


def _within(name: str, search: Attempt, most: int) -> int:
    """The candidates of a root that are at most so many days behind."""
    table = search.problem.tables[name]
    days = days_behind(table, table.all, search.newest[name])
    return sum(bit for bit, count in days.items() if count <= most)


def _causes(name: str, search: Attempt, catalog: Catalog) -> _Causes:
    """Why no younger release goes with the others as they are, or, of what is more than a year
    behind, none that is at most a year behind; where one does, what it would violate.
    """
    asked, outcome, spared = _solve_younger(name, search, catalog)
    if spared is not None:
        return _Causes(spared, frozenset(search.newest))
    groups = minimal_groups(asked, outcome.core)
    bounds = {root.text for root in catalog.request.roots if root.specifier}
    decisive = {key: nogoods for key, nogoods in groups.items() if key[0] != "behind"}
    said = [
        statement
        for statement in statements(asked, decisive, catalog)
        if statement.kind != "request" or statement.requirement in bounds
    ]
    # What the machine says decides before what only follows.
    said.sort(key=lambda statement: statement.kind != "hardware")
    texts = {key[1] for key in groups if key[0] == "request"}
    kept = {key[1] for key in groups if key[0] == "behind"}
    roots = catalog.request.roots
    return _Causes(
        said, frozenset(root.name for root in roots if root.text in texts or root.name in kept)
    )


def _solve_younger(
    name: str, search: Attempt, catalog: Catalog
) -> Tuple[Problem, Outcome, Optional[List[Statement]]]:
    """Return the problem with a younger release and its outcome; where it has a model, also the
    rows that this would violate.
    """
    builder, problem = search.builder, search.problem
    while True:
        asked = _with_younger(name, search, problem)
        outcome = solve(asked.variables, asked.nogoods)
        if outcome.model is None:
            return asked, outcome, None
        soft = [nogood for nogood in problem.nogoods if nogood.why.kind == "cost"]
        sparing = solve(asked.variables, (*asked.nogoods, *soft)).model
        models = (outcome.model, sparing or outcome.model)
        if builder is None or not any(builder.revise(problem, model) for model in models):
            return asked, outcome, _spared(problem, soft, sparing, search, catalog)
        problem = builder.problem(search.overrides)


def _with_younger(name: str, search: Attempt, problem: Problem) -> Problem:
    """A problem in which a root has to be younger than what was chosen, and no other older."""
    number_of = {node: number for number, node in enumerate(problem.nodes)}
    wanted = []
    for other, days in _behind(search).items():
        most = MONTH * (months(days) + 1) - 1
        if other == name:
            most = YEAR if years(days) else max(MONTH * months(days), days) - 1
        kept = _within(other, search, most)
        dropped = problem.variables[number_of[other]].domain & ~kept
        wanted.append(Nogood(((number_of[other], dropped),), Why("behind", ("behind", other))))
    hard = [nogood for nogood in problem.nogoods if nogood.why.kind not in ("cost", "behind")]
    return problem._replace(nogoods=(*hard, *wanted), sums=())


def _spared(
    problem: Problem,
    soft: Sequence[Nogood],
    model: Optional[Sequence[int]],
    search: Attempt,
    catalog: Catalog,
) -> List[Statement]:
    """The rows that do not bind and that a problem with a younger release would violate, while what
    was chosen does not.
    """
    younger = dict(zip(problem.nodes, model or ()))
    chosen = search.bits
    rows = {nogood.why.row.id: nogood.why.row for nogood in soft}
    violated = [
        catalog.matrix.complete(row)
        for row in rows.values()
        for node in [f"cost:{row.id}"]
        if younger.get(node, 0) & VIOLATED and not chosen.get(node, 0) & VIOLATED
    ]
    return [Statement("row", row.title, row.id, row.sources) for row in violated]


def _alternatives(
    name: str,
    concerned: Container[str],
    search: Attempt,
    catalog: Catalog,
    facts: Sequence[Facts],
) -> Iterator[str]:
    """Yield what a young release of the root goes with, no other root being years behind: the same
    roots, then one of those that are concerned without its bound, then all but one of these.
    """
    table = search.problem.tables[name]
    young = min(table.at(bit).version for bit in bits_of(_within(name, search, YEAR)))
    roots = [
        root._replace(specifier=",".join(filter(None, (root.specifier, f">={young}"))))
        if root.name == name
        else root
        for root in catalog.request.roots
    ]
    others = [root for root in roots if root.name != name and root.name in concerned]
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
    search = attempt_whole(catalog.asking(roots), facts).search
    if not search.chosen or any(map(years, _behind(search).values())):
        return ""
    return _pin_words(search, name)


def _pin_words(search: Attempt, name: str) -> str:
    """The roots and torch as they were chosen, one root first."""
    chosen = search.chosen
    names = dict.fromkeys([name, *search.newest, "torch"])
    first, *others = [f"{entry} {chosen[entry].version}" for entry in names if entry in chosen]
    return f"{first} with {', '.join(others)}" if others else first
