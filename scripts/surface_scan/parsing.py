"""Sources of other people, to syntax trees."""

from __future__ import annotations

import ast
import warnings
from typing import Union

__all__ = ["UNPARSABLE", "parse_quietly", "without_refusals"]

#: What a source may raise that Python of today does not read, or not within its bounds.
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def parse_quietly(source: Union[str, bytes]) -> ast.Module:
    """Return the tree of a source without what Python warns of in it; raises ``UNPARSABLE``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def without_refusals(text: str) -> str:
    """Return a source without what a ``__getattr__`` of it refuses by name, whose texts speak of
    what is not there: ``if name in ("gone", …): raise AttributeError(…)``.
    """
    if "def __getattr__" not in text:
        return text
    try:
        tree = parse_quietly(text.encode("utf-8"))
    except UNPARSABLE:
        return text
    lines = text.split("\n")
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name != "__getattr__":
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
                for number in range(node.test.lineno, (node.body[-1].end_lineno or 0) + 1):
                    lines[number - 1] = ""
    return "\n".join(lines)
