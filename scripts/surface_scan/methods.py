"""Quantisation methods and attention backends that a module defines: classes that say their name
and the GPUs that they take, and enumerations of their names.
"""

from __future__ import annotations

import ast
from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from .gpu_answers import CAPABILITIES, Device, capability_of, value_of
from .module import Function
from .parsing import UNPARSABLE, last_name, parse_quietly

__all__ = [
    "Refusal",
    "message_of",
    "read_backends",
    "read_members",
    "read_methods",
    "read_refusals",
]


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
    return _giving(test, False, ["capability"])


def _giving(test: ast.expr, answer: bool, names: Sequence[str]) -> FrozenSet[str]:
    """The compute capabilities that names hold where a test has an answer."""
    giving = []
    for text in CAPABILITIES:
        capability = capability_of(text)
        held = dict.fromkeys((*names, "device_capability"), capability)
        if value_of(test, Device(capability, held)) is answer:
            giving.append(text)
    return frozenset(giving)


def _returned_expression(node: ast.ClassDef, name: str) -> Optional[ast.expr]:
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == name:
            last = part.body[-1]
            return last.value if isinstance(last, ast.Return) and len(part.body) == 1 else None
    return None


class Refusal(NamedTuple):
    """A check that raises where a word is chosen and the GPU is one of these.

    word: of a setting, or a data type of torch (``of_torch``). refused: compute capabilities.
    message: what it raises, "…" for what is put in.
    """

    word: str
    of_torch: bool
    refused: FrozenSet[str]
    message: str
    line: int


_Chosen = Tuple[str, bool]


def read_refusals(source: bytes) -> List[Refusal]:
    """Return the checks of the GPU in a source that stand under the choice of a word:
    ``x == "word"``, ``x == torch.word``, or in a function that is registered under it.
    """
    if b"device_capability(" not in source:
        return []
    try:
        tree = parse_quietly(source)
    except UNPARSABLE:
        return []
    functions = (
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    refusals = [refusal for node in functions for refusal in _refusals_of(node)]
    return list(dict.fromkeys(refusals))


def _refusals_of(function: Function) -> Iterator[Refusal]:
    names = ["capability"]
    for node in ast.walk(function):
        is_asked = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if is_asked and last_name(node.value.func) == "get_device_capability":
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    words = [
        (mark.args[0].value, False)
        for mark in function.decorator_list
        if isinstance(mark, ast.Call) and last_name(mark.func).startswith("register")
        if mark.args and isinstance(mark.args[0], ast.Constant)
        if isinstance(mark.args[0].value, str)
    ]
    yield from _refusals_in(function.body, words, names)


def _refusals_in(
    body: Sequence[ast.stmt], words: Sequence[_Chosen], names: Sequence[str]
) -> Iterator[Refusal]:
    for node in body:
        if isinstance(node, ast.Assert) and words:
            yield from _raised(node.test, False, node.msg, words, names)
        if not isinstance(node, ast.If):
            continue
        chosen = _chosen(node.test)
        raised = next((part for part in node.body if isinstance(part, ast.Raise)), None)
        if raised is not None and words:
            yield from _raised(node.test, True, raised, words, names)
        yield from _refusals_in(node.body, [chosen] if chosen else words, names)
        yield from _refusals_in(node.orelse, words, names)


def _raised(
    test: ast.expr,
    answer: bool,
    said: Optional[ast.AST],
    words: Sequence[_Chosen],
    names: Sequence[str],
) -> Iterator[Refusal]:
    """Yield what a check refuses, which raises where its test has an answer."""
    refused = _giving(test, answer, names)
    if refused and len(refused) < len(CAPABILITIES):
        for word, of_torch in words:
            yield Refusal(word, of_torch, refused, message_of(said), test.lineno)


def message_of(node: Optional[ast.AST]) -> str:
    """Return the texts in what is raised, up to the first value that is put in."""
    parts: List[str] = []
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.JoinedStr):
            for value in part.values:
                if not isinstance(value, ast.Constant):
                    return "".join(parts).strip()
                parts.append(str(value.value))
            return "".join(parts).strip()
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            return part.value.strip()
    return ""


def _chosen(test: ast.expr) -> Optional[_Chosen]:
    """The word that a test compares something with."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return None
    right = test.comparators[0]
    if isinstance(right, ast.Constant) and isinstance(right.value, str):
        return right.value, False
    if isinstance(right, ast.Attribute) and last_name(right.value) == "torch":
        return right.attr, True
    return None
