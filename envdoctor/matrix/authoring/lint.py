"""What is suspicious in rows that load: the schema says what a row may hold, this says what it
should.

A ``fault`` contradicts the matrix itself or the row. A ``note`` is worth a look: it may be meant.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional

from ...model.row import Row
from ..loader import Matrix
from .measured import disagreements
from .pair_checks import pair_remarks
from .remarks import Bench, LintRemark, row_note
from .row_checks import ROW_CHECKS
from .table_checks import package_remarks, signature_remarks, table_remarks

__all__ = ["CHECKS", "LintRemark", "lint"]


def lint(
    matrix: Matrix, today: str, chosen: Optional[Callable[[Row], bool]] = None
) -> List[LintRemark]:
    """Return what is suspicious, faults first.

    Args:
        matrix: all rows, tables and packages that the rows are judged by.
        today: the ISO date after which nothing can have been read.
        chosen: tells which rows are judged (a site's own); all written rows, tables and packages
            where left out.
    """
    bench = Bench(matrix, today)
    by_origin: Dict[bool, List[Row]] = {True: [], False: []}
    for row in matrix.rows():
        by_origin[row.origin == "derived"].append(row)
    written, derived = by_origin[False], by_origin[True]
    rows = [row for row in written if chosen is None or chosen(row)]
    findings: List[LintRemark] = []
    for row in rows:
        for check in ROW_CHECKS:
            findings += check(row, bench)
    findings += pair_remarks(written, derived, {row.id for row in rows}, bench)
    findings += [
        row_note(check, row, message) for check, row, message in disagreements(matrix, rows)
    ]
    if chosen is None:
        findings += table_remarks(bench)
        findings += package_remarks(bench)
        findings += signature_remarks(bench)
    return sorted(findings, key=lambda finding: finding.level != "fault")


#: The checks by name, for the documentation and ``--json``.
CHECKS: Mapping[str, str] = {
    "range-without-release": "a range, or one alternative of it, that no known release is in",
    "never-holds": "terms, or a term and a mitigation, that exclude each other",
    "pin-without-release": "a pin that no known release follows",
    "pin-in-row": "a pin that leads to versions that the row itself forbids",
    "pin-elsewhere": "pins about packages that the row does not speak of",
    "source-form": "a source that nobody can look up",
    "date": "a date that has not come yet, or is none",
    "signature-row": "a signature that names a row that is not there",
    "unknown-label": "a GPU model, architecture or capability that no table knows",
    "mitigation": (
        "a mitigation without variable or value, or a setting in the fix that no mitigation carries"
    ),
    "symptom-prose": "words about a text of a log before it, so that no line matches",
    "override": "an override of an edge that no metadata has",
    "looked-at-everywhere": "a row without package and GPU",
    "releases-not-read": "a range of a package without a file in packages/",
    "repeated": "two rows that ask for the same",
    "shadowed": "a row that another, wider one makes needless",
    "measured-otherwise": "a row about a missing name that was measured for other releases",
    "measured-graver": "a row that calls harmless what a measured one does not",
    "overlapping": "two rows of one kind that ask for the same things in overlapping ranges",
    "contradicting": (
        "a pin that leads into another row at least as bad, a derived one too, with nothing else "
        "changed"
    ),
    "pin-into-row": (
        "a pin whose newest release is in another row at least as bad, for some "
        "releases of the other packages"
    ),
}
