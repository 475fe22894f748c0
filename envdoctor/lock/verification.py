"""What check says of a resolution: it has the last word on what was chosen and what uv added."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Sequence

from ..errors import InternalFault
from ..model.facts import Facts

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..model.finding import Finding
    from ..model.resolution import Resolution

__all__ = ["findings_of", "problems_in", "verified", "warned"]


def verified(resolution: Resolution, facts: Sequence[Facts], matrix: Matrix) -> Resolution:
    """Judge every target with the pins installed, and name what check warns of: an error that the
    target does not have anyway is a fault of ours.
    """
    findings = findings_of(resolution, facts, matrix)
    for problem in problems_in(findings):
        raise InternalFault(f"check refuses what was resolved: {problem}")
    if resolution.requires.platform != "linux":
        # what a release requires of drivers, GPUs and glibc was read from its wheels for Linux
        needs = resolution.requires._replace(driver=None, glibc=None, cuda=None, sm=())
        resolution = resolution._replace(requires=needs)
    return warned(resolution, findings)


def findings_of(resolution: Resolution, facts: Sequence[Facts], matrix: Matrix) -> List[Finding]:
    """What check finds on the targets with everything installed, beside what they have anyway."""
    from ..rules import judge
    from .solver.objective import applied

    findings = []
    for entry in facts:
        own = {finding.key for finding in judge(entry, matrix, today=str(matrix.date))}
        findings += [
            finding
            for finding in judge(applied(resolution, entry), matrix, today=str(matrix.date))
            if finding.verdict == "violated" and finding.key not in own
        ]
    return findings


def problems_in(findings: Sequence[Finding]) -> List[str]:
    """The errors, in words, each once."""
    errors = [finding for finding in findings if finding.severity == "error"]
    return list(dict.fromkeys(f"{finding.code} {finding.message}" for finding in errors))


def warned(resolution: Resolution, findings: Sequence[Finding]) -> Resolution:
    """Add the warnings of check about packages that no row among those of the solver says: of
    rules, and of what closing added. What is built beside its torch is not what a rule about wheels
    speaks of.
    """
    from ..model.resolution import Reason

    built = {pin.name for pin in resolution.pins if pin.build is not None}
    names = {pin.name for pin in resolution.pins} | {line.name for line in resolution.closure.lines}
    named = {reason.row for reason in resolution.warnings}
    more = {}
    for finding in findings:
        row = finding.row or finding.code
        of_wheels = finding.kind == "abi-mismatch" and finding.component in built
        speaks = finding.severity == "warning" and finding.component in names and not of_wheels
        if speaks and row not in named:
            kind = finding.effect or "degrades"
            more[row, finding.message] = Reason(kind, finding.message, row, finding.sources)
    return resolution._replace(warnings=(*resolution.warnings, *more.values()))
