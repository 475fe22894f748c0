"""What would give a request a resolution: each cause is relaxed alone, then pairs, then other
indexes are allowed, and what that gives is solved with the objective of every lock.
"""

from __future__ import annotations

from itertools import combinations
from typing import (
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ...matrix.bind import Subject
from ...model.facts import Facts
from ...model.request import Root
from ...model.resolution import Requires
from ...model.row import Row
from . import objective
from .candidates import Candidate, Catalog
from .engine import Nogood
from .problem import Problem
from .staleness import days_behind, months, years

__all__ = ["ways_out"]

_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14", "3.9")
#: Limits of a machine that can be relaxed, each by taking back the facts of the group of its name.
_OF_MACHINE = ("driver", "gpu", "glibc", "toolkit")
_PAIRS = 15
_ENOUGH_PAIRS = 2
_WAYS = 5

Groups = Mapping[Tuple[str, ...], Sequence[Nogood]]
Changed = Tuple[Catalog, Tuple[Facts, ...]]


class _Answer(NamedTuple):
    """What a changed request gives: the packages, what they require, and by how many days each root
    is behind.
    """

    chosen: Mapping[str, Candidate]
    requires: Requires
    behind: Mapping[str, int]

    @property
    def is_fresh(self) -> bool:
        """Whether no root is years behind."""
        return not any(map(years, self.behind.values()))

    @property
    def text(self) -> str:
        """The roots and torch: ``vllm 0.33.0, torch 2.14.0``; what is years behind says so."""
        names = dict.fromkeys([*self.behind, "torch"])
        pins = [(name, self.chosen[name]) for name in names if name in self.chosen]
        late = {name: days for name, days in self.behind.items() if years(days)}
        return ", ".join(
            f"{name} {candidate.version}"
            + (f" ({months(late[name])} months behind)" if name in late else "")
            for name, candidate in pins
        )


class _Relaxation(NamedTuple):
    """One thing that may be given up: how, and how it is said for what came of it.

    ``targets``: numbers of those whose limit it is.
    """

    name: str
    change: Callable[[Catalog, Tuple[Facts, ...], Sequence[int]], Changed]
    words: Callable[[_Answer], str]
    targets: Tuple[int, ...] = ()


def ways_out(
    catalog: Catalog, facts: Sequence[Facts], problem: Problem, groups: Groups
) -> List[str]:
    """Return what would give a resolution, one line each; those on which a root would be years
    behind come last.
    """
    relaxations = _relaxations(catalog, groups, _limits(problem, groups))
    found = list(_single(catalog, facts, relaxations))
    if not found:
        found = list(_pairs(catalog, facts, relaxations))
    found += _other_indexes(catalog, facts)
    if len(facts) > 1:
        found += _apart(catalog, facts)
    found.sort(key=lambda way: not way[1])
    return [text for text, _ in found[:_WAYS]]


def _single(
    catalog: Catalog, facts: Sequence[Facts], relaxations: Sequence[_Relaxation]
) -> Iterator[Tuple[str, bool]]:
    """Each alone; of several Pythons the first that helps."""
    helped = False
    for relaxation in relaxations:
        if relaxation.name == "python" and helped:
            continue
        way = _try(catalog, facts, (relaxation,))
        if way is not None:
            helped = helped or relaxation.name == "python"
            yield way


def _pairs(
    catalog: Catalog, facts: Sequence[Facts], relaxations: Sequence[_Relaxation]
) -> Iterator[Tuple[str, bool]]:
    count = 0
    for pair in list(combinations(relaxations, 2))[:_PAIRS]:
        if pair[0].name == pair[1].name == "python" or count == _ENOUGH_PAIRS:
            continue
        way = _try(catalog, facts, pair)
        if way is not None:
            count += 1
            yield way


def _limits(problem: Problem, groups: Groups) -> List[Tuple[str, Tuple[int, ...]]]:
    """The limits that causes rest on, with the targets that have them."""
    found: Dict[str, Set[int]] = {}
    for listed in groups.values():
        for nogood in listed:
            for limit in nogood.why.limits:
                found.setdefault(limit, set()).update(
                    nogood.why.targets or range(len(problem.targets))
                )
    return [(limit, tuple(sorted(found[limit]))) for limit in sorted(found)]


def _relaxations(
    catalog: Catalog, groups: Groups, limits: Sequence[Tuple[str, Tuple[int, ...]]]
) -> List[_Relaxation]:
    asked = {key[1] for key in groups if key[0] == "request"}
    found = [
        _without_bound(root)
        for root in catalog.request.roots
        if root.text in asked and root.specifier
    ]
    for limit, targets in limits:
        if limit in _OF_MACHINE:
            found.append(_without_limit(limit, targets, _fault_of_machine(groups, catalog)))
        elif limit == "date":
            found.append(_Relaxation("date", _undated, lambda _answer: "without the date"))
        elif limit == "python":
            mine = ".".join(catalog.request.python.split(".")[:2])
            found += [_with_python(python) for python in _PYTHONS if python != mine]
    return found


def _without_bound(root: Root) -> _Relaxation:
    def change(catalog: Catalog, facts: Tuple[Facts, ...], _targets: Sequence[int]) -> Changed:
        roots = [
            entry._replace(specifier="") if entry.name == root.name else entry
            for entry in catalog.request.roots
        ]
        return catalog.asking(roots), facts

    text = f"ask for {root._replace(specifier='').text} without {root.specifier}"
    return _Relaxation("request", change, lambda _answer: text)


def _fault_of_machine(groups: Groups, catalog: Catalog) -> Optional[Row]:
    """The row that a target violates whatever is installed, if that is the cause."""
    rows = [nogood.why.row for listed in groups.values() for nogood in listed if not nogood.terms]
    return catalog.matrix.complete(rows[0]) if rows else None


def _without_limit(
    limit: str, targets: Tuple[int, ...], fault: Optional[Row] = None
) -> _Relaxation:
    def change(catalog: Catalog, facts: Tuple[Facts, ...], relaxed: Sequence[int]) -> Changed:
        return catalog, tuple(
            entry.without(limit) if number in relaxed else entry
            for number, entry in enumerate(facts)
        )

    def words(answer: _Answer) -> str:
        requires = answer.requires
        if limit == "driver" and fault is not None and fault.kind == "too-new":
            return fault.fix[:1].lower() + fault.fix[1:].rstrip(".")
        if limit == "gpu" and fault is not None:
            return "use a GPU that the driver supports"
        if limit == "driver" and requires.driver is not None:
            return f"update the driver to {requires.driver} or newer"
        if limit == "glibc" and requires.glibc is not None:
            return f"use a system with glibc {requires.glibc} or newer"
        if limit == "gpu" and requires.sm:
            return f"use a GPU of compute capability {', '.join(requires.sm)}"
        return {"gpu": "use another GPU", "toolkit": "use another CUDA toolkit"}.get(
            limit, f"use another {limit}"
        )

    return _Relaxation(limit, change, words, targets)


def _undated(catalog: Catalog, facts: Tuple[Facts, ...], _targets: Sequence[int]) -> Changed:
    return catalog.changed(catalog.request._replace(as_of=None)), facts


def _with_python(python: str) -> _Relaxation:
    def change(catalog: Catalog, facts: Tuple[Facts, ...], _targets: Sequence[int]) -> Changed:
        return catalog.changed(catalog.request._replace(python=python)), facts

    return _Relaxation("python", change, lambda _answer: f"use Python {python}")


def _try(
    catalog: Catalog, facts: Sequence[Facts], relaxations: Sequence[_Relaxation]
) -> Optional[Tuple[str, bool]]:
    """Solve with these things given up; one line on what it gives and whether no root is years
    behind, or None. Of several targets only those give up that have to.
    """
    targets = sorted({number for relaxation in relaxations for number in relaxation.targets})

    def answer(relaxed: Sequence[int]) -> Optional[_Answer]:
        changed: Changed = (catalog, tuple(facts))
        for relaxation in sorted(relaxations, key=lambda entry: entry.name == "request"):
            changed = relaxation.change(*changed, relaxed)
        return _answer(*changed)

    found = answer(targets)
    if found is None:
        return None
    for number in targets if len(targets) > 1 else ():
        fewer = [other for other in targets if other != number]
        better = answer(fewer)
        if better is not None:
            found, targets = better, fewer
    words = " and ".join(relaxation.words(found) for relaxation in relaxations)
    if targets and len(targets) < len(facts):
        words += f" on {' and '.join(objective.target_words(facts[n]) for n in targets)}"
    return f"{words}: {found.text}", found.is_fresh


def _answer(catalog: Catalog, facts: Tuple[Facts, ...]) -> Optional[_Answer]:
    found = objective.attempt(catalog, facts)
    if found.outcome.model is None:
        return None
    problem = found.problem
    bits = dict(zip(problem.nodes, found.outcome.model))
    chosen = {
        node: table.at(bits[node])
        for node, table in problem.tables.items()
        if "[" not in node and bits[node] != table.absent
    }
    behind = {
        name: days_behind(problem.tables[name], bits[name], newest)[bits[name]]
        for name, newest in found.newest.items()
    }
    subjects: Dict[str, Subject] = {name: entry.subject for name, entry in chosen.items()}
    return _Answer(
        chosen,
        objective.requires_for(problem, subjects, catalog),
        behind,
    )


def _other_indexes(catalog: Catalog, facts: Sequence[Facts]) -> Iterator[Tuple[str, bool]]:
    """What builds from an index that was not allowed would make possible."""
    named = {
        build.index_name
        for name in _core_names(catalog)
        for candidate in catalog.table(name).candidates
        for build in candidate.release.builds
    }
    for index in sorted(named - {"pypi", *catalog.request.allow_index}):
        request = catalog.request._replace(allow_index=(*catalog.request.allow_index, index))
        found = _answer(catalog.changed(request), tuple(facts))
        if found is not None:
            words = f"allow builds from the index {index} (--allow-index {index}): {found.text}"
            yield words, found.is_fresh


def _core_names(catalog: Catalog) -> List[str]:
    """The roots, and torch, on which everything that has several builds rests."""
    names = dict.fromkeys([*(root.name for root in catalog.request.roots), "torch"])
    return [name for name in names if name in catalog.known]


def _apart(catalog: Catalog, facts: Sequence[Facts]) -> Iterator[Tuple[str, bool]]:
    """Say which targets have a resolution of their own, where one for all is impossible."""
    alone = [(objective.target_words(entry), _answer(catalog, (entry,))) for entry in facts]
    answers = [found for _, found in alone if found is not None]
    if len(answers) == len(facts):
        shown = "; ".join(f"{words}: {found.text}" for words, found in alone if found is not None)
        fresh = all(found.is_fresh for found in answers)
        yield f"make one lock for each kind of machine ({shown})", fresh
