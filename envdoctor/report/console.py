"""The plain text in colour. rich is loaded here and nowhere else, and only where colour is
wanted.
"""

from __future__ import annotations

from typing import Iterable

from ..model.report import Report
from . import plain
from .layout import Block, lay_out, lines_of
from .view import View

__all__ = ["draw", "render"]

_STYLES = {
    "title": "bold",
    "error": "bold red",
    "warning": "bold yellow",
    "advice": "bold cyan",
    "label": "dim",
    "command": "green",
}


def render(report: Report, view: View) -> str:
    """Return the report as text with colours, or without where the view has none."""
    return draw(lay_out(report, view.verbose), view)


def draw(blocks: Iterable[Block], view: View) -> str:
    """Return blocks with colours; the words and the line breaks are those of the plain text."""
    if not view.color:
        return plain.draw(blocks, view.width)
    from io import StringIO

    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:  # the zipapp carries no rich
        return plain.draw(blocks, view.width)

    target = StringIO()
    console = Console(
        file=target,
        force_terminal=True,
        width=view.width,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
    )
    for block in blocks:
        style = _STYLES.get(block.style, "")
        for head, text in lines_of(block, view.width):
            line = Text(head, style=style if block.head else "")
            # A block without a head has its style as a whole; else it is the head that stands out.
            line.append(text.rstrip(), style="" if block.head else style)
            console.print(line, soft_wrap=True)
    return target.getvalue()
