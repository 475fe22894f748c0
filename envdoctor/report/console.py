"""Blocks as lines of text, in colour where the surface has it.

Every command draws through here. Bold, dim and the eight colours that a terminal has in its own
theme are all that is used, so no library is needed for it.
"""

from __future__ import annotations

from ..model.report import Report
from .blocks import Block, lines_of
from .findings_text import lay_out
from .view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, Iterator, Mapping, Optional, Sequence, Tuple

    from .figures import Figure

__all__ = ["draw", "render"]

#: Style of a block -> SGR codes (ECMA-48) of its head and of its text. What to do is bright, what
#: only proves it is dim.
_STYLES: Mapping[str, Tuple[str, str]] = {
    "title": ("1", "1"),
    "error": ("1;31", "1"),
    "warning": ("1;33", "1"),
    "advice": ("1;36", "1"),
    "fine": ("1;32", ""),
    "fix": ("1;32", ""),
    "command": ("", "1;32"),
    "change": ("", "1;32"),
    "label": ("1", ""),
    "quote": ("2", ""),
    "dim": ("2", "2"),
}
_PLAIN = ("", "")


def render(report: Report, view: View) -> str:
    """Return the report as text."""
    return draw(lay_out(report, view), view)


def draw(
    blocks: Iterable[Block], view: View, figures: Optional[Callable[[], Sequence[Figure]]] = None
) -> str:
    """Return blocks as lines of at most ``view.width`` columns, commands and long words excepted;
    words and line breaks are the same with and without colour. ``figures`` are for a page.
    """
    if view.quiet:
        blocks = _first(blocks)
    if view.markup == "markdown":
        from .markdown import draw as draw_markdown

        return draw_markdown(blocks)
    if view.markup == "html":
        from .html import draw as draw_page

        return draw_page(blocks, figures() if figures is not None and not view.quiet else ())
    lines = []
    for block in blocks:
        head_style, text_style = _STYLES.get(block.style, _PLAIN) if view.color else _PLAIN
        for head, text in lines_of(block, view.width):
            if text.strip():
                lines.append(_painted(head, head_style) + _painted(text.rstrip(), text_style))
            else:
                lines.append(_painted(head.rstrip(), head_style))
    return "".join(f"{line}\n" for line in lines)


def _first(blocks: Iterable[Block]) -> Iterator[Block]:
    """Return the verdict: the first paragraph."""
    for block in blocks:
        yield block
        return


def _painted(text: str, style: str) -> str:
    words = text.lstrip()
    if not style or not words:
        return text
    return f"{text[: len(text) - len(words)]}\x1b[{style}m{words}\x1b[0m"
