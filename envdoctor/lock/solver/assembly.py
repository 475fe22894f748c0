"""From what takes part to the problem that the engine takes: the order of the variables, and the
nogoods.
"""

from __future__ import annotations

from itertools import combinations
from typing import (
    Container,
    Dict,
    FrozenSet,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ...matrix.bind import Target
from ...model.request import Root
from ...model.row import Row
from .candidate_table import bits_of
from .candidates import Catalog
from .engine import Nogood, Variable
from .misfit import Misfit
from .ordering import requirers_first, topological
from .problem import (
    MONTHS_BEHIND,
    MONTHS_OF_REQUIRED,
    UNREAD,
    YEARS_BEHIND,
    BoundRow,
    Call,
    Edge,
    OverrideOption,
    Problem,
    Why,
    base_of,
)

__all__ = ["Cost", "Parts", "assemble"]

#: A variable that settles nothing yet, and one that says of a row or an override whether it is:
#: "not" is what is preferred.
_UNWEIGHED = Variable(0b1, 0)
_YES, _NO = 0b01, 0b10
_NEED = Why("extra", ("need",))
_YES_OR_NO = Variable(_YES | _NO, _NO)


class Cost(NamedTuple):
    """A row that does not bind: the node that says whether it is violated, and what violates it."""

    node: str
    row: Row
    violating: Tuple[Mapping[str, int], ...]


class Parts(NamedTuple):
    """What takes part in a problem.

    domains: the candidates of each node. edges: by requirer and required node, for each set of
    admitted candidates the requirers and the specifier. named: by package, for each pre-release
    that only counts where it is named, who names it. calls: what rows ask for, without a
    requirement. refused: what cannot be installed, by package and reason; left out where domains do
    not hold it. weighed: whether it is to have an optimum that sees age. unread: by node, the
    candidates of which it was not read what they ask for. circles: nodes that some solution had
    only because they ask for each other.
    """

    roots: Tuple[Root, ...]
    domains: Mapping[str, int]
    edges: Mapping[Tuple[str, str], Mapping[int, Tuple[int, str]]]
    named: Mapping[str, Mapping[int, Mapping[str, int]]]
    calls: Tuple[Call, ...]
    rows: Tuple[BoundRow, ...]
    costs: Tuple[Cost, ...]
    settings: Tuple[BoundRow, ...]
    overrides: Tuple[OverrideOption, ...]
    refused: Mapping[str, Mapping[Misfit, int]]
    targets: Tuple[Target, ...]
    weighed: bool
    unread: Mapping[str, int] = {}
    circles: Tuple[FrozenSet[str], ...] = ()


def assemble(parts: Parts, catalog: Catalog, overrides_allowed: int) -> Problem:
    """Return the problem in which at most so many metadata edges may be broken."""
    return _Assembly(parts, catalog).problem(overrides_allowed)


class _Assembly:
    def __init__(self, parts: Parts, catalog: Catalog) -> None:
        self._parts = parts
        self._catalog = catalog
        self._peers, required, others = _order(parts)
        self._packages = (*self._peers, *required, *others)
        # The roots stand first; then what a choice of the others costs; then the others.
        weighed = parts.weighed
        self._nodes = (
            *((YEARS_BEHIND, MONTHS_BEHIND) if weighed else ()),
            *self._peers,
            *((MONTHS_OF_REQUIRED,) if weighed else ()),
            *required,
            *(cost.node for cost in parts.costs),
            *others,
            *(option.node for option in parts.overrides),
            *(call.node for call in parts.calls),
            *((UNREAD,) if parts.unread else ()),
        )
        self._numbers = {node: number for number, node in enumerate(self._nodes)}
        self._tables = {node: catalog.table(base_of(node)) for node in self._packages}
        self._variables = tuple(map(self._variable, self._nodes))
        self._anchors = self._find_anchors()
        self._nogoods: List[Nogood] = []

    def problem(self, overrides_allowed: int) -> Problem:
        parts = self._parts
        self._add_requests()
        self._add_extras()
        self._add_named()
        self._add_unread()
        self._add_needs()
        self._add_edges()
        self._add_rows()
        self._add_refusals()
        self._bound_overrides(overrides_allowed)
        return Problem(
            self._nodes,
            self._variables,
            tuple(self._nogoods),
            self._tables,
            tuple(
                Edge(node, wanted, bits, allowed, specifier)
                for (node, wanted), groups in sorted(parts.edges.items())
                for allowed, (bits, specifier) in _by_bits(groups)
            ),
            parts.overrides,
            parts.targets,
            tuple(self._settings()),
            tuple(node for node in self._peers if node == base_of(node)),
            anchors=self._anchors,
            calls=self._parts.calls,
        )

    def _find_anchors(self) -> FrozenSet[str]:
        """What the request asks for."""
        return frozenset(
            node
            for root in self._parts.roots
            for node in (root.name, *(f"{root.name}[{extra}]" for extra in root.extras))
        )

    def _variable(self, node: str) -> Variable:
        table = self._tables.get(node)
        if table is not None:
            return Variable(self._parts.domains[node] | table.absent, table.absent)
        is_count = node in (YEARS_BEHIND, MONTHS_BEHIND, MONTHS_OF_REQUIRED)
        return _UNWEIGHED if is_count else _YES_OR_NO

    def _nogood(self, masks: Mapping[str, int], why: Why) -> Optional[Nogood]:
        """Return a nogood over what takes part, or None where it cannot be violated."""
        terms = []
        for node, mask in masks.items():
            number = self._numbers.get(node)
            if number is None:  # nothing reaches it, so it is absent
                if mask & self._catalog.table(base_of(node)).absent:
                    continue
                return None
            narrowed = mask & self._variables[number].domain
            if not narrowed:
                return None
            terms.append((number, narrowed))
        return Nogood(tuple(sorted(terms)), why)

    def _add(self, masks: Mapping[str, int], why: Why) -> None:
        nogood = self._nogood(masks, why)
        if nogood is not None:
            self._nogoods.append(nogood)

    def _add_requests(self) -> None:
        for root in self._parts.roots:
            table = self._tables[root.name]
            why = Why("request", ("request", root.text), text=root.text)
            outside = table.all & ~table.mask(root.specifier)
            self._add({root.name: outside | table.absent}, why)
            for extra in root.extras:
                self._add({f"{root.name}[{extra}]": table.absent}, why)

    def _add_extras(self) -> None:
        """An extra is there with its own release alone."""
        for node in self._packages:
            if node != base_of(node):
                for bit in bits_of(self._parts.domains[node]):
                    self._add({node: bit, base_of(node): ~bit}, Why("extra", ("extra",)))

    def _add_named(self) -> None:
        """A pre-release is not there without something that names it."""
        for name, named in self._parts.named.items():
            for bit, namers in named.items():
                silent = {
                    node: self._tables[node].all & ~bits | self._tables[node].absent
                    for node, bits in namers.items()
                }
                self._add({**silent, name: bit}, Why("extra", ("early",)))

    def _add_unread(self) -> None:
        """Tell whether a release is chosen that may ask for anything."""
        for node, bits in self._parts.unread.items():
            self._add({node: bits, UNREAD: _NO}, Why("extra", ("unread",)))
        if self._parts.unread:
            known = {
                node: table.all & ~self._parts.unread.get(node, 0) | table.absent
                for node, table in self._tables.items()
            }
            self._add({**known, UNREAD: _YES}, Why("extra", ("unread",)))

    def _add_needs(self) -> None:
        """What nothing asks for is not there: no root, no requirer, no row."""
        requirers: Dict[str, Dict[str, int]] = {node: {} for node in self._packages}
        of_package: Dict[str, Set[str]] = {}
        for node in self._packages:
            of_package.setdefault(base_of(node), set()).add(node)
        for (node, wanted), groups in self._parts.edges.items():
            for asked in {wanted, base_of(wanted)}:
                for bits, _ in groups.values():
                    requirers[asked][node] = requirers[asked].get(node, 0) | bits
        for call in self._parts.calls:
            for node, mask in call.reasons.items():
                self._add({call.node: _YES, node: ~mask}, _NEED)
        for node in self._packages:
            # An extra is no reason for its own package.
            self._add_need((node,), of_package.get(node, {node}), requirers)
        for circle in self._parts.circles:
            self._add_need(sorted(circle), circle, requirers)

    def _add_need(
        self,
        nodes: Sequence[str],
        no_reason: Container[str],
        requirers: Mapping[str, Mapping[str, int]],
    ) -> None:
        """None of these nodes is there without a release, or a call, that asks for one of them and
        is not itself of what is ``no_reason``.
        """
        if not self._anchors.isdisjoint(nodes):
            return
        silent: Dict[str, int] = {UNREAD: _NO} if self._parts.unread else {}
        for node in nodes:
            for requirer, asking in requirers[node].items():
                if requirer not in no_reason:
                    silent[requirer] = silent.get(requirer, -1) & ~asking
        calls = [call for call in self._parts.calls if call.name in nodes]
        for node in nodes:
            own = [call for call in calls if call.name == node]
            others = {call.node: _NO for call in calls if call.name != node}
            groups: Dict[Tuple[str, ...], int] = {}
            for bit in bits_of(self._parts.domains[node]) if own else ():
                called = tuple(call.node for call in own if call.bits & bit)
                groups[called] = groups.get(called, 0) | bit
            for called, bits in groups.items():
                self._add({**silent, **others, **dict.fromkeys(called, _NO), node: bits}, _NEED)
            if not own:
                self._add({**silent, **others, node: self._tables[node].all}, _NEED)

    def _add_edges(self) -> None:
        """Add what metadata asks: requirer there, and the required one absent or outside.

        A row may break the edge, at the price of an override.
        """
        breaking: Dict[Tuple[str, str], List[OverrideOption]] = {}
        for option in self._parts.overrides:
            breaking.setdefault((option.requirer, option.name), []).append(option)
        for (node, wanted), groups in sorted(self._parts.edges.items()):
            table = self._tables[wanted]
            for allowed, (bits, specifier) in _by_bits(groups):
                why = Why(
                    "metadata",
                    _edge_key(node, wanted),
                    Edge(node, wanted, bits, allowed, specifier),
                )
                masks = {node: bits, wanted: table.all & ~allowed | table.absent}
                for option in breaking.get((node, wanted), ()):
                    if allowed & option.bit:
                        continue
                    masks[option.node] = _NO
                    other = table.all & ~option.bit | table.absent
                    self._add(
                        {node: bits, wanted: other, option.node: _YES},
                        why._replace(kind="override"),
                    )
                self._add(masks, why)

    def _add_rows(self) -> None:
        for row, masks, limits, targets in self._parts.rows:
            kind = "build" if row.origin == "build" else "row"
            concerned = targets if limits else ()
            self._add(masks, Why(kind, (kind, row.id), row=row, limits=limits, targets=concerned))
        for cost in self._parts.costs:
            why = Why("cost", ("cost", cost.row.id), row=cost.row)
            for masks in cost.violating:
                self._add({**masks, **self._unless_asked(masks), cost.node: _NO}, why)

    def _unless_asked(self, masks: Mapping[str, int]) -> Mapping[str, int]:
        """That a package is absent counts once it is known that nothing chosen asks for it."""
        lacks = any(mask & self._catalog.table(name).absent for name, mask in masks.items())
        return {UNREAD: _NO} if lacks and self._parts.unread else {}

    def _add_refusals(self) -> None:
        for name, groups in sorted(self._parts.refused.items()):
            if name in self._numbers:
                for misfit, bits in sorted(groups.items()):
                    limit = misfit.limit
                    why = Why("host", ("host", limit, name), misfit=misfit)
                    self._add({name: bits}, why._replace(limits=frozenset((limit,))))

    def _bound_overrides(self, allowed: int) -> None:
        """No more than so many overrides at once."""
        nodes = [option.node for option in self._parts.overrides]
        if allowed < len(nodes):
            for group in combinations(nodes, allowed + 1):
                self._add(dict.fromkeys(group, _YES), Why("override", ("override",)))

    def _settings(self) -> List[Tuple[Nogood, Row]]:
        settings = []
        for row, masks, _, _ in self._parts.settings:
            nogood = self._nogood(masks, Why("row", ("setting", row.id), row=row))
            if nogood is not None:
                settings.append((nogood, self._catalog.matrix.complete(row)))
        return settings


def _edge_key(node: str, wanted: str) -> Tuple[str, ...]:
    """What one cause speaks of: two packages, or a package and an extra of its own."""
    names = base_of(node), base_of(wanted)
    return ("metadata", *(names if names[0] != names[1] else (node, wanted)))


def _by_bits(groups: Mapping[int, Tuple[int, str]]) -> List[Tuple[int, Tuple[int, str]]]:
    """The groups of an edge, that of the best requirers first."""
    return sorted(groups.items(), key=lambda group: group[1][0])


def _order(parts: Parts) -> Tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """The nodes of the roots that no other requires, as asked; of the other roots, and of all else,
    requirers before what they require, by name where that leaves a choice.

    So an engine is chosen before the torch that it pins, and whether a package is needed at all is
    settled before its version is chosen; what is not needed is absent.
    """
    asked: Dict[str, List[str]] = {}
    for root in parts.roots:
        nodes = asked.setdefault(root.name, [root.name])
        nodes += [f"{root.name}[{extra}]" for extra in root.extras]
    requires: Dict[str, Set[str]] = {node: set() for node in parts.domains}
    nodes_of: Dict[str, List[str]] = {}
    for node in parts.domains:
        nodes_of.setdefault(base_of(node), []).append(node)
    for node, wanted in parts.edges:  # whatever extras it has, it is one release
        if base_of(node) == base_of(wanted):
            requires[node].add(wanted)
        else:
            requires[node].update(nodes_of[base_of(wanted)])
    for node in parts.domains:
        if node != base_of(node):
            requires[node].add(base_of(node))
    peers, required = (
        list(dict.fromkeys(node for name in names for node in asked[name]))
        for names in requirers_first(asked, requires)
    )
    placed = {*peers, *required}
    return peers, required, [node for node in topological(requires) if node not in placed]
