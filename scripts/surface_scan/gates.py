"""Checks of versions in the code of packages: what a module refuses, disables or warns of.

A gate is a list, so that it is JSON: [kind, what, line, at import, conditions, function, message].

* ``floor``: a call such as ``assert_pkg_version("sgl-kernel", "0.1.1", …)`` or
  ``require_version("x>=1")``; what: [package, specifier that has to hold].
* ``if``: ``if <condition about versions>: raise …``; what: the condition.
* ``window``: a text "supports X versions from 1 to 2"; what: [package, specifier that is
  supported].
* ``disable``: a text "Disabling X because X >= 2 is required"; what: [package, specifier].
* ``skips``: a text "Skipping a part due to incompatible X version. Please upgrade to X >= 2"; what:
  [package, specifier].
* ``pairs``: a table of versions of its own with versions of another that fit, ``x_y_compatible_…``
  = [(parse("1.0"), parse("2.0")), …]; what: [other package, [[own, other], …]].
* ``equal``: ``if other.__version__ != own: raise …``; what: [package].
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from .conditions import Condition, Scope, condition_of, version_of

__all__ = ["GATES_REVISION", "read_gates"]

#: Raised when another reading of the same source is wanted.
GATES_REVISION = "gates-2"

_WORTH = re.compile(
    rb"(?:assert|check|require|ensure|validate)_\w*version\w*\("
    rb"|supports? (?:only )?\w+ versions?"
    rb"|Disabling \w+ because"
    rb"|Skipping [^\n]* incompatible|_compatible_versions\b"
    rb"|ersion\w*\)?\s*!="
    rb"|if [^\n]*ersion[^\n]*(?:[<>]|==|!=)[^\n]*:\s*(?:#[^\n]*)?\n\s*raise\b"
)
_CALL = re.compile(r"(?:assert|check|require|ensure|validate)_\w*version\w*")
_WINDOW = re.compile(r"supports? (?:only )?(\w+) versions?[: ]*(?:from )?(.*)", re.DOTALL)
_DISABLING = re.compile(r"Disabling (\w+) because \w+ ?>= ?([\d.]+) is required")
_SKIPPING = re.compile(
    r"Skipping .{1,80}? incompatible (\w+) version\b.{0,80}?\bto (?:\1) ?>= ?(\d[\d.]*\d)",
    re.DOTALL,
)
_PAIRS = re.compile(r"[a-z0-9]+_([a-z0-9]+)_compatible_versions")
_NUMBER = re.compile(r"\d+(?:\.\d+)+(?:\.?post\d+)?")


def read_gates(source: bytes) -> List[List[Any]]:
    """Return the gates of a module; none where it cannot be parsed."""
    if not _WORTH.search(source):
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return list(_Gates(tree).found())


class _Gates:
    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._texts, self._versions = _constants(tree)
        self._scope = Scope(self._texts, {}, self._versions)
        self._called = _called_at_import(tree)

    def found(self) -> Iterator[List[Any]]:
        yield from self._in(self._tree.body, [], "")

    def _in(
        self, body: List[ast.stmt], conditions: List[Condition], function: str
    ) -> Iterator[List[Any]]:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if not _CALL.fullmatch(node.name):  # the check itself
                    yield from self._in(node.body, conditions, function or node.name)
                continue
            if isinstance(node, ast.ClassDef):
                yield from self._in(node.body, conditions, function or node.name)
                continue
            if isinstance(node, ast.If):
                yield from self._if(node, conditions, function)
                continue
            if isinstance(node, ast.Try):
                # What is raised in a try is somebody's to catch; texts are texts.
                for part in node.body:
                    yield from self._in([part], [*conditions, ["unknown"]], function)
                for handler in node.handlers:
                    yield from self._in(handler.body, [*conditions, ["unknown"]], function)
                yield from self._in(node.finalbody, conditions, function)
                continue
            inner = [*getattr(node, "body", []), *getattr(node, "orelse", [])]
            if inner and isinstance(inner[0], ast.stmt):
                yield from self._in(inner, [*conditions, ["unknown"]], function)
                continue
            yield from self._statement(node, conditions, function)

    def _if(self, node: ast.If, conditions: List[Condition], function: str) -> Iterator[List[Any]]:
        test = condition_of(node.test, self._scope)
        raised = next((part for part in node.body if isinstance(part, ast.Raise)), None)
        if raised is not None:
            other = self._compared_with_own(node.test)
            text = _text(raised)
            if other:
                yield self._gate("equal", [other], node.lineno, conditions, function, text)
            elif "version" in str(test):
                yield self._gate("if", test, node.lineno, conditions, function, text)
        yield from self._in(node.body, [*conditions, test], function)
        yield from self._in(node.orelse, [*conditions, ["not", test]], function)

    def _compared_with_own(self, test: ast.expr) -> str:
        """The module whose version has to be another's, as in ``x.__version__ != version``."""
        for node in ast.walk(test):
            if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.NotEq):
                continue
            sides = [node.left, node.comparators[0]]
            for own, other in (sides, sides[::-1]):
                word = version_of(other) or self._versions.get(_last(other), "")
                is_own = isinstance(own, ast.Name) and "version" in own.id.lower()
                if word and is_own and _last(own) not in self._versions:
                    return word
        return ""

    def _statement(
        self, node: ast.stmt, conditions: List[Condition], function: str
    ) -> Iterator[List[Any]]:
        if isinstance(node, ast.Assign) and _PAIRS.fullmatch(_last(node.targets[0])):
            yield from self._pairs(node, function)
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and _CALL.fullmatch(_last(part.func)):
                floor = _floor([text for text in map(_constant, part.args) if text])
                if floor:
                    message = f"{floor[0]}{floor[1]}"
                    yield self._gate("floor", floor, part.lineno, conditions, function, message)
            elif isinstance(part, (ast.JoinedStr, ast.Constant)):
                text = _text(part)
                for kind, what in _stated(text):
                    line = part.lineno
                    yield self._gate(kind, what, line, [], "", " ".join(text.split()))

    def _pairs(self, node: ast.Assign, function: str) -> Iterator[List[Any]]:
        match = _PAIRS.fullmatch(_last(node.targets[0]))
        rows = node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else []
        pairs = [_strings_of(row) for row in rows]
        if match and pairs and all(len(pair) == 2 for pair in pairs):
            what = [match.group(1), pairs]
            yield self._gate("pairs", what, node.lineno, [], function, "")

    def _gate(
        self,
        kind: str,
        what: Any,
        line: int,
        conditions: List[Condition],
        function: str,
        message: str,
    ) -> List[Any]:
        at_import = not function or function in self._called
        return [kind, what, line, at_import, conditions, function, message[:300]]


def _constants(tree: ast.Module) -> Tuple[Dict[str, Optional[str]], Dict[str, str]]:
    """Module-level names that hold a text or a version made of one, and those that hold the
    version of a package.
    """
    texts: Dict[str, Optional[str]] = {}
    versions: Dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name, value = node.targets[0].id, node.value
        package = version_of(value)
        inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
        if package:
            versions[name] = package
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            texts[name] = inner.value
    return texts, versions


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _text(node: ast.AST) -> str:
    """The texts in an expression, one after the other; "…" for what is put in."""
    parts: List[str] = []
    if isinstance(node, ast.JoinedStr):
        return "".join(_constant(value) or "…" for value in node.values)
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    seen: Set[int] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            parts.append(_text(part))
            seen.update(id(inner) for inner in ast.walk(part))
        elif isinstance(part, ast.Constant) and id(part) not in seen:
            parts.append(_text(part))
    return " ".join(filter(None, parts))


def _strings_of(node: ast.expr) -> List[str]:
    texts = [_constant(part) for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return texts if all(_is_version(text) for text in texts) else []


def _floor(texts: List[str]) -> Optional[List[str]]:
    """[package, specifier] of the arguments of a check."""
    if not texts:
        return None
    if len(texts) > 1 and _is_version(texts[1]) and re.fullmatch(r"[\w.-]+", texts[0]):
        return [texts[0], f">={texts[1]}"]
    try:
        requirement = Requirement(texts[0])
    except InvalidRequirement:
        return None
    return [requirement.name, str(requirement.specifier)] if requirement.specifier else None


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _stated(text: str) -> Iterator[Tuple[str, List[str]]]:
    match = _SKIPPING.search(text)
    if match:
        yield "skips", [match.group(1), f">={match.group(2)}"]
    match = _DISABLING.search(text)
    if match:
        yield "disable", [match.group(1), f">={match.group(2)}"]
    match = _WINDOW.search(text)
    if match:
        rest = re.split(r"\.\s|…|\bYou have\b", match.group(2), maxsplit=1)[0]
        numbers = _NUMBER.findall(rest)
        if len(numbers) == 2 and re.search(r"\bto\b|\band\b.*(?:between)|-", rest):
            yield "window", [match.group(1), f">={numbers[0]},<={numbers[1]}"]
        elif numbers:
            yield "window", [match.group(1), "||".join(f"=={number}" for number in numbers)]


def _called_at_import(tree: ast.Module) -> Set[str]:
    """The functions of a module that run when it is imported, as far as names tell."""
    functions = {
        node.name: node
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    waiting: List[ast.stmt] = [
        node for node in tree.body if not isinstance(node, (ast.ClassDef, *_FUNCTIONS))
    ]
    called: Set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            name = _last(node.func) if isinstance(node, ast.Call) else ""
            if name in functions and name not in called:
                called.add(name)
                waiting.append(functions[name])
    return called


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
