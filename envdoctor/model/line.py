"""Lines of the texts that locks and changes become, each with what it is; ``report.blocks`` gives
them a look.
"""

from __future__ import annotations

from .record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

__all__ = ["TextLine", "text_of"]


class TextLine(NamedTuple):
    """One line. ``head`` stands before its text and says what it is ("warning:"). ``style`` is one
    of ``report.console``. ``whole``: it holds a command, so it is never wrapped.
    """

    text: str
    style: str = "item"
    indent: int = 0
    head: str = ""
    whole: bool = False

    def __str__(self) -> str:
        words = f"{self.head} {self.text}" if self.head else self.text
        return " " * self.indent + words


def text_of(lines: Iterable[TextLine]) -> str:
    """Return lines as a text."""
    return "".join(f"{line}\n" for line in lines)
