"""What a source raises: the text of each exception as a template, its class, where it stands, and
the conditions under which the source comes there.

A template is the text with ``{expression}`` where the source fills one in; braces of the text
itself are doubled. Conditions are expressions of the source, outermost first: of each ``if`` and
``elif`` around it the test, of an ``else`` its negation, of an ``assert`` that of what it asserts;
where nothing is around it, the negated tests before it that leave the function. ``except E: s`` is
a handler of ``E`` around ``s``. What was too long to be kept is "…". Nothing is run.
"""

from __future__ import annotations

import ast
import re
import string
from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from .parsing import UNPARSABLE, last_name, parse_quietly

__all__ = ["REVISION", "RaisedMessage", "negated", "read_messages"]

REVISION = "3"
_MOST_CONDITION = 200
_MOST_CONDITIONS = 5
_MOST_HOLE = 60
_MOST_TEMPLATE = 600
_MOST_PASSED = 2
_DEEP = 6  # steps from a name to its text
_PERCENT = re.compile(
    r"%(?:\((\w+)\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?([diouxXeEfFgGcrsa%])"
)
_WORDED = ("message", "msg", "detail", "reason")
#: torch._check and its like, by the class that they raise (torch/__init__.py).
_CHECKS = {
    "_check": "RuntimeError",
    "_check_index": "IndexError",
    "_check_value": "ValueError",
    "_check_type": "TypeError",
    "_check_not_implemented": "NotImplementedError",
}
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_Functions = (ast.FunctionDef, ast.AsyncFunctionDef)
_EXCEPTION = re.compile(r"(?:Error|Exception|Exit|Interrupt|Timeout|Warning)$")


class Hole(str):
    """An expression that is filled in."""


Part = Union[str, Hole]


class RaisedMessage(NamedTuple):
    """One place that raises. function: its qualified name, "" at module level."""

    template: str
    raises: str
    function: str
    line: int
    conditions: Tuple[str, ...]


def read_messages(source: bytes) -> List[RaisedMessage]:
    """Return what a source raises with a text; nothing for one that is no Python of today."""
    if b"raise" not in source and b"assert" not in source and b"_check" not in source:
        return []
    try:
        tree = parse_quietly(source)
    except UNPARSABLE:
        return []
    reader = _Reader(tree)
    return list(reader.block(tree.body, _Place("", None, ())))


def negated(test: ast.expr) -> ast.expr:
    """Return the expression that is true where another is not.

    An order is not turned round: ``not a < b`` holds for what cannot be ordered, too.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.BoolOp):
        joiner: ast.boolop = ast.Or() if isinstance(test.op, ast.And) else ast.And()
        return ast.BoolOp(joiner, [negated(value) for value in test.values])
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = _OPPOSITES.get(type(test.ops[0]))
        if other is not None:
            return ast.Compare(test.left, [other()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


_OPPOSITES: Dict[type, Any] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class _Place(NamedTuple):
    """Where statements stand: a qualified name, the function's node and the conditions around."""

    function: str
    node: Optional[ast.AST]
    conditions: Tuple[str, ...]

    def under(self, *conditions: str) -> _Place:
        return self._replace(conditions=(*self.conditions, *conditions))

    def inner(self, name: str, node: Optional[ast.AST]) -> _Place:
        return _Place(f"{self.function}.{name}" if self.function else name, node, ())


class _Reader:
    """Reads one module."""

    def __init__(self, tree: ast.Module) -> None:
        self._constants = _constants(tree)
        self._locals: Dict[int, Dict[str, List[ast.expr]]] = {}
        self._exceptions: Set[str] = set()  # classes that are exceptions

    def block(self, body: Sequence[ast.stmt], place: _Place) -> Iterator[RaisedMessage]:
        """Yield what a block raises, in the order of the source."""
        passed: List[str] = []  # the negated tests before it that leave the block
        for statement in body:
            here = place
            if isinstance(statement, (ast.Raise, ast.Assert)) and not place.conditions:
                here = place.under(*passed[-_MOST_PASSED:])
            yield from self._statement(statement, here)
            if isinstance(statement, ast.If) and not statement.orelse and _leaves(statement.body):
                passed.append(_source(negated(statement.test)))

    def _statement(self, node: ast.stmt, place: _Place) -> Iterator[RaisedMessage]:
        if isinstance(node, ast.Raise):
            yield from self._raise(node, place)
        elif isinstance(node, ast.Assert):
            if node.msg is not None:
                under = place.under(_source(negated(node.test)))
                yield from self._message(node.msg, "AssertionError", node.lineno, under)
        elif isinstance(node, ast.Expr):
            yield from self._call(node.value, place)
        elif isinstance(node, ast.If):
            yield from self.block(node.body, place.under(_source(node.test)))
            yield from self.block(node.orelse, place.under(_source(negated(node.test))))
        elif isinstance(node, _Functions):
            yield from self.block(node.body, place.inner(node.name, node))
        elif isinstance(node, ast.ClassDef):
            inner = place.inner(node.name, place.node)
            if any(map(_EXCEPTION.search, (node.name, *map(last_name, node.bases)))):
                self._exceptions.add(inner.function)
            yield from self.block(node.body, inner)
        elif isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            yield from self._try(node, place)
        elif type(node).__name__ == "Match":
            subject = _source(node.subject)  # type: ignore[attr-defined]
            for case in node.cases:  # type: ignore[attr-defined]
                test = f"match {subject}: {_source(case.pattern)}"
                yield from self.block(case.body, place.under(_bounded(test)))
        else:
            for name in ("body", "orelse"):
                yield from self.block(getattr(node, name, ()), place)

    def _try(self, node: Any, place: _Place) -> Iterator[RaisedMessage]:
        yield from self.block(node.body, place)
        tried = _source(node.body[0]) if len(node.body) == 1 else "…"
        for handler in node.handlers:
            kind = "Exception" if handler.type is None else _source(handler.type)
            caught = f"except {kind}: {tried if tried.count(chr(10)) == 0 else '…'}"
            yield from self.block(handler.body, place.under(_bounded(caught)))
        yield from self.block(node.orelse, place)
        yield from self.block(node.finalbody, place)

    def _raise(self, node: ast.Raise, place: _Place) -> Iterator[RaisedMessage]:
        call = node.exc
        if not isinstance(call, ast.Call):
            return
        kind = last_name(call.func)
        if not kind[:1].isupper():
            return
        text = _text_of(call)
        if text is not None:
            yield from self._message(text, kind, node.lineno, place)

    def _call(self, call: ast.expr, place: _Place) -> Iterator[RaisedMessage]:
        """Yield what a call raises that is known to: torch._check, sys.exit, and the constructor of
        an exception that gives its base the text.
        """
        if not isinstance(call, ast.Call):
            return
        name = last_name(call.func)
        if name in _CHECKS and len(call.args) == 2:
            under = place.under(_source(negated(call.args[0])))
            yield from self._message(call.args[1], _CHECKS[name], call.lineno, under)
        elif name == "__init__" and len(call.args) >= 1 and place.function.endswith(".__init__"):
            owner = place.function.rpartition(".")[0]
            base = call.func.value if isinstance(call.func, ast.Attribute) else None
            if isinstance(base, ast.Call) and owner in self._exceptions:
                kind = owner.rpartition(".")[2]
                yield from self._message(call.args[0], kind, call.lineno, place)

    def _message(
        self, text: ast.expr, kind: str, line: int, place: _Place
    ) -> Iterator[RaisedMessage]:
        parts = self._parts(text, place.node, 0)
        template = _template(parts)
        if len(template) <= _MOST_TEMPLATE and any(
            part.strip() for part in parts if not isinstance(part, Hole)
        ):
            kept = place.conditions[-_MOST_CONDITIONS:]
            if len(kept) < len(place.conditions):
                kept = ("…", *kept[1:])
            yield RaisedMessage(template, kind, place.function, line, kept)

    # the text

    def _parts(self, node: ast.expr, function: Optional[ast.AST], depth: int) -> List[Part]:
        """Return the text of an expression, with holes for what is not known."""
        if depth > _DEEP:
            return [_hole(node)]
        if isinstance(node, ast.Constant):
            return [str(node.value)]
        if isinstance(node, ast.JoinedStr):
            return [part for value in node.values for part in self._parts(value, function, depth)]
        if isinstance(node, ast.FormattedValue):
            return self._filled(node.value, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._parts(node.left, function, depth + 1) + self._parts(
                node.right, function, depth + 1
            )
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return _percent(self._parts(node.left, function, depth + 1), node.right)
        if isinstance(node, ast.Lambda):
            return self._parts(node.body, function, depth + 1)
        if isinstance(node, ast.Call):
            return self._of_call(node, function, depth)
        if isinstance(node, ast.Name):
            return self._of_name(node, function, depth)
        return [_hole(node)]

    def _filled(self, node: ast.expr, depth: int) -> List[Part]:
        """Return what stands in braces of an f-string: a constant's text, else a hole."""
        if isinstance(node, ast.Name):
            parts = self._of_name(node, None, depth)
            if not any(isinstance(part, Hole) for part in parts):
                return parts
        return [_hole(node)]

    def _of_call(self, node: ast.Call, function: Optional[ast.AST], depth: int) -> List[Part]:
        name = last_name(node.func)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name == "format" and owner is not None:
            return _formatted(self._parts(owner, function, depth + 1), node)
        if name == "join" and isinstance(owner, ast.Constant) and len(node.args) == 1:
            items = node.args[0]
            if isinstance(items, (ast.List, ast.Tuple)):
                joined: List[Part] = []
                for number, item in enumerate(items.elts):
                    joined += [str(owner.value)] if number else []
                    joined += self._parts(item, function, depth + 1)
                return joined
        if name in ("dedent", "cleandoc", "_") and len(node.args) == 1:
            return self._parts(node.args[0], function, depth + 1)
        if name in ("strip", "lstrip", "rstrip") and owner is not None and not node.args:
            return self._parts(owner, function, depth + 1)
        if name in ("str", "repr") and len(node.args) == 1 and owner is None:
            return [_hole(node.args[0])]
        return [_hole(node)]

    def _of_name(self, node: ast.Name, function: Optional[ast.AST], depth: int) -> List[Part]:
        """Return the text of a name: of what the function, or else the module, gives it."""
        values: List[ast.expr] = []
        if function is not None:
            if id(function) not in self._locals:
                self._locals[id(function)] = _assignments(list(_of_function(function)))
            values = [
                value
                for value in self._locals[id(function)].get(node.id, ())
                if value.lineno <= node.lineno
            ]
        else:
            values = self._constants.get(node.id, [])
        if not values and function is not None:
            return self._of_name(node, None, depth)
        if not values or isinstance(values[-1], ast.Name):
            return [_hole(node)]
        # The last before it counts; what was added to it afterwards stands behind.
        first = max(
            (number for number, value in enumerate(values) if not _is_added(value)), default=0
        )
        parts = self._parts(values[first], function, depth + 1)
        return parts + [Hole("…") for _ in values[first + 1 : first + 2]]


class _Added(ast.Constant):
    """What is added to a name: its place alone counts."""


def _is_added(value: ast.expr) -> bool:
    return isinstance(value, _Added)


def _constants(tree: ast.Module) -> Dict[str, List[ast.expr]]:
    """Return what a module's statements give to names that get nothing else anywhere: one that a
    branch, a loop or a function with ``global`` sets as well has no text that is always so.
    """
    counts = Counter(
        node.id
        for statement in _of_function(tree)
        for node in _own_names(statement)
        if isinstance(node.ctx, ast.Store)
    )
    changed = {
        name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names
    }
    return {
        name: values
        for name, values in _assignments(tree.body).items()
        if counts[name] == 1 and name not in changed
    }


def _own_names(statement: ast.stmt) -> Iterator[ast.Name]:
    """Yield the names of a statement, without those of statements in it and of functions."""
    waiting: List[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            yield node
        waiting += [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.Lambda))
        ]


def _assignments(body: Sequence[ast.stmt]) -> Dict[str, List[ast.expr]]:
    """Return what is assigned to names by these statements."""
    assigned: Dict[str, List[ast.expr]] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            assigned.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            added = _Added(value="", lineno=node.lineno, col_offset=0)
            assigned.setdefault(node.target.id, []).append(added)
    return assigned


def _of_function(function: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a function, without those of functions in it."""
    waiting: List[ast.AST] = list(getattr(function, "body", ()))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (*_Functions, ast.ClassDef)):
            continue
        if isinstance(node, ast.stmt):
            yield node
        inner: List[ast.AST] = []
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner += getattr(node, name, ())
        waiting = inner + waiting


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], _LEAVES)


def _text_of(call: ast.Call) -> Optional[ast.expr]:
    """Return the argument that is an exception's text: the first, or the one behind an error
    number, or the one whose keyword says so.
    """
    arguments = [entry for entry in call.args if not isinstance(entry, ast.Starred)]
    if len(arguments) != len(call.args):
        return None
    if arguments:
        first = arguments[0]
        number = isinstance(first, ast.Constant) and isinstance(first.value, int)
        is_errno = number or (isinstance(first, ast.Attribute) and first.attr.startswith("E"))
        return arguments[1] if is_errno and len(arguments) > 1 else first
    for keyword in call.keywords:
        if keyword.arg in _WORDED:
            return keyword.value
    return None


def _hole(node: ast.expr) -> Hole:
    text = _unparsed(node)
    return Hole(text if len(text) <= _MOST_HOLE and "\n" not in text else "…")


def _source(node: ast.AST) -> str:
    return _bounded(_unparsed(node))


def _bounded(text: str) -> str:
    return text if len(text) <= _MOST_CONDITION else "…"


def _unparsed(node: ast.AST) -> str:
    return ast.unparse(node)


def _percent(parts: Sequence[Part], right: ast.expr) -> List[Part]:
    """Return a text with what ``%`` fills in."""
    values = iter(right.elts if isinstance(right, ast.Tuple) else (right,))
    keyed = (
        {
            key.value: value
            for key, value in zip(right.keys, right.values)
            if isinstance(key, ast.Constant)
        }
        if isinstance(right, ast.Dict)
        else {}
    )
    filled: List[Part] = []
    for part in parts:
        if isinstance(part, Hole):
            filled.append(part)
            continue
        end = 0
        for match in _PERCENT.finditer(part):
            filled.append(part[end : match.start()])
            end = match.end()
            if match.group(2) == "%":
                filled.append("%")
                continue
            value = keyed.get(match.group(1)) if match.group(1) else next(values, None)
            filled.append(Hole("…") if value is None else _hole(value))
        filled.append(part[end:])
    return filled


def _formatted(parts: Sequence[Part], call: ast.Call) -> List[Part]:
    """Return a text with what ``.format`` fills in."""
    keyed = {keyword.arg: keyword.value for keyword in call.keywords}
    count = 0
    filled: List[Part] = []
    for part in parts:
        if isinstance(part, Hole):
            filled.append(part)
            continue
        try:
            pieces = list(string.Formatter().parse(part))
        except ValueError:
            return [Hole("…")]
        for literal, field, _, _ in pieces:
            filled.append(literal)
            if field is None:
                continue
            head = re.split(r"[.\[]", field, maxsplit=1)[0]
            place = count if not head else int(head) if head.isdigit() else -1
            count += not head
            value = call.args[place] if 0 <= place < len(call.args) else keyed.get(head)
            filled.append(Hole("…") if value is None else _hole(value))
    return filled


def _template(parts: Sequence[Part]) -> str:
    """Join parts: white space as one blank, holes in braces, neighbouring holes as one."""
    text = ""
    after_hole = False
    for part in parts:
        if isinstance(part, Hole):
            text += "" if after_hole else f"{{{part.replace('{', '(').replace('}', ')')}}}"
            after_hole = True
        elif part:
            text += part.replace("{", "{{").replace("}", "}}")
            after_hole = False
    return re.sub(r"\s+", " ", text).strip()
