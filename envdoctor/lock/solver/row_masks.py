"""What violates a row on a target, in masks of candidates: found once for each row."""

from __future__ import annotations

from typing import Container, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...matrix.bind import Target, bind, truth
from ...model.row import Row, Term
from .candidate_table import NOT_THERE
from .candidates import Catalog

__all__ = ["RowMasks"]


class _Residual(NamedTuple):
    """What is left of a row on a target: its terms by package that has a table, and the packages
    without which it cannot be violated.
    """

    row: Row
    terms: Mapping[str, Sequence[Term]]
    needed: Tuple[str, ...]


class RowMasks:
    """Rows as they are bound to targets.

    Rows are known again by identity: the matrix and the catalog give each row as one object.
    """

    def __init__(self, catalog: Catalog, targets: Sequence[Target]) -> None:
        self._catalog = catalog
        self._targets = targets
        self._residuals: Dict[Tuple[int, int], Optional[_Residual]] = {}
        self._masks: Dict[Tuple[int, int], Optional[Mapping[str, int]]] = {}
        self._rows: List[Row] = []  # keeps their identities

    def of(self, row: Row, number: int, there: Container[str]) -> Optional[Mapping[str, int]]:
        """Return what violates a row on a target, or None where nothing that takes part does."""
        key = (id(row), number)
        if key in self._masks:
            return self._masks[key]
        if key not in self._residuals:
            self._rows.append(row)
            self._residuals[key] = self._residual(row, number)
        residual = self._residuals[key]
        if residual is None or not all(name in there for name in residual.needed):
            return None
        masks = {
            name: self._catalog.table(name).holding(terms) for name, terms in residual.terms.items()
        }
        self._masks[key] = masks if all(masks.values()) else None
        return self._masks[key]

    def _residual(self, row: Row, number: int) -> Optional[_Residual]:
        binding = bind(row, self._targets[number])
        mitigated = binding.outcome == "violated" and bool(row.mitigations)
        if binding.outcome != "residual" and not mitigated:
            return None
        terms: Dict[str, List[Term]] = {}
        for term in binding.residual:
            subject = self._catalog.unlisted(term.component)
            if subject is None:
                terms.setdefault(term.component, []).append(term)
            elif not truth(term, subject):
                return None
        known = {name: own for name, own in terms.items() if name in self._catalog.known}
        if binding.residual and not known:
            return None
        needed = tuple(
            name for name, own in terms.items() if not all(truth(term, NOT_THERE) for term in own)
        )
        return _Residual(row, known, needed)
