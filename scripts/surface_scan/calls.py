"""How a module calls what it imports, and how its classes call their own methods, read from its
source without running it.

The reading is JSON:

* ``calls``: :class:`Call` as lists, of functions and classes that are imported from elsewhere, of
  their attributes, and of ``super()``.
* ``own``: class → method → :class:`OwnCall` as lists.
* ``above``: class → methods that hand on to the class above, ``super().method(…)``.
* ``exchanged``: functions and methods behind a decorator that may take other arguments than they.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Set, Tuple, Union

from .conditions import Condition, Scope, condition_of
from .parsing import UNPARSABLE, last_name, parse_quietly

__all__ = ["CALLS_REVISION", "Call", "OwnCall", "read_calls"]

#: Raised when another reading of the same source is wanted.
CALLS_REVISION = "calls 2"


class Call(NamedTuple):
    """A call of something that another module defines.

    target: ``module:name.attribute``, or ``super:Class.method``. keywords: those that are named.
    function: in which it stands, "" for the module. conditions: all have to hold for it to run.
    sure: nothing else decides whether the function comes to it.
    """

    line: int
    target: str
    keywords: List[str]
    function: str
    conditions: List[Condition]
    sure: bool


class OwnCall(NamedTuple):
    """A call ``self.method(…)``. count: of positional arguments, -1 where ``*`` hides it. caller:
    the method in which it stands. asks: it stands under a test of what can be called.
    """

    line: int
    count: int
    keywords: List[str]
    caller: str
    sure: bool
    asks: bool


#: A test that asks what can be called, or for what is there in a way that is not read: what stands
#: under it knows of several releases.
_ASKS = re.compile(
    r"(?i)version|signature|hasattr|getattr|parameters|inspect|accept|support|compat|legacy"
    r"|fields\b|_available|_ge_|_gte|_lt_|import"
)
_HARMLESS = re.compile(
    r"staticmethod|classmethod|(?:abc\.)?abstractmethod|(?:typing\.)?override|(?:typing\.)?final"
    r"|(?:torch\.)?(?:no_grad|inference_mode)\(.*\)|torch\.jit\.\w+"
    r"|(?:functools\.)?(?:cache|lru_cache)(?:\(.*\))?"
    r"|(?:add|replace)_\w*docstrings?\w*\(.*\)|(?:[\w.]+\.)?auto_docstring(?:\(.*\))?"
    r"|(?:[\w.]+\.)?deprecate_kwarg\(.*\)|(?:[\w.]+\.)?dataclass(?:\(.*\))?"
    r"|experimental(?:\(.*\))?",
    re.DOTALL,
)
_CATCHES = frozenset(("TypeError", "Exception", "BaseException", ""))
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_calls(source: bytes) -> Dict[str, Any]:
    """Return the reading of a module, empty where it cannot be parsed."""
    try:
        tree = parse_quietly(source)
    except UNPARSABLE:
        return {}
    reader = _Reader(_aliases(tree.body))
    reader.module(tree)
    reading = {
        "calls": [list(call) for call in reader.calls],
        "own": {
            name: {method: [list(call) for call in calls] for method, calls in methods.items()}
            for name, methods in reader.own.items()
        },
        "above": {name: sorted(methods) for name, methods in reader.above.items()},
        "exchanged": sorted(reader.exchanged),
    }
    return {key: value for key, value in reading.items() if value}


def _aliases(body: Iterable[ast.stmt]) -> Dict[str, str]:
    """``module:name`` by the name that a module has for what it imports; of two, or of what it
    binds otherwise as well, nothing.
    """
    aliases: Dict[str, str] = {}
    for node in _flat(body):
        for name, target in _bound(node):
            aliases[name] = target if aliases.get(name, target) == target else ""
    return {name: target for name, target in aliases.items() if target}


def _bound(node: ast.stmt) -> Iterator[Tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield alias.asname or top, f"{alias.name if alias.asname else top}:"
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            target = "" if node.level else f"{node.module}:{alias.name}"
            yield alias.asname or alias.name, target
    elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield node.name, ""
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from ((part.id, "") for part in ast.walk(target) if isinstance(part, ast.Name))


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, and those below ``if``, ``try`` and ``with``."""
    for node in body:
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _flat(getattr(node, field, None) or ())
            for handler in getattr(node, "handlers", None) or ():
                yield from _flat(handler.body)


class _Way(NamedTuple):
    """How a function comes to a statement."""

    conditions: Tuple[Condition, ...] = ()
    sure: bool = True
    asks: bool = False

    def under(self, test: ast.expr, holds: bool) -> _Way:
        """Return the way through a test."""
        condition = condition_of(test, Scope())
        if _is_about_packages(condition):
            condition = condition if holds else ["not", condition]
            return self._replace(conditions=(*self.conditions, condition))
        asks = self.asks or bool(_ASKS.search(ast.unparse(test)))
        return self._replace(sure=False, asks=asks)


def _is_about_packages(condition: Condition) -> bool:
    if condition[0] in ("not", "and", "or"):
        return all(_is_about_packages(part) for part in condition[1:])
    return condition[0] in ("version", "present", "typing", "const") or (
        condition[0] == "call" and condition[1].endswith("_available")
    )


class _Reader:
    def __init__(self, aliases: Dict[str, str]) -> None:
        self._module_aliases = aliases
        self._aliases = aliases
        self._class = ""
        self._function = ""
        self.calls: List[Call] = []
        self.own: Dict[str, Dict[str, List[OwnCall]]] = {}
        self.above: Dict[str, Set[str]] = {}
        self.exchanged: List[str] = []

    def module(self, tree: ast.Module) -> None:
        self._body(tree.body, _Way())

    def _body(self, body: Sequence[ast.stmt], way: _Way) -> None:
        for node in body:
            self._statement(node, way)
            if isinstance(node, ast.If) and not node.orelse and _leaves(node):
                ends = isinstance(node.body[-1], (ast.Return, ast.Continue, ast.Break))
                way = way.under(node.test, False) if ends else way._replace(sure=False)

    def _statement(self, node: ast.stmt, way: _Way) -> None:
        if isinstance(node, _FUNCTIONS):
            self._definition(node)
        elif isinstance(node, ast.ClassDef):
            if not self._class and not self._function:
                self._class = node.name
                self._body(node.body, way)
                self._class = ""
        elif isinstance(node, ast.If):
            self._expression(node.test, way)
            self._body(node.body, way.under(node.test, True))
            if node.orelse:
                self._body(node.orelse, way.under(node.test, False))
        elif isinstance(node, ast.Try):
            caught = any(_catches(handler) for handler in node.handlers)
            if not caught:
                self._body(node.body, way)
            self._body([*node.orelse, *node.finalbody], way)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            self._body(node.body, way._replace(sure=False))
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._expression(item.context_expr, way)
            self._body(node.body, way)
        else:
            self._expression(node, way)

    def _definition(self, node: _Function) -> None:
        if self._function:
            return  # who calls what is defined inside, and whether, is not known
        self._function = f"{self._class}.{node.name}" if self._class else node.name
        if not all(_HARMLESS.fullmatch(ast.unparse(mark)) for mark in node.decorator_list):
            self.exchanged.append(self._function)
        local = {name for statement in _flat(node.body) for name, _ in _bound(statement)}
        local |= {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
        outer = {name: each for name, each in self._module_aliases.items() if name not in local}
        self._aliases = {**outer, **_aliases(node.body)}
        self._body(node.body, _Way())
        self._function, self._aliases = "", self._module_aliases

    def _expression(self, node: ast.AST, way: _Way) -> None:
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.IfExp):
            self._expression(node.test, way)
            for branch, holds in ((node.body, True), (node.orelse, False)):
                self._expression(branch, way.under(node.test, holds))
            return
        if isinstance(node, ast.Call):
            self._call(node, way)
        for part in ast.iter_child_nodes(node):
            self._expression(part, way)

    def _call(self, node: ast.Call, way: _Way) -> None:
        keywords = [item.arg for item in node.keywords if item.arg]
        names, root = _chain(node.func)
        sure = way.sure
        if isinstance(root, ast.Name) and root.id == "self" and len(names) == 1 and self._class:
            hidden = any(isinstance(item, ast.Starred) for item in node.args)
            count = -1 if hidden else len(node.args)
            caller = self._function.rpartition(".")[2]
            is_sure = sure and not way.conditions
            call = OwnCall(node.lineno, count, keywords, caller, is_sure, way.asks)
            self.own.setdefault(self._class, {}).setdefault(names[0], []).append(call)
            return
        target = ""
        if isinstance(root, ast.Name) and root.id in self._aliases:
            target = self._aliases[root.id]
            target += ".".join(names) if target.endswith(":") else "".join(f".{n}" for n in names)
        elif isinstance(root, ast.Call) and last_name(root.func) == "super" and len(names) == 1:
            target = f"super:{self._class}.{names[0]}" if self._class else ""
            if names[0] == self._function.rpartition(".")[2]:
                self.above.setdefault(self._class, set()).add(names[0])
        if target and keywords and not way.asks:
            conditions = list(way.conditions)
            self.calls.append(Call(node.lineno, target, keywords, self._function, conditions, sure))


def _chain(node: ast.expr) -> Tuple[List[str], ast.expr]:
    """``(["b", "c"], a)`` of ``a.b.c``."""
    names: List[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return names, node


def _leaves(node: ast.If) -> bool:
    """Whether a function may end in an ``if``; by an error it says itself what is wrong."""
    kinds = (ast.Return, ast.Continue, ast.Break)
    return any(isinstance(part, kinds) for part in ast.walk(node))


def _catches(handler: ast.ExceptHandler) -> bool:
    kind = handler.type
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    names = {last_name(each) if each is not None else "" for each in kinds}
    return bool(names & _CATCHES) and not isinstance(handler.body[-1], ast.Raise)
