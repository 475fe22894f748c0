"""What differs between nodes, or between then and now, as blocks of text."""

from __future__ import annotations

from ..model.host_names import fold_names
from .blocks import Block
from .text import clean, clip, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Sequence

    from ..model.differences import NodeDifference, Since
    from ..model.finding import Finding

__all__ = ["changes_text", "differences_text", "names_text", "nodes_text", "since_blocks"]

_FEW_DIFFERENCES = 6
_FEW_KINDS = 12
_FEW_NAMES = 120  # columns of a list of names


def nodes_text(count: int) -> str:
    """Return "1 node", "2 nodes"."""
    return f"{count} node{'s' if count != 1 else ''}"


def names_text(names: Sequence[str]) -> str:
    """Return names as one list, not longer than a line."""
    return clip(fold(clean(fold_names(names))), _FEW_NAMES)


def differences_text(differences: Sequence[NodeDifference], word: str, verbose: bool) -> str:
    """Return both values of what differs; ``word`` says whose the other one is."""
    shown = differences if verbose else differences[:_FEW_DIFFERENCES]
    more = len(differences) - len(shown)
    words = [clip(fold(clean(entry.text(word))), 300 if verbose else 120) for entry in shown]
    return ", ".join(words) + (f", and {more} more (--verbose)" if more else "")


def changes_text(since: Since) -> str:
    """Return how many nodes changed, as the first words of a verdict."""
    count = sum(len(entry.names) for entry in since.changed)
    total = count + since.same
    words = [f"{count} of {nodes_text(total)} changed" if count else ""]
    words += [f"{len(since.added)} new" if since.added else ""]
    words += [f"{len(since.gone)} gone" if since.gone else ""]
    words += [f"{len(since.silent)} silent" if since.silent else ""]
    said = ", ".join(filter(None, words)) or f"{nodes_text(total)} unchanged"
    return f"{said} since {_file(since)}"


def since_blocks(since: Since, verbose: bool, alone: bool = False) -> Iterator[Block]:
    """Yield what changed, one line for nodes that changed alike, and which findings came and went.

    ``alone``: there is one node, whose name says nothing.
    """
    if not since.has_changes:
        yield Block(f"Since {_file(since)} nothing that is compared has changed.", hang=2)
    elif not alone:
        yield Block(f"Since {_file(since)}:", style="title")
    for number, entry in enumerate(since.changed):
        if number >= _FEW_KINDS and not verbose:
            count = sum(len(one.names) for one in since.changed[number:])
            yield Block(f"and {nodes_text(count)} more (--verbose names them)", indent=2)
            break
        text = differences_text(entry.differences, "was", verbose)
        names = "" if alone else names_text(entry.names)
        head = f"{names}:" if names else f"Since {_file(since)}:"
        yield Block(text, head, "label", 2 if names else 0, 4 if names else 2)
    for head, nodes in (
        ("new:", since.added),
        ("gone:", since.gone),
        ("silent now:", since.silent),
    ):
        if nodes:
            yield Block(names_text(nodes), head, "label", 2, 4)
    for head, findings in (
        ("findings that are new:", since.appeared),
        ("findings that are gone:", since.cured),
    ):
        if findings:
            yield Block(_findings(findings, verbose), head, "label", 2, 4)


def _findings(findings: Sequence[Finding], verbose: bool) -> str:
    """Return the codes of findings, or what each says."""
    if not verbose:
        return ", ".join(dict.fromkeys(finding.code for finding in findings))
    said = [f"{entry.code} {fold(clean(entry.message)).rstrip('.')}" for entry in findings]
    return "; ".join(said)


def _file(since: Since) -> str:
    return fold(clean(since.where))
