"""Why each chosen package, and why not a better release of it."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

from ...model.resolution import Override, Reason
from ...model.row import Row
from .candidate_table import Candidate
from .candidates import Catalog
from .engine import Nogood
from .problem import Edge, Problem, Why, base_of

__all__ = ["Reasons"]

_ROWS = 2  # that are named for what no metadata asks for


class Reasons:
    """The reasons of what was chosen.

    bits: the value of each node. overrides: the metadata edges that are broken.
    """

    def __init__(
        self,
        problem: Problem,
        bits: Mapping[str, int],
        catalog: Catalog,
        overrides: Sequence[Override],
    ) -> None:
        self._problem = problem
        self._bits = bits
        self._catalog = catalog
        self._overrides = overrides
        self._number = {node: number for number, node in enumerate(problem.nodes)}
        self._requirers: Dict[str, List[Edge]] = {}
        for edge in problem.edges:
            requirer = base_of(edge.requirer)
            if bits[edge.requirer] & edge.bits and requirer != base_of(edge.name):
                self._requirers.setdefault(base_of(edge.name), []).append(edge)
        # The rows that a package decides: all their other terms hold.
        self._deciding: Dict[int, List[Tuple[int, Nogood]]] = {}
        for nogood in problem.nogoods:
            if nogood.why.row is not None:
                self._note_deciding(nogood)

    def _note_deciding(self, nogood: Nogood) -> None:
        nodes, bits = self._problem.nodes, self._bits
        open_terms = [term for term in nogood.terms if not bits[nodes[term[0]]] & term[1]]
        for number, mask in open_terms or nogood.terms:
            if len(open_terms) < 2:
                self._deciding.setdefault(number, []).append((mask, nogood))

    def of(self, name: str) -> List[Reason]:
        """Return the reasons of one package."""
        broken = [override for override in self._overrides if override.name == name]
        reasons = [*self._asked(name), *self._required(name, broken)]
        if not reasons and not broken:
            reasons += self._asked_by_rows(name)
        reasons += map(_of_override, broken)
        if not broken:
            reasons += self._against_better(name)
        candidate = self._problem.tables[name].at(self._bits[name])
        return [*reasons, *_of_candidate(candidate)]

    def _asked(self, name: str) -> Iterator[Reason]:
        for root in self._catalog.request.roots:
            if root.name == name:
                yield Reason("asked", f"asked for: {root.text}", requirement=root.text)

    def _required(self, name: str, broken: Sequence[Override]) -> List[Reason]:
        """The metadata of what is chosen that asks for it."""
        reasons: List[Reason] = []
        for edge in self._requirers.get(name, ()):
            requirer, _, extra = edge.requirer.partition("[")
            if edge.name != name or any(override.requirer == requirer for override in broken):
                continue
            release = self._problem.tables[requirer].at(self._bits[requirer]).version
            reason = Reason(
                "required",
                f"{requirer}{'[' + extra if extra else ''} {release} requires "
                f"{edge.specifier or 'it'}",
                requirer=edge.requirer,
                requirement=edge.specifier,
            )
            if reason not in reasons:
                reasons.append(reason)
        return reasons

    def _asked_by_rows(self, name: str) -> List[Reason]:
        """The rows that what is chosen would violate without this package: no metadata asks for
        it.
        """
        absent = self._problem.tables[name].absent
        rows = [
            self._catalog.matrix.complete(nogood.why.row)
            for mask, nogood in self._deciding.get(self._number[name], ())
            if nogood.why.kind in ("row", "cost") and mask & absent
        ]
        return [Reason("row", row.title, row.id, row.sources) for row in rows[:_ROWS]]

    def _against_better(self, name: str) -> List[Reason]:
        """What refused a better release that is asked for and required as well: a row about the
        targets or a build, then the row that does not bind and for whose sake it was not taken.
        """
        admitted = self._problem.tables[name].all & (self._bits[name] - 1)
        admitted &= self._problem.variables[self._number[name]].domain
        for edge in self._requirers.get(name, ()):
            admitted &= edge.allowed
        for root in self._catalog.request.roots:
            if root.name == name:
                admitted &= self._problem.tables[name].mask(root.specifier)
        reasons = [*self._refused(name, admitted), *self._avoided(name, admitted)]
        return reasons[:1] if len({reason.row for reason in reasons}) == 1 else reasons

    def _refused(self, name: str, better: int) -> Iterator[Reason]:
        """What refuses the best release: the targets before what follows from another choice."""
        best = better & -better
        hits = [
            nogood.why
            for mask, nogood in self._deciding.get(self._number[name], ())
            if mask & best and nogood.why.kind in ("row", "build")
        ]
        for why in sorted(hits, key=lambda why: not why.limits)[:1]:
            yield self._not(name, best, why)

    def _avoided(self, name: str, better: int) -> Iterator[Reason]:
        """The row that does not bind and that reaches down to what was taken."""
        hits = [
            ((mask & better).bit_length(), nogood.why)
            for mask, nogood in self._deciding.get(self._number[name], ())
            if mask & better and nogood.why.kind == "cost"
        ]
        if hits:
            worst, why = max(hits, key=lambda hit: (hit[0], hit[1].row.id))
            yield self._not(name, 1 << worst - 1, why)

    def _not(self, name: str, bit: int, why: Why) -> Reason:
        row = _complete(why, self._catalog)
        version = self._problem.tables[name].at(bit).version
        return Reason("refused", f"not {version}: {row.title}", row.id, row.sources)


def _complete(why: Why, catalog: Catalog) -> Row:
    """The row of a nogood with its texts; what follows from builds has them."""
    row: Row = why.row  # type: ignore[assignment]  # only nogoods of rows decide here
    return row if why.kind == "build" else catalog.matrix.complete(row)


def _of_override(override: Override) -> Reason:
    text = (
        f"overrides {override.requirer} {override.requirer_version}, which asks for "
        f"{override.specifier}: {override.title}"
    )
    return Reason("override", text, override.row, override.sources)


def _of_candidate(candidate: Candidate) -> Iterator[Reason]:
    """What has to be known of the chosen build itself."""
    if candidate.release.yanked:
        yield Reason("yanked", "this release was yanked; nothing else meets the request")
    if candidate.from_source:
        text = "the index has no wheel of it: it is built when it is installed"
        yield Reason("source-build", text)
    for item in candidate.inferred:
        yield Reason("inferred", item.text)
    if candidate.index_name != "pypi":
        yield Reason("index", f"a build from the index {candidate.index_name}")
