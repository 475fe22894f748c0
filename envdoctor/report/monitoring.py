"""A report in the words and exit codes of monitoring systems and schedulers (``check
--exit-style``).
"""

from __future__ import annotations

from typing import List, Mapping, Tuple

from ..model.evidence import Known
from ..model.record import NamedTuple
from ..model.report import Report
from .headline import summary_line, verdict_text
from .text import clean, clip, fold

__all__ = ["STYLES", "Style", "render_status", "status_of_failure"]

_WIDTH = 80


class Style(NamedTuple):
    """Exit codes by what was found.

    ``failed``: no verdict, by wrong usage or a fault of envdoctor itself.
    """

    error: int
    warning: int
    fine: int
    unknown: int
    failed: int


#: nagios: the plugin guidelines (OK, WARNING, CRITICAL, UNKNOWN). nhc: silent and 0, or a line and
#: 1, as LBNL's Node Health Check and Slurm's HealthCheckProgram want it; there neither a warning
#: nor a failed check may take a node out of service. npd: Kubernetes' node-problem-detector (OK,
#: NonOK, Unknown), which shows the first 80 characters.
STYLES: Mapping[str, Style] = {
    "nagios": Style(error=2, warning=1, fine=0, unknown=3, failed=3),
    "nhc": Style(error=1, warning=0, fine=0, unknown=0, failed=0),
    "npd": Style(error=1, warning=0, fine=0, unknown=2, failed=2),
}

_NAGIOS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


def render_status(report: Report, style: str) -> Tuple[str, int]:
    """Return the text and the exit code of a report in one of ``STYLES``."""
    codes = STYLES[style]
    if report.count_of("error"):
        code = codes.error
    elif report.unread:
        code = codes.unknown
    elif report.count_of("warning"):
        code = codes.warning
    elif any(isinstance(fact, Known) for node in report.nodes for _, fact in node):
        code = codes.fine
    else:
        code = codes.unknown
    return _WORDS[style](report, code), code


def status_of_failure(message: str, style: str) -> Tuple[str, int]:
    """Return the text and the exit code where there is no verdict: no node is drained for a fault
    of the check.
    """
    code = STYLES[style].failed
    words = {"nagios": f"ENVDOCTOR {_NAGIOS[code]}: {_plain(message)}\n", "npd": _short(message)}
    return words.get(style, ""), code


def _nagios(report: Report, code: int) -> str:
    """One line of status with performance data behind it, then a line for each finding: "|" would
    begin performance data.
    """
    head = clip(f"ENVDOCTOR {_NAGIOS[code]}: {_plain(verdict_text(report))}", _WIDTH)
    counts = " ".join(f"{name}={number}" for name, number in _counts(report))
    lines = [
        f"{finding.code} {finding.severity}: {_plain(finding.message)}"
        for finding in (*report.findings, *report.unread)
    ]
    return "\n".join([f"{head} | {counts}", *lines]) + "\n"


def _counts(report: Report) -> List[Tuple[str, int]]:
    return [
        ("errors", report.count_of("error")),
        ("warnings", report.count_of("warning")),
        ("undetermined", len(report.undetermined)),
    ]


def _nhc(report: Report, code: int) -> str:
    return f"ERROR:  nhc:  Health check failed:  {_plain(summary_line(report))}\n" if code else ""


def _npd(report: Report, code: int) -> str:
    return _short(verdict_text(report))


def _short(text: str) -> str:
    return f"{clip(_plain(text), _WIDTH)}\n"


#: What each style prints.
_WORDS = {"nagios": _nagios, "nhc": _nhc, "npd": _npd}


def _plain(text: str) -> str:
    return fold(clean(text)).replace("|", "/")
