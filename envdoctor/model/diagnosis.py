"""What a log tells when it is joined with facts: causes and their consequences, how sure they are,
and what would decide.
"""

from __future__ import annotations

from typing import List, Sequence, Tuple

from .cause_tree import cause_tree
from .facts import Facts
from .finding import Finding, Remedy
from .log import LogLine
from .record import NamedTuple

__all__ = ["Diagnosis", "Suspect", "Trace", "traces_tree"]


class Suspect(NamedTuple):
    """A cause that may stand behind a trace, and what would decide."""

    text: str
    component: str
    kind: str
    confidence: str  # high, medium, low
    remedies: Tuple[Remedy, ...] = ()
    collect: Tuple[str, ...] = ()
    row: str = ""


class Trace(NamedTuple):
    """One thing that a log says, or the cause behind it.

    certainty: ``established`` (an error), ``likely`` (a warning), ``candidate`` (undetermined: the
    suspects are all there is). ``finding.caused_by`` is the key of the trace that it is a
    consequence of. is_failure: the run ended with this exception, whatever stands behind it.
    releases: a requirement, of those releases with which its lines would not have come.
    """

    finding: Finding
    certainty: str
    role: str  # cause or effect
    lines: Tuple[LogLine, ...] = ()
    times: int = 0
    meaning: str = ""
    suspects: Tuple[Suspect, ...] = ()
    collect: Tuple[str, ...] = ()
    is_failure: bool = False
    releases: str = ""


def traces_tree(traces: Sequence[Trace]) -> List[Tuple[Trace, int]]:
    """Return traces as they are shown: each root at depth 0, behind it what follows from it."""
    return cause_tree(
        traces, lambda trace: trace.finding.key, lambda trace: trace.finding.caused_by
    )


class Diagnosis(NamedTuple):
    """The outcome.

    ``traces``: roots in their order, each followed by its consequences. ``findings``: what a check
    of the same environment finds besides, of which no line speaks, and as advice what the log tells
    of without failing by it. exit_code: 1 where a log says that something failed, else 0.
    """

    traces: Tuple[Trace, ...]
    findings: Tuple[Finding, ...]
    sources: Tuple[str, ...]
    lines: int
    size: int
    looked_for: int  # signatures and symptoms
    nodes: Tuple[Facts, ...]
    facts_from: str  # "", "the log", or what was given
    matrix_date: str
    exit_code: int
    damages: Tuple[str, ...] = ()  # which logs were not read to their end, and why
