"""From a request, targets and the matrix to what takes part in the problem.

Only what the request can reach is built: a release of a package takes part where some other release
that takes part asks for it. That leaves satisfiability and optimum as they are, because what
nothing asks for is absent from the best solution.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...matrix.bind import Subject, Target, bind, truth
from ...matrix.derive import derive_target
from ...matrix.loader import Matrix
from ...model.evidence import Evidence, Known
from ...model.facts import Facts
from ...model.request import Request
from ...model.requirement import parse_requirement
from ...model.row import Row, Term
from ...model.versions import Version, parse_version
from .assembly import Cost, Parts, assemble
from .build_rows import build_rows, dropped_rows, floor_rows, twin_rows
from .candidates import NOT_THERE, Catalog, Limits, bits_of
from .engine import Nogood
from .problem import BoundRow, OverrideOption, Problem, Why, base_of

__all__ = ["LIMIT_OF", "Builder", "build_problem"]

#: Effects of rows that do not bind, the gravest first.
_WEIGHT = ("wrong-results", "blocks", "degrades")
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
    builder = Builder(catalog, facts, complete=complete, costs=costs, any_machine=any_machine)
    return builder.problem(overrides_allowed)


class Builder:
    """What takes part is found once, and serves for any number of overrides; the arguments are
    those of :func:`build_problem`.
    """

    def __init__(
        self,
        catalog: Catalog,
        facts: Sequence[Facts],
        *,
        complete: bool = False,
        costs: bool = False,
        any_machine: bool = False,
    ) -> None:
        self._catalog = catalog
        self._request = catalog.request
        self._complete = complete
        self._weighed = costs
        self.targets = tuple(_target(entry, catalog.matrix, catalog.request) for entry in facts)
        known = [
            version
            for target in self.targets
            for version in [target.host.attributes.get("glibc")]
            if isinstance(version, Version)
        ]
        self.limits = Limits(
            min(known) if known else None,
            any(target.gpus or "driver" in target.host.attributes for target in self.targets),
        )
        self._domains: Dict[str, int] = {}
        self._held: Dict[str, int] = {}  # pre-releases that nothing names so far, by node
        self._named: Dict[str, Dict[int, Dict[str, int]]] = {}  # package -> bit -> who names it
        self._edges: Dict[Tuple[str, str], Dict[int, Tuple[int, str]]] = {}
        self._waiting: List[Tuple[str, int]] = []
        self._refused: Dict[str, Mapping[Tuple[str, str], int]] = {}
        self._excluded: Dict[str, int] = {}
        self._tail: Set[str] = set()
        self._rows: List[BoundRow] = []
        self._settings: Dict[str, BoundRow] = {}
        self._overrides: List[OverrideOption] = []
        self._faults = () if any_machine else tuple(self._faults_of_targets())
        self._parts: Optional[Parts] = None

    def problem(self, overrides_allowed: int = 0) -> Problem:
        """Return the problem in which at most so many metadata edges may be broken."""
        if self._faults:
            return Problem((), (), self._faults, {}, (), (), self.targets, (), frozenset())
        if self._parts is None:
            self._parts = self._find_parts()
        return assemble(self._parts, self._catalog, overrides_allowed)

    def _find_parts(self) -> Parts:
        for root in self._request.roots:
            mask = self._catalog.table(root.name).mask(root.specifier)
            self._ask(root.name, mask)
            for extra in root.extras:
                self._ask(f"{root.name}[{extra}]", self._with_extra(root.name, extra, mask))
        names: List[str] = []
        while True:
            self._expand()
            reached = sorted({base_of(node) for node in self._domains})
            if reached == names:
                break
            names = reached
            self._bind_rows(names)
            self._find_overrides()
            if self._weighed:
                self._bring_cures(names)
        return Parts(
            self._request.roots,
            self._domains,
            self._edges,
            self._named,
            tuple(self._rows),
            tuple(self._find_costs(names) if self._weighed else ()),
            tuple(self._settings.values()),
            tuple(self._overrides),
            self._refused if self._complete else {},
            self.targets,
            frozenset(self._tail),
            self._weighed,
        )

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
            self._waiting.append((node, new))
            if node != base:
                self._ask(base, new)

    def _exclusions(self, name: str) -> int:
        found = self._excluded.get(name)
        if found is None:
            groups = self._catalog.refusals(name, self.limits)
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
                    self._name(node, bit, base_of(wanted), specifier)
                    groups = self._edges.setdefault((node, wanted), {})
                    known, first = groups.get(allowed, (0, specifier))
                    groups[allowed] = (known | bit, first)
                    self._ask(wanted, allowed)

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
        """Bind the blocking rows to each target; env terms become masks."""
        bound: Dict[Tuple[str, Tuple[Tuple[str, int], ...]], BoundRow] = {}
        self._settings.clear()
        for row in self._blocking(names):
            for number, target in enumerate(self.targets):
                masks = self._masks_of(row, target)
                if masks is None:
                    continue
                if row.mitigations and row.mitigations[0].scope == "var":
                    self._settings[row.id] = BoundRow(row, masks)
                    continue
                key = (row.id, tuple(sorted(masks.items())))
                same = bound.get(key) or BoundRow(row, masks, _limits(row))
                bound[key] = same._replace(targets=(*same.targets, number))
        self._rows = list(bound.values())
        for entry in self._rows:
            self._ask_for_what_is_missing(entry.masks)

    def _blocking(self, names: Sequence[str]) -> Iterator[Row]:
        for row in self._catalog.matrix.rows_about(names):
            if row.effect == "blocks" and row.trust == "established":
                yield row
        yield from build_rows(names, self._catalog)
        yield from twin_rows(names, self._catalog)
        yield from floor_rows(names, self._catalog)
        yield from dropped_rows(names, self._catalog.matrix)

    def _masks_of(self, row: Row, target: Target) -> Optional[Dict[str, int]]:
        """Return what violates a row on a target, or None where nothing that takes part does."""
        binding = bind(row, target)
        mitigated = binding.outcome == "violated" and bool(row.mitigations)
        return self._masks(binding.residual) if binding.outcome == "residual" or mitigated else None

    def _masks(self, terms: Sequence[Term]) -> Optional[Dict[str, int]]:
        """Return the masks of env terms, or None where one can hold of no candidate, or asks for
        what does not take part. What the matrix does not know is there only where it is asked for.
        """
        by_name: Dict[str, List[Term]] = {}
        for term in terms:
            by_name.setdefault(term.component, []).append(term)
        unknown = {root.name for root in self._catalog.request.others}
        for name, listed in by_name.items():
            if name in unknown:
                return None
            if name not in self._domains and not all(truth(term, NOT_THERE) for term in listed):
                return None
        masks = {
            name: self._catalog.table(name).holding(by_name[name])
            for name in by_name
            if name in self._catalog.known
        }
        return masks if masks and all(masks.values()) else None

    def _ask_for_what_is_missing(self, masks: Mapping[str, int]) -> None:
        """Let a package take part where a row can ask that it is there."""
        for name, mask in masks.items():
            others = [other for other in masks if other != name]
            table = self._catalog.table(name)
            others_hold = all(self._can_hold(other, masks[other]) for other in others)
            if others and others_hold and mask & table.absent:
                self._ask(name, table.all & ~mask)

    def _can_hold(self, name: str, mask: int) -> bool:
        """Tell whether a term can hold of what takes part."""
        return bool(mask & (self._domains.get(name, 0) | self._catalog.table(name).absent))

    def _find_overrides(self) -> None:
        """Find metadata edges of which every admitted release violates a row that may break
        them.
        """
        self._overrides.clear()
        for entry in self._rows:
            if entry.row.id and ":" not in entry.row.id:
                self._find_overrides_of(self._catalog.matrix.complete(entry.row), entry.masks)
        self._overrides.sort(key=lambda option: option.node)
        self._expand()

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
                self._ask(name, bit)

    def _bring_cures(self, names: Sequence[str]) -> None:
        """Let a package take part that a row of cost misses and pins itself: triton imports
        setuptools, and no metadata asks for it.
        """
        for row in self._costing(names):
            missing = {
                term.component
                for term in row.terms
                if (term.scope, term.operator, term.argument) == ("env", "present", False)
            }
            for name in sorted(missing & self._catalog.known):
                for requirement in map(parse_requirement, self._catalog.matrix.complete(row).pins):
                    if requirement.name == name:
                        self._ask(name, self._catalog.table(name).mask(requirement.specifier))

    def _costing(self, names: Sequence[str]) -> Iterator[Row]:
        for row in self._catalog.matrix.rows_about(names):
            if (
                row.effect != "note"
                and not (row.effect == "blocks" and row.trust == "established")
                and not row.mitigations
            ):
                yield row

    def _find_costs(self, names: Sequence[str]) -> List[Cost]:
        """The rows that do not block, the gravest first, each with what violates it."""
        found = []
        for row in self._costing(names):
            violating: List[Dict[str, int]] = []
            for target in self.targets:
                binding = bind(row, target)
                masks = self._masks(binding.residual) if binding.outcome == "residual" else None
                if masks is not None and masks not in violating:
                    violating.append(masks)
            if violating:
                found.append(Cost(f"cost:{row.id}", row, tuple(violating)))
        return sorted(found, key=lambda cost: (_WEIGHT.index(cost.row.effect), cost.node))

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
        found = known(name)
        return NOT_THERE if found.present is None else found

    return target._replace(host=Subject(True, host), environment=None, variable=variable)
