"""What is told of rows, and of what is not known."""

from __future__ import annotations

from ...model.row import Row
from ..loader import Matrix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Sequence

__all__ = ["NotKnown", "row_entry", "speaking_rows"]


class NotKnown(LookupError):
    """Nothing of that name; ``known`` are names that may have been meant, not read before somebody
    asks: a name that is none of one kind may be one of another.
    """

    def __init__(self, message: str, known: Iterable[str] = ()) -> None:
        self._unread = known
        super().__init__(message)

    @property
    def known(self) -> Sequence[str]:
        """The names that may have been meant."""
        self._unread = tuple(self._unread)
        return self._unread


def row_entry(row: Row) -> Dict[str, Any]:
    """Return a row as JSON."""
    return {
        "id": row.id,
        "code": row.code,
        "title": row.title,
        "effect": row.effect,
        "trust": row.trust,
        "component": row.component,
        "kind": row.kind,
        "when": [f"{term.scope}: {term}" for term in row.terms],
        "unless": [f"{setting.component}={setting.value}" for setting in row.mitigations],
        "symptom": row.symptom,
        "fix": row.fix,
        "pins": list(row.pins),
        "overrides": list(row.overrides),
        "sources": [{"address": source.address, "quote": source.quote} for source in row.sources],
        "established_by": row.established_by,
        "date": row.date,
        "origin": row.origin,
    }


def speaking_rows(
    matrix: Matrix, names: Sequence[str], speaks: Callable[[Row], bool]
) -> List[Dict[str, Any]]:
    """The rows that speak of something, written rows before derived ones."""
    rows = matrix.rows_about(names) if names else matrix.rows()
    speaking = [matrix.complete(row) for row in rows if speaks(row)]
    return [row_entry(row) for row in sorted(speaking, key=lambda row: row.origin == "derived")]
