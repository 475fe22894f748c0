"""What every text output is made of: styled paragraphs, which ``console`` and ``html`` draw."""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.record import NamedTuple
from .text import cells, clean, fold, wrap
from .view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Tuple

    from ..model.calls import Call
    from ..model.line import TextLine

__all__ = [
    "Block",
    "blocks_of_lines",
    "command_block",
    "counted",
    "heading",
    "lines_of",
    "paragraph",
    "verdict_block",
]

_MANY_WORDS = 8


class Block(NamedTuple):
    """One paragraph: ``head`` in its style, then ``text`` wrapped under itself.

    ``verbatim`` is never wrapped: it is copied. ``words``: those of a command, between which a
    shell joins lines.

    Without a style, the head is the beginning of the text.
    """

    text: str
    head: str = ""
    style: str = ""
    indent: int = 0
    hang: int = 0
    verbatim: bool = False
    words: Tuple[str, ...] = ()


def lines_of(block: Block, width: int) -> List[Tuple[str, str]]:
    """Return the lines of a block as (head, text); only the first has a head, indentation
    included.
    """
    margin = " " * block.indent
    if block.verbatim:
        return [(margin, line) for line in _continued(block, width - block.indent)]
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


def _continued(block: Block, width: int) -> List[str]:
    """Return a command that many words make several lines long as lines that a shell joins; any
    other as it is.
    """
    if len(block.words) < _MANY_WORDS or cells(block.text) <= 2 * width:
        return [block.text]
    lines = [block.words[0]]
    for word in block.words[1:]:
        if cells(lines[-1]) + cells(word) + 3 > width:
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}"
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def verdict_block(verdict: str, view: View) -> Block:
    """Return the first line of a report: it stays one line where the surface is wide enough."""
    return Block(verdict, style="title", verbatim=cells(verdict) <= max(view.width, view.columns))


def command_block(command: Call, indent: int = 0) -> Block:
    """Return a command that is copied: it is never wrapped."""
    words = command.shell_words() if isinstance(command, InstallerCall) else ()
    text = clean(str(command))
    return Block(text, "", "command", indent, 0, True, tuple(map(clean, words)))


def blocks_of_lines(lines: Sequence[TextLine]) -> List[Block]:
    """Return lines that other rooms made (a lock, a change) as blocks, the first one as the title;
    each goes on under its own beginning.
    """
    return [
        Block(line.text, line.head, line.style if place else "title", line.indent, 2, line.whole)
        for place, line in enumerate(lines)
    ]


def counted(number: int, noun: str) -> str:
    """Return "1 check", "2 checks"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


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
