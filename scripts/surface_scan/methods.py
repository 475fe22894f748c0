"""Quantisation methods and attention backends that a module defines: classes that say their name
and the GPUs that they take, and enumerations of their names.
"""

from __future__ import annotations

import ast
import operator
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

__all__ = ["CAPABILITIES", "read_backends", "read_members", "read_methods"]

#: Compute capabilities of which a class is asked.
CAPABILITIES = (
    *("6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3"),
    *("11.0", "12.0", "12.1"),
)


def read_methods(source: bytes) -> List[Tuple[str, Any, int]]:
    """Return (name, least capability or None, line) of the classes in a source that say theirs."""
    methods = []
    for node in _classes(source, b"get_name"):
        word, line = _returned(node, "get_name")
        least, _ = _returned(node, "get_min_capability")
        if isinstance(word, str):
            methods.append((word, least if isinstance(least, int) else None, line))
    return methods


def _classes(source: bytes, words: bytes) -> List[ast.ClassDef]:
    """Return the classes in a source that has these words; none where it cannot be parsed."""
    if words not in source:
        return []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _returned(node: ast.ClassDef, name: str) -> Tuple[Any, int]:
    """The constant that a method of a class returns, where it does nothing else."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == name:
            returned = [line for line in ast.walk(part) if isinstance(line, ast.Return)]
            if len(returned) == 1 and isinstance(returned[0].value, ast.Constant):
                return returned[0].value.value, returned[0].lineno
    return None, 0


def read_members(source: bytes, name: str) -> Dict[str, str]:
    """Return the members of an enumeration in a source with their values, "" for one that is no
    text; none where it has none of that name.
    """
    return {
        target.id: _literal(part.value)
        for node in _classes(source, f"class {name}(".encode())
        if node.name == name
        for part in node.body
        if isinstance(part, ast.Assign)
        for target in part.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    }


def _literal(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def read_backends(source: bytes) -> List[Tuple[str, FrozenSet[str], int]]:
    """Return (class, compute capabilities that it refuses, line) of the classes in a source whose
    ``supports_compute_capability`` compares and does nothing else.
    """
    backends = []
    for node in _classes(source, b"supports_compute_capability"):
        test = _returned_expression(node, "supports_compute_capability")
        if test is not None:
            backends.append((node.name, _refused(test), test.lineno))
    return backends


def _refused(test: ast.expr) -> FrozenSet[str]:
    answers = {text: _answer(test, _numbers(text)) for text in CAPABILITIES}
    return frozenset(text for text, answer in answers.items() if answer is False)


def _returned_expression(node: ast.ClassDef, name: str) -> Optional[ast.expr]:
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == name:
            last = part.body[-1]
            return last.value if isinstance(last, ast.Return) and len(part.body) == 1 else None
    return None


def _numbers(text: str) -> Tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


_COMPARED: Dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def _answer(node: ast.expr, capability: Tuple[int, int]) -> Optional[bool]:
    """What a test says of a capability; None where it asks for anything else."""
    if isinstance(node, ast.BoolOp):
        answers = [_answer(part, capability) for part in node.values]
        if None in answers:
            return None
        return all(answers) if isinstance(node.op, ast.And) else any(answers)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    if not isinstance(node, ast.Compare):
        return None
    values = [_value(part, capability) for part in (node.left, *node.comparators)]
    if None in values:
        return None
    answer = True
    for kind, left, right in zip(node.ops, values, values[1:]):
        if isinstance(kind, ast.In) and isinstance(right, list):
            answer = answer and left in right
        elif type(kind) in _COMPARED and type(left) is type(right):
            answer = answer and _COMPARED[type(kind)](left, right)
        else:
            return None
    return answer


def _value(node: ast.expr, capability: Tuple[int, int]) -> Any:
    """A capability as (major, minor), a part of it, or a list of such; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        values = [_value(part, capability) for part in node.elts]
        return None if None in values else values
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        numbers = [_value(part, capability) for part in node.args]
        made = node.func.id == "DeviceCapability" and len(numbers) == 2
        return tuple(numbers) if made and None not in numbers else None
    if isinstance(node, ast.Name):
        return capability if node.id in ("capability", "device_capability") else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return {"major": capability[0], "minor": capability[1]}.get(node.attr)
    return None
