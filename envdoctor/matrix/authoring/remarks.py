"""What a lint says, and what its checks share."""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Tuple

from ...model.row import Row
from ...model.versions import Version
from ..loader import Matrix

__all__ = ["Bench", "LintRemark", "Remarks", "row_fault", "row_note"]


class LintRemark(NamedTuple):
    """One suspicious thing: which check, how bad, the row or entry, one sentence, the file."""

    check: str
    level: str
    subject: str
    message: str
    origin: str = ""


Remarks = Iterator[LintRemark]


class Bench:
    """What the checks share: the matrix, the day, the releases of each package."""

    def __init__(self, matrix: Matrix, today: str) -> None:
        self.matrix = matrix
        self.today = today
        self._versions: Dict[str, Tuple[Version, ...]] = {}

    def versions(self, name: str) -> Tuple[Version, ...]:
        """The known releases of a distribution, oldest first; none where the matrix does not know
        it.
        """
        versions = self._versions.get(name)
        if versions is None:
            package = self.matrix.package(name)
            versions = self._versions[name] = package.versions if package is not None else ()
        return versions


def row_fault(check: str, row: Row, message: str) -> LintRemark:
    """Return a remark on a row that contradicts itself or the matrix."""
    return LintRemark(check, "fault", row.id, message, row.origin)


def row_note(check: str, row: Row, message: str) -> LintRemark:
    """Return a remark on a row that is worth a look."""
    return LintRemark(check, "note", row.id, message, row.origin)
