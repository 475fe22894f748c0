"""Word lists, written as text so that they read as lists of words."""

from __future__ import annotations

from typing import FrozenSet

__all__ = ["phrases", "words"]


def words(text: str) -> FrozenSet[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def phrases(text: str) -> FrozenSet[str]:
    """Return the parts of a text between commas, each with single spaces."""
    return frozenset(" ".join(part.split()) for part in text.split(","))
