"""From a request, targets and the matrix to what the engine takes: variables over candidates, and
nogoods with their reasons.

Only what the request can reach is built: a release of a package takes part where some other release
that takes part asks for it. That leaves satisfiability and optimum as they are, because what
nothing asks for is absent from the best solution.
"""

from __future__ import annotations

from typing import (
    Any,
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
)

from ...matrix.bind import Subject, Target, bind
from ...matrix.derive import derive_target
from ...matrix.loader import Matrix
from ...model.evidence import Evidence, Known
from ...model.facts import Facts
from ...model.request import Request, Root
from ...model.requirement import parse_requirement
from ...model.row import Row, Term
from ...model.versions import Version, parse_version
from .build_rows import build_rows, dropped_rows
from .candidates import NOT_THERE, CandidateTable, Catalog, Limits, bits_of
from .engine import Nogood, Sum, Variable
from .ordering import requirers_first, topological

__all__ = [
    "LIMIT_OF",
    "MONTHS_BEHIND",
    "MONTHS_OF_REQUIRED",
    "YEARS_BEHIND",
    "Edge",
    "OverrideOption",
    "Problem",
    "Why",
    "build_problem",
]

#: The nodes that stand before the roots where a problem is to have an optimum: how far the worst of
#: the roots is behind, and how far those are in all that no other requires (``staleness``); and
#: before the other roots, how far these are.
YEARS_BEHIND, MONTHS_BEHIND = "behind:years", "behind:months"
MONTHS_OF_REQUIRED = "behind:months-of-required"

#: Effects of rows that do not bind, the gravest first.
_WEIGHT = ("wrong-results", "blocks", "degrades")
_UNWEIGHED = Variable(0b1, 0)
#: What a host attribute of a row rests on, as people name it.
LIMIT_OF = {
    "driver": "driver",
    "cuda": "driver",
    "ptx": "driver",
    "platform": "platform",
    "architecture": "platform",
}


class Edge(NamedTuple):
    """What one set of candidates asks of another package: ``allowed`` of its candidates."""

    requirer: str
    name: str
    bits: int
    allowed: int
    specifier: str


class Why(NamedTuple):
    """Why a nogood holds.

    kind: request, extra, metadata, build, row, host, override, cost. key: what belongs together in
    an explanation. limits: the properties of targets that it rests on (driver, gpu, glibc, python,
    platform, date). targets: numbers of the targets that it holds for; empty: all.
    """

    kind: str
    key: Tuple[str, ...]
    edge: Optional[Edge] = None
    row: Optional[Row] = None
    text: str = ""
    limits: FrozenSet[str] = frozenset()
    targets: Tuple[int, ...] = ()


class OverrideOption(NamedTuple):
    """A metadata edge that a row may break: the variable that says so, the row and the release that
    is installed instead.
    """

    node: str
    row: Row
    requirer: str
    name: str
    bit: int


class Problem(NamedTuple):
    """What the engine takes, and how to read its answer.

    ``nodes`` are packages ("vllm") and their extras ("vllm[flashinfer]"); what has no table is
    counted or weighed. ``sums`` belong to the nogoods.
    """

    nodes: Tuple[str, ...]
    variables: Tuple[Variable, ...]
    nogoods: Tuple[Nogood, ...]
    tables: Mapping[str, CandidateTable]
    edges: Tuple[Edge, ...]
    overrides: Tuple[OverrideOption, ...]
    targets: Tuple[Target, ...]
    settings: Tuple[
        Tuple[Nogood, Row], ...
    ]  # rows that a variable mitigates: violated, they ask for the setting
    tail: FrozenSet[str]  # required names that the matrix does not know
    peers: Tuple[str, ...] = ()  # roots that no other root requires
    sums: Tuple[Sum, ...] = ()


def build_problem(
    catalog: Catalog,
    facts: Sequence[Facts],
    *,
    complete: bool = False,
    overrides_allowed: int = 0,
    costs: bool = False,
    any_machine: bool = False,
) -> Problem:
    """Build the problem of a request on targets.

    Args:
        catalog: tables for the request.
        facts: the targets; all their limits hold at once.
        complete: keep what Python, platform, date or glibc exclude, with nogoods that say so: for
            explanations, which ask what lies behind.
        overrides_allowed: how many metadata edges may be broken.
        costs: let rows that do not block weigh, after the roots and before everything else.
        any_machine: pass over what is wrong with a target whatever is installed; else that alone is
            the problem.
    """
    builder = _Builder(catalog, facts, complete)
    faults = () if any_machine else tuple(builder.faults_of_targets())
    if faults:
        return Problem((), (), faults, {}, (), (), builder.targets, (), frozenset())
    return builder.build(overrides_allowed, costs)


class _Builder:
    def __init__(self, catalog: Catalog, facts: Sequence[Facts], complete: bool) -> None:
        self._catalog = catalog
        self._request = catalog.request
        self._complete = complete
        self.targets = tuple(_target(entry, catalog.matrix, catalog.request) for entry in facts)
        known = [
            version
            for target in self.targets
            for version in [target.host.attributes.get("glibc")]
            if isinstance(version, Version)
        ]
        self._limits = Limits(
            min(known) if known else None,
            any(target.gpus or "driver" in target.host.attributes for target in self.targets),
        )
        self._domains: Dict[str, int] = {}
        self._edges: Dict[Tuple[str, str], Dict[int, Tuple[int, str]]] = {}
        self._waiting: List[Tuple[str, int]] = []
        self._refused: Dict[str, Mapping[Tuple[str, str], int]] = {}
        self._excluded: Dict[str, int] = {}
        self._tail: Set[str] = set()
        self._rows: Dict[Any, Tuple[Row, Dict[str, int], FrozenSet[str], List[int]]] = {}
        self._settings: Dict[str, Tuple[Row, Dict[str, int]]] = {}
        self._overrides: List[OverrideOption] = []

    def build(self, overrides_allowed: int, costs: bool) -> Problem:
        roots = [(root, self._root_mask(root)) for root in self._request.roots]
        for root, mask in roots:
            self._ask(root.name, mask)
            for extra in root.extras:
                self._ask(f"{root.name}[{extra}]", self._with_extra(root.name, extra, mask))
        done: Set[str] = set()
        while True:
            self._expand()
            names = {_base(node) for node in self._domains}
            if names == done:
                break
            done = names
            self._bind_rows(sorted(names))
            self._find_overrides()
            if costs:
                self._bring_cures(sorted(names))
        return self._finish(
            roots, overrides_allowed, self._find_costs(sorted(done)) if costs else [], costs
        )

    # ----------------------------------------------------------------------------------------------
    # reach

    def _root_mask(self, root: Root) -> int:
        return self._catalog.table(root.name).mask(root.specifier)

    def _with_extra(self, name: str, extra: str, mask: int) -> int:
        """Those of ``mask`` whose metadata knows an extra that is asked for: older releases would
        fall short in silence.
        """
        table = self._catalog.table(name)
        knowing = sum(
            bit for bit in bits_of(mask) if extra in self._catalog.extras_of(table.at(bit))
        )
        return knowing or mask

    def _ask(self, node: str, mask: int) -> None:
        """Let these candidates of a node take part."""
        base = _base(node)
        excluded = self._exclusions(base)
        if not self._complete:
            mask &= ~excluded
        new = mask & ~self._domains.setdefault(node, 0)
        if new:
            self._domains[node] |= new
            self._waiting.append((node, new))
            if node != base:
                self._ask(base, new)

    def _exclusions(self, name: str) -> int:
        found = self._excluded.get(name)
        if found is None:
            groups = self._catalog.refusals(name, self._limits)
            self._refused[name] = groups
            found = self._excluded[name] = sum(groups.values())
        return found

    def _expand(self) -> None:
        while self._waiting:
            node, bits = self._waiting.pop()
            for bit in bits_of(bits):
                asked, unknown = self._catalog.asks(node, bit)
                self._tail.update(unknown)
                for wanted, allowed, specifier in asked:
                    groups = self._edges.setdefault((node, wanted), {})
                    known, first = groups.get(allowed, (0, specifier))
                    groups[allowed] = (known | bit, first)
                    self._ask(wanted, allowed)

    # ----------------------------------------------------------------------------------------------
    # rows

    def faults_of_targets(self) -> Iterator[Nogood]:
        """Yield a nogood without terms for each row that a target violates by itself: no driver of
        this branch serves this device.
        """
        for row in self._catalog.matrix.rows_about(()):
            if row.effect == "blocks" and row.trust == "established" and not row.mitigations:
                hit = tuple(
                    number
                    for number, target in enumerate(self.targets)
                    if bind(row, target).outcome == "violated"
                )
                if hit:
                    limits = frozenset(
                        _limit(term) for term in row.terms if term.scope in ("gpu", "host")
                    )
                    yield Nogood(
                        (), Why("row", ("row", row.id), row=row, limits=limits, targets=hit)
                    )

    def _bind_rows(self, names: Sequence[str]) -> None:
        """Bind the blocking rows to each target; env terms become masks."""
        self._rows.clear()
        self._settings.clear()
        rows = [
            row
            for row in self._catalog.matrix.rows_about(names)
            if row.effect == "blocks" and row.trust == "established"
        ]
        for row in [
            *rows,
            *build_rows(names, self._catalog),
            *dropped_rows(names, self._catalog.matrix),
        ]:
            for number, target in enumerate(self.targets):
                binding = bind(row, target)
                if binding.outcome != "residual" and not (
                    binding.outcome == "violated" and row.mitigations
                ):
                    continue
                masks = self._masks(binding.residual)
                if masks is None:
                    continue
                if row.mitigations and row.mitigations[0].scope == "var":
                    self._settings[row.id] = (row, masks)
                    continue
                limits = frozenset(
                    _limit(term) for term in row.terms if term.scope in ("gpu", "host")
                )
                key = (row.id, tuple(sorted(masks.items())))
                self._rows.setdefault(key, (row, masks, limits, []))[3].append(number)
        for _, masks, _, _ in list(self._rows.values()):
            for name, mask in masks.items():
                others = [
                    self._can_hold(other, its) for other, its in masks.items() if other != name
                ]
                if (
                    mask & self._catalog.table(name).absent and others and all(others)
                ):  # a row can ask that something is there
                    self._ask(name, self._catalog.table(name).all & ~mask)

    def _masks(self, terms: Sequence[Term]) -> Optional[Dict[str, int]]:
        """Return the masks of env terms, or None where one can hold of no candidate or speaks of
        what the matrix does not know.
        """
        by_name: Dict[str, List[Term]] = {}
        for term in terms:
            by_name.setdefault(term.component, []).append(term)
        masks: Dict[str, int] = {}
        for name, listed in by_name.items():
            if name not in self._catalog.known:
                return None
            mask = self._catalog.table(name).holding(listed)
            if not mask:
                return None
            masks[name] = mask
        return masks

    def _can_hold(self, name: str, mask: int) -> bool:
        """Tell whether a term can hold of what takes part."""
        return bool(mask & (self._domains.get(name, 0) | self._catalog.table(name).absent))

    def _find_overrides(self) -> None:
        """Find metadata edges of which every admitted release violates a row that may break
        them.
        """
        self._overrides.clear()
        for row, masks, _, _ in list(self._rows.values()):
            if not row.id or ":" in row.id:
                continue
            complete = self._catalog.matrix.complete(row)
            for edge in complete.overrides:
                requirer, _, name = edge.partition(" -> ")
                bad = masks.get(name, 0)
                groups = self._edges.get((requirer, name))
                if not groups or not any(not allowed & ~bad for allowed in groups):
                    continue
                bit = self._lowest_fix(complete, name, bad)
                if bit and not any(
                    option.row.id == row.id and option.name == name for option in self._overrides
                ):
                    self._overrides.append(
                        OverrideOption(
                            f"override:{row.id}:{requirer}", complete, requirer, name, bit
                        )
                    )
                    self._ask(name, bit)
        self._overrides.sort(key=lambda option: option.node)
        self._expand()

    def _bring_cures(self, names: Sequence[str]) -> None:
        """Let a package take part that a row of cost misses and pins itself: triton imports
        setuptools, and no metadata asks for it.
        """
        for row in self._costing(names):
            for term in row.terms:
                if (
                    term.scope != "env"
                    or term.operator != "present"
                    or term.argument is not False
                    or term.component not in self._catalog.known
                ):
                    continue
                for pin in self._catalog.matrix.complete(row).pins:
                    requirement = parse_requirement(pin)
                    if requirement.name == term.component:
                        self._ask(
                            term.component,
                            self._catalog.table(term.component).mask(requirement.specifier),
                        )

    def _costing(self, names: Sequence[str]) -> Iterator[Row]:
        for row in self._catalog.matrix.rows_about(names):
            if (
                row.effect != "note"
                and not (row.effect == "blocks" and row.trust == "established")
                and not row.mitigations
            ):
                yield row

    def _find_costs(self, names: Sequence[str]) -> List[Tuple[str, Row, List[Dict[str, int]]]]:
        """Rows that do not block, the gravest first, each with what violates it: a node of its own
        says whether it is.
        """
        found = []
        for row in self._costing(names):
            bound = [bind(row, target) for target in self.targets]
            masks = [
                self._masks(binding.residual) for binding in bound if binding.outcome == "residual"
            ]
            violating = [
                entry
                for place, entry in enumerate(masks)
                if entry is not None and entry not in masks[:place]
            ]
            if violating:
                found.append((f"cost:{row.id}", row, violating))
        return sorted(found, key=lambda entry: (_WEIGHT.index(entry[1].effect), entry[0]))

    def _lowest_fix(self, row: Row, name: str, bad: int) -> int:
        """The oldest release that a row's pins name and that can be installed on the targets."""
        table = self._catalog.table(name)
        for pin in row.pins:
            requirement = parse_requirement(pin)
            if requirement.name != name:
                continue
            fixed = table.mask(requirement.specifier) & ~bad & ~self._exclusions(name)
            usable = [
                bit
                for bit in bits_of(fixed)
                if not table.at(bit).release.yanked and table.at(bit).index_name == "pypi"
            ]
            for other, masks, _, _ in self._rows.values():  # hit by another row on its own: no cure
                if len(masks) == 1 and other.id != row.id:
                    usable = [bit for bit in usable if not bit & masks.get(name, 0)]
            if usable:
                return min(usable, key=lambda bit: table.at(bit).version)
        return 0

    # ----------------------------------------------------------------------------------------------
    # nogoods

    def _finish(
        self,
        roots: Sequence[Tuple[Root, int]],
        overrides_allowed: int,
        costs: Sequence[Tuple[str, Row, List[Dict[str, int]]]],
        weighed: bool,
    ) -> Problem:
        peers, required, others = self._order([root for root, _ in roots])
        order = [*peers, *required, *others]
        # The roots stand first; then what a choice of the others costs; then the others.
        nodes = (
            *((YEARS_BEHIND, MONTHS_BEHIND) if weighed else ()),
            *peers,
            *((MONTHS_OF_REQUIRED,) if weighed else ()),
            *required,
            *(node for node, _, _ in costs),
            *others,
            *(option.node for option in self._overrides),
        )
        number_of = {node: number for number, node in enumerate(nodes)}
        tables = {node: self._catalog.table(_base(node)) for node in order}
        variables = [
            Variable(self._domains[node] | tables[node].absent, tables[node].absent)
            if node in tables
            else _UNWEIGHED
            if node in (YEARS_BEHIND, MONTHS_BEHIND, MONTHS_OF_REQUIRED)
            else Variable(0b11, 0b10)
            for node in nodes
        ]
        nogoods: List[Nogood] = []

        def add(masks: Mapping[str, int], why: Why) -> Optional[Nogood]:
            terms = []
            for node, mask in masks.items():
                number = number_of.get(node)
                if number is None:  # nothing reaches it, so it is absent
                    if mask & self._catalog.table(_base(node)).absent:
                        continue
                    return None
                narrowed = mask & variables[number].domain
                if not narrowed:
                    return None
                terms.append((number, narrowed))
            nogood = Nogood(tuple(sorted(terms)), why)
            nogoods.append(nogood)
            return nogood

        for root, mask in roots:
            table = tables[root.name]
            add(
                {root.name: table.all & ~mask | table.absent},
                Why("request", ("request", root.text), text=root.text),
            )
            for extra in root.extras:
                node = f"{root.name}[{extra}]"
                add({node: table.absent}, Why("request", ("request", root.text), text=root.text))
        for node in order:
            base = _base(node)
            if node != base:
                for bit in bits_of(self._domains[node]):
                    add({node: bit, base: ~bit}, Why("extra", ("extra",)))
        self._add_edges(tables, add)
        for row, masks, limits, targets in self._rows.values():
            kind = "build" if row.origin == "build" else "row"
            add(
                masks,
                Why(
                    kind,
                    (kind, row.id),
                    row=row,
                    limits=limits,
                    targets=tuple(targets) if limits else (),
                ),
            )
        for node, row, violating in costs:
            for masks in violating:
                add({**masks, node: 0b10}, Why("cost", ("cost", row.id), row=row))
        if self._complete:
            for name in sorted(self._refused):
                for (limit, text), bits in sorted(self._refused[name].items()):
                    if name in number_of:
                        add(
                            {name: bits},
                            Why(
                                "host", ("host", limit, name), text=text, limits=frozenset((limit,))
                            ),
                        )
        self._bound_overrides(overrides_allowed, add)
        settings = []
        for row, masks in self._settings.values():
            nogood = add(masks, Why("row", ("setting", row.id), row=row))
            if nogood is not None:
                nogoods.pop()
                settings.append((nogood, self._catalog.matrix.complete(row)))
        edges = tuple(
            Edge(node, wanted, bits, allowed, specifier)
            for (node, wanted), groups in sorted(self._edges.items())
            for allowed, (bits, specifier) in sorted(groups.items(), key=lambda group: group[1][0])
        )
        return Problem(
            nodes,
            tuple(variables),
            tuple(nogoods),
            tables,
            edges,
            tuple(self._overrides),
            self.targets,
            tuple(settings),
            frozenset(self._tail),
            tuple(node for node in peers if node == _base(node)),
        )

    def _add_edges(self, tables: Mapping[str, CandidateTable], add: Any) -> None:
        """Add what metadata asks: requirer there, and the required one absent or outside.

        A row may break the edge, at the price of an override.
        """
        breaking: Dict[Tuple[str, str], List[OverrideOption]] = {}
        for option in self._overrides:
            breaking.setdefault((option.requirer, option.name), []).append(option)
        for (node, wanted), groups in sorted(self._edges.items()):
            table = tables[wanted]
            for allowed, (bits, specifier) in sorted(groups.items(), key=lambda group: group[1][0]):
                why = Why(
                    "metadata",
                    ("metadata", _base(node), _base(wanted)),
                    Edge(node, wanted, bits, allowed, specifier),
                )
                masks = {node: bits, wanted: table.all & ~allowed | table.absent}
                for option in breaking.get((node, wanted), ()):
                    if allowed & option.bit:
                        continue
                    masks[option.node] = 0b10
                    add(
                        {
                            node: bits,
                            wanted: table.all & ~option.bit | table.absent,
                            option.node: 0b01,
                        },
                        why._replace(kind="override"),
                    )
                add(masks, why)

    def _bound_overrides(self, allowed: int, add: Any) -> None:
        """No more than so many overrides at once."""
        from itertools import combinations

        nodes = [option.node for option in self._overrides]
        if allowed < len(nodes):
            for group in combinations(nodes, allowed + 1):
                add(dict.fromkeys(group, 1), Why("override", ("override",)))

    # ----------------------------------------------------------------------------------------------
    # order

    def _order(self, roots: Sequence[Root]) -> Tuple[List[str], List[str], List[str]]:
        """The nodes of the roots that no other requires, as asked; of the other roots, and of all
        else, requirers before what they require, by name where that leaves a choice.

        So an engine is chosen before the torch that it pins, and whether a package is needed at all
        is settled before its version is chosen; what is not needed is absent.
        """
        asked: Dict[str, List[str]] = {}
        for root in roots:
            listed = asked.setdefault(root.name, [root.name])
            listed += [f"{root.name}[{extra}]" for extra in root.extras]
        requires: Dict[str, Set[str]] = {node: set() for node in self._domains}
        for node, wanted in self._edges:
            requires[node].add(wanted)
        for node in self._domains:
            if node != _base(node):
                requires[node].add(_base(node))
        peers, required = (
            list(dict.fromkeys(node for name in names for node in asked[name]))
            for names in requirers_first(asked, requires)
        )
        placed = {*peers, *required}
        return peers, required, [node for node in topological(requires) if node not in placed]


def _limit(term: Term) -> str:
    """The property of a target that a term asks for, as people name it."""
    return "gpu" if term.scope == "gpu" else LIMIT_OF.get(term.attribute, term.attribute)


def _base(node: str) -> str:
    return node.partition("[")[0]


def _target(facts: Facts, matrix: Matrix, request: Request) -> Target:
    """A target whose packages are free, on which variables that are not known are not set, with the
    Python and platform of the request.
    """
    if request.settings:
        facts = facts.updated(
            {
                "variables": Known(
                    {**(facts.value("variables") or {}), **request.settings}, Evidence("request")
                )
            }
        )
    target = derive_target(facts, matrix)
    known = target.variable
    asked = parse_version(request.python)
    own = target.host.attributes.get("python")
    python = own if isinstance(own, Version) and own.release[:2] == asked.release[:2] else asked
    host = {
        **target.host.attributes,
        "python": python,
        "platform": request.platform,
        "architecture": request.architecture,
    }

    def variable(name: str) -> Subject:
        found = known(name)
        return NOT_THERE if found.present is None else found

    return target._replace(host=Subject(True, host), environment=None, variable=variable)
