"""Expressions that are tried only where one of their words stands.

Most lines of a text hold none of the words of most expressions. To look for a word costs a
thirtieth of trying an alternation that does not distinguish capitals at each place of a line.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, Optional, Tuple

from .word_lists import phrases

__all__ = ["Marked"]

_Replacement = Callable[["re.Match[str]"], str]


class Marked:
    """An expression, and marks of which each text has one that it matches anywhere.

    Args:
        marks: Between commas, in small letters.
        expression: As ``re.compile`` takes it.
        flags: The same.
    """

    __slots__ = ("marks", "pattern")

    def __init__(self, marks: str, expression: str, flags: int = re.IGNORECASE) -> None:
        self.pattern = re.compile(expression, flags)
        self.marks: Tuple[str, ...] = tuple(sorted(phrases(marks), key=len))

    def may_match(self, text: str) -> bool:
        """Tell whether a text has one of the marks."""
        return any(map(text.casefold().__contains__, self.marks))

    def search(self, text: str) -> Optional[re.Match[str]]:
        """Return the first match anywhere in a text."""
        return self.pattern.search(text) if self.may_match(text) else None

    def match(self, text: str) -> Optional[re.Match[str]]:
        """Return the match at the beginning of a text."""
        return self.pattern.match(text) if self.may_match(text) else None

    def sub(self, replacement: _Replacement, text: str) -> str:
        """Return a text with each match replaced."""
        return self.pattern.sub(replacement, text) if self.may_match(text) else text

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Return all matches in a text."""
        return self.pattern.finditer(text) if self.may_match(text) else iter(())
