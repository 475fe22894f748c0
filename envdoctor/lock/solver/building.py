"""From a request, targets and the matrix to what takes part in the problem.

Only what the request can reach is built: a release of a package takes part where some other release
that takes part asks for it. That leaves satisfiability and optimum as they are, because what
nothing asks for is absent from the best solution.

What a release asks for is read when a solution wants the release: until then it asks for nothing,
and counts as a reason for whatever is there (``problem.UNREAD``). So each problem on the way admits
whatever the whole one does. One that has no solution proves that the whole one has none; a best
solution whose releases were all read, and in which nothing is there that nothing asks for, is the
best of the whole one.
"""

from __future__ import annotations

from itertools import islice
from typing import (
    Container,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
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
from ...model.request import Request
from ...model.requirement import parse_requirement
from ...model.row import Row, Term
from ...model.versions import Version, parse_version
from .assembly import Cost, Parts, assemble
from .boards import outdated_board
from .build_rows import rows_of_builds
from .candidate_table import NOT_THERE, bits_of
from .candidates import Asked, Catalog, Limits
from .engine import Nogood
from .misfit import Misfit
from .ordering import reached
from .problem import BoundRow, Call, OverrideOption, Problem, Why, base_of
from .row_masks import RowMasks
from .torch_extras import extras_with_torch

__all__ = ["LIMIT_OF", "Builder", "build_problem"]

#: As many releases of a node are read at least when one is wanted that was not: it and those that
#: come next in preference.
_BATCH = 4
#: Rounds of reading before the best of whatever is asked for is read at once: pins that the machine
#: refuses show before.
_SHALLOW = 1
#: Effects of rows that do not bind, the gravest first.
_WEIGHT = ("wrong-results", "blocks", "degrades")
_YES = 0b01  # of a node that says whether something holds
#: What a host attribute of a row rests on, as people name it.
LIMIT_OF = {
    "driver": "driver",
    "cuda": "driver",
    "ptx": "driver",
    "platform": "platform",
    "architecture": "platform",
}


def build_problem(
    catalog: Catalog,
    facts: Sequence[Facts],
    *,
    complete: bool = False,
    overrides_allowed: int = 0,
    costs: bool = False,
    any_machine: bool = False,
) -> Problem:
    """Build the whole problem of a request on targets.

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
    builder = Builder(
        catalog, facts, complete=complete, costs=costs, any_machine=any_machine, whole=True
    )
    return builder.problem(overrides_allowed)


class Builder:
    """What takes part is found once, and serves for any number of overrides; the arguments are
    those of :func:`build_problem`, ``whole``: read everything at once, and ``lifted``: limits that
    are taken to exclude nothing ("python").
    """

    def __init__(
        self,
        catalog: Catalog,
        facts: Sequence[Facts],
        *,
        complete: bool = False,
        costs: bool = False,
        any_machine: bool = False,
        whole: bool = False,
        lifted: Container[str] = (),
    ) -> None:
        self._catalog = catalog
        self._lifted = lifted
        self._request = catalog.request
        self._complete = complete
        self._weighed = costs
        self._whole = whole
        self.targets = tuple(_target(entry, catalog.matrix, catalog.request) for entry in facts)
        known = [
            version
            for target in self.targets
            for version in [target.host.attributes.get("glibc")]
            if isinstance(version, Version)
        ]
        outdated = (outdated_board(target, catalog.matrix) for target in self.targets)
        self.limits = Limits(
            min(known) if known else None,
            any(target.gpus or "driver" in target.host.attributes for target in self.targets),
            next(filter(None, outdated), None),
        )
        self._domains: Dict[str, int] = {}
        self._held: Dict[str, int] = {}  # pre-releases that nothing names so far, by node
        self._named: Dict[str, Dict[int, Dict[str, int]]] = {}  # package -> bit -> who names it
        self._edges: Dict[Tuple[str, str], Dict[int, Tuple[int, str]]] = {}
        self._read: Dict[str, int] = {}
        self._waiting: List[Tuple[str, int]] = []
        self._names: List[str] = []  # of packages that take part, and whose rows are bound
        self._refused: Dict[str, Mapping[Misfit, int]] = {}
        self._excluded: Dict[str, int] = {}
        self._masks = RowMasks(catalog, self.targets)
        self._rows: List[BoundRow] = []
        self._costing: List[Row] = []  # rows that do not bind, where they are to weigh
        self._settings: Dict[str, BoundRow] = {}
        self._calls: Dict[str, Call] = {}
        self._overrides: List[OverrideOption] = []
        self._faults = () if any_machine else tuple(self._faults_of_targets())
        self._circles: List[FrozenSet[str]] = []
        self._parts: Optional[Parts] = None
        self._rounds = 0
        self._brought = {
            root.name: extras_with_torch(root, catalog) for root in self._request.roots
        }
        if not self._faults:
            for root in self._request.roots:
                mask = catalog.table(root.name).mask(root.specifier)
                self._ask(root.name, mask)
                for extra in root.extras:
                    self._ask(f"{root.name}[{extra}]", self._with_extra(root.name, extra, mask))

    def problem(self, overrides_allowed: int = 0) -> Problem:
        """Return the problem, as far as it is read, in which at most so many metadata edges may be
        broken.
        """
        if self._faults:
            return Problem((), (), self._faults, {}, (), (), self.targets, ())
        if self._parts is None:
            self._parts = self._find_parts()
        return assemble(self._parts, self._catalog, overrides_allowed)

    def revise(self, problem: Problem, model: Sequence[int]) -> bool:
        """Read what the releases that a model chooses ask for, and some that come next, or rule out
        the circle of packages that only ask for each other; tell whether there was any of that, so
        that the problem is another one now.
        """
        chosen = dict(zip(problem.nodes, model))
        for node, table in problem.tables.items():
            if chosen[node] & table.all & ~self._read.get(node, 0):
                self._waiting.append((node, self._next(node, chosen[node])))
        circle = frozenset() if self._waiting else _unfounded(problem, chosen)
        if circle:
            self._circles.append(circle)
        if not self._waiting and not circle:
            return False
        self._parts = None
        self._rounds += 1
        return True

    def _next(self, node: str, bit: int) -> int:
        """A release of a node and those that come next, as many as were read before."""
        read = self._read.get(node, 0)
        left = self._domains[node] & ~read & ~(bit - 1) & ~self._exclusions(base_of(node))
        batch = max(_BATCH, bin(read).count("1"))
        return sum(islice(bits_of(left), batch))

    def _find_parts(self) -> Parts:
        while True:
            self._expand()
            names = sorted({base_of(node) for node in self._domains})
            if names != self._names:
                self._names = names
                self._bind_rows(names)
            self._ask_for_what_is_missing()
            self._find_overrides()
            self._bring_cures()
            if not self._waiting and all(base_of(node) in names for node in self._domains):
                break
        return Parts(
            self._request.roots,
            self._domains,
            self._edges,
            self._named,
            self._standing_calls(),
            tuple(self._rows),
            tuple(self._find_costs()),
            tuple(self._settings.values()),
            tuple(self._overrides),
            self._refused if self._complete else {},
            self.targets,
            self._weighed,
            {node: bits for node, bits in map(self._unread, self._domains) if bits},
            tuple(self._circles),
        )

    def _unread(self, node: str) -> Tuple[str, int]:
        left = self._domains[node] & ~self._read.get(node, 0)
        return node, left & ~self._exclusions(base_of(node))

    # ----------------------------------------------------------------------------------------------
    # reach

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
        base = base_of(node)
        excluded = self._exclusions(base)
        if not self._complete:
            mask &= ~excluded
        held = mask & self._catalog.table(base).early & ~sum(self._named.get(base, ()))
        if held:
            self._held[node] = self._held.get(node, 0) | held
            mask &= ~held
        new = mask & ~self._domains.setdefault(node, 0)
        if new:
            self._domains[node] |= new
            self._waiting.append((node, self._first(base, new & ~excluded)))
            if node != base:
                self._ask(base, new)

    def _first(self, name: str, bits: int) -> int:
        """Those releases that are read before a solution wants them: all that name a pre-release,
        which they let take part; and where a search is in depth, the best.
        """
        if self._whole:
            return bits
        # An explanation names what the roots require, where that says as much as anything else.
        best = bits & -bits if self._rounds > _SHALLOW or self._is_root(name) else 0
        return best | bits & self._catalog.naming_early(name)

    def _is_root(self, name: str) -> bool:
        return self._complete and any(root.name == name for root in self._request.roots)

    def _exclusions(self, name: str) -> int:
        excluded = self._excluded.get(name)
        if excluded is None:
            refusals = self._catalog.refusals(name, self.limits)
            groups = {why: bits for why, bits in refusals.items() if why.limit not in self._lifted}
            self._refused[name] = groups
            excluded = self._excluded[name] = sum(groups.values())
        return excluded

    def _expand(self) -> None:
        while self._waiting:
            node, bits = self._waiting.pop()
            bits &= ~self._read.get(node, 0)
            self._read[node] = self._read.get(node, 0) | bits
            for bit in bits_of(bits):
                for wanted, allowed, specifier in self._asks(node, bit):
                    self._name(node, bit, base_of(wanted), specifier)
                    groups = self._edges.setdefault((node, wanted), {})
                    known, first = groups.get(allowed, (0, specifier))
                    groups[allowed] = (known | bit, first)
                    self._ask(wanted, allowed)

    def _asks(self, node: str, bit: int) -> Asked:
        """What a candidate asks for, and the extra that a root is taken with for its torch."""
        brought = tuple(
            (f"{node}[{extra}]", bit, "")
            for extra, bits in self._brought.get(node, {}).items()
            if bits & bit
        )
        return (*self._catalog.asks(node, bit), *brought)

    def _name(self, node: str, bit: int, name: str, specifier: str) -> None:
        """Let the pre-releases take part that a requirement names: installers judge that over all
        requirements on a package together.
        """
        new = 0
        for early in bits_of(self._catalog.table(name).named(specifier)):
            namers = self._named.setdefault(name, {}).setdefault(early, {})
            new |= 0 if namers else early
            namers[node] = namers.get(node, 0) | bit
        for waiting, held in list(self._held.items()) if new else ():
            if base_of(waiting) == name and held & new:
                self._ask(waiting, held & new)

    # ----------------------------------------------------------------------------------------------
    # rows

    def _faults_of_targets(self) -> Iterator[Nogood]:
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
                    why = Why("row", ("row", row.id), row=row, limits=_limits(row), targets=hit)
                    yield Nogood((), why)

    def _bind_rows(self, names: Sequence[str]) -> None:
        """Bind the rows to each target; env terms become masks."""
        bound: Dict[Tuple[str, Tuple[Tuple[str, int], ...]], BoundRow] = {}
        self._settings.clear()
        self._costing = []
        others = [root.name for root in self._catalog.request.others]
        about = self._catalog.matrix.rows_about([*names, *others])
        blocking = [row for row in about if row.binds]
        for row in (*blocking, *rows_of_builds(names, about, self._catalog)):
            for number in range(len(self.targets)):
                masks = self._masks.of(row, number, self._domains)
                if masks is None:
                    continue
                if row.mitigations and row.mitigations[0].scope == "var":
                    self._settings[row.id] = BoundRow(row, masks)
                    continue
                key = (row.id, tuple(sorted(masks.items())))
                same = bound.get(key) or BoundRow(row, masks, _limits(row))
                bound[key] = same._replace(targets=(*same.targets, number))
        self._rows = list(bound.values())
        if self._weighed:
            self._costing = [row for row in about if _is_cost(row)]

    def _ask_for_what_is_missing(self) -> None:
        """Let a package take part where a row can ask that it is there."""
        for row, masks, _, _ in self._rows:
            for name, mask in masks.items():
                table = self._catalog.table(name)
                if mask & table.absent and len(masks) > 1:
                    others = [other for other in masks if other != name]
                    if all(self._can_hold(other, masks[other]) for other in others):
                        reasons = {other: masks[other] for other in others}
                        self._call(row, name, table.all & ~mask, reasons)

    def _standing_calls(self) -> Tuple[Call, ...]:
        """The calls, but for those of an override that there is no more."""
        options = {option.node for option in self._overrides}
        return tuple(
            call
            for _, call in sorted(self._calls.items())
            if all(not node.startswith("override:") or node in options for node in call.reasons)
        )

    def _call(self, row: Row, name: str, bits: int, reasons: Mapping[str, int]) -> None:
        """Let candidates of a package take part for which a row asks where these reasons hold."""
        hold = "&".join(f"{node}:{mask:x}" for node, mask in sorted(reasons.items()))
        node = f"called:{name}:{row.id}:{hold}"
        if self._calls.get(node) is None:
            self._calls[node] = Call(node, name, bits, dict(reasons))
            self._ask(name, bits)

    def _can_hold(self, name: str, mask: int) -> bool:
        """Tell whether a term can hold of what takes part."""
        return bool(mask & (self._domains.get(name, 0) | self._catalog.table(name).absent))

    def _find_overrides(self) -> None:
        """Find metadata edges of which every admitted release violates a row that may break
        them.
        """
        self._overrides.clear()
        breaking = self._catalog.rows_with_overrides()
        for entry in self._rows:
            if entry.row.id in breaking:
                self._find_overrides_of(breaking[entry.row.id], entry.masks)
        self._overrides.sort(key=lambda option: option.node)

    def _find_overrides_of(self, row: Row, masks: Mapping[str, int]) -> None:
        for edge in row.overrides:
            requirer, _, name = edge.partition(" -> ")
            bad = masks.get(name, 0)
            groups = self._edges.get((requirer, name))
            if not groups or not any(not allowed & ~bad for allowed in groups):
                continue
            if any((option.row.id, option.name) == (row.id, name) for option in self._overrides):
                continue
            bit = self._lowest_fix(row, name, bad)
            if bit:
                node = f"override:{row.id}:{requirer}"
                self._overrides.append(OverrideOption(node, row, requirer, name, bit))
                self._call(row, name, bit, {node: _YES})

    def _bring_cures(self) -> None:
        """Let a package take part that a row of cost misses and pins itself: triton imports
        setuptools, and no metadata asks for it.
        """
        for row in self._costing:
            missing = {
                term.component
                for term in row.terms
                if (term.scope, term.operator, term.argument) == ("env", "present", False)
            }
            for name in sorted(missing & self._catalog.known):
                for requirement in map(parse_requirement, self._catalog.matrix.complete(row).pins):
                    if requirement.name == name:
                        mask = self._catalog.table(name).mask(requirement.specifier)
                        for masks in self._violating(row):
                            others = {key: value for key, value in masks.items() if key != name}
                            self._call(row, name, mask, others)

    def _find_costs(self) -> List[Cost]:
        """The rows that do not block, the gravest first, each with what violates it."""
        costs = []
        for row in self._costing:
            violating = [self._with_older(row, masks) for masks in self._violating(row)]
            if violating:
                costs.append(Cost(f"cost:{row.id}", row, tuple(violating)))
        return sorted(costs, key=lambda cost: (_WEIGHT.index(cost.row.effect), cost.node))

    def _violating(self, row: Row) -> List[Mapping[str, int]]:
        """What violates a row on the targets, each set of masks once."""
        violating: List[Mapping[str, int]] = []
        for number in range(len(self.targets)):
            masks = self._masks.of(row, number, self._domains)
            if masks is not None and masks not in violating:
                violating.append(masks)
        return violating

    def _with_older(self, row: Row, masks: Mapping[str, int]) -> Mapping[str, int]:
        """Return what violates a row by which a package is too old, with the releases below: they
        are older still, and where nobody measured them they would look the better choice.
        """
        bad = masks.get(row.component, 0)
        if row.kind != "too-old" or not bad:
            return masks
        table = self._catalog.table(row.component)
        known = bad & table.all
        if not known:
            return masks
        oldest = min(table.at(bit).version for bit in bits_of(known))
        older = [bit for bit in bits_of(table.all) if table.at(bit).version < oldest]
        return {**masks, row.component: bad | sum(older) & self._domains.get(row.component, 0)}

    def _lowest_fix(self, row: Row, name: str, bad: int) -> int:
        """The oldest release that a row's pins name and that can be installed on the targets."""
        table = self._catalog.table(name)
        for pin in row.pins:
            requirement = parse_requirement(pin)
            if requirement.name != name:
                continue
            fixed = table.mask(requirement.specifier) & ~table.early & ~bad
            fixed &= ~self._exclusions(name)
            usable = [
                bit
                for bit in bits_of(fixed)
                if not table.at(bit).release.yanked and table.at(bit).index_name == "pypi"
            ]
            for other in self._rows:  # hit by another row on its own: no cure
                if len(other.masks) == 1 and other.row.id != row.id:
                    usable = [bit for bit in usable if not bit & other.masks.get(name, 0)]
            if usable:
                return min(usable, key=lambda bit: table.at(bit).version)
        return 0


def _unfounded(problem: Problem, chosen: Mapping[str, int]) -> FrozenSet[str]:
    """What is there only because it asks for itself, directly or in a circle."""
    there = {node for node, table in problem.tables.items() if chosen[node] & table.all}
    requires: Dict[str, Set[str]] = {node: set() for node in there}
    for edge in problem.edges:
        if edge.requirer in there and chosen[edge.requirer] & edge.bits:
            requires[edge.requirer].update((edge.name, base_of(edge.name)))
    called = [call.name for call in problem.calls if chosen[call.node] & _YES]
    return frozenset(there - reached([*(problem.anchors & there), *called], requires))


def _is_cost(row: Row) -> bool:
    return row.effect != "note" and not row.binds and not row.mitigations


def _limits(row: Row) -> FrozenSet[str]:
    return frozenset(_limit(term) for term in row.terms if term.scope in ("gpu", "host"))


def _limit(term: Term) -> str:
    """The property of a target that a term asks for, as people name it."""
    return "gpu" if term.scope == "gpu" else LIMIT_OF.get(term.attribute, term.attribute)


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
        subject = known(name)
        return NOT_THERE if subject.present is None else subject

    return target._replace(host=Subject(True, host), environment=None, variable=variable)
