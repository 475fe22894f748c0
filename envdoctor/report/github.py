"""Workflow commands of GitHub Actions: one annotation per finding."""

from __future__ import annotations

from ..model.finding import Finding
from ..model.report import Report
from .headline import open_questions, summary_line, target_line
from .text import clean, fold
from .view import View

__all__ = ["render"]

_LEVELS = {"error": "error", "warning": "warning", "advice": "notice"}


def render(report: Report, view: View) -> str:
    """Return the summary, the target and one annotation per finding; undetermined ones only where
    all is wanted.
    """
    lines = [summary_line(report), *(line for line in map(target_line, report.nodes) if line)]
    lines += [_annotation(finding) for finding in (*report.findings, *report.unread)]
    for expiry in report.expired:
        lines.append(
            _command(
                "warning",
                "ignore entry expired",
                f"{expiry.entry.pattern} expired on {expiry.entry.until}",
            )
        )
    if view.verbose:
        for question in open_questions(report):
            lines.append(
                _command(
                    "notice",
                    "not determined",
                    f"{question.missing} is not known ({', '.join(question.codes)})",
                )
            )
    return "".join(line + "\n" for line in lines)


def _annotation(finding: Finding) -> str:
    text = clean(finding.message)
    for remedy in finding.remedies:
        text += "\n" + f"{remedy.label}: {clean(remedy.text)}"
        for command in remedy.commands:
            text += "\n" + f"  {clean(str(command))}"
    for source in finding.sources[:1]:
        text += "\n" + f"source: {clean(source.address)}"
    if finding.nodes:
        text += "\n" + f"nodes: {clean(', '.join(finding.nodes))}"
    return _command(
        _LEVELS[finding.severity], f"{finding.code} {finding.component}", text, cleaned=True
    )


def _command(level: str, title: str, text: str, cleaned: bool = False) -> str:
    message = (
        fold(text if cleaned else clean(text))
        .replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
    )
    name = fold(clean(title)).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={name}::{message}"
