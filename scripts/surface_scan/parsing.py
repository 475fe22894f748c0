"""Sources of other people, to syntax trees."""

from __future__ import annotations

import ast
import warnings
from typing import List, Union

from packaging.version import InvalidVersion, Version

__all__ = [
    "UNPARSABLE",
    "dotted_name",
    "is_version",
    "last_name",
    "parse_quietly",
    "strings_in",
    "without_refusals",
]

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


def last_name(node: ast.AST) -> str:
    """Return ``c`` of ``a.b.c``; "" of what is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def dotted_name(node: ast.AST) -> str:
    """Return ``a.b.c`` of what is a name, with or without dots; "" of anything else."""
    if isinstance(node, ast.Attribute):
        above = dotted_name(node.value)
        return f"{above}.{node.attr}" if above else ""
    return node.id if isinstance(node, ast.Name) else ""


def strings_in(node: ast.AST) -> List[str]:
    """Return the literal texts inside a node."""
    return [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


def is_version(text: str) -> bool:
    """Tell whether a text is a version by PEP 440."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
