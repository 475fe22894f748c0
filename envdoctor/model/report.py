"""The outcome of a check: what is wrong, what could not be decided, what was ignored, and for which
targets.
"""

from __future__ import annotations

from .facts import Facts
from .finding import Finding
from .record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

    from .calls import OwnCall
    from .differences import Since

__all__ = ["Examined", "Ignore", "Ignored", "Judged", "Report"]


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


class Judged(NamedTuple):
    """A rule that ran, by its code, or a row that was held against a target, by its id.

    ``without_gpu``: the row asks for a GPU, and the target has none.
    """

    code: str
    rule: str
    is_row: bool = False
    without_gpu: bool = False


class Examined(NamedTuple):
    """How much was judged: rules that ran, rows of the matrix that were held against a target, and
    how many of those ask for a GPU where there is none; how many packages there are, and of how
    many of them the matrix knows nothing. unknown_releases: of the others those, as "torch 2.99.0",
    that it does not have, where somebody reads that.
    """

    rules: int
    rows: int
    rows_without_gpu: int = 0
    packages: int = 0
    unknown_packages: int = 0
    unknown_releases: Tuple[str, ...] = ()


class Report(NamedTuple):
    """The outcome of a check.

    findings: violated, roots before their consequences, errors first. expired: entries that no
    longer hide anything, although they would. exit_code: 0 or 1, by the level that was asked for.
    since: what changed, where that was asked. fix_command: shows what to change in this target;
    None where no command line names it.
    """

    findings: Tuple[Finding, ...]
    undetermined: Tuple[Finding, ...]
    ignored: Tuple[Ignored, ...]
    expired: Tuple[Ignored, ...]
    nodes: Tuple[Facts, ...]
    matrix_date: str
    exit_code: int
    examined: Optional[Examined] = None
    since: Optional[Since] = None
    fix_command: Optional[OwnCall] = None

    @property
    def unread(self) -> Tuple[Finding, ...]:
        """What could not be read, so that silence about it means nothing."""
        return tuple([finding for finding in self.undetermined if finding.kind == "probe-failed"])

    @property
    def unestablished(self) -> Tuple[Finding, ...]:
        """What lines of a log may mean, of which no single fact would decide."""
        return tuple(
            [
                finding
                for finding in self.undetermined
                if finding.missing is None and any(entry.is_line for entry in finding.evidence)
            ]
        )

    def count_of(self, severity: str) -> int:
        """Return how many findings have this severity."""
        return sum(finding.severity == severity for finding in self.findings)
