"""What one Python module binds, imports and asks, read from its source without running it.

The reading is JSON, so that it is kept: a source that many releases share is parsed once.

* ``bound``: names bound at module level in any branch that may run, ``all``: a literal ``__all__``.
* ``typed``: names that only a type checker sees bound, of a module that makes names when it is
  asked for them: which, its tables may not say.
* ``stars``: [level, module] of star imports.
* ``dynamic``: why names may exist that nobody can read here, or "".
* ``trees``: folders, relative to the module's, whose modules' ``__all__`` it offers (transformers'
  ``define_import_structure``).
* ``places``: submodules of lazy names.
* ``calls``: functions that a statement or a decorator calls when the module is imported, see
  :class:`Call`; what they do then: :func:`read_called`.
* ``imports``: see :class:`Import`. ``used``: attributes of imported modules that the module's own
  statements read, see :class:`Use`. ``names``: conditions by the module-level name or the function
  that holds them.
"""

from __future__ import annotations

import ast
import re
from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from .conditions import Condition, Scope, condition_of, returned_condition
from .parsing import UNPARSABLE, last_name, parse_quietly, strings_in

__all__ = [
    "REVISION",
    "Call",
    "Import",
    "Use",
    "callees_of",
    "functions_from",
    "functions_of",
    "read_called",
    "read_module",
    "read_started",
]

#: Raised when another reading of the same source is wanted.
REVISION = "11"

_CAUGHT = frozenset(
    (
        "ImportError",
        "ModuleNotFoundError",
        "AttributeError",
        "RuntimeError",
        "Exception",
        "BaseException",
    )
)


class Import(NamedTuple):
    """One import statement at module level.

    names: what it takes from the module, None for ``import module``. guarded: a failure is caught.
    conditions: all have to hold for it to run. after: it stands in a handler, and runs where one of
    the imports of these numbers failed.
    """

    line: int
    level: int
    module: str
    names: Optional[List[str]]
    guarded: bool
    conditions: List[Condition]
    after: List[int]


class Use(NamedTuple):
    """Attributes of an imported module that a statement reads when the module is imported.

    module: as it was imported. chain: ``nn.Module`` of ``torch.nn.Module``. conditions: all have to
    hold for it to be read.
    """

    line: int
    module: str
    chain: str
    conditions: List[Condition]


class Call(NamedTuple):
    """A function, or a class, by the name that the module has for it, which is called when the
    module is imported. conditions: all have to hold for it to be called.
    """

    line: int
    name: str
    conditions: List[Condition]


def read_module(source: bytes) -> Dict[str, Any]:
    """Return the reading of a module; ``dynamic`` where it cannot be parsed."""
    try:
        tree = parse_quietly(source)
    except UNPARSABLE as error:
        return {"bound": [], "dynamic": f"cannot be parsed: {type(error).__name__}", "imports": []}
    reader = _Reader()
    reader.statements(tree.body)
    reader.finish()
    if b"global " in source or b":=" in source:
        reader.names_from_inside(tree)
    reading: Dict[str, Any] = {
        "bound": sorted(reader.bound | reader.lazy),
        "imports": [list(item) for item in reader.imports],
    }
    optional = {
        "all": reader.all,
        "stars": reader.stars,
        "dynamic": reader.dynamic,
        "trees": reader.trees,
        "typed": sorted(reader.typed - reader.bound - reader.lazy) if reader.makes_names else [],
        "names": reader.names,
        "places": reader.places,
        "used": [list(use) for use in reader.uses()],
        "calls": [list(call) for call in reader.calls.values() if call.name in reader.bound],
    }
    reading.update({key: value for key, value in optional.items() if value})
    return reading


class _Reader:
    def __init__(self) -> None:
        self.bound: Set[str] = set()
        self.typed: Set[str] = set()  # bound where TYPE_CHECKING is true
        self.lazy: Set[str] = set()
        self.all: Optional[List[str]] = None
        self.stars: List[List[Any]] = []
        self.dynamic = ""
        self.trees: List[str] = []
        self.imports: List[Import] = []
        self.names: Dict[str, Any] = {}
        self.places: Dict[str, str] = {}
        self._guarded = 0
        self._conditions: List[Condition] = []
        self._after: List[int] = []
        self._tables_of_getattr: Set[str] = set()
        self._words: Dict[str, Set[str]] = {}
        self._computed: Set[str] = set()
        self._text_of: Dict[str, Optional[str]] = {}
        self._own: Set[str] = set()  # names of the module itself
        self._aliases: Dict[str, str] = {}  # "" where it may be one of several modules
        self._used: Dict[Tuple[str, str, str], Use] = {}
        self._stored: Set[Tuple[str, str]] = set()
        self.calls: Dict[Tuple[str, str], Call] = {}
        #: Names that mean nothing outside of the function that is read; None: a module is read.
        self._local: Optional[FrozenSet[str]] = None

    def uses(self) -> List[Use]:
        """Return the attributes that are read, but those that the module sets itself."""
        return [use for use in self._used.values() if (use.module, use.chain) not in self._stored]

    @property
    def makes_names(self) -> bool:
        """Whether the module has names that are made when they are asked for."""
        return bool(self.lazy or self.trees or self.places or self.dynamic)

    def bind(self, names: Iterable[str]) -> None:
        """Note names that a statement binds."""
        (self.typed if self._is_for_type_checkers() else self.bound).update(names)

    def _is_for_type_checkers(self) -> bool:
        """Whether what is read stands under TYPE_CHECKING, and does not run."""
        typing = ["typing"]
        return any(
            test == typing or (test[0] == "and" and typing in test) for test in self._conditions
        )

    def finish(self) -> None:
        """Add the words of the tables that ``__getattr__`` looks into, wherever they stood."""
        for name in self._tables_of_getattr:
            words = self._words.get(name)
            self.lazy.update(words or ())
            if words is None and name in self._computed:
                self.dynamic = self.dynamic or f"__getattr__ looks into {name}, which is computed"

    def statements(self, body: Iterable[ast.stmt]) -> None:
        before = len(self._conditions)
        for statement in body:
            self.statement(statement)
            if self._local is None:
                continue
            if isinstance(statement, (ast.Return, ast.Raise)):
                break
            if _may_leave(statement):
                self._conditions.append(self._stayed(statement))
        del self._conditions[before:]

    def _stayed(self, node: ast.stmt) -> Condition:
        """The condition under which a function goes on after a statement that may leave it."""
        if isinstance(node, ast.If) and not node.orelse and _leaves(node.body):
            return ["not", self._test(node.test)]
        return ["unknown"]

    def _test(self, node: ast.expr) -> Condition:
        local = self._local or ()
        if any(isinstance(part, ast.Name) and part.id in local for part in ast.walk(node)):
            return ["unknown"]
        return condition_of(node, Scope(self._text_of))

    def called(self, function: Function, local: FrozenSet[str]) -> _Reader:
        """Return a reader of what a function of this module does when it runs."""
        inner = _Reader()
        inner._local = local
        inner._aliases = {
            name: module for name, module in self._aliases.items() if name not in local
        }
        inner._text_of = {name: text for name, text in self._text_of.items() if name not in local}
        inner.statements(function.body)
        return inner

    def statement(self, node: ast.stmt) -> None:
        for part in _evaluated(node):
            self._attributes(part)
        visit = getattr(self, f"_{type(node).__name__.lower()}", None)
        if visit is not None:
            visit(node)
        self.bind(_bound_by(node))

    # imports

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.bind([alias.asname or alias.name.split(".")[0]])
            self._add(node.lineno, 0, alias.name, None)
            top = alias.name.partition(".")[0]
            self._alias(alias.asname or top, alias.name if alias.asname else top)

    def _importfrom(self, node: ast.ImportFrom) -> None:
        names = [alias.name for alias in node.names]
        if names == ["*"]:
            # Under TYPE_CHECKING it mirrors a lazy table, and does not run.
            if not self._is_for_type_checkers():
                self.stars.append([node.level, node.module or ""])
        else:
            self.bind(alias.asname or alias.name for alias in node.names)
            for alias in node.names if not node.level else ():
                self._alias(alias.asname or alias.name, f"{node.module}.{alias.name}")
        if node.module != "__future__":
            self._add(node.lineno, node.level, node.module or "", names)

    def _add(self, line: int, level: int, module: str, names: Optional[List[str]]) -> None:
        self.imports.append(
            Import(
                line,
                level,
                module,
                names,
                self._guarded > 0,
                list(self._conditions),
                list(self._after),
            )
        )

    def _alias(self, name: str, module: str) -> None:
        same = self._aliases.get(name, module) == module
        self._aliases[name] = module if same else ""

    def _attributes(self, node: ast.AST) -> None:
        """Note the attributes of modules in an expression that is evaluated for sure."""
        if isinstance(node, ast.Attribute):
            names = [node.attr]
            owner = node.value
            while isinstance(owner, ast.Attribute):
                names.append(owner.attr)
                owner = owner.value
            module = self._aliases.get(owner.id, "") if isinstance(owner, ast.Name) else ""
            if module:
                chain = ".".join(reversed(names))
                if not isinstance(node.ctx, ast.Load):
                    self._stored.add((module, chain))
                elif not self._guarded and not self._after:
                    conditions = list(self._conditions)
                    use = Use(node.lineno, module, chain, conditions)
                    self._used.setdefault((module, chain, repr(conditions)), use)
                return
        if isinstance(node, ast.Call):
            self._called(node.func)
        if isinstance(node, ast.BoolOp):
            self._attributes(node.values[0])
        elif isinstance(node, ast.IfExp):
            self._attributes(node.test)
        elif not isinstance(node, (ast.Lambda, ast.GeneratorExp, *_COMPREHENSIONS)):
            for part in ast.iter_child_nodes(node):
                self._attributes(part)

    def _called(self, node: ast.AST) -> None:
        """Note a function that is called for sure."""
        if isinstance(node, ast.Name) and not self._guarded and not self._after:
            conditions = list(self._conditions)
            call = Call(node.lineno, node.id, conditions)
            self.calls.setdefault((node.id, repr(conditions)), call)

    # compound statements

    def _if(self, node: ast.If) -> None:
        test = self._test(node.test)
        self._conditions.append(test)
        self.statements(node.body)
        self._conditions[-1] = ["not", test]
        self.statements(node.orelse)
        self._conditions.pop()

    def _try(self, node: ast.Try) -> None:
        guarded = any(
            _catches(handler) and not _ends_in_error(handler.body) for handler in node.handlers
        )
        first = len(self.imports)
        self._guarded += guarded
        self.statements(node.body)
        self._guarded -= guarded
        tried = list(range(first, len(self.imports)))
        for handler in node.handlers:
            if handler.name:
                self.bind([handler.name])
            if _catches(handler):
                self._after, outer = [*self._after, *tried] or [-1], self._after
                self.statements(handler.body)
                self._after = outer
        passed = [
            ["not", self._test(statement.test)]
            for statement in node.body
            if isinstance(statement, ast.If) and _ends_in_error(statement.body)
        ]
        self._conditions += passed
        self.statements(node.orelse)
        del self._conditions[len(self._conditions) - len(passed) :]
        self.statements(node.finalbody)

    _trystar = _try

    def _with(self, node: ast.With) -> None:
        suppressed = any(_suppresses(item.context_expr) for item in node.items)
        self._guarded += suppressed
        self.statements(node.body)
        self._guarded -= suppressed

    def _for(self, node: ast.For) -> None:
        self._repeated(node.body)
        self.statements(node.orelse)

    def _while(self, node: ast.While) -> None:
        self._repeated(node.body)

    def _repeated(self, body: Sequence[ast.stmt]) -> None:
        """The body of a loop: of a function's it is not known whether it runs once."""
        self._conditions += [["unknown"]] if self._local is not None else []
        self.statements(body)
        if self._local is not None:
            self._conditions.pop()

    def _match(self, node: ast.AST) -> None:
        for case in getattr(node, "cases", ()):
            self._conditions.append(["unknown"])
            self.statements(case.body)
            self._conditions.pop()

    def _classdef(self, node: ast.ClassDef) -> None:
        self.bind([node.name])
        inner = _Reader()
        inner._guarded, inner._conditions = self._guarded, list(self._conditions)
        inner._after = list(self._after)
        inner.imports = self.imports
        inner._aliases, inner._used, inner._stored = self._aliases, self._used, self._stored
        inner.calls, inner._local = self.calls, self._local
        for decorator in node.decorator_list:
            self._called(decorator)
        inner.statements(node.body)

    def _functiondef(self, node: ast.FunctionDef) -> None:
        self.bind([node.name])
        for decorator in node.decorator_list:
            self._called(decorator)
        if node.name == "__getattr__":
            self._getattr(node)
        elif _IS.match(node.name):
            self.names[f"{node.name}()"] = returned_condition(node, self._text_of)

    def _asyncfunctiondef(self, node: ast.AsyncFunctionDef) -> None:
        self.bind([node.name])

    # assignments and calls

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assigned(target, node.value)
            if _is_own_module(target) and "Lazy" not in _called_name(node.value):
                self.dynamic = self.dynamic or f"it replaces itself at line {node.lineno}"
        if _is_own_module(node.value):  # "module = sys.modules[__name__]": Pillow's enumerations
            self._own.update(part.id for part in node.targets if isinstance(part, ast.Name))
        if _is_globals(node.value):  # "_globals = globals()", filled by others: protobuf from 4.22
            self.dynamic = self.dynamic or f"globals() at line {node.lineno}"
        self._expression(node.value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(node.target, node.value)
            self._expression(node.value)

    def _augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id == "__all__":
            self.all = [*(self.all or ()), *strings_in(node.value)]
        elif isinstance(node.target, (ast.Name, ast.Subscript)):
            self._table(node.target, node.value)

    def _expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            owner = call.func.value
            if isinstance(owner, ast.Name) and owner.id == "__all__":
                self.all = [*(self.all or ()), *strings_in(call)]
            elif isinstance(owner, (ast.Name, ast.Subscript)):
                self._table(owner, call)
        self._expression(call)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            if target.id == "__all__":
                self.all = strings_in(value)
            elif isinstance(value, ast.Constant) and isinstance(value.value, str):
                self._text_of[target.id] = value.value
            elif isinstance(value, (ast.Compare, ast.BoolOp, ast.Call, ast.UnaryOp)):
                condition = condition_of(value, Scope(self._text_of))
                if condition != ["unknown"] and condition[0] != "call":
                    self.names[target.id] = condition
                elif condition[0] == "call":
                    self.names.setdefault(target.id, condition)
        elif isinstance(target, ast.Tuple) and target.elts and isinstance(value, ast.Call):
            first = target.elts[0]  # available, version = _is_package_available("x", True)
            if isinstance(first, ast.Name):
                self.names[first.id] = condition_of(value, Scope(self._text_of))
        self._table(target, value)

    def _table(self, target: ast.expr, value: ast.expr) -> None:
        """Take the strings of what looks like a table of lazy names."""
        owner = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(owner, ast.Name) and isinstance(
            value, (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Call, ast.DictComp)
        ):
            words = {text for text in strings_in(value) if text.isidentifier()}
            self._words.setdefault(owner.id, set()).update(words)
            if isinstance(value, (ast.DictComp, ast.Call)) and not words:
                self._computed.add(owner.id)
            if _TABLE.search(owner.id):
                self.lazy.update(words)
                self._place(target, value)

    def _place(self, target: ast.expr, value: ast.expr) -> None:
        """Note which submodule a lazy name comes from: ``{"module": ["Name"]}``."""
        if isinstance(value, ast.Dict):
            for key, names in zip(value.keys, value.values):
                if isinstance(key, ast.Constant) and isinstance(names, (ast.List, ast.Tuple)):
                    self.places.update(dict.fromkeys(strings_in(names), str(key.value)))
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            self.places.update(dict.fromkeys(strings_in(value), str(target.slice.value)))

    def _expression(self, node: ast.expr) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                self._call(part)

    def _call(self, node: ast.Call) -> None:
        name = last_name(node.func)
        if any(_is_globals(argument) for argument in node.args):
            # What it is called with it may fill, as generated modules of protobuf do.
            self.dynamic = self.dynamic or f"globals() at line {node.lineno}"
        if name == "define_import_structure":
            self.trees.append("/".join(strings_in(node.args[0]) if node.args else ()))
        elif name in ("attach", "attach_stub"):  # lazy_loader
            self.lazy.update(text for text in strings_in(node) if text.isidentifier())
            if name == "attach_stub":
                self.dynamic = self.dynamic or "lazy_loader reads a stub"
        elif name == "exec" or (name == "setattr" and self._is_of_own_module(node)):
            self.dynamic = self.dynamic or f"{name} at line {node.lineno}"
        elif (
            name == "update"
            and isinstance(node.func, ast.Attribute)
            and _is_globals(node.func.value)
        ):
            self.dynamic = self.dynamic or f"globals() at line {node.lineno}"

    def _is_of_own_module(self, call: ast.Call) -> bool:
        """``setattr(sys.modules[__name__], …)``, or of a name that stands for it."""
        first = call.args[0] if call.args else call.func
        return "__name__" in ast.dump(call) or (
            isinstance(first, ast.Name) and first.id in self._own
        )

    def _getattr(self, node: ast.FunctionDef) -> None:
        """A module's ``__getattr__``: readable where all that it answers stands as text in it or in
        a table of the module.
        """
        words = {text for text in strings_in(node) if text.isidentifier()}
        self.lazy.update(words)
        readable = any(
            isinstance(part, ast.Compare)
            and any(isinstance(operator, (ast.In, ast.Eq)) for operator in part.ops)
            for part in ast.walk(node)
        )
        raises = any(isinstance(part, ast.Raise) for part in ast.walk(node))
        if not readable or not raises:
            self.dynamic = self.dynamic or f"__getattr__ at line {node.lineno}"
        else:
            # It looks names up in tables of the module; their words count whatever they are called.
            self._tables_of_getattr.update(
                part.id for part in ast.walk(node) if isinstance(part, ast.Name)
            )

    def names_from_inside(self, tree: ast.AST) -> None:
        """Add what functions and expressions bind in the module."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):
                self.bound.update(node.names)
            elif isinstance(node, ast.NamedExpr):
                self.bound.add(node.target.id)


#: Statements whose expressions are all that they are.
_SIMPLE = (
    *(ast.Assign, ast.AugAssign, ast.Expr),
    *(ast.Assert, ast.Raise, ast.Delete, ast.Return),
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)


def _evaluated(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions that a statement evaluates itself, without its body; of annotations
    nothing, which may be left as texts.
    """
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        defaults = [*node.args.defaults, *node.args.kw_defaults]
        yield from filter(None, [*node.decorator_list, *defaults])
    elif isinstance(node, ast.ClassDef):
        yield from [*node.decorator_list, *node.bases, *(item.value for item in node.keywords)]
    elif isinstance(node, ast.AnnAssign):
        yield from filter(None, [node.value])
    elif isinstance(node, _SIMPLE):
        yield from ast.iter_child_nodes(node)
    elif isinstance(node, (ast.If, ast.While)):
        yield node.test
    elif isinstance(node, ast.For):
        yield node.iter
    elif isinstance(node, ast.With):
        yield from (item.context_expr for item in node.items)


def read_started(source: bytes, start: str) -> List[Import]:
    """Return what a function of a module (``f``, ``Class.f``) imports when it runs, and what those
    of the same module import that it comes to, as far as names tell.
    """
    try:
        tree = parse_quietly(source)
    except UNPARSABLE:
        return []
    functions = functions_of(tree)
    found: List[Import] = []
    for name in functions_from(callees_of(functions), start):
        reader = _Reader()
        for statement in functions[name].body:
            reader.statement(statement)
            if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return):
                # What comes after it runs where it did not leave.
                test = condition_of(statement.test, Scope(reader._text_of))
                reader._conditions.append(["not", test])
        number = len(found)
        found += [
            item._replace(after=[place + number if place >= 0 else place for place in item.after])
            for item in reader.imports
        ]
    return found


def read_called(source: bytes) -> Dict[str, List[List[Any]]]:
    """Return what functions of a module do for sure when they are called, ``Class`` for what makes
    one of a class: [imports, uses], each as in a reading, without those that do neither.

    One level: what they call in turn is not followed. Left out are functions whose body does not
    run when they are called (generators, coroutines), and those that a decorator exchanges.
    """
    try:
        tree = parse_quietly(source)
    except UNPARSABLE:
        return {}
    module = _Reader()
    module.statements(tree.body)
    called: Dict[str, List[List[Any]]] = {}
    for name, function in functions_of(tree).items():
        owner, _, last = name.rpartition(".")
        if (owner and last != "__init__") or not _runs_when_called(function):
            continue
        reader = module.called(function, _local_names(function))
        imports = [list(item) for item in reader.imports]
        uses = [list(use) for use in reader.uses()]
        if imports or uses:
            called[owner or name] = [imports, uses]
    return called


Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
#: Decorators of a function that let its body run as it is.
_HARMLESS = frozenset(("cache", "lru_cache"))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _runs_when_called(function: Function) -> bool:
    names = (
        last_name(item.func if isinstance(item, ast.Call) else item)
        for item in function.decorator_list
    )
    yields = (ast.Yield, ast.YieldFrom)
    return (
        isinstance(function, ast.FunctionDef)
        and all(name in _HARMLESS for name in names)
        and not any(isinstance(part, yields) for part in _own_nodes(function.body))
    )


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, without what functions and classes in them hold."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _local_names(function: Function) -> FrozenSet[str]:
    """The names of a function's parameters, and those that it binds itself, but by imports."""
    arguments = function.args
    names = {
        argument.arg
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    names.update(item.arg for item in (arguments.vararg, arguments.kwarg) if item is not None)
    for node in _own_nodes(function.body):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or (
            isinstance(node, ast.ExceptHandler) and node.name
        ):
            names.add(node.name)
    return frozenset(names)


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a branch always ends the function that it stands in, or an error does."""
    return isinstance(body[-1], (ast.Return, ast.Raise))


def _may_leave(node: ast.stmt) -> bool:
    kinds = (ast.Return, ast.Raise, ast.Break, ast.Continue)
    return any(isinstance(part, kinds) for part in _own_nodes([node]))


def functions_of(tree: ast.Module) -> Dict[str, Function]:
    """Return the functions of a module and the methods of its classes, ``Class.f``."""
    functions: Dict[str, Function] = {}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in tree.body:
        if isinstance(node, kinds):
            functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            parts = (part for part in node.body if isinstance(part, kinds))
            functions.update((f"{node.name}.{part.name}", part) for part in parts)
    return functions


def callees_of(functions: Mapping[str, Function]) -> Dict[str, Set[str]]:
    """Return which functions of a module each names; a class stands for what makes one of it."""
    by_word: Dict[str, Set[str]] = {}
    for name in functions:
        owner, _, last = name.rpartition(".")
        word = owner if owner and last in ("__init__", "__post_init__") else last
        by_word.setdefault(word, set()).add(name)
    return {
        name: set().union(*(by_word.get(last_name(part), ()) for part in ast.walk(node)))
        for name, node in functions.items()
    }


def functions_from(callees: Mapping[str, Set[str]], start: str) -> List[str]:
    """Return the functions that one comes to, itself first; none where there is no such."""
    reached = [start] if start in callees else []
    for name in reached:
        reached += sorted(callees[name].difference(reached))
    return reached


_TABLE = re.compile(r"(?i)import|lazy|export|attr|module|public|_map|names|__all__")
_IS = re.compile(r"_?(is|has|check|use|can)_")


def _bound_by(node: ast.stmt) -> Iterator[str]:
    """Names that an assignment, a loop or a with statement binds."""
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        targets = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
    elif type(node).__name__ == "TypeAlias":
        targets = [node.name]  # type: ignore[attr-defined]
    for target in targets:
        for part in ast.walk(target):
            if isinstance(part, ast.Name):
                yield part.id
            elif (
                isinstance(part, ast.Subscript)
                and _is_globals(part.value)
                and isinstance(part.slice, ast.Constant)
            ):
                yield str(part.slice.value)


def _is_own_module(target: ast.expr) -> bool:
    """``sys.modules[__name__]``."""
    return (
        isinstance(target, ast.Subscript)
        and last_name(target.value) == "modules"
        and last_name(target.slice) == "__name__"
    )


def _called_name(node: ast.expr) -> str:
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def _is_globals(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in ("globals", "vars", "locals")


def _caught(node: Optional[ast.expr]) -> Iterator[str]:
    if node is None:
        yield "Exception"
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            yield from _caught(item)
    else:
        yield last_name(node)


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes an import that fails; an exception of the package's own may be a
    subclass.
    """
    return any(name in _CAUGHT or name not in _OTHER_ERRORS for name in _caught(handler.type))


_OTHER_ERRORS = frozenset(
    (
        "OSError",
        "IOError",
        "KeyError",
        "ValueError",
        "TypeError",
        "NameError",
        "IndexError",
        "FileNotFoundError",
        "NotImplementedError",
        "AssertionError",
        "StopIteration",
        "PackageNotFoundError",
        "InvalidVersion",
        "UnicodeDecodeError",
        "SyntaxError",
    )
)


def _ends_in_error(body: Sequence[ast.stmt]) -> bool:
    """Whether a handler or a branch always ends in an error."""
    for statement in body:
        if isinstance(statement, ast.Raise):
            return True
        if (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and ast.unparse(statement.value.func) in ("sys.exit", "exit", "quit")
        ):
            return True
    return False


def _suppresses(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in (
        "suppress",
        "try_import",
        "skip_if_missing",
    )
