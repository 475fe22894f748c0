"""The answer about a cluster as blocks of text: which nodes are alike, which are not and in what,
who did not answer, and what is wrong.
"""

from __future__ import annotations

from ..model.host_names import fold_names
from .blocks import Block, verdict_block
from .changes_text import changes_text, differences_text, names_text, nodes_text, since_blocks
from .findings_text import all_findings
from .headline import counts_text, target_line
from .text import cells, clean, clip, fold
from .view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Sequence

    from ..model.differences import NodeDifference
    from ..model.node_answers import NodeAnswer
    from ..rules.node_table import ClusterReport, Section
    from .figures import Figure, Grid

__all__ = ["figures_of", "grids_of", "lay_out_cluster", "verdict_of"]

_BLANK = Block("")
_FEW_KINDS = 12
_MOST_COLUMNS = 40
_ROOM = 100  # columns of a verdict for what differs


def lay_out_cluster(report: ClusterReport, view: View) -> List[Block]:
    """Return the whole answer."""
    blocks = [verdict_block(verdict_of(report), view)]
    if report.since is not None:
        blocks += [_BLANK, *since_blocks(report.since, view.verbose)]
    for section in report.sections:
        blocks += [_BLANK, *_kinds(section, view.verbose)]
    if report.failed:
        blocks += [_BLANK, *_failed(report.failed, view.verbose)]
    for section in report.sections:
        blocks += _findings(section, view.verbose, len(report.sections) > 1)
    return blocks


def figures_of(report: ClusterReport) -> List[Figure]:
    """Return the tables, and of each part where GPUs and cards sit on the nodes that most are."""
    from .topology import topology_of

    figures: List[Figure] = list(grids_of(report))
    for section in report.sections:
        kind = section.kinds[0]
        nodes = {facts.value("node.name", ""): facts for facts in section.report.nodes}
        facts = nodes.get(fold_names(kind.judged[0].names))
        if facts is not None:
            box = topology_of(facts, f"Topology of {names_text(kind.names)}")
            figures += [] if box is None else [box]
    return figures


def grids_of(report: ClusterReport) -> List[Grid]:
    """Return a table of nodes and facts for each part: what is odd first."""
    from ..rules.node_table import columns_of, texts_of
    from .figures import Cell, Grid

    grids = []
    for section in report.sections:
        first, columns = section.kinds[0], columns_of(section.kinds, _MOST_COLUMNS)
        ordered = [*section.kinds[1:], first]
        kinds = [
            [Cell(text, odd) for text, odd in texts_of(kind, first, columns)] for kind in ordered
        ]
        rows = [(name, place) for place, kind in enumerate(ordered) for name in kind.names]
        grids.append(Grid(section.name or "Nodes", ["node", *columns], kinds, rows, "node"))
    if report.failed:
        reasons = list(dict.fromkeys(answer.failed for answer in report.failed))
        rows = [(answer.node, reasons.index(answer.failed)) for answer in report.failed]
        said = [[Cell(reason, True)] for reason in reasons]
        grids.append(Grid("No answer", ["node", "reason"], said, rows, "node"))
    return grids


def verdict_of(report: ClusterReport) -> str:
    """Return the first line: how many nodes are alike, and what the first that is not has."""
    parts = [changes_text(report.since)] if report.since is not None else []
    several = len(report.sections) > 1
    parts += [_verdict_of_section(section, several) for section in report.sections]
    parts += [f"no node of {clean(name)} answered" for name in report.silent]
    if report.failed:
        names = names_text([answer.node for answer in report.failed])
        parts.append(f"no answer from {len(report.failed)} ({names})")
    return f"envdoctor: {'; '.join(parts) or 'no node was asked'}"


def _verdict_of_section(section: Section, several: bool) -> str:
    total, first = section.size, section.kinds[0]
    of = f" of {clean(section.name)}" if section.name else " of no part" if several else ""
    errors = section.report.count_of("error")
    wrong = f", {counts_text(section.report)}" if errors else ""
    if len(section.kinds) == 1:
        return (f"all {total} nodes{of} are alike" if total > 1 else f"1 node{of}") + wrong
    if 2 * len(first.names) <= total:
        return f"{nodes_text(total)}{of} of {len(section.kinds)} kinds{wrong}"
    odd = section.kinds[1]
    more = len(section.kinds) - 2
    return (
        f"{len(first.names)} of {nodes_text(total)}{of} are alike; {names_text(odd.names)}: "
        + _first_of(odd.differences)
        + (f"; and {more} more kind{'s' if more > 1 else ''}" if more else "")
        + wrong
    )


def _first_of(differences: Sequence[NodeDifference]) -> str:
    """Return as many differences as a verdict has room for, and the number of the others."""
    words = [fold(clean(entry.text("others"))) for entry in differences]
    shown = [clip(text, _ROOM) for text in words[:1]]
    for text in words[1:]:
        if cells(", ".join([*shown, text])) > _ROOM:
            break
        shown.append(text)
    more = len(words) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _kinds(section: Section, verbose: bool) -> Iterator[Block]:
    """Yield what most are, and in what each other kind differs."""
    if section.name:
        yield Block(fold(clean(section.name)), style="title")
    nodes = {facts.value("node.name", ""): facts for facts in section.report.nodes}
    for number, kind in enumerate(section.kinds):
        if number >= _FEW_KINDS and not verbose:
            left = section.kinds[number:]
            count = sum(len(kind.names) for kind in left)
            yield Block(f"and {nodes_text(count)} of {len(left)} more kinds (--verbose names them)")
            return
        head = f"{len(kind.names)} x" if len(kind.names) > 1 else "1 x"
        facts = nodes.get(fold_names(kind.judged[0].names))
        what = target_line(facts) if facts is not None and not number else ""
        what = what or differences_text(kind.differences, "others", verbose)
        text = f"{names_text(kind.names)}: {what}"
        yield Block(text, head, "label" if number == 0 else "warning", 0, 4)


def _failed(answers: Sequence[NodeAnswer], verbose: bool) -> Iterator[Block]:
    """Yield the nodes without an answer, those with one reason together."""
    reasons: Dict[str, List[str]] = {}
    for answer in answers:
        reasons.setdefault(answer.failed, []).append(answer.node)
    for number, (reason, names) in enumerate(reasons.items()):
        if number >= _FEW_KINDS and not verbose:
            yield Block(f"and {len(reasons) - number} more reasons (--verbose names them)")
            return
        yield Block(f"{names_text(names)}: {fold(clean(reason))}", "no answer:", "error", 0, 4)


def _findings(section: Section, verbose: bool, several: bool) -> Iterator[Block]:
    if several and section.report.findings:
        yield _BLANK
        yield Block(fold(clean(section.name or "the other nodes")), style="title")
    yield from all_findings(section.report, verbose)
