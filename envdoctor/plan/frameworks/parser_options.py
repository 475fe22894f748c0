"""Options that a script gives to argparse, as its source says it: a syntax tree is read, nothing is
run.
"""

from __future__ import annotations

import ast
import os
from functools import lru_cache
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Sequence

from ...model.record import NamedTuple
from .adapter import Run, read_small
from .key_tables import KeyTable, own_table

__all__ = ["ParserOptions", "checkout_options", "option_defaults", "parser_options"]

_NOTHING: Any = object()
Names = Mapping[str, List[str]]


class ParserOptions(NamedTuple):
    """defaults: by key, an option's name with "_" for "-", None where it has none that is a
    constant. switches: keys of those that take no value. constants: the defaults that are stated,
    by the attribute that the option sets. complete: no option may come from anywhere else.
    """

    defaults: Mapping[str, Any]
    switches: FrozenSet[str]
    constants: Mapping[str, Any]
    complete: bool


def option_defaults(text: str) -> Mapping[str, Any]:
    """Return what ``add_argument`` gives its options by default, as far as that is a constant."""
    return parser_options(text).constants


def checkout_options(
    run: Run, released: KeyTable, versions: Sequence[str], paths: Sequence[str]
) -> KeyTable:
    """Return the table of the options that the first of these files of a run's checkout declares;
    that of the releases where there is no checkout, or not all of its options can be read.

    versions: those that the checkout may be of.
    """
    for path in paths if run.checkout is not None else ():
        text = read_small(os.path.join(run.checkout.folder, path)) if run.checkout else None
        if text is None:
            continue
        options = parser_options(text)
        if options.defaults and options.complete:
            return own_table(
                released.framework, versions, options.defaults, path, sorted(options.switches)
            )
    return released


@lru_cache(maxsize=16)
def parser_options(text: str) -> ParserOptions:
    """Return the options that a module adds to its parsers: also in loops over constants."""
    try:
        tree = ast.parse(text)
        return _Reader(tree).read()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ParserOptions({}, frozenset(), {}, complete=False)


class _Reader:
    """Walks through a module and notes what it adds to parsers."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self.parsers = set(_parsers(tree))
        self.defaults: Dict[str, Any] = {}
        self.constants: Dict[str, Any] = {}
        self.switches: List[str] = []
        self.complete = True

    def read(self) -> ParserOptions:
        """Read all of it."""
        self._visit(self.tree, {})
        return ParserOptions(self.defaults, frozenset(self.switches), self.constants, self.complete)

    def _visit(self, node: ast.AST, names: Names) -> None:
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            values = _constant(node.iter)
            if isinstance(values, (list, tuple)):
                names = {**names, node.target.id: [str(value) for value in values]}
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
                self._option(node, names)
            elif self._hands_on(node):
                self.complete = False  # somebody else's function adds options
        for child in ast.iter_child_nodes(node):
            self._visit(child, names)

    def _hands_on(self, call: ast.Call) -> bool:
        """Tell whether a call gives a parser to a function of another module, or takes over the
        options of another parser.
        """
        if any(word.arg == "parents" for word in call.keywords):
            return True
        given = [*call.args, *(word.value for word in call.keywords)]
        gives = any(isinstance(one, ast.Name) and one.id in self.parsers for one in given)
        return gives and not (isinstance(call.func, ast.Name) and call.func.id in self.own)

    def _option(self, call: ast.Call, names: Names) -> None:
        given = {word.arg: word.value for word in call.keywords}
        keys: List[str] = []
        for argument in call.args:
            spelled = list(_spellings(argument, names))
            if not spelled and not isinstance(argument, ast.Constant):
                self.complete = False
            keys += [name[2:].replace("-", "_") for name in spelled if name.startswith("--")]
        if not keys or None in given:
            self.complete = self.complete and None not in given
            return
        action = str(_constant(given.get("action")))
        unset = {"store_true": False, "store_false": True}.get(action)
        value = _constant(given["default"]) if "default" in given else unset
        self.switches += keys if unset is not None else []
        target = _constant(given.get("dest"))
        # What an expression makes is looked up like any other reference, and not known.
        stated = f"${{{ast.unparse(given['default'])}}}" if value is _NOTHING else value
        self.defaults.update(dict.fromkeys(keys, stated))
        if value is _NOTHING:
            return
        if isinstance(target, str):
            keys = [target]
        elif not all(isinstance(one, ast.JoinedStr) for one in call.args):
            keys = keys[:1]  # argparse names the attribute after the first; a loop has one of each
        self.constants.update(dict.fromkeys(keys, value))


def _parsers(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module gives to parsers and their groups."""
    makers = ("ArgumentParser", "add_argument_group", "add_mutually_exclusive_group")
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            function = node.value.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            if (name or getattr(function, "id", "")) in makers:
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _spellings(node: ast.expr, names: Names) -> Iterator[str]:
    """Yield what an option's name may be: f-strings go through the loop around them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    if not isinstance(node, ast.JoinedStr):
        return
    texts = [""]
    for part in node.values:
        if isinstance(part, ast.Constant):
            texts = [text + str(part.value) for text in texts]
        elif isinstance(part, ast.FormattedValue):
            values = names.get(ast.unparse(part.value), [])
            texts = [text + value for text in texts for value in values]
    yield from texts


def _constant(node: Any) -> Any:
    if node is None:
        return _NOTHING
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _NOTHING
