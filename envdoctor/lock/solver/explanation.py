"""Why a request has no resolution, and what would give it one.

The leaves of the refutation are grouped (one edge of metadata, one row, one request is one group)
and groups are dropped while the rest still
refutes: metadata first, then requests, what the hardware says last. What remains is a minimal set
of true causes. Then each cause is relaxed alone, then pairs, then other indexes are allowed, and
what that would give is solved.
"""

from __future__ import annotations

from itertools import combinations
from typing import (
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ...errors import InternalFault
from ...matrix.bind import Target
from ...model.facts import Facts
from ...model.request import Request, Root
from ...model.resolution import Explanation, Resolution, Statement
from ...model.row import Row, Source
from ...model.versions import Version
from . import objective
from .candidates import CandidateTable, Catalog, bits_of
from .engine import Nogood, solve
from .problem import Problem, Why

__all__ = ["causes_of", "explain", "minimal_groups", "statements"]

_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14", "3.9")
#: Limits of a machine that can be relaxed, each by taking back the facts of the group of its name.
_OF_MACHINE = ("driver", "gpu", "glibc", "toolkit")
_DROP_ORDER = {"build": 0, "metadata": 1, "row": 2, "request": 3, "behind": 3, "host": 4}
#: Nogoods that say how things are, and are no cause of anything.
_STRUCTURE = ("extra", "override")
_PIECES = 3
_LINES = 11
_PAIRS = 15
_WAYS = 5

Key = Tuple[str, ...]


def explain(catalog: Catalog, facts: Sequence[Facts]) -> Explanation:
    """Explain a request that has no resolution."""
    found = objective.attempt(catalog, facts, complete=True)
    if found.outcome.model is not None:
        raise InternalFault("a request without resolution has one when it is to be explained")
    problem = found.problem
    groups = minimal_groups(problem, found.outcome.core)
    causes = statements(problem, groups, catalog)
    limits = _limits(problem, groups)
    return Explanation(
        catalog.request,
        tuple(
            causes[:_LINES]
            + (
                [Statement("metadata", f"and {len(causes) - _LINES} more of this kind")]
                if len(causes) > _LINES
                else []
            )
        ),
        tuple(_ways_out(catalog, facts, groups, limits)),
        tuple(objective.target_words(entry) for entry in facts),
    )


def causes_of(catalog: Catalog, facts: Sequence[Facts]) -> List[Statement]:
    """Return a minimal set of causes for which a request has no resolution, what the hardware says
    first; nothing is tried.
    """
    found = objective.attempt(catalog, facts, complete=True)
    return statements(found.problem, minimal_groups(found.problem, found.outcome.core), catalog)


def _why(problem: Problem, number: int) -> Why:
    why: Why = problem.nogoods[number].why
    return why


def minimal_groups(problem: Problem, core: Iterable[int]) -> Dict[Key, List[Nogood]]:
    """Return groups of nogoods that together refute a problem, none of which can be left out."""
    structure = [nogood for nogood in problem.nogoods if nogood.why.kind in _STRUCTURE]
    groups: Dict[Key, List[Nogood]] = {}
    for number in sorted(core):
        why = _why(problem, number)
        if why.kind not in _STRUCTURE:
            groups.setdefault(why.key, []).append(problem.nogoods[number])
    if any(_why(problem, number).kind == "override" for number in core):
        # An edge that an override could not mend stays an edge.
        named = {(option.requirer, option.name) for option in problem.overrides}
        for nogood in problem.nogoods:
            edge = nogood.why.edge
            if (
                edge is not None
                and (edge.requirer, edge.name) in named
                and nogood.why.kind == "metadata"
            ):
                listed = groups.setdefault(nogood.why.key, [])
                if nogood not in listed:
                    listed.append(nogood)

    def drop_rank(key: Key) -> Tuple[int, bool, Key]:
        why = groups[key][0].why
        return (
            _DROP_ORDER[why.kind] if not (why.kind == "row" and why.limits) else 5,
            bool(why.limits),
            key,
        )

    for key in sorted(groups, key=drop_rank):
        rest = [nogood for other, listed in groups.items() if other != key for nogood in listed]
        if solve(problem.variables, [*structure, *rest]).model is None:
            del groups[key]
    return groups


# --------------------------------------------------------------------------------------------------
# sentences


def statements(
    problem: Problem, groups: Dict[Key, List[Nogood]], catalog: Catalog
) -> List[Statement]:
    """Word the causes: requests, metadata, builds, rows, limits."""
    reachable = [variable.domain for variable in problem.variables]
    for listed in groups.values():
        for nogood in listed:
            if len(nogood.terms) == 1 and nogood.why.kind == "request":
                variable, mask = nogood.terms[0]
                reachable[variable] &= ~mask
    statements: List[Tuple[int, Key, Statement]] = []
    for key, listed in groups.items():
        why: Why = listed[0].why
        if why.kind == "request":
            text = f"you asked for {why.text}"
            statements.append((0, key, Statement("request", text, requirement=key[1])))
        elif why.kind == "metadata":
            text = _edge_words(problem, listed, reachable)
            statements.append(
                (1, key, Statement("metadata", text, sources=(Source("package metadata"),)))
            )
        elif why.kind == "host":
            statements.append(
                (3, key, _limit_statement(problem, listed, reachable, why, catalog.request))
            )
        elif why.row is not None:
            statements.append(
                (
                    2 if not why.limits else 4,
                    key,
                    _row_statement(problem, listed, reachable, why, catalog),
                )
            )
    return [statement for _, _, statement in sorted(statements, key=lambda entry: entry[:2])]


def _edge_words(problem: Problem, listed: Sequence[Nogood], reachable: Sequence[int]) -> str:
    """``vllm 0.20.0 to 0.26.0 needs torch 2.11.0; 0.27.0 to 0.32.0 needs 2.13.0``."""
    pieces: Dict[str, int] = {}
    node = wanted = ""
    for nogood in listed:
        edge = nogood.why.edge
        if edge is None:
            continue
        number = problem.nodes.index(edge.requirer)
        bits = edge.bits & reachable[number]
        node, wanted = edge.requirer, edge.name.partition("[")[0]
        if bits:
            pieces[edge.specifier] = pieces.get(edge.specifier, 0) | bits
    table = problem.tables[node]
    ordered = sorted(
        pieces.items(), key=lambda piece: min(table.at(bit).version for bit in bits_of(piece[1]))
    )
    if len(ordered) > _PIECES:
        joined = 0
        for _, bits in ordered:
            joined |= bits
        shown = "; ".join(
            f"{_range(table, bits)}: {_plain(specifier)}"
            for specifier, bits in (ordered[0], ordered[-1])
        )
        return f"{node} {_range(table, joined)} needs {wanted} of one release each ({shown})"
    parts = []
    for place, (specifier, bits) in enumerate(ordered):
        parts.append(
            (
                f"{'' if place else node + ' '}{_range(table, bits)} needs "
                f"{'' if place else wanted + ' '}{_plain(specifier)}"
            ).rstrip()
        )
    gone = not any(nogood.why.edge.allowed for nogood in listed if nogood.why.edge is not None)
    return "; ".join(parts) + (", which the index does not have" if gone else "")


def _plain(specifier: str) -> str:
    return (
        specifier[2:]
        if specifier.startswith("==") and "," not in specifier and "*" not in specifier
        else specifier
    )


def _range(table: CandidateTable, bits: int) -> str:
    """Name releases: ``0.20.0``, or ``0.20.0 to 0.26.0``."""
    versions = sorted({table.at(bit).version for bit in bits_of(bits & table.all)})
    if not versions:
        return ""
    if len(versions) == 2:
        return f"{versions[0]} and {versions[1]}"
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def _subjects(problem: Problem, listed: Sequence[Nogood], reachable: Sequence[int]) -> str:
    """Name the releases that a nogood speaks of."""
    masks: Dict[int, int] = {}
    for nogood in listed:
        for variable, mask in nogood.terms:
            masks[variable] = masks.get(variable, 0) | mask
    parts = []
    for variable, mask in sorted(masks.items()):
        table = problem.tables.get(problem.nodes[variable])
        shown = _range(table, mask & reachable[variable] or mask) if table is not None else ""
        if shown:
            parts.append(f"{problem.nodes[variable]} {shown}")
    return " with ".join(parts)


def _limit_statement(
    problem: Problem, listed: Sequence[Nogood], reachable: Sequence[int], why: Why, request: Request
) -> Statement:
    texts = list(dict.fromkeys(nogood.why.text for nogood in listed))
    shown = " or ".join(texts[:2])
    asked = {
        "python": f"; this is for Python {request.python}",
        "platform": "",
        "date": "",
        "glibc": f"; the target has glibc {_glibc(problem)}" if _glibc(problem) else "",
    }
    return Statement(
        "python" if "python" in why.limits else "date" if "date" in why.limits else "hardware",
        f"{_subjects(problem, listed, reachable)} {shown}{asked.get(why.key[1], '')}",
    )


def _glibc(problem: Problem) -> str:
    known = [
        version
        for target in problem.targets
        for version in [target.host.attributes.get("glibc")]
        if isinstance(version, Version)
    ]
    return str(min(known)) if known else ""


def _row_statement(
    problem: Problem, listed: Sequence[Nogood], reachable: Sequence[int], why: Why, catalog: Catalog
) -> Statement:
    row: Row = (
        why.row if why.kind == "build" or why.row is None else catalog.matrix.complete(why.row)  # type: ignore[assignment]
    )
    subjects = _subjects(problem, listed, reachable)
    text = f"{subjects}: {row.title}" if subjects else row.title
    has = [
        _has(problem.targets[number], why.limits)
        for number in (why.targets or range(len(problem.targets)))
    ]
    found = list(dict.fromkeys(words for words in has if words))
    if why.limits and found:
        text += f"; the target has {' or '.join(found)}"
    return Statement("hardware" if why.limits else why.kind, text, row.id, row.sources)


def _has(target: Target, limits: FrozenSet[str]) -> str:
    """What a target has of the limits that a row rests on."""
    parts = []
    if "driver" in limits and "driver" in target.host.attributes:
        parts.append(f"driver {target.host.attributes['driver']}")
    if "gpu" in limits:
        for device in target.gpus or ():
            sm = device.attributes.get("sm")
            model = device.attributes.get("model", "a GPU")
            parts.append(f"{model} (compute capability {sm})" if sm else f"{model}")
    named = [
        name
        for name in ("glibc", "python", "toolkit", "platform")
        if name in limits and name in target.host.attributes
    ]
    parts += [f"{name} {target.host.attributes[name] or 'none'}" for name in named]
    return ", ".join(parts)


# --------------------------------------------------------------------------------------------------
# ways out


class _Relaxation(NamedTuple):
    """One thing that may be given up: how, and how it is said for what came of it."""

    name: str
    change: Callable[[Catalog, Tuple[Facts, ...]], Tuple[Catalog, Tuple[Facts, ...]]]
    words: Callable[[Resolution], str]


def _limits(problem: Problem, groups: Dict[Key, List[Nogood]]) -> List[Tuple[str, Tuple[int, ...]]]:
    """The limits that causes rest on, with the targets that have them."""
    found: Dict[str, Set[int]] = {}
    for listed in groups.values():
        for nogood in listed:
            for limit in nogood.why.limits:
                found.setdefault(limit, set()).update(
                    nogood.why.targets or range(len(problem.targets))
                )
    return [(limit, tuple(sorted(found[limit]))) for limit in sorted(found)]


def _ways_out(
    catalog: Catalog,
    facts: Sequence[Facts],
    groups: Dict[Key, List[Nogood]],
    limits: Sequence[Tuple[str, Tuple[int, ...]]],
) -> List[str]:
    relaxations = _relaxations(catalog, groups, limits)
    ways: List[str] = []
    for relaxation in relaxations:
        ways += _try(catalog, facts, (relaxation,))
    if not ways:
        for pair in list(combinations(relaxations, 2))[:_PAIRS]:
            ways += _try(catalog, facts, pair)
            if len(ways) >= 3:
                break
    ways += _other_indexes(catalog, facts)
    if len(facts) > 1:
        ways += _apart(catalog, facts)
    return ways[:_WAYS]


def _relaxations(
    catalog: Catalog, groups: Dict[Key, List[Nogood]], limits: Sequence[Tuple[str, Tuple[int, ...]]]
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
            found.append(_Relaxation("date", _undated, lambda _found: "without the date"))
        elif limit == "python":
            found += [
                _with_python(python)
                for python in _PYTHONS
                if not catalog.request.python.startswith(python)
            ]
    return found


def _without_bound(root: Root) -> _Relaxation:
    def change(catalog: Catalog, facts: Tuple[Facts, ...]) -> Tuple[Catalog, Tuple[Facts, ...]]:
        roots = [
            entry._replace(specifier="") if entry.name == root.name else entry
            for entry in catalog.request.roots
        ]
        return catalog.asking(roots), facts

    return _Relaxation(
        "request",
        change,
        lambda _found: f"ask for {root._replace(specifier='').text} without {root.specifier}",
    )


def _fault_of_machine(groups: Dict[Key, List[Nogood]], catalog: Catalog) -> Optional[Row]:
    """The row that a target violates whatever is installed, if that is the cause."""
    rows = [nogood.why.row for listed in groups.values() for nogood in listed if not nogood.terms]
    return catalog.matrix.complete(rows[0]) if rows else None


def _without_limit(
    limit: str, targets: Tuple[int, ...], fault: Optional[Row] = None
) -> _Relaxation:
    def change(catalog: Catalog, facts: Tuple[Facts, ...]) -> Tuple[Catalog, Tuple[Facts, ...]]:
        return catalog, tuple(
            entry.without(limit) if number in targets else entry
            for number, entry in enumerate(facts)
        )

    def words(found: Resolution) -> str:
        requires = found.requires
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

    return _Relaxation(limit, change, words)


def _undated(catalog: Catalog, facts: Tuple[Facts, ...]) -> Tuple[Catalog, Tuple[Facts, ...]]:
    return catalog.changed(catalog.request._replace(as_of=None)), facts


def _with_python(python: str) -> _Relaxation:
    def change(catalog: Catalog, facts: Tuple[Facts, ...]) -> Tuple[Catalog, Tuple[Facts, ...]]:
        return catalog.changed(catalog.request._replace(python=python)), facts

    return _Relaxation("python", change, lambda _found: f"use Python {python}")


def _try(catalog: Catalog, facts: Sequence[Facts], relaxations: Sequence[_Relaxation]) -> List[str]:
    """Solve with these things given up; one line on what it gives, or nothing."""
    if sum(relaxation.name == "python" for relaxation in relaxations) > 1:
        return []  # two Pythons at once
    changed = (catalog, tuple(facts))
    for relaxation in sorted(relaxations, key=lambda relaxation: relaxation.name == "request"):
        changed = relaxation.change(*changed)
    found = objective.answer(*changed)
    if found is None:
        return []
    return [
        f"{' and '.join(relaxation.words(found) for relaxation in relaxations)}: {_gives(found)}"
    ]


def _other_indexes(catalog: Catalog, facts: Sequence[Facts]) -> List[str]:
    """What builds from an index that was not allowed would make possible."""
    named = {
        build.index_name
        for name in _core_names(catalog)
        for candidate in catalog.table(name).candidates
        for build in candidate.release.builds
    }
    ways = []
    for index in sorted(named - {"pypi", *catalog.request.allow_index}):
        request = catalog.request._replace(allow_index=(*catalog.request.allow_index, index))
        found = objective.answer(catalog.changed(request), tuple(facts))
        if found is not None:
            ways.append(
                f"allow builds from the index {index} (--allow-index {index}): {_gives(found)}"
            )
    return ways


def _core_names(catalog: Catalog) -> List[str]:
    """The roots, and torch, on which everything that has several builds rests."""
    return [
        name
        for name in dict.fromkeys([*(root.name for root in catalog.request.roots), "torch"])
        if name in catalog.known
    ]


def _apart(catalog: Catalog, facts: Sequence[Facts]) -> List[str]:
    """Say which targets have a resolution of their own, where one for all is impossible."""
    alone = [
        (objective.target_words(entry), objective.answer(catalog, (entry,))) for entry in facts
    ]
    if any(found is None for _, found in alone):
        return []
    shown = "; ".join(f"{words}: {_gives(found)}" for words, found in alone if found is not None)
    return [f"make one lock for each kind of machine ({shown})"]


def _gives(found: Resolution) -> str:
    names = list(dict.fromkeys([*(root.name for root in found.request.roots), "torch"]))
    pins: List[str] = []
    for name in names:
        pin = found.pin(name)
        if pin is not None:
            pins.append(f"{pin.name} {pin.version}")
    return ", ".join(pins)
