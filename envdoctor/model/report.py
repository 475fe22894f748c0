"""The outcome of a check: what is wrong, what could not be decided, what was ignored, and for which
targets.
"""

from __future__ import annotations

from .facts import Facts
from .finding import Finding
from .record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

__all__ = ["Ignore", "Ignored", "Report"]


class Ignore(NamedTuple):
    """One entry of an ignore file.

    ``until`` is the last day (ISO 8601) on which it hides anything.
    """

    pattern: str  # a code, a row id, or the beginning of a finding's key: "ED304:torch"
    until: str
    reason: str
    origin: str = ""  # "FILE:LINE"

    def covers(self, finding: Finding) -> bool:
        """Tell whether the pattern names this finding."""
        return self.pattern in (finding.code, finding.rule) or f"{finding.key}:".startswith(
            f"{self.pattern}:"
        )


class Ignored(NamedTuple):
    """A finding that an entry hides."""

    finding: Finding
    entry: Ignore


class Report(NamedTuple):
    """The outcome of a check.

    findings: violated, roots before their consequences, errors first. expired: entries that no
    longer hide anything, although they would. exit_code: 0 or 1, by the level that was asked for.
    """

    findings: Tuple[Finding, ...]
    undetermined: Tuple[Finding, ...]
    ignored: Tuple[Ignored, ...]
    expired: Tuple[Ignored, ...]
    nodes: Tuple[Facts, ...]
    matrix_date: str
    exit_code: int

    def count_of(self, severity: str) -> int:
        """Return how many findings have this severity."""
        return sum(finding.severity == severity for finding in self.findings)
