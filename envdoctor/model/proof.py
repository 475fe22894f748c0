"""What came of trying things, and whether that is what a check says of them."""

from __future__ import annotations

from .record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

    from .finding import Finding
    from .report import Report

__all__ = ["OUTCOMES", "Comparison", "Proof", "TrialStep"]

OUTCOMES = ("works", "fails", "crashes", "hangs")


class TrialStep(NamedTuple):
    """One step of a trial.

    subject: the distribution or device. name: the step. outcome: one of ``OUTCOMES``. error: why it
    did not work. value, unit: what was measured. said: what the child wrote beside. rank: of which
    process, where there were several. node: on which, where there were several. expected: what the
    hardware carries at most, in the same unit, and expected_by: what says so.
    """

    trial: str
    subject: str
    name: str
    outcome: str
    error: str = ""
    value: Optional[float] = None
    unit: str = ""
    said: str = ""
    rank: str = ""
    node: str = ""
    expected: Optional[float] = None
    expected_by: str = ""


class Comparison(NamedTuple):
    """A step beside what a check finds.

    verdict: "agrees" (it fails, and a finding says why), "contradicts" (it works, and a finding
    says that it cannot), "unexplained" (it fails, and nothing says why), "" (it works, and nothing
    is said against it). findings: those.
    """

    step: TrialStep
    verdict: str
    findings: Tuple[Finding, ...] = ()


class Proof(NamedTuple):
    """What was tried, and the check that it is held against."""

    compared: Tuple[Comparison, ...]
    report: Report
    skipped: Tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where something does not work, or the check is contradicted."""
        return int(any(entry.step.outcome != "works" or entry.verdict for entry in self.compared))
