"""Defaults as the source of a checkout declares them: fields of dataclasses and pydantic models,
and options of argparse. The files are read as syntax trees, nothing is run.
"""

from __future__ import annotations

import ast
import os
from functools import lru_cache
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from .adapter import Run, read_small
from .key_tables import KeyTable, common_values, own_table

__all__ = ["checkout_table", "class_defaults", "declared_defaults", "option_defaults"]

_NOTHING: Any = object()


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
    tree = _tree(text)
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


def option_defaults(text: str) -> Dict[str, Any]:
    """Return what ``add_argument`` gives its options by default, as far as that is a constant."""
    tree = _tree(text)
    values: Dict[str, Any] = {}
    for call in _calls(tree) if tree is not None else ():
        names = [
            word.value
            for word in call.args
            if isinstance(word, ast.Constant) and isinstance(word.value, str)
        ]
        given = {word.arg: word.value for word in call.keywords}
        long = next((name for name in names if name.startswith("--")), "")
        if not long:
            continue
        target = _constant(given.get("dest"))
        name = target if isinstance(target, str) else long[2:].replace("-", "_")
        action = _constant(given.get("action"))
        unset = {"store_true": False, "store_false": True}.get(str(action))
        value = _constant(given["default"]) if "default" in given else unset
        if value is not _NOTHING:
            values[name] = value
    return values


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "add_argument"
        ):
            yield node


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


@lru_cache(maxsize=16)
def _tree(text: str) -> Optional[ast.Module]:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
