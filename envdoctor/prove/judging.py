"""Hold what was tried against what a check finds: each agreement and each contradiction is said."""

from __future__ import annotations

from itertools import takewhile
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from ..model.evidence import Known
from ..model.facts import Facts, Gpu
from ..model.finding import Finding
from ..model.proof import Comparison, TrialStep
from ..model.versions import canonicalize_name
from ..rules.observations import AT_IMPORT

__all__ = ["compare", "known_gpus"]


def known_gpus(facts: Facts) -> Dict[str, int]:
    """Return which of the machine's GPUs each device of torch's is (``cuda:0``, a place in the fact
    ``gpus``), where that is certain: CUDA numbers the fastest model first, leaves out a device that
    is lost, and takes the order of CUDA_VISIBLE_DEVICES.

    https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
    """
    gpus: Sequence[Gpu] = facts.value("gpus", ())
    visible = [place for place, gpu in enumerate(gpus) if gpu.visible is not False]
    is_ordered = isinstance(facts.variable("CUDA_VISIBLE_DEVICES"), Known)
    models = {gpus[place].name for place in visible if not gpus[place].fault}
    if len(visible) > 1 and (is_ordered or len(models) > 1):
        return {}
    sound = takewhile(lambda place: not gpus[place].fault, visible)
    return {f"cuda:{number}": place for number, place in enumerate(sound)}


def compare(
    steps: Sequence[TrialStep],
    findings: Sequence[Finding],
    explain: Callable[[str], List[Finding]],
    gpus: Optional[Mapping[str, int]] = None,
) -> List[Comparison]:
    """Return each step with what a check says of it.

    Args:
        steps: What was tried.
        findings: What a check of the same environment found.
        explain: Returns what a diagnosis finds in the text of a failing step.
        gpus: What :func:`known_gpus` says: a fault of another GPU explains nothing.
    """
    places = {} if gpus is None else gpus
    return [
        _compared(
            step, [one for one in findings if _may_concern(one, places.get(step.subject))], explain
        )
        for step in steps
    ]


def _may_concern(finding: Finding, gpu: Optional[int]) -> bool:
    """Tell whether a finding may hold for the GPU that was tried; None: it is not known which."""
    return gpu is None or not finding.gpus or gpu in finding.gpus


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
        and finding.code in AT_IMPORT
        and finding.severity == "error"
        and not finding.presumed
        and canonicalize_name(finding.component) == canonicalize_name(step.subject)
    )
