"""Defaults as the source of a checkout declares them: fields of dataclasses and pydantic models,
also of models inside of models, and options of argparse. The files are read as syntax trees,
nothing is run.
"""

from __future__ import annotations

import ast
import os
from functools import lru_cache
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from .adapter import Run, read_small
from .key_tables import KeyTable, common_values, own_table
from .parser_options import option_defaults

__all__ = [
    "checkout_table",
    "class_defaults",
    "declared_defaults",
    "imported_name",
    "nested_defaults",
    "syntax_tree",
]

_NOTHING: Any = object()
_DEEPEST = 12  # models inside of models


def declared_defaults(
    run: Run, sources: Sequence[Tuple[str, Tuple[str, ...]]]
) -> Mapping[str, Any]:
    """Return the defaults that a run's checkout declares, later sources over earlier ones.

    sources: files below the checkout, and the names of classes in them, in their order; none are
    the options that the file gives to argparse.
    """
    if run.checkout is None:
        return {}
    values: Dict[str, Any] = {}
    for path, classes in sources:
        text = read_small(os.path.join(run.checkout.folder, path))
        if text is None:
            continue
        values.update(class_defaults(text, classes) if classes else option_defaults(text))
    return values


def checkout_table(
    run: Run,
    released: KeyTable,
    versions: Sequence[str],
    sources: Sequence[Tuple[str, str, str]],
) -> KeyTable:
    """Return the keys and defaults that a run's checkout declares, over what all releases that it
    may be of have in common; those of the releases where it declares none.

    sources: files below the checkout, the class in each, and the prefix of its keys; later ones
    over earlier ones.
    """
    declared: Dict[str, Any] = {}
    for path, name, prefix in sources if run.checkout is not None else ():
        text = read_small(os.path.join(run.checkout.folder, path)) if run.checkout else None
        values = class_defaults(text, (name,)) if text is not None else {}
        declared.update({prefix + key: value for key, value in values.items()})
    if not declared:
        return released
    common = common_values(released, versions)
    return own_table(
        released.framework, versions, {**common, **declared}, f"the source of {released.framework}"
    )


def class_defaults(text: str, names: Sequence[str]) -> Dict[str, Any]:
    """Return the constants that fields of these classes have by default."""
    tree = syntax_tree(text)
    if tree is None:
        return {}
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    values: Dict[str, Any] = {}
    for name in names:
        for statement in classes[name].body if name in classes else ():
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                value = _default(statement.value)
                if value is _NOTHING:
                    values.pop(statement.target.id, None)
                else:
                    values[statement.target.id] = value
    return values


def nested_defaults(read: Callable[[str], Optional[str]], module: str, name: str) -> Dict[str, Any]:
    """Return what the fields of a pydantic model or dataclass are by default, those of the models
    inside of it by dotted keys. A model that is None by default is a key of its own beside them;
    one without a default is read by its type, and all else without a constant is left out.

    read: the text of a module by its dotted name, None where there is none.
    """
    try:
        return _ModelReader(read).defaults(module, name)
    except RecursionError:
        return {}  # nested deeper than any configuration


class _ModelReader:
    """Follows the names of classes through the modules that import them."""

    def __init__(self, read: Callable[[str], Optional[str]]) -> None:
        self.read = read

    def defaults(self, module: str, name: str, depth: int = 0) -> Dict[str, Any]:
        """Return the defaults of one class, its own over those of its bases."""
        place = self._class(module, name) if depth < _DEEPEST else None
        if place is None:
            return {}
        home, node = place
        values: Dict[str, Any] = {}
        for base in node.bases:
            if isinstance(base, ast.Name):
                values.update(self.defaults(home, base.id, depth + 1))
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                key = statement.target.id
                if key.startswith("_"):
                    continue
                below = [one for one in values if one == key or one.startswith(f"{key}.")]
                for one in below:
                    del values[one]
                values.update(self._field(home, key, statement, depth))
        return values

    def _field(self, module: str, key: str, statement: ast.AnnAssign, depth: int) -> Dict[str, Any]:
        model, given = _model_of(statement)
        inside: Dict[str, Any] = {}
        if model and self._class(module, model) is not None:
            inside = {**self.defaults(module, model, depth + 1), **given}
        values = {f"{key}.{name}": value for name, value in inside.items()}
        default = _default(statement.value)
        if default is not _NOTHING and default is not ...:
            values[key] = default
        return values

    def _class(self, module: str, name: str) -> Optional[Tuple[str, ast.ClassDef]]:
        """Return the class that a module calls by a name, and the module that defines it."""
        for _ in range(_DEEPEST):
            tree = syntax_tree(self.read(module) or "")
            for node in tree.body if tree is not None else ():
                if isinstance(node, ast.ClassDef) and node.name == name:
                    return module, node
            source = imported_name(tree, name) if tree is not None else None
            if source is None:
                return None
            module, name = source
        return None


def _model_of(statement: ast.AnnAssign) -> Tuple[str, Dict[str, Any]]:
    """Return the class of which a field is an instance, and the constants that the instance is
    given which it is by default; "" where it is none.
    """
    value = statement.value
    named = {word.arg: word.value for word in getattr(value, "keywords", ()) if word.arg}
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("Field", "field"):
        factory = named.get("default_factory")
        if isinstance(factory, ast.Name):
            return factory.id, {}
        made = _made_by(factory)
        value = made or named.get("default") or (value.args[0] if value.args else None)
        named = {word.arg: word.value for word in getattr(value, "keywords", ()) if word.arg}
    if isinstance(value, ast.Call):
        constants = {name: _constant(node) for name, node in named.items()}
        name = value.func.id if isinstance(value.func, ast.Name) else ""
        return name, {key: one for key, one in constants.items() if one is not _NOTHING}
    is_empty = value is None or (isinstance(value, ast.Constant) and value.value in (None, ...))
    return (_named_type(statement.annotation) if is_empty else ""), {}


def _made_by(factory: Optional[ast.expr]) -> Optional[ast.Call]:
    """Return the call of a class that ``lambda: X(…)`` or ``lambda: copy.deepcopy(X(…))`` makes."""
    made = factory.body if isinstance(factory, ast.Lambda) else None
    if isinstance(made, ast.Call) and ast.unparse(made.func) == "copy.deepcopy" and made.args:
        made = made.args[0]
    return made if isinstance(made, ast.Call) else None


def _named_type(annotation: ast.expr) -> str:
    """Return the one class that ``X``, ``X | None``, ``Optional[X]`` or ``Annotated[X, …]`` names,
    also in quotes; "" where there is none or there are several.
    """
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        tree = syntax_tree(annotation.value)
        first = tree.body[0] if tree is not None and tree.body else None
        return _named_type(first.value) if isinstance(first, ast.Expr) else ""
    if isinstance(annotation, ast.BinOp):
        sides = [_named_type(side) for side in (annotation.left, annotation.right)]
        names = [name for name in sides if name]
        return names[0] if len(names) == 1 else ""
    if isinstance(annotation, ast.Subscript):
        inside = annotation.slice
        if ast.unparse(annotation.value) in ("Annotated", "Optional"):
            return _named_type(inside.elts[0] if isinstance(inside, ast.Tuple) else inside)
        return ""
    return annotation.id if isinstance(annotation, ast.Name) else ""


def imported_name(tree: ast.Module, name: str) -> Optional[Tuple[str, str]]:
    """Return module and name of what a module imports under a name."""
    inner = [one for node in tree.body if isinstance(node, (ast.If, ast.Try)) for one in node.body]
    for node in (*tree.body, *inner):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                if (one.asname or one.name) == name:
                    return node.module, one.name
    return None


def _default(node: Optional[ast.expr]) -> Any:
    """Return the constant that a field is by default: ``= 1`` or ``= field(default=1)``."""
    if isinstance(node, ast.Call):
        given = {word.arg: word.value for word in node.keywords}
        if "default" in given:
            return _constant(given["default"])
        if isinstance(node.func, ast.Name) and node.func.id == "Field" and node.args:
            return _constant(node.args[0])
        return _NOTHING
    return _NOTHING if node is None else _constant(node)


def _constant(node: Optional[ast.expr]) -> Any:
    if node is None:
        return _NOTHING
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _NOTHING


@lru_cache(maxsize=32)
def syntax_tree(text: str) -> Optional[ast.Module]:
    """Return the syntax tree of a module; None of a text that is no Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
