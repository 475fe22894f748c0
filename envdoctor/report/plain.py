"""Text without colour."""

from __future__ import annotations

from typing import Iterable

from ..model.report import Report
from .layout import Block, lay_out, lines_of
from .view import View

__all__ = ["draw", "render"]


def render(report: Report, view: View) -> str:
    """Return the report as text."""
    return draw(lay_out(report, view.verbose), view.width)


def draw(blocks: Iterable[Block], width: int) -> str:
    """Return blocks as lines of at most ``width`` columns, commands and long words excepted."""
    return "".join(
        (head + text).rstrip() + "\n" for block in blocks for head, text in lines_of(block, width)
    )
