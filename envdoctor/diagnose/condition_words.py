"""Conditions of a source in words, and what they ask of the environment.

A condition is an expression of Python as ``matrix.messages`` holds it. What no words are known for
stands as it is in the source: nothing is said that the source does not say. Nothing is evaluated.
"""

from __future__ import annotations

import ast
import re
from typing import FrozenSet, Iterator, List, Mapping, NamedTuple, Set, Type

__all__ = ["Subjects", "denied", "subjects_of", "worded"]

_LONG = 160  # characters of a source that are shown
_COMPARED: Mapping[Type[ast.cmpop], str] = {
    ast.Gt: "is larger than",
    ast.GtE: "is at least",
    ast.Lt: "is smaller than",
    ast.LtE: "is at most",
    ast.Eq: "is",
    ast.NotEq: "is not",
    ast.In: "is one of",
    ast.NotIn: "is none of",
    ast.Is: "is",
    ast.IsNot: "is not",
}
_DENIED = {
    "is": "is not",
    "is not": "is",
    "is one of": "is none of",
    "is none of": "is one of",
    "is in": "is not in",
    "is not in": "is in",
}
_AVAILABLE = re.compile(
    r"_?(?:is|has|check|_is)_([a-z][a-z0-9_]*?)_(?:available|installed|importable)"
)
_VERSIONED = re.compile(r"_?is_([a-z][a-z0-9_]*?)_(?:version|greater_or_equal(?:_than)?|less_than)")
_OF_VERSION = re.compile(r"_*([A-Za-z][A-Za-z0-9_]*?)_(?:VERSION|version)_*")
_CAPABILITY = re.compile(r"capability|compute_cap|is_sm\d|_arch_list")
_FINDERS = frozenset(("find_spec", "version", "get_distribution", "is_package_available"))
_PYTHON = frozenset(("python", "sys", "min", "max", "minimum", "maximum", "required", "this"))


class Subjects(NamedTuple):
    """What a condition asks of the environment: modules whose presence or version it tests,
    variables of the environment, and whether it asks what the GPU can do.
    """

    modules: FrozenSet[str]
    variables: FrozenSet[str]
    capability: bool


def worded(condition: str, values: Mapping[str, str]) -> str:
    """Say a condition in words; ``values``: what expressions were in this run."""
    if condition == "…":
        return ""
    if condition.startswith("except "):
        kinds, _, tried = condition[len("except ") :].partition(": ")
        kinds = kinds.strip("()")
        return f"{_quoted(tried)} raised {kinds}" if tried != "…" else f"{kinds} came up"
    if condition.startswith("match "):
        subject, _, case = condition[len("match ") :].rpartition(": ")
        return f"{_quoted(subject)} is {_quoted(case)}"
    try:
        node = ast.parse(condition, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _quoted(condition)
    return _Words(values).of(node)


def denied(statement: str) -> str:
    """Say what is so where an ``assert`` fails, as far as one line shows it; else ""."""
    try:
        node = ast.parse(statement).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
        return ""
    return _Words({}).of(node.test, True) if isinstance(node, ast.Assert) else ""


def subjects_of(conditions: List[str]) -> Subjects:
    """Return what conditions ask of the environment."""
    modules: Set[str] = set()
    variables: Set[str] = set()
    for condition in conditions:
        for node in _nodes(condition):
            modules.update(_modules_of(node))
            variables.update(_variables_of(node))
    capability = any(_CAPABILITY.search(condition) for condition in conditions)
    return Subjects(frozenset(modules), frozenset(variables), capability)


def _nodes(condition: str) -> Iterator[ast.AST]:
    text = condition
    if condition.startswith("except "):
        text = condition.partition(": ")[2]
    try:
        yield from ast.walk(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return


def _modules_of(node: ast.AST) -> Iterator[str]:
    """Yield the modules and packages that an expression asks for, or a statement imports."""
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.split(".")[0]
    elif isinstance(node, ast.Import):
        yield from (alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, ast.Attribute) and node.attr == "__version__":
        yield ast.unparse(node.value).split(".")[0]
    elif isinstance(node, ast.Call):
        name = _last_name(node.func)
        match = _AVAILABLE.fullmatch(name) or _VERSIONED.fullmatch(name)
        if match is not None:
            yield match.group(1)
        elif name in _FINDERS and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value).split(".")[0]
    elif isinstance(node, (ast.Name, ast.Attribute)):
        match = _OF_VERSION.fullmatch(_last_name(node))
        if match is not None and match.group(1).lower() not in _PYTHON:
            yield match.group(1).lower()


def _variables_of(node: ast.AST) -> Iterator[str]:
    """Yield the variables of the environment that an expression asks for."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        if ast.unparse(node.func) in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
            yield str(node.args[0].value)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        if ast.unparse(node.value) in ("os.environ", "environ"):
            yield str(node.slice.value)
    elif isinstance(node, ast.Attribute) and node.attr.isupper():
        if ast.unparse(node.value) in ("envs", "environment_variables"):
            yield node.attr
    elif (
        isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Constant)
        and ast.unparse(node.comparators[0]) in ("os.environ", "environ")
    ):
        yield str(node.left.value)


class _Words:
    """Expressions in words, with what they were in a run."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def of(self, node: ast.expr, is_denied: bool = False) -> str:
        """Say that an expression is true, or that it is false."""
        if isinstance(node, ast.BoolOp):
            joiner = " and " if isinstance(node.op, ast.And) is not is_denied else " or "
            parts = [
                f"({self.of(value, is_denied)})"
                if isinstance(value, ast.BoolOp)
                else self.of(value, is_denied)
                for value in node.values
            ]
            return joiner.join(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.of(node.operand, not is_denied)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node, is_denied)
        if isinstance(node, ast.Call):
            return self._called(node, is_denied)
        if isinstance(node, (ast.Name, ast.Attribute)):
            verb = "is false, empty or not set" if is_denied else "is set"
            return f"{self._thing(node)} {verb}"
        text = _quoted(ast.unparse(node))
        return f"{text} is false" if is_denied else text

    def _compared(self, node: ast.Compare, is_denied: bool) -> str:
        left, operator, right = node.left, node.ops[0], node.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None:
            is_set = isinstance(operator, (ast.IsNot, ast.NotEq)) is not is_denied
            return f"{self._thing(left)} is {'set' if is_set else 'not set'}"
        is_equality = isinstance(operator, (ast.Eq, ast.NotEq)) and _is_zero(right)
        if is_equality and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
            is_multiple = isinstance(operator, ast.Eq) is not is_denied
            words = "is a multiple of" if is_multiple else "is not a multiple of"
            return f"{self._thing(left.left)} {words} {self._thing(left.right)}"
        words = _COMPARED[type(operator)]
        if isinstance(operator, (ast.In, ast.NotIn)) and not _is_listing(right):
            words = "is in" if isinstance(operator, ast.In) else "is not in"
        if is_denied:
            words = _DENIED.get(words) or words.replace("is ", "is not ", 1)
        return f"{self._thing(left)} {words} {self._thing(right)}"

    def _called(self, node: ast.Call, is_denied: bool) -> str:
        name = _last_name(node.func)
        not_ = "not " if is_denied else ""
        if name == "isinstance" and len(node.args) == 2:
            return f"{self._thing(node.args[0])} is {not_}a {self._thing(node.args[1])}"
        if name == "hasattr" and len(node.args) == 2:
            verb = "has no" if is_denied else "has"
            return f"{self._thing(node.args[0])} {verb} {self._thing(node.args[1])}"
        if name in ("exists", "isfile", "isdir", "is_file", "is_dir") and len(node.args) <= 1:
            thing = node.args[0] if node.args else getattr(node.func, "value", node.func)
            what = {"f": "a file", "d": "a folder"}.get(name.replace("is_", "is")[2:3], "")
            if name == "exists":
                return f"{self._thing(thing)} {'does not exist' if is_denied else 'exists'}"
            return f"{self._thing(thing)} is {'not ' if is_denied else ''}{what}"
        match = _AVAILABLE.fullmatch(name)
        if match is not None and not node.args:
            return f"{match.group(1)} is {not_}available"
        if name in ("startswith", "endswith") and isinstance(node.func, ast.Attribute):
            side = "begin" if name == "startswith" else "end"
            verb = f"does not {side}" if is_denied else f"{side}s"
            return f"{self._thing(node.func.value)} {verb} with {self._thing(node.args[0])}"
        text = self._thing(node)
        return f"{text} is false or empty" if is_denied else f"{text} holds"

    def _thing(self, node: ast.expr) -> str:
        """Name an expression, with its value where the run says it."""
        source = ast.unparse(node)
        value = self._values.pop(source, None)
        if value is None and isinstance(node, ast.Call) and _last_name(node.func) == "len":
            return f"the length of {self._thing(node.args[0])}" if node.args else _quoted(source)
        shown = _quoted(re.sub(r"\b(?:self|cls)\.(?=\w)", "", source))
        return shown if not value else f"{shown} ({value} here)"


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _is_listing(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.Tuple, ast.Set))


def _quoted(source: str) -> str:
    text = source if len(source) <= _LONG else f"{source[:_LONG]}…"
    return text if re.fullmatch(r"[\w.-]+|'[^']*'|\"[^\"]*\"", text) else f"`{text}`"


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
