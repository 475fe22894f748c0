"""Names that a module binds only where an import of another package works.

::

    try:
        from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLOutput as _Output
    except Exception:
        _Output = None

    if _Output is not None:

        class LigerQwen2VLOutput(_Output): ...

The module itself can be imported without it; whoever imports ``LigerQwen2VLOutput`` from it cannot.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence

from .parsing import UNPARSABLE, parse_quietly

__all__ = ["Asked", "read_optional_names"]


class Asked(NamedTuple):
    """The import that a name asks for: what, from which module, and where it stands."""

    module: str
    name: str
    line: int


def read_optional_names(source: bytes) -> Dict[str, Asked]:
    """Return the names that the statements of a module bind only where an import works, by name."""
    if b"except" not in source:
        return {}
    try:
        body = parse_quietly(source).body
    except UNPARSABLE:
        return {}
    imported = {name: item for node in body for name, item in _imported(node).items()}
    bound = Counter(name for node in body for name in _names(node))
    optional = {}
    for node in body:
        item = imported.get(_tested(node) or "")
        if item is not None and isinstance(node, ast.If):
            within = Counter(name for part in node.body for name in _names(part))
            optional.update({name: item for name in within if bound[name] == within[name]})
    return optional


def _imported(node: ast.stmt) -> Dict[str, Asked]:
    """What a ``try`` imports whose handlers do nothing but say None in its place."""
    if not isinstance(node, ast.Try) or node.orelse or node.finalbody or not node.handlers:
        return {}
    imports = {
        alias.asname or alias.name: Asked(part.module, alias.name, part.lineno)
        for part in node.body
        if isinstance(part, ast.ImportFrom) and not part.level and part.module
        for alias in part.names
    }
    return {
        name: item
        for name, item in imports.items()
        if all(name in _set_to_none(handler.body) for handler in node.handlers)
    }


def _set_to_none(body: Sequence[ast.stmt]) -> List[str]:
    """The names that statements set to None, none where one of them does anything else."""
    names: List[str] = []
    for node in body:
        if not (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and node.value.value is None
        ):
            return []
        names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names


def _tested(node: ast.stmt) -> Optional[str]:
    """``X`` of ``if X:`` and ``if X is not None:``."""
    test = node.test if isinstance(node, ast.If) else None
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        other = test.comparators[0]
        if len(test.ops) == 1 and isinstance(other, ast.Constant) and other.value is None:
            test = test.left
    return test.id if isinstance(test, ast.Name) else None


def _names(node: ast.AST) -> Iterator[str]:
    """The names that a statement of a module, and those in its branches, may bind."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.name
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    for part in ast.iter_child_nodes(node):
        yield from _names(part)
