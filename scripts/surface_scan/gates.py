"""Checks of versions in the code of packages: what a module refuses, disables or warns of.

A gate is a list, so that it is JSON: [kind, what, line, at import, conditions, function, message,
callers]. Callers are the functions of the module that come to it, itself among them.

* ``floor``: a call such as ``assert_pkg_version("sgl-kernel", "0.1.1", …)`` or
  ``require_version("x>=1")``; what: [package, specifier that has to hold].
* ``if``: ``if <condition about versions>: raise …``, the ``else`` of such, or an ``assert``; what:
  the condition under which it raises.
* ``window``: a text "supports X versions from 1 to 2"; what: [package, specifier that is
  supported].
* ``disable``: a text "Disabling X because X >= 2 is required"; what: [package, specifier].
* ``skips``: a text "Skipping a part due to incompatible X version. Please upgrade to X >= 2"; what:
  [package, specifier].
* ``pairs``: a table of versions of its own with versions of another that fit, ``x_y_compatible_…``
  = [(parse("1.0"), parse("2.0")), …]; what: [other package, [[own, other], …]].
* ``equal``: ``if other.__version__ != own: raise …``; what: [package].
* ``begins``: ``if not other.__version__.startswith(own): raise …``; what: [package].
"""

from __future__ import annotations

import ast
import re
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from packaging.requirements import InvalidRequirement, Requirement

from .conditions import (
    Condition,
    Cut,
    Scope,
    available_name,
    condition_of,
    cut_of,
    version_of,
)
from .module import callees_of, functions_from, functions_of
from .parsing import UNPARSABLE, is_version, last_name, parse_quietly

__all__ = ["GATES_REVISION", "read_gates"]

#: Raised when another reading of the same source is wanted.
GATES_REVISION = "gates-8"

_WORTH = re.compile(
    rb"(?:assert|check|require|ensure|validate)_\w*version\w*\("
    rb"|supports? (?:only )?\w+ versions?"
    rb"|Disabling \w+ because"
    rb"|Skipping [^\n]* incompatible|_compatible_versions\b"
    rb"|ersion\w*\)?\s*!=|ersion\w*\.startswith\("
    rb"|if [^\n]*ersion[^\n]*(?:[<>]|==|!=)[^\n]*:\s*(?:#[^\n]*)?\n"
    rb"|assert [^\n]*ersion[^\n]*(?:[<>]|==|!=)"
    rb"|if not is_\w+_available\(\)[^\n]*:\s*(?:#[^\n]*)?\n\s*raise\b"
)
_CALL = re.compile(r"(?:assert|check|require|ensure|validate)_\w*version\w*")
_WINDOW = re.compile(r"supports? (?:only )?(\w+) versions?[: ]*(?:from )?(.*)", re.DOTALL)
_DISABLING = re.compile(r"Disabling (\w+) because \w+ ?>= ?([\d.]+) is required")
_SKIPPING = re.compile(
    r"Skipping .{1,80}? incompatible (\w+) version\b.{0,80}?\bto (?:\1) ?>= ?(\d[\d.]*\d)",
    re.DOTALL,
)
_PAIRS = re.compile(r"[a-z0-9]+_([a-z0-9]+)_compatible_versions")
#: Marks a condition whose contrary leaves the function earlier.
_LEFT = "left"
_COLOURS = re.compile(r"\x1b\[\d*m|\n-{3,}")
_NUMBER = re.compile(r"\d+(?:\.\d+)+(?:\.?post\d+)?")


def read_gates(source: bytes) -> List[List[Any]]:
    """Return the gates of a module; none where it cannot be parsed."""
    if not _WORTH.search(source):
        return []
    try:
        tree = parse_quietly(source)
    except UNPARSABLE:
        return []
    return list(_Gates(tree).found())


class _Gates:
    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._texts, self._versions = _constants(tree)
        self._scope = Scope(self._texts, {}, self._versions, _cuts(tree))
        self._called = _called_at_import(tree)
        self._callers = _callers(tree)
        self._words = _assigned_words(tree)

    def found(self) -> Iterator[List[Any]]:
        yield from self._in(self._tree.body, [], "")

    def _in(
        self, body: List[ast.stmt], conditions: List[Condition], function: str
    ) -> Iterator[List[Any]]:
        """Yield the gates of a body. function: ``f``, ``Class.f``, ``Class.`` for what stands in
        the class itself, "" for the module.
        """
        conditions = list(conditions)
        outside = not function or function.endswith(".")
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if not _CALL.fullmatch(node.name):  # the check itself
                    name = f"{function}{node.name}" if outside else function
                    yield from self._in(node.body, conditions, name)
                continue
            if isinstance(node, ast.ClassDef):
                yield from self._in(node.body, conditions, function or f"{node.name}.")
                continue
            if isinstance(node, ast.If):
                yield from self._if(node, conditions, function)
                if not node.orelse and isinstance(node.body[-1], (ast.Return, ast.Continue)):
                    test = condition_of(node.test, self._scope)
                    conditions.append([_LEFT, ["not", test]])
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
                if isinstance(node, (ast.For, ast.While)) and _returns(node):
                    return  # what stands behind a search is about what it did not find
                continue
            yield from self._statement(node, conditions, function)

    def _if(self, node: ast.If, conditions: List[Condition], function: str) -> Iterator[List[Any]]:
        test = condition_of(node.test, self._scope)
        raised = next((part for part in node.body if isinstance(part, ast.Raise)), None)
        kind, other = self._compared_with_own(node.test) if raised is not None else ("", "")
        if raised is not None and other:
            text = self._text_of(raised)
            yield self._gate(kind, [other], node.lineno, conditions, function, text)
        else:
            yield from self._in(node.body, [*conditions, test], function)
        yield from self._in(node.orelse, [*conditions, ["not", test]], function)

    def _raising(
        self, node: ast.stmt, conditions: List[Condition], function: str
    ) -> Iterator[List[Any]]:
        """Yield the gate that a ``raise`` is, where it stands under conditions about versions."""
        passed = [part[1] if part[0] == _LEFT else part for part in conditions]
        about = [part for part in passed if _is_about_packages(part)]
        if about:
            others = [part for part in passed if part not in about]
            said = node.msg if isinstance(node, ast.Assert) else node
            text = self._text_of(said) if said is not None else ""
            yield self._gate("if", ["and", *about], node.lineno, others, function, text)

    def _text_of(self, node: ast.AST) -> str:
        """The texts in an expression, of a name what was assigned to it."""
        names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
        return _text(node) or next((self._words[name] for name in names if name in self._words), "")

    def _compared_with_own(self, test: ast.expr) -> Tuple[str, str]:
        """The kind of a comparison, and the module whose version has to be another's, as in
        ``x.__version__ != version``, or to begin with it.
        """
        for node in ast.walk(test):
            for kind, one, another in _unequal(node):
                for own, other in ((one, another), (another, one)):
                    word = version_of(other) or self._versions.get(last_name(other), "")
                    is_own = isinstance(own, ast.Name) and "version" in own.id.lower()
                    if word and is_own and last_name(own) not in self._versions:
                        return kind, word
        return "", ""

    def _statement(
        self, node: ast.stmt, conditions: List[Condition], function: str
    ) -> Iterator[List[Any]]:
        if isinstance(node, ast.Raise):
            yield from self._raising(node, conditions, function)
        elif isinstance(node, ast.Assert):
            refused: Condition = ["not", condition_of(node.test, self._scope)]
            yield from self._raising(node, [*conditions, refused], function)
        if isinstance(node, ast.Assign) and _PAIRS.fullmatch(last_name(node.targets[0])):
            yield from self._pairs(node, function)
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and _CALL.fullmatch(last_name(part.func)):
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
        match = _PAIRS.fullmatch(last_name(node.targets[0]))
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
        at_import = not function or function.endswith(".") or function in self._called
        if kind != "if":  # what leaves a function earlier was not looked at
            conditions = [part for part in conditions if part[0] != _LEFT]
        callers = sorted(self._callers.get(function, ()))
        name = function.partition(".")[0]
        words = _COLOURS.sub("", message)[:300]
        return [kind, what, line, at_import, conditions, name, words, callers]


def _unequal(node: ast.AST) -> Iterator[Tuple[str, ast.expr, ast.expr]]:
    """Yield the two sides of ``a != b`` and of ``not a.startswith(b)``, with the kind of gate."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotEq):
        yield "equal", node.left, node.comparators[0]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        call = node.operand
        if isinstance(call, ast.Call) and last_name(call.func) == "startswith" and call.args:
            yield "begins", getattr(call.func, "value", call), call.args[0]


def _returns(node: ast.stmt) -> bool:
    return any(isinstance(part, ast.Return) for part in ast.walk(node))


def _constants(tree: ast.Module) -> Tuple[Dict[str, Optional[str]], Dict[str, str]]:
    """Names that hold a text or a version made of one, and those that hold the version of a
    package, ``self.x`` among them, also cut or made a number.
    """
    texts: Dict[str, Optional[str]] = {}
    versions: Dict[str, str] = {}
    assigned = [
        (_dotted(node.targets[0]), node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _dotted(node.targets[0])
    ]
    for name, value in assigned:
        inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            texts[name] = inner.value
    for name, value in assigned:
        package = version_of(value) or _version_by_name(value, texts, versions)
        if package:
            same = versions.get(name, package) == package
            versions[name] = package if same else ""
            texts.pop(name, None)
    return texts, {name: package for name, package in versions.items() if package}


def _cuts(tree: ast.Module) -> Dict[str, Cut]:
    """Names that hold a part of something, of which several assignments say the same."""
    cuts: Dict[str, Cut] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, cut = node.targets[0].id, cut_of(node.value, cuts)
            cuts[name] = cut if cuts.get(name, cut) == cut else Cut("other")
    return {name: cut for name, cut in cuts.items() if cut.part}


def _dotted(node: ast.expr) -> str:
    """The name that is assigned to, or ``self.x``; "" for another target."""
    if isinstance(node, ast.Attribute) and last_name(node.value) == "self":
        return f"self.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


#: What leaves a version what it is.
_KEEPING = frozenset(("float", "int", "str", "parse", "Version", "version", "LooseVersion"))


def _version_by_name(
    value: ast.expr, texts: Dict[str, Optional[str]], versions: Dict[str, str]
) -> str:
    """The package whose version is asked for by a name that holds its own, or is cut out of a name
    that holds its version: ``version(package)``, ``float(str(x_version)[:3]) / 100``.
    """
    if isinstance(value, ast.Call) and re.fullmatch(r"_?(?:get_)?version", last_name(value.func)):
        argument = _dotted(value.args[0]) if len(value.args) == 1 else ""
        if texts.get(argument) and not is_version(texts[argument] or ""):
            return texts[argument] or ""
    names = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)} - _KEEPING
    if isinstance(value, (ast.Call, ast.BinOp, ast.Subscript)) and len(names) == 1:
        return versions.get(names.pop(), "")
    return ""


def _is_about_packages(condition: Condition) -> bool:
    if condition[0] == "call":
        return bool(available_name(condition[1]))
    if condition[0] in ("not", "and", "or"):
        return any(_is_about_packages(part) for part in condition[1:])
    return condition[0] in ("version", "text", "present") or (
        condition[0] == "name" and "version" in condition[1]
    )


def _assigned_words(tree: ast.Module) -> Dict[str, str]:
    """What is assigned to names that hold a text, the last where there are several."""
    return {
        node.targets[0].id: text
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if isinstance(node.value, (ast.Constant, ast.JoinedStr, ast.BinOp))
        if (text := _text(node.value)) and " " in text
    }


def _callers(tree: ast.Module) -> Dict[str, Set[str]]:
    """Return by function those of the module that come to it, itself among them."""
    callees = callees_of(functions_of(tree))
    callers: Dict[str, Set[str]] = {}
    for start in callees:
        for name in functions_from(callees, start):
            callers.setdefault(name, set()).add(start)
    return callers


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
    return texts if all(is_version(text) for text in texts) else []


def _floor(texts: List[str]) -> Optional[List[str]]:
    """[package, specifier] of the arguments of a check."""
    if not texts:
        return None
    if len(texts) > 1 and is_version(texts[1]) and re.fullmatch(r"[\w.-]+", texts[0]):
        return [texts[0], f">={texts[1]}"]
    try:
        requirement = Requirement(texts[0])
    except InvalidRequirement:
        return None
    return [requirement.name, str(requirement.specifier)] if requirement.specifier else None


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
            name = last_name(node.func) if isinstance(node, ast.Call) else ""
            if name in functions and name not in called:
                called.add(name)
                waiting.append(functions[name])
    return called


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
