"""A message as its program prints it, where somebody typed it: in letters of another case
(``ninja is required to load c++ extensions``), with a letter too many, too few or wrong in the
exception's name (``RuntimeEror: …``), or with a blank in a module's (``'a. b'``).
"""

from __future__ import annotations

import builtins
import re
from functools import lru_cache
from typing import Dict, Iterable, Mapping, Sequence, Tuple

from ..model.log import Pattern

__all__ = ["respelled", "with_whole_names"]

_SHORTEST = 16  # characters of a literal that is looked for in any case
_LEAST_ALIKE = 0.85  # of 1: one letter in six
_HEAD = re.compile(r"(?<![\w.])([A-Z]\w{5,40})(?=: )")
_PARTED = re.compile(r"(\b(?:module named|from|module) '(?:\w{1,60}\.){1,6}) (?=\w{1,60}')")
_OF_PYTHON = tuple(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, Exception)
)


def respelled(text: str, patterns: Sequence[Pattern]) -> str:
    """Return a text in which literals of patterns, and the names of Python's exceptions, are
    written as programs print them; the lines stay as many.
    """
    text = _HEAD.sub(_as_named, text)
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose small form has several characters
        return text
    for small, literal in _literals(tuple(patterns)).items():
        start = lowered.find(small)
        while start >= 0:
            text = text[:start] + literal + text[start + len(small) :]
            start = lowered.find(small, start + len(small))
    return text


def with_whole_names(text: str) -> str:
    """Return a text in which names of modules that somebody typed have no blank within."""
    return _PARTED.sub(r"\1", text)


def _as_named(match: re.Match[str]) -> str:
    name = match.group(1)
    if name in _OF_PYTHON:
        return name
    from difflib import get_close_matches

    as_long = [entry for entry in _OF_PYTHON if abs(len(entry) - len(name)) < 2]
    alike = get_close_matches(name, as_long, n=2, cutoff=_LEAST_ALIKE)
    return alike[0] if len(alike) == 1 else name


@lru_cache(maxsize=2)
def _literals(patterns: Tuple[Pattern, ...]) -> Mapping[str, str]:
    """Return the literals of patterns that are sentences, by their small letters; those that are
    written in two ways stay as they are.
    """
    spellings: Dict[str, str] = {}
    for literal in _sentences(patterns):
        small = literal.lower()
        spellings[small] = "" if spellings.get(small, literal) != literal else literal
    return {small: literal for small, literal in spellings.items() if literal}


def _sentences(patterns: Iterable[Pattern]) -> Iterable[str]:
    for pattern in patterns:
        for anchor in pattern.anchors:
            if len(anchor) >= _SHORTEST and " " in anchor.strip():
                yield anchor
