"""Markdown, to be pasted into an issue."""

from __future__ import annotations

import re
from typing import Iterable, List

from ..model.finding import SEVERITIES, Finding, Remedy, findings_tree
from ..model.pattern import pattern
from ..model.report import Report
from .blocks import Block
from .findings_text import seen
from .headline import FEW_QUESTIONS, open_questions, summary_line, target_line
from .text import clean, fold
from .view import View

__all__ = ["draw", "render"]

_SPECIAL = pattern(r"([\\`*_\[\]<>|#~])")


def render(report: Report, view: View) -> str:
    """Return the report as Markdown; text from the machine cannot become markup, a mention or a
    link.
    """
    from .. import __version__

    lines = [f"**{_escape(summary_line(report))}**", ""]
    for node in report.nodes:
        line = target_line(node)
        if line:
            name = node.value("node.name", "?") if len(report.nodes) > 1 else ""
            lines.append(f"- {_escape(f'{name}: {line}' if name else line)}")
    lines.append("")
    for finding, depth in findings_tree(report.findings):
        lines += _finding(finding, depth == 0, view.verbose)
    for finding in (*report.unread, *report.unestablished):
        lines += _finding(finding, True, view.verbose)
    questions = open_questions(report)
    if questions:
        lines += ["Not determined:", ""]
        lines += [
            f"- {_escape(question.missing)} is not known ({_escape(', '.join(question.codes))})"
            for question in (questions if view.verbose else questions[:FEW_QUESTIONS])
        ]
        lines.append("")
    for ignored in report.expired:
        lines += [
            (
                f"Expired ignore entry {_code(ignored.entry.pattern)} (until "
                f"{_escape(ignored.entry.until)}): {_escape(ignored.entry.reason)}"
            ),
            "",
        ]
    if report.ignored:
        lines += [
            f"Ignored: {', '.join(_code(ignored.finding.key) for ignored in report.ignored)}",
            "",
        ]
    lines.append(f"envdoctor {__version__}, matrix of {_escape(report.matrix_date)}")
    return "\n".join(lines) + "\n"


def draw(blocks: Iterable[Block]) -> str:
    """Return the blocks of any report as Markdown: what is copied stays as it is, in fences."""
    lines: List[str] = []
    fenced = False
    for number, block in enumerate(blocks):
        verbatim = block.verbatim and number > 0
        if verbatim is not fenced:
            lines += ["```"] if verbatim else ["```", ""]
            fenced = verbatim
        if verbatim:
            lines.append(clean(block.text).replace("```", ""))
            continue
        text = _escape(" ".join(f"{block.head} {block.text}".split()))
        if not text:
            lines.append("")
        elif number == 0 or block.style == "title":
            lines += [f"**{text}**", ""]
        elif block.style in SEVERITIES and not block.indent:
            lines += [f"### {text}", ""]
        else:
            lines.append(f"- {text}")
    return "\n".join([*lines, *(["```"] if fenced else [])]) + "\n"


def _finding(finding: Finding, root: bool, verbose: bool) -> List[str]:
    reported = "" if finding.trust == "established" else " (reported)"
    word = finding.severity if finding.verdict == "violated" else "undetermined"
    lines = [f"### {finding.code} {word}{reported}: {_escape(finding.message)}", ""]
    if not root:
        lines += [f"(follows from {_code(finding.caused_by or '')})", ""]
    if finding.nodes:
        lines.append(f"- nodes: {_escape(', '.join(finding.nodes))}")
    quoted, places = seen(finding, verbose)
    lines += [f"- line: {_code(entry.source)}: {_code(entry.detail)}" for entry in quoted]
    if places:
        lines.append(f"- seen in: {'; '.join(map(_code, places))}")
    for remedy in finding.remedies:
        lines += _remedy(remedy)
    for source in finding.sources if verbose else finding.sources[:1]:
        address = source.address
        place = f"<{clean(address)}>" if _is_address(address) else _escape(address)
        lines.append(f"- source: {place}")
    if finding.row:
        lines.append(f"- row: {_code(finding.row)}")
    return [*lines, ""]


def _remedy(remedy: Remedy) -> List[str]:
    text = f"- {remedy.label}: {_escape(remedy.text)}"
    if not remedy.commands:
        return [text]
    commands = [f"  {clean(str(command)).replace('```', '')}" for command in remedy.commands]
    return [text, "", "  ```sh", *commands, "  ```", ""]


def _is_address(text: str) -> bool:
    return re.fullmatch(r"https?://[^\s<>]+", text) is not None


def _escape(text: str) -> str:
    # A zero-width space after @ would be invisible; an entity shows the sign and mentions nobody.
    return _SPECIAL.sub(r"\\\1", fold(clean(text))).replace("&", "&amp;").replace("@", "&#64;")


def _code(text: str) -> str:
    return "`" + fold(clean(text)).replace("`", "'") + "`"
