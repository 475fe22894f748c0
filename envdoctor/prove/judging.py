"""Hold what was tried against what a check finds: each agreement and each contradiction is said."""

from __future__ import annotations

from typing import Callable, List, Sequence

from ..model.finding import Finding
from ..model.proof import Comparison, TrialStep
from ..model.versions import canonicalize_name

__all__ = ["compare"]

#: What these find is wrong makes the import itself fail; what others find shows later, if at all.
_AT_IMPORT = frozenset(["ED308", "ED309", "ED402", "ED403", "ED405", "ED406", "ED409"])


def compare(
    steps: Sequence[TrialStep], findings: Sequence[Finding], explain: Callable[[str], List[Finding]]
) -> List[Comparison]:
    """Return each step with what a check says of it.

    Args:
        steps: What was tried.
        findings: What a check of the same environment found.
        explain: Returns what a diagnosis finds in the text of a failing step.
    """
    return [_compared(step, findings, explain) for step in steps]


def _compared(
    step: TrialStep, findings: Sequence[Finding], explain: Callable[[str], List[Finding]]
) -> Comparison:
    violated = [finding for finding in findings if finding.verdict == "violated"]
    about = [finding for finding in violated if _is_about(finding, step)]
    if step.outcome == "works":
        against = [finding for finding in about if _forbids(finding, step)]
        return Comparison(step, "contradicts" if against else "", tuple(against))
    grave = [finding for finding in about if finding.severity != "advice"]
    said = explain(f"{step.said}\n{step.error}\n")
    reasons = {finding.key: finding for finding in (*grave, *said)}
    return Comparison(step, "agrees" if reasons else "unexplained", tuple(reasons.values()))


def _is_about(finding: Finding, step: TrialStep) -> bool:
    """Tell whether a finding speaks of what was tried: its distribution, or on a device the GPU and
    what drives it.
    """
    if step.trial != "imports":
        if step.subject.endswith("nodes") and finding.code.startswith("ED7"):
            return True
        on_gpu = not step.subject.startswith("gloo")
        return on_gpu and (finding.code.startswith(("ED1", "ED2")) or finding.component == "torch")
    names = {canonicalize_name(name) for name in (*finding.packages, finding.component)}
    return canonicalize_name(step.subject) in names


def _forbids(finding: Finding, step: TrialStep) -> bool:
    """Tell whether a finding says that this import fails: of the package that it names first."""
    return (
        step.trial == "imports"
        and finding.code in _AT_IMPORT
        and finding.severity == "error"
        and not finding.presumed
        and canonicalize_name(finding.component) == canonicalize_name(step.subject)
    )
