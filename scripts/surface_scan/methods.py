"""Quantisation methods that a module defines: classes that say their name and the least GPU."""

from __future__ import annotations

import ast
from typing import Any, List, Tuple

__all__ = ["read_methods"]


def read_methods(source: bytes) -> List[Tuple[str, Any, int]]:
    """Return (name, least capability or None, line) of the classes in a source that say theirs."""
    if b"get_name" not in source:
        return []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        word, line = _returned(node, "get_name")
        least, _ = _returned(node, "get_min_capability")
        if isinstance(word, str):
            found.append((word, least if isinstance(least, int) else None, line))
    return found


def _returned(node: ast.ClassDef, name: str) -> Tuple[Any, int]:
    """The constant that a method of a class returns, where it does nothing else."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == name:
            returned = [line for line in ast.walk(part) if isinstance(line, ast.Return)]
            if len(returned) == 1 and isinstance(returned[0].value, ast.Constant):
                return returned[0].value.value, returned[0].lineno
    return None, 0
