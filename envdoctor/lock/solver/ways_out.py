"""What would give a request a resolution: each cause is relaxed alone, then pairs, then whatever
turns up as a cause once the others are gone; other indexes are allowed, and what that gives is
solved with the objective of every lock.
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

from ...model.facts import Facts
from ...model.request import Root
from ...model.resolution import Requires
from ...model.row import Row
from . import objective
from .candidates import Candidate, Catalog
from .engine import Nogood
from .problem import Problem, base_of
from .requires import supported
from .staleness import days_behind, months, years

__all__ = ["Loosened", "ways_out"]

_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14", "3.9")
#: Limits of a machine that can be relaxed, each by taking back the facts of the group of its name.
_OF_MACHINE = ("driver", "gpu", "glibc", "toolkit")
#: What is given up last of what several causes ask for together.
_HARDEST_FIRST = ("gpu", "glibc", "toolkit", "driver", "python", "request", "date")
_BUT_PYTHON = (*_OF_MACHINE, "request", "date")
_PAIRS = 15
_ENOUGH_PAIRS = 2
_WAYS = 5

Groups = Mapping[Tuple[str, ...], Sequence[Nogood]]
Changed = Tuple[Catalog, Tuple[Facts, ...]]


class _Answer(NamedTuple):
    """What a changed request gives: the packages, what they require, and by how many days each root
    is behind. gpus: the compute capabilities that do, as far as the drivers are known; none where
    nothing has code for GPUs. lacks_torch: which other releases of the roots ask for.
    """

    chosen: Mapping[str, Candidate]
    requires: Requires
    behind: Mapping[str, int]
    gpus: Tuple[str, ...] = ()
    lacks_torch: bool = False

    @property
    def is_good(self) -> bool:
        """Whether no root is years behind, and torch is there where it is wanted."""
        return not self.lacks_torch and not any(map(years, self.behind.values()))

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
        ) + (" (without torch)" if self.lacks_torch else "")


class _Relaxation(NamedTuple):
    """One thing that may be given up: how, and how it is said for what came of it.

    ``targets``: numbers of those whose limit it is. ``subject``: of what there are several.
    """

    name: str
    change: Callable[[Catalog, Tuple[Facts, ...], Sequence[int]], Changed]
    words: Callable[[_Answer], str]
    targets: Tuple[int, ...] = ()
    subject: str = ""

    @property
    def key(self) -> str:
        """What tells one thing that may be given up from another."""
        return f"{self.name} {self.subject}"


class Loosened(NamedTuple):
    """A root that may be asked for without its bound: as it was asked for, and what is left."""

    asked: Root
    left: Root


def ways_out(
    catalog: Catalog,
    facts: Sequence[Facts],
    problem: Problem,
    groups: Groups,
    loosened: Optional[Sequence[Loosened]] = None,
    other_pythons: bool = True,
) -> List[str]:
    """Return what would give a resolution, one line each; those on which a root would be years
    behind come last.

    loosened: the roots whose bounds are the user's own; by default all that have one.
    other_pythons: whether another Python may be one.
    """
    if loosened is None:
        roots = catalog.request.roots
        loosened = [Loosened(root, root._replace(specifier="")) for root in roots if root.specifier]
    relaxations = [
        entry
        for entry in _relaxations(catalog, problem, groups, loosened)
        if other_pythons or entry.name != "python"
    ]
    alone = list(_alone(catalog, facts, relaxations))
    ways = [way for _, way in alone]
    if not any(is_good for _, is_good in ways):
        helping = [relaxation for relaxation, _ in alone]
        ways += _pairs(catalog, facts, [entry for entry in relaxations if entry not in helping])
    ways += _other_indexes(catalog, facts, problem, groups)
    if len(facts) > 1:
        ways += _apart(catalog, facts)
    if not any(is_good for _, is_good in ways):
        pythons = [entry.key for entry in _pythons(catalog)] if other_pythons else []
        ways += _several(catalog, facts, relaxations, loosened, pythons)
    ways = ways or list(_without_one(catalog, facts, loosened))
    ways.sort(key=lambda way: not way[1])
    return [text for text, _ in dict(ways).items()][:_WAYS]


def _alone(
    catalog: Catalog, facts: Sequence[Facts], relaxations: Sequence[_Relaxation]
) -> Iterator[Tuple[_Relaxation, Tuple[str, bool]]]:
    """Each that helps alone; of several Pythons the first."""
    helped = False
    for relaxation in relaxations:
        if relaxation.name == "python" and helped:
            continue
        way = _try(catalog, facts, (relaxation,))
        if way is not None:
            helped = helped or relaxation.name == "python"
            yield relaxation, way


def _pairs(
    catalog: Catalog, facts: Sequence[Facts], relaxations: Sequence[_Relaxation]
) -> Iterator[Tuple[str, bool]]:
    """Each two that help together, at most some; of several Pythons the first."""
    helping: List[Set[str]] = []
    for pair in list(combinations(relaxations, 2))[:_PAIRS]:
        keys = {"python" if entry.name == "python" else entry.key for entry in pair}
        if len(keys) < 2 or keys in helping or len(helping) == _ENOUGH_PAIRS:
            continue
        way = _try(catalog, facts, pair)
        if way is not None:
            helping.append(keys)
            yield way


def _several(
    catalog: Catalog,
    facts: Sequence[Facts],
    relaxations: Sequence[_Relaxation],
    loosened: Sequence[Loosened],
    pythons: Sequence[str],
) -> Iterator[Tuple[str, bool]]:
    """Yield what all causes together give, those too that show once the others are gone: of the
    machine alone where that suffices, on another Python where nothing else does.
    """
    for kinds in (_OF_MACHINE, _BUT_PYTHON, *((*_BUT_PYTHON, python) for python in pythons)):
        given_up = _given_up(catalog, facts, relaxations, kinds, loosened)
        way = _try(catalog, facts, given_up) if given_up else None
        if way is not None:
            yield way
            return


def _given_up(
    catalog: Catalog,
    facts: Sequence[Facts],
    relaxations: Sequence[_Relaxation],
    kinds: Sequence[str],
    loosened: Sequence[Loosened],
) -> List[_Relaxation]:
    """What has to be given up of these kinds, or by their keys, until there is a resolution;
    nothing where none is reached.
    """
    from .explanation import refusal_of

    given_up: Dict[str, _Relaxation] = {}
    while True:
        new = {
            entry.key: entry
            for entry in relaxations
            if (entry.name in kinds or entry.key in kinds) and entry.key not in given_up
        }
        if not new:
            return []
        given_up.update(new)
        changed = _changed(catalog, facts, list(given_up.values()))
        if objective.attempt(*changed).outcome.model is not None:
            break
        problem, groups, _ = refusal_of(*changed)
        relaxations = _relaxations(changed[0], problem, groups, loosened)
    for key in sorted(given_up, key=lambda key: _HARDEST_FIRST.index(given_up[key].name)):
        fewer = [entry for other, entry in given_up.items() if other != key]
        if fewer and objective.attempt(*_changed(catalog, facts, fewer)).outcome.model is not None:
            del given_up[key]
    return list(given_up.values())


def _without_one(
    catalog: Catalog, facts: Sequence[Facts], loosened: Sequence[Loosened]
) -> Iterator[Tuple[str, bool]]:
    """Yield what there is without one of the roots."""
    roots = catalog.request.roots
    for left_out in loosened:
        others = [root for root in roots if root.name != left_out.asked.name]
        way = _answer(catalog.asking(others), tuple(facts)) if others else None
        if way is not None:
            yield f"leave out {left_out.asked.text}: {way.text}", way.is_good


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
    catalog: Catalog, problem: Problem, groups: Groups, loosened: Sequence[Loosened]
) -> List[_Relaxation]:
    causes = {key[1] for key in groups if key[0] == "request"}
    named = {root.name for root in catalog.request.roots if root.text in causes}
    relaxations = [_without_bound(entry) for entry in loosened if entry.asked.name in named]
    for limit, targets in _limits(problem, groups):
        if limit in _OF_MACHINE:
            relaxations.append(_without_limit(limit, targets, _fault_of_machine(groups, catalog)))
        elif limit == "date":
            relaxations.append(_Relaxation("date", _undated, lambda _answer: "without the date"))
        elif limit == "python":
            relaxations += _pythons(catalog)
    return relaxations


def _pythons(catalog: Catalog) -> List[_Relaxation]:
    """The other Pythons."""
    minor = ".".join(catalog.request.python.split(".")[:2])
    return [_with_python(python) for python in _PYTHONS if python != minor]


def _without_bound(loosened: Loosened) -> _Relaxation:
    asked = loosened.asked

    def change(catalog: Catalog, facts: Tuple[Facts, ...], _targets: Sequence[int]) -> Changed:
        roots = [
            loosened.left if entry.name == asked.name else entry for entry in catalog.request.roots
        ]
        return catalog.asking(roots), facts

    text = f"ask for {asked._replace(specifier='').text} without {asked.specifier}"
    return _Relaxation("request", change, lambda _answer: text, subject=asked.name)


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
        if limit == "gpu" and answer.gpus:
            return f"use a GPU of compute capability {', '.join(answer.gpus)}"
        if limit == "gpu" and fault is not None:
            return "use a GPU that the driver supports"
        if limit == "driver" and requires.driver is not None:
            return f"update the driver to {requires.driver} or newer"
        if limit == "glibc" and requires.glibc is not None:
            return f"use a system with glibc {requires.glibc} or newer"
        return {"gpu": "use another GPU", "toolkit": "use another CUDA toolkit"}.get(
            limit, f"use another {limit}"
        )

    return _Relaxation(limit, change, words, targets)


def _undated(catalog: Catalog, facts: Tuple[Facts, ...], _targets: Sequence[int]) -> Changed:
    return catalog.changed(catalog.request._replace(as_of=None)), facts


def _with_python(python: str) -> _Relaxation:
    def change(catalog: Catalog, facts: Tuple[Facts, ...], _targets: Sequence[int]) -> Changed:
        return catalog.changed(catalog.request._replace(python=python)), facts

    return _Relaxation("python", change, lambda _answer: f"use Python {python}", subject=python)


def _try(
    catalog: Catalog, facts: Sequence[Facts], relaxations: Sequence[_Relaxation]
) -> Optional[Tuple[str, bool]]:
    """Solve with these things given up; one line on what it gives and whether no root is years
    behind, or None. Of several targets only those give up that have to.
    """
    targets = sorted({number for relaxation in relaxations for number in relaxation.targets})

    def answer(relaxed: Sequence[int]) -> Optional[_Answer]:
        return _answer(*_changed(catalog, facts, relaxations, relaxed))

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
    return f"{words}: {found.text}", found.is_good


def _changed(
    catalog: Catalog,
    facts: Sequence[Facts],
    relaxations: Sequence[_Relaxation],
    targets: Optional[Sequence[int]] = None,
) -> Changed:
    """The request with some things given up, on all targets or some."""
    changed: Changed = (catalog, tuple(facts))
    relaxed = range(len(facts)) if targets is None else targets
    for relaxation in sorted(relaxations, key=lambda entry: entry.name == "request"):
        changed = relaxation.change(*changed, relaxed)
    return changed


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
    requires = objective.requires_for(problem, chosen, catalog)
    return _Answer(
        chosen,
        requires,
        behind,
        supported(requires.sm, problem.targets, catalog.matrix),
        "torch" in problem.tables and "torch" not in chosen,
    )


def _other_indexes(
    catalog: Catalog, facts: Sequence[Facts], problem: Problem, groups: Groups
) -> Iterator[Tuple[str, bool]]:
    """What builds from an index that was not allowed would make possible; builds of what no cause
    speaks of change nothing.
    """
    concerned = {
        base_of(problem.nodes[number])
        for listed in groups.values()
        for nogood in listed
        for number, _ in nogood.terms
    }
    named = {
        build.index_name
        for name in sorted(concerned & catalog.known)
        for candidate in catalog.table(name).candidates
        for build in candidate.release.builds
    }
    for index in sorted(named - {"pypi", *catalog.request.allow_index}):
        request = catalog.request._replace(allow_index=(*catalog.request.allow_index, index))
        found = _answer(catalog.changed(request), tuple(facts))
        if found is not None:
            words = f"allow builds from the index {index} (--allow-index {index}): {found.text}"
            yield words, found.is_good


def _apart(catalog: Catalog, facts: Sequence[Facts]) -> Iterator[Tuple[str, bool]]:
    """Say which targets have a resolution of their own, where one for all is impossible."""
    alone = [(objective.target_words(entry), _answer(catalog, (entry,))) for entry in facts]
    answers = [found for _, found in alone if found is not None]
    if len(answers) == len(facts):
        shown = "; ".join(f"{words}: {found.text}" for words, found in alone if found is not None)
        good = all(found.is_good for found in answers)
        yield f"make one lock for each kind of machine ({shown})", good
