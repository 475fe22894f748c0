"""Findings and facts as text. One file per format; colour, width and icons live only here."""

from __future__ import annotations

from ..model.record import NamedTuple
from .view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping

    from ..model.report import Report

__all__ = ["REPORTERS", "Reporter", "View", "render"]


class Reporter(NamedTuple):
    """One output format: the module with its ``render(report, view)``, loaded when chosen, and a
    line for ``--help``.
    """

    module: str
    summary: str


#: A new format is one module and one line here.
REPORTERS: Mapping[str, Reporter] = {
    "text": Reporter("console", "for people (default), in colour on a terminal"),
    "plain": Reporter("console", "the same without colour"),
    "json": Reporter("json_report", "everything, for programs (schemas/report.schema.json)"),
    "sarif": Reporter("sarif", "SARIF 2.1.0, for code-scanning services"),
    "github": Reporter("github", "workflow annotations"),
    "markdown": Reporter("markdown", "to be pasted into an issue"),
    "prometheus": Reporter("prometheus", "metrics: node_exporter's textfile, OpenMetrics"),
    "html": Reporter("html", "a page that needs nothing from elsewhere"),
}


def render(report: Report, format_name: str, view: View) -> str:
    """Return the report in one of the formats of ``REPORTERS``, with a final newline."""
    if format_name == "plain":
        view = view._replace(color=False)
    function: Callable[[Report, View], str] = __import__(
        f"{__name__}.{REPORTERS[format_name].module}", fromlist=["render"]
    ).render
    return function(report, view)
