"""The content and order of the text report, as styled blocks; ``plain`` and ``console`` only draw
them.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ..model.finding import Finding, findings_tree
from ..model.record import NamedTuple
from ..model.report import Report
from .headline import grouped, open_questions, summary_line, target_line
from .text import clean, fold, wrap

__all__ = ["Block", "finding_blocks", "heading", "lay_out", "lines_of", "paragraph"]

_LABEL_WIDTH = 8
_FEW_QUESTIONS = 5
_FEW_EVIDENCE = 4


class Block(NamedTuple):
    """One paragraph: ``head`` in its style, then ``text`` wrapped under itself.

    ``verbatim`` is never wrapped: it is copied.

    Without a style, the head is the beginning of the text.
    """

    text: str
    head: str = ""
    style: str = ""
    indent: int = 0
    hang: int = 0
    verbatim: bool = False


_BLANK = Block("")


def lines_of(block: Block, width: int) -> List[Tuple[str, str]]:
    """Return the lines of a block as (head, text); only the first has a head, indentation
    included.
    """
    margin = " " * block.indent
    if block.verbatim:
        return [(margin, block.text)]
    if not block.style:
        return [
            ("", line)
            for line in wrap(
                f"{block.head} {block.text}", max(width, 20), margin, margin + " " * block.hang
            )
        ]
    head = margin + block.head
    lines = wrap(
        block.text, max(width, 20), head + (" " if block.head else ""), margin + " " * block.hang
    )
    return [(head, lines[0][len(head) :]), *(("", line) for line in lines[1:])]


def lay_out(report: Report, verbose: bool = False) -> List[Block]:
    """Return the whole report: verdict, target, findings with their consequences, open questions,
    what was ignored.
    """
    blocks = [Block(summary_line(report), style="title"), _BLANK, *_targets(report)]
    for finding, depth in findings_tree(report.findings):
        blocks += [] if depth else [_BLANK]
        blocks += finding_blocks(finding, verbose, 2 * depth)
    blocks += _questions(report, verbose)
    blocks += _ignored(report, verbose)
    if verbose:
        blocks += [_BLANK, Block(f"Judged with the matrix of {clean(report.matrix_date)}.")]
    return blocks


def _targets(report: Report) -> List[Block]:
    if len(report.nodes) == 1:
        line = target_line(report.nodes[0])
        return [Block(line, hang=2)] if line else []
    return [
        Block(
            target_line(node),
            head=f"{fold(clean(node.value('node.name', '?')))}:",
            indent=0,
            hang=2,
        )
        for node in report.nodes
    ]


def finding_blocks(finding: Finding, verbose: bool = False, indent: int = 0) -> Iterator[Block]:
    """Yield one finding: its message, where it was seen, what to do, and why that is known."""
    word = finding.severity if finding.trust == "established" else f"{finding.severity} (reported)"
    yield Block(
        fold(clean(finding.message)), f"{finding.code} {word}:", finding.severity, indent, 2
    )
    inner = indent + 2
    if finding.nodes:
        yield _labelled("nodes", ", ".join(finding.nodes), inner)
    listed = list(
        dict.fromkeys(
            str(evidence) if verbose else evidence.source for evidence in finding.evidence
        )
    )
    few = listed if verbose else listed[:_FEW_EVIDENCE]
    if few:
        more = f"; and {len(listed) - len(few)} more" if len(few) < len(listed) else ""
        yield _labelled("seen in", "; ".join(few) + more, inner)
    for remedy in finding.remedies:
        host = (
            " (outside this environment: for whoever runs the machine)"
            if remedy.safety == "changes-host"
            else ""
        )
        yield _labelled("fix", remedy.text.rstrip(".") + host, inner)
        for command in remedy.commands:
            yield Block(
                clean(command), style="command", indent=inner + _LABEL_WIDTH + 2, verbatim=True
            )
    for source in finding.sources if verbose else finding.sources[:1]:
        yield _labelled(
            "source",
            source.address + (f' "{source.quote}"' if verbose and source.quote else ""),
            inner,
        )
    if finding.row:
        yield _labelled("row", finding.row, inner)
    if verbose:
        yield _labelled("key", finding.key, inner)


def _labelled(label: str, text: str, indent: int) -> Block:
    return Block(fold(clean(text)), label.ljust(_LABEL_WIDTH - 1), "label", indent, _LABEL_WIDTH)


def _questions(report: Report, verbose: bool) -> Iterator[Block]:
    questions = open_questions(report) if verbose else grouped(open_questions(report))
    if not questions:
        return
    yield _BLANK
    yield Block("Not determined, because these facts are not known:", style="title")
    shown = questions if verbose else questions[:_FEW_QUESTIONS]
    for question in shown:
        count = f"{question.findings} check{'s' if question.findings != 1 else ''}"
        yield Block(
            f"({', '.join(question.codes) if verbose else count}); to supply: {question.supply}",
            question.missing,
            "",
            2,
            4,
        )
    if len(shown) < len(questions):
        yield Block(
            f"and {len(questions) - len(shown)} more (--verbose lists them)", indent=2, hang=4
        )


def _ignored(report: Report, verbose: bool) -> Iterator[Block]:
    for entry in report.expired:
        yield _BLANK
        place = f" ({clean(entry.entry.origin)})" if entry.entry.origin else ""
        yield Block(
            f"{clean(entry.entry.pattern)}{place} hides nothing since {clean(entry.entry.until)}: "
            f"{fold(clean(entry.entry.reason))}",
            "expired ignore entry:",
            "warning",
            hang=2,
        )
    if not report.ignored:
        return
    yield _BLANK
    if not verbose:
        count = len(report.ignored)
        yield Block(
            f"{count} finding{'s' if count != 1 else ''} ignored (--verbose lists "
            f"{'them' if count != 1 else 'it'})"
        )
        return
    for found in report.ignored:
        message, reason = fold(clean(found.finding.message)), fold(clean(found.entry.reason))
        yield Block(
            f"{message} (until {clean(found.entry.until)}: {reason})",
            f"{found.finding.code} ignored:",
            "label",
            hang=2,
        )


def heading(text: str) -> Block:
    """Return a heading."""
    return Block(fold(clean(text)), style="title")


def paragraph(text: str, indent: int = 0, head: Optional[str] = None) -> Block:
    """Return a paragraph of prose, with a label where ``head`` is given."""
    return Block(
        fold(clean(text)),
        f"{head}:" if head else "",
        "label" if head else "",
        indent,
        2 if head else 0,
    )
