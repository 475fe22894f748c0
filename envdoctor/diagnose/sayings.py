"""Forms of messages, each with what it means and what to do: the tables of ``tensor_errors``,
``python_errors`` and ``library_errors`` are made of them.
"""

from __future__ import annotations

import re
from typing import Callable, Sequence, Union

from ..model.record import NamedTuple

__all__ = ["Saying", "fix_of", "words_of"]


class Saying(NamedTuple):
    """What a message says: its form, what that means, and what to do, as far as that is known."""

    form: re.Pattern[str]
    words: Union[str, Callable[[re.Match[str]], str]]
    fix: str = ""


def words_of(message: str, sayings: Sequence[Saying]) -> str:
    """Return what a message means, by the first of these that it has the form of, else ""."""
    for saying in sayings:
        match = saying.form.search(message)
        if match is not None:
            return saying.words if isinstance(saying.words, str) else saying.words(match)
    return ""


def fix_of(message: str, sayings: Sequence[Saying]) -> str:
    """Return what to do about a message, by the first of these that it has the form of and that
    knows it, else "".
    """
    fixes = (saying.fix for saying in sayings if saying.fix and saying.form.search(message))
    return next(fixes, "")
