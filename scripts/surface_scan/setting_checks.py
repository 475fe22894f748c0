"""What a method raises where a setting of its object is on: ``if self.setting: … raise``, with the
tests in between.
"""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from .methods import message_of
from .parsing import dotted_name

__all__ = ["SettingCheck", "Test", "read_setting_checks", "read_switches"]

#: A test, and what it has to answer for a statement under it to run.
Test = Tuple[ast.expr, bool]


class SettingCheck(NamedTuple):
    """What is raised where a setting is on. tests: below the one about the setting."""

    setting: str
    tests: Tuple[Test, ...]
    message: str
    line: int


def read_setting_checks(body: Sequence[ast.stmt]) -> List[SettingCheck]:
    """Return what the body of a method raises under ``if self.setting:``."""
    return list(_checks_in(body, ()))


def _checks_in(body: Sequence[ast.stmt], tests: Tuple[Test, ...]) -> Iterator[SettingCheck]:
    for place, node in enumerate(body):
        if isinstance(node, ast.Raise):
            message = _message(node, body[:place])
            for depth, (test, wanted) in enumerate(tests):
                for setting in _settings_of(test) if wanted else ():
                    yield SettingCheck(setting, tests[depth + 1 :], message, node.lineno)
        elif isinstance(node, ast.If):
            yield from _checks_in(node.body, (*tests, (node.test, True)))
            yield from _checks_in(node.orelse, (*tests, (node.test, False)))


def _message(node: ast.Raise, before: Sequence[ast.stmt]) -> str:
    """The words of what is raised, of a name those that it was given first."""
    for part in ast.walk(node):
        for earlier in before if isinstance(part, ast.Name) else ():
            if isinstance(earlier, ast.Assign) and dotted_name(earlier.targets[0]) == part.id:
                return message_of(earlier.value)
    return message_of(node)


def _settings_of(test: ast.expr) -> List[str]:
    """The settings any of which makes a test hold: ``self.a``, ``self.a or self.b``."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
    names = [dotted_name(part) for part in parts]
    own = all(name.startswith("self.") and name.count(".") == 1 for name in names)
    return [name.partition(".")[2] for name in names] if own else []


def read_switches(body: Sequence[ast.stmt]) -> Dict[str, bool]:
    """Return the fields of a class that are yes or no where nobody sets them, as ``self.x``."""
    defaults = {}
    for node in body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        value = node.value
        for word in value.keywords if isinstance(value, ast.Call) else ():
            value = word.value if word.arg == "default" else value
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            defaults[f"self.{node.target.id}"] = value.value
    return defaults
