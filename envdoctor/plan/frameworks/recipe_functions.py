"""What a Python function sets on the configuration that it returns: Megatron-Bridge's recipes. The
source is read as a syntax tree, and nothing of it runs.

``cfg = base()``, ``cfg = Container(part=Part(key=1))``, ``cfg.part.key = 1``, ``helper(cfg)`` and
``helper(cfg.part)`` are followed, through other modules too; of an ``if`` whose condition is not
known both branches may count, so that what they set is unclear. What else a statement may do to the
configuration is a setting that nobody understands.
"""

from __future__ import annotations

import ast
import operator
from functools import lru_cache
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ...model.evidence import Evidence
from .declared import imported_name
from .settings import Setting

__all__ = ["settings_of"]

_NOTHING: Any = object()
_DEEPEST = 12  # functions that call functions
_COMPARED: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_KINDS = {"str": str, "int": int, "bool": bool, "list": list, "dict": dict}


def settings_of(
    read: Callable[[str], Optional[str]], module: str, name: str
) -> Optional[List[Setting]]:
    """Return what a function sets, by dotted keys below its configuration; a model that is named to
    ``from_hf_pretrained`` is ``KEY.from_hf``, the class or function of a part ``KEY.made_by``.
    None where there is no such function.

    read: the text of a module by its dotted name, None where there is none.
    """
    place = _function(read, module, name)
    if place is None:
        return None
    frame = _Frame(read, *place)
    try:
        frame.run()
    except RecursionError:
        return None  # nested deeper than any configuration
    return list(frame.configuration.values())


def _function(
    read: Callable[[str], Optional[str]], module: str, name: str
) -> Optional[Tuple[str, ast.FunctionDef]]:
    """Return the function that a module calls by a name, and the module that defines it."""
    for _ in range(_DEEPEST):
        tree = _tree(read(module) or "")
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return module, node
        source = imported_name(tree, name)
        if source is None:
            return None
        module, name = source
    return None


def _returns_configuration(
    read: Callable[[str], Optional[str]], module: str, call: ast.Call, depth: int = 0
) -> bool:
    """Tell whether a call makes a container, or is of a function that returns one."""
    name = ast.unparse(call.func)
    if name.endswith("Container"):
        return True
    place = _function(read, module, name) if name.isidentifier() and depth < _DEEPEST else None
    if place is None:
        return False
    home, function = place
    assigned = {
        target.id: node.value
        for node in function.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    made = [assigned.get(one.id) if isinstance(one, ast.Name) else one for one in returned]
    return any(
        isinstance(one, ast.Call) and _returns_configuration(read, home, one, depth + 1)
        for one in made
    )


@lru_cache(maxsize=32)
def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _uncast(value: Any) -> Any:
    """Return what ``cast(T, value)`` returns."""
    casts = isinstance(value, ast.Call) and ast.unparse(value.func) in ("cast", "typing.cast")
    return value.args[1] if casts and len(value.args) == 2 else value


class _Frame:
    """One call of a function. ``parts``: names that stand for the configuration or a part of it,
    by the prefix of its keys; ``values``: names of constants.
    """

    def __init__(
        self,
        read: Callable[[str], Optional[str]],
        module: str,
        function: ast.FunctionDef,
        outer: Optional[_Frame] = None,
        result: str = "",
    ) -> None:
        self.read, self.module, self.function = read, module, function
        self.result = result  # the key of what it returns, "" for the configuration
        returned = [one.value for one in ast.walk(function) if isinstance(one, ast.Return)]
        names = {one.id if isinstance(one, ast.Name) else "" for one in returned}
        self.returned = names.pop() if result and len(names) == 1 else ""
        self.depth: int = outer.depth + 1 if outer is not None else 0
        self.configuration: Dict[str, Setting] = outer.configuration if outer is not None else {}
        self.parts: Dict[str, str] = {}
        self.values: Dict[str, Any] = {}
        self.is_sure: bool = outer.is_sure if outer is not None else True
        self.has_ended = False

    def run(self, call: Optional[ast.Call] = None, outer: Optional[_Frame] = None) -> None:
        """Follow the statements, with the arguments of a call."""
        arguments = self.function.args
        names = [one.arg for one in (*arguments.args, *arguments.kwonlyargs)]
        defaults = [*arguments.defaults, *(one for one in arguments.kw_defaults if one)]
        for name, node in zip(reversed(names), reversed(defaults)):
            self._bind(name, node, self)
        if call is not None and outer is not None:
            given = [*zip(names, call.args), *((one.arg, one.value) for one in call.keywords)]
            for argument, node in given:
                if argument is not None:
                    self._bind(argument, node, outer)
        self._follow(self.function.body)

    def _bind(self, name: str, node: ast.expr, frame: _Frame) -> None:
        prefix = frame._part(node)
        value = frame._value(node)
        self.values.pop(name, None)
        if prefix is not None:
            self.parts[name] = prefix
        elif value is not _NOTHING:
            self.values[name] = value

    def _follow(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.has_ended:
                return
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    self._assign(target, statement.value)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self._assign(statement.target, statement.value)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self._call(statement.value)
            elif isinstance(statement, ast.If):
                self._branch(statement)
            elif isinstance(statement, ast.Return):
                self._return(statement.value)
            elif self._touches(statement):
                self._doubt(statement)

    def _return(self, value: Optional[ast.expr]) -> None:
        value = _uncast(value)
        if isinstance(value, ast.Call):
            self._make(self.result, value)
        self.has_ended = True

    def _branch(self, statement: ast.If) -> None:
        condition = self._value(statement.test)
        if condition is not _NOTHING:
            self._follow(statement.body if condition else statement.orelse)
            return
        was_sure, self.is_sure = self.is_sure, False
        for branch in (statement.body, statement.orelse):
            self._follow(branch)
            self.has_ended = False
        self.is_sure = was_sure

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        value = _uncast(value)
        if isinstance(target, ast.Name):
            if target.id == self.returned:
                self._set(self.result, value)
                self.parts[target.id] = self.result
            elif isinstance(value, ast.Call) and self._makes_configuration(value):
                self._make("", value)
                self.parts[target.id] = ""
            else:
                self._bind(target.id, value, self)
            return
        key = self._part(target)
        if key:
            self._set(key, value)
        elif isinstance(target, ast.Subscript) and self._touches(target):
            self._doubt(target)

    def _makes_configuration(self, call: ast.Call) -> bool:
        """Tell whether a call returns a configuration: a container, or what a function returns that
        itself returns one.
        """
        is_given = any(self._part(argument) == "" for argument in call.args)
        return is_given or _returns_configuration(self.read, self.module, call)

    def _make(self, prefix: str, call: ast.Call) -> None:
        """Note what a call makes of the configuration, or of a part of it."""
        name = ast.unparse(call.func)
        place = _function(self.read, self.module, name) if name.isidentifier() else None
        if place is not None and self.depth < _DEEPEST:
            before = dict(self.configuration)
            inner = _Frame(self.read, *place, self, prefix)
            inner.run(call, self)
            if not prefix or f"{prefix}.from_hf" in self.configuration:
                return
            self.configuration.clear()
            self.configuration.update(before)
        if prefix:
            self.configuration.pop(prefix, None)
            self._put(f"{prefix}.made_by", name.rpartition(".")[2], call)
        for keyword in call.keywords:
            if keyword.arg is not None:
                self._set(f"{prefix}.{keyword.arg}" if prefix else keyword.arg, keyword.value)
        source = call.func.value if isinstance(call.func, ast.Attribute) else None
        while isinstance(source, ast.Call):
            if isinstance(source.func, ast.Attribute) and source.func.attr.startswith("from_hf"):
                first = [*source.args, *(one.value for one in source.keywords)][:1]
                self._put(f"{prefix}.from_hf", self._value(first[0]) if first else None, call)
            source = source.func.value if isinstance(source.func, ast.Attribute) else None

    def _call(self, call: ast.Call) -> None:
        """Follow a function that is given the configuration or a part of it."""
        name = ast.unparse(call.func)
        given = [self._part(node) for node in (*call.args, *(one.value for one in call.keywords))]
        if all(part is None for part in given):
            return
        place = _function(self.read, self.module, name) if name.isidentifier() else None
        if place is None or self.depth >= _DEEPEST:
            self._doubt(call)
            return
        inner = _Frame(self.read, *place, self)
        inner.run(call, self)

    def _set(self, key: str, node: ast.expr) -> None:
        value = self._value(node)
        if value is _NOTHING and isinstance(node, ast.Call):
            self._forget(key)
            self._make(key, node)
            inside = [one for one in self.configuration if one.startswith(f"{key}.")]
            name = ast.unparse(node.func).rpartition(".")[2]
            if len(inside) > 1 or name[:1].isupper():
                return  # a part; what else a function returns may be a single value
            made = self.configuration.pop(f"{key}.made_by")
            self._put(key, value, node)
            self.configuration[made.key] = made
            return
        if value is _NOTHING and isinstance(node, ast.Name) and node.id not in self.values:
            return  # made before, of what is not read: defaults stand
        self._put(key, value, node)

    def _put(self, key: str, value: Any, node: ast.AST) -> None:
        place = Evidence(f"{self.module}:{getattr(node, 'lineno', 0)}", f"{key} = {value}"[:200])
        unclear = ""
        if value is _NOTHING or (value is None and key.endswith(".from_hf")):
            value, unclear = None, f"{self.function.name} computes it"
            place = place._replace(detail=key)
        elif not self.is_sure and self.configuration.get(key, Setting("", _NOTHING, place))[1] != (
            value
        ):
            value, unclear = None, f"{self.function.name} sets it under a condition"
        self._forget(key)
        self.configuration[key] = Setting(key, value, place, "", unclear)

    def _forget(self, key: str) -> None:
        for one in [one for one in self.configuration if one.startswith(f"{key}.")]:
            del self.configuration[one]

    def _doubt(self, node: ast.AST) -> None:
        """Note a statement that may change the configuration in a way that is not followed."""
        text = ast.unparse(node).partition("\n")[0][:80]
        place = Evidence(f"{self.module}:{getattr(node, 'lineno', 0)}", text)
        self.configuration[text] = Setting(text, None, place, "", "it is not followed")

    def _touches(self, node: ast.AST) -> bool:
        names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
        return any(name in self.parts for name in names)

    def _part(self, node: ast.expr) -> Optional[str]:
        """Return the key that an expression stands for, "" for the configuration; None for what is
        no part of it.
        """
        names: List[str] = []
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.parts:
            return None
        return ".".join(one for one in (self.parts[node.id], *names) if one)

    def _value(self, node: ast.expr) -> Any:
        """Return what an expression is, where that can be told; types of torch by their names."""
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass
        if isinstance(node, ast.Name):
            return self.values[node.id] if node.id in self.values else self._constant(node.id)
        if isinstance(node, ast.Attribute):
            key = self._part(node)
            if key is None:
                is_type = isinstance(node.value, ast.Name) and node.value.id == "torch"
                return node.attr if is_type else _NOTHING
            known = self.configuration.get(key)
            return known.value if known is not None and not known.unclear else _NOTHING
        return self._computed(node)

    def _constant(self, name: str) -> Any:
        """Return what a module binds a name to."""
        tree = _tree(self.read(self.module) or "")
        module, original = imported_name(tree, name) or ("", name)
        for node in _tree(self.read(module) or "").body if module else tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(isinstance(one, ast.Name) and one.id == original for one in targets):
                try:
                    return ast.literal_eval(node.value)  # type: ignore[attr-defined]
                except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                    return _NOTHING
        return _NOTHING

    def _computed(self, node: ast.expr) -> Any:
        if isinstance(node, ast.BoolOp):
            return self._joined([self._value(one) for one in node.values], node.op)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self._value(node.operand)
            return value if value is _NOTHING else not value
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = self._value(node.left), self._value(node.comparators[0])
            known = left is not _NOTHING and right is not _NOTHING
            try:
                return _COMPARED[type(node.ops[0])](left, right) if known else _NOTHING
            except TypeError:
                return _NOTHING
        if isinstance(node, ast.Call):
            return self._answered(node)
        return _NOTHING

    @staticmethod
    def _joined(values: Sequence[Any], joint: ast.boolop) -> Any:
        decides = isinstance(joint, ast.Or)
        known = [value for value in values if value is not _NOTHING]
        if any(bool(value) is decides for value in known):
            return decides
        return not decides if len(known) == len(values) else _NOTHING

    def _answered(self, call: ast.Call) -> Any:
        """Return what ``isinstance(x, str)`` and ``x.lower()`` are."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "lower" and not call.args:
            value = self._value(call.func.value)
            return value.lower() if isinstance(value, str) else _NOTHING
        if ast.unparse(call.func) == "isinstance" and len(call.args) == 2:
            value = self._value(call.args[0])
            kind = _KINDS.get(ast.unparse(call.args[1]))
            return isinstance(value, kind) if kind and value is not _NOTHING else _NOTHING
        return _NOTHING
