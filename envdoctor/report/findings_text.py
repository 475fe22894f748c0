"""The report of a check as styled blocks, in their order; ``console`` only draws them."""

from __future__ import annotations

from ..model.change import OF_PACKAGES
from ..model.finding import Finding, Remedy, findings_tree
from ..model.report import Examined, Report
from .blocks import Block, command_block, counted, verdict_block
from .headline import FEW_QUESTIONS, grouped, open_questions, summary_line, target_line
from .repetition import Repeated, repeated
from .text import clean, clip, fold
from .view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Sequence, Tuple

    from ..model.evidence import Evidence
    from ..model.facts import Facts

__all__ = ["all_findings", "finding_blocks", "lay_out", "seen"]

_LABEL_WIDTH = 8
_FEW_EVIDENCE = 4
_FEW_SAID = 3
_FEW_REPEATED = 8
_MOST_RELEASES = 5
_QUOTED = 300  # columns of a line of a log

_BLANK = Block("")


def lay_out(report: Report, view: View) -> List[Block]:
    """Return the whole report: verdict, target, findings with their consequences, open questions,
    what was ignored, and what to do next.
    """
    verbose = view.verbose
    verdict = verdict_block(summary_line(report, max(80, view.width, view.columns)), view)
    blocks = [verdict, _BLANK, *_targets(report)]
    if report.since is not None:
        from .changes_text import since_blocks

        blocks += since_blocks(report.since, verbose, len(report.nodes) == 1)
    blocks += all_findings(report, verbose)
    blocks += _examined(report, verbose)
    blocks += _questions(report, verbose)
    blocks += _ignored(report, verbose)
    blocks += _next(report)
    if verbose:
        blocks += _unread(report)
        blocks += [_BLANK, Block(f"Judged with the matrix of {clean(report.matrix_date)}.")]
    return blocks


def all_findings(report: Report, verbose: bool) -> Iterator[Block]:
    """Yield the findings with their consequences, and what could not be read."""
    for entry, depth in repeated(findings_tree(report.findings), least=0 if verbose else 3):
        if not depth:
            yield _BLANK
        if isinstance(entry, Repeated):
            yield from _repeated_blocks(entry, 2 * depth)
        else:
            yield from finding_blocks(entry, verbose, 2 * depth)
    for finding in (*report.unread, *report.unestablished):
        yield _BLANK
        yield from finding_blocks(finding, verbose)


def _targets(report: Report) -> List[Block]:
    if len(report.nodes) == 1:
        node = report.nodes[0]
        line = target_line(node)
        others = list(node.value("report.disputed", {}).items())[:_FEW_SAID]
        both = [
            Block(f"The report says both: {clean(_both(node, name, other))}.", hang=2)
            for name, other in others
        ]
        return ([Block(line, hang=2)] if line else []) + both
    return [
        Block(
            target_line(node),
            head=f"{fold(clean(node.value('node.name', '?')))}:",
            indent=0,
            hang=2,
        )
        for node in report.nodes
    ]


def _both(node: Facts, name: str, other: str) -> str:
    """Return in words the two values that a report tells of a field or a distribution."""
    taken = node.value(name) if "." in name else node.version_of(name)
    return f"{name}: {taken} and {other}"


def finding_blocks(finding: Finding, verbose: bool = False, indent: int = 0) -> Iterator[Block]:
    """Yield one finding: its message, where it was seen, what to do, and why that is known."""
    word = finding.severity if finding.trust == "established" else f"{finding.severity} (reported)"
    word = word if finding.verdict == "violated" else "undetermined"
    yield Block(
        fold(clean(finding.message)), f"{finding.code} {word}:", finding.severity, indent, 2
    )
    inner = indent + 2
    if finding.nodes:
        yield _labelled("nodes", _names(finding.nodes), inner)
    quoted, places = seen(finding, verbose)
    for entry in quoted:
        yield _labelled("line", clip(f"{entry.source}: {entry.detail}", _QUOTED), inner)
    yield from _proof("seen in", places, inner, verbose)
    yield from _remedies(finding.remedies, inner)
    for source in finding.sources if verbose else finding.sources[:1]:
        quote = f' "{source.quote}"' if verbose and source.quote else ""
        yield _labelled("source", source.address + quote, inner)
    if finding.row:
        yield _labelled("row", finding.row, inner)
    if verbose:
        yield _labelled("key", finding.key, inner)


def seen(finding: Finding, verbose: bool) -> Tuple[List[Evidence], List[str]]:
    """Return the line of a log that is quoted, the first, and the other places, each once."""
    quoted = [] if verbose else [entry for entry in finding.evidence if entry.is_line][:1]
    others = [entry for entry in finding.evidence if entry not in quoted]
    places = [str(entry) if verbose else entry.source for entry in others]
    return quoted, list(dict.fromkeys(places))


def _names(nodes: Sequence[str]) -> str:
    """Return the names of nodes, many of them as one list: gpu[01-16]."""
    if len(nodes) <= _FEW_EVIDENCE:
        return ", ".join(nodes)
    from ..model.host_names import fold_names, unfold_all

    return fold_names(unfold_all(nodes))


def _repeated_blocks(group: Repeated, indent: int) -> Iterator[Block]:
    """Yield findings of one code and one remedy as one list."""
    word = group.findings[0].severity
    word += "" if group.findings[0].trust == "established" else " (reported)"
    count = len(group.findings)
    title = fold(clean(group.title)).rstrip(".")
    head = f"{group.findings[0].code} {word}:"
    yield Block(f"{title} ({count} times):", head, group.findings[0].severity, indent, 2)
    inner = indent + 2
    for finding in group.findings[:_FEW_REPEATED]:
        yield Block(fold(clean(finding.message)), "-", "item", inner, 2)
    if count > _FEW_REPEATED:
        yield Block(f"and {count - _FEW_REPEATED} more (--verbose lists them)", indent=inner + 2)
    places = [entry.source for finding in group.findings for entry in finding.evidence]
    yield from _proof("seen in", places, inner)
    yield from _remedies(group.remedies, inner)
    addresses = [source.address for finding in group.findings for source in finding.sources[:1]]
    yield from _proof("source", addresses, inner)
    if group.findings[0].row:
        yield _labelled("row", group.findings[0].row, inner)


def _proof(label: str, entries: Sequence[str], indent: int, verbose: bool = False) -> List[Block]:
    """Return one line of what was read: each place once, few of them unless all are wanted."""
    places = list(dict.fromkeys(entries))
    few = places if verbose else places[:_FEW_EVIDENCE]
    more = f"; and {len(places) - len(few)} more" if len(few) < len(places) else ""
    return [_labelled(label, "; ".join(few) + more, indent)] if few else []


def _remedies(remedies: Sequence[Remedy], indent: int) -> Iterator[Block]:
    for remedy in remedies:
        host = (
            " (outside this environment: for whoever runs the machine)"
            if remedy.safety == "changes-host"
            else ""
        )
        yield _labelled(remedy.label, remedy.text.rstrip(".") + host, indent)
        for command in remedy.commands:
            yield command_block(command, indent + _LABEL_WIDTH + 2)


def _labelled(label: str, text: str, indent: int) -> Block:
    style = "fix" if label == "fix" else "dim"
    return Block(fold(clean(text)), label.ljust(_LABEL_WIDTH - 1), style, indent, _LABEL_WIDTH)


def _examined(report: Report, verbose: bool) -> Iterator[Block]:
    """Say what a verdict without findings rests on, and how much is known of what is there."""
    examined = report.examined
    is_silent = bool(report.findings) and not verbose
    if examined is None or is_silent or not examined.rules + examined.rows:
        return
    text = f"Looked at: {counted(examined.rules, 'check')}"
    if examined.rows:
        verb = "concerns" if examined.rows == 1 else "concern"
        text += f", {counted(examined.rows, 'known combination')} that {verb} this environment"
    text += _without_gpu(examined)
    if examined.unknown_packages:
        verb = "is" if examined.unknown_packages == 1 else "are"
        packages = counted(examined.packages, "package")
        text += f"; {examined.unknown_packages} of {packages} {verb} not in the matrix"
    if examined.unknown_releases:
        releases = examined.unknown_releases
        shown = ", ".join(map(clean, releases[:_MOST_RELEASES]))
        more = len(releases) - _MOST_RELEASES
        shown += f" and {more} more" if more > 0 else ""
        text += f"; newer or other than its releases of {clean(report.matrix_date)}: {shown}"
    yield Block(f"{text}.", style="dim", hang=2)


def _without_gpu(examined: Examined) -> str:
    """Say how many of the rows cannot apply, because they ask for a GPU and there is none."""
    number, total = examined.rows_without_gpu, examined.rows
    if not number:
        return ""
    if number < total:
        return f" ({number} {'needs' if number == 1 else 'need'} a GPU, and there is none)"
    subject = "it needs" if total == 1 else "both need" if total == 2 else "all need"
    return f" ({subject} a GPU, and there is none)"


def _next(report: Report) -> Iterator[Block]:
    """Say what to do about what was found: the first step, as a command where there is one."""
    errors = [finding for finding in report.findings if finding.severity == "error"]
    grave = [finding for finding in report.findings if finding.severity != "advice"]
    if any(finding.code.startswith(OF_PACKAGES) for finding in errors) and report.fix_command:
        yield _BLANK
        text = "see which package changes cure this (nothing is changed yet):"
        yield Block(text, "Next:", "fix", hang=2)
        yield command_block(report.fix_command, 2)
    elif grave:
        first = grave[0]
        is_curable = any(remedy.is_cure for remedy in first.remedies)
        first_step = f"do what the fix of {first.code} says; " if is_curable else ""
        text = f"{first_step}'envdoctor explain {first.row or first.code}' says more."
        yield _BLANK
        yield Block(text, "Next:", "fix", hang=2)


def _questions(report: Report, verbose: bool) -> Iterator[Block]:
    questions = open_questions(report) if verbose else grouped(open_questions(report))
    if not questions:
        return
    yield _BLANK
    yield Block("Not determined, because these facts are missing:", style="title")
    shown = questions if verbose else questions[:FEW_QUESTIONS]
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


def _unread(report: Report) -> Iterator[Block]:
    """Show the lines of a pasted report that say something which was not understood."""
    for node in report.nodes:
        unread, lines = node.value("report.unread", ()), node.value("report.lines", 0)
        if unread:
            yield _BLANK
            yield Block(f"{len(unread)} of {lines} lines not understood:", style="title")
        for line in unread:
            yield Block(clean(line), indent=2, verbatim=True)


def _ignored(report: Report, verbose: bool) -> Iterator[Block]:
    for entry in report.expired:
        yield _BLANK
        place = f" ({clean(entry.entry.origin)})" if entry.entry.origin else ""
        yield Block(
            f"{clean(entry.entry.pattern)}{place} expired on {clean(entry.entry.until)}: "
            f"{fold(clean(entry.entry.reason))}",
            "ignore entry:",
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
    for ignored in report.ignored:
        message, reason = fold(clean(ignored.finding.message)), fold(clean(ignored.entry.reason))
        yield Block(
            f"{message} (until {clean(ignored.entry.until)}: {reason})",
            f"{ignored.finding.code} ignored:",
            "label",
            hang=2,
        )
