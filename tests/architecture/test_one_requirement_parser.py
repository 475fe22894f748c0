"""Requirement lines are taken apart in ``model/requirement.py`` alone.

Every expression of the package is run on requirement lines. One of which a group is the name and
another the version, the extras or the address takes them apart, however it is written; so does a
call that splits a text at ``==`` or at an ``@`` between spaces.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARSER = ROOT / "envdoctor" / "model" / "requirement.py"
SOURCES = sorted(path for path in (ROOT / "envdoctor").rglob("*.py") if path != PARSER)
METHODS = {"compile", "pattern", "match", "fullmatch", "search", "findall", "finditer", "split"}
NAME, VERSION = "flash-attn", "2.7.4"
LINES = (
    f"{NAME}=={VERSION}",
    f"{NAME} >= {VERSION}",
    f"{NAME}[extra]~={VERSION},<3",
    f"{NAME} (=={VERSION})",
    f"{NAME}=={VERSION} ; sys_platform == 'linux'",
    f"{NAME} @ https://host.example/{NAME}-{VERSION}.zip",
)
#: By module, how an expression begins that may, since it reads no requirement, or one that the
#: grammar of requirements does not hold.
ALLOWED = {
    "intake/assumptions.py": {r"(.+?)\s*@": "a GPU and its memory: 'H20 @ 96GiB'"},
    "intake/package_lists.py": {
        r"(?<![\w.<": "pins in running prose and commands: 'uses torch==v2.6'"
    },
    "intake/grammar.py": {r"([A-Za-z/#": "a label and what stands behind it: 'CUDA version: 12.4'"},
    "intake/conda_files.py": {r"(?:[\w./-]+::)?": "conda's own grammar: 'channel::name=1.0=py_0'"},
}


def _text(node, constants):
    """The text of an expression: of an f-string with the module's constants, other parts as a
    name."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, constants) or "" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        return constants.get(name, r"[\w.-]+")
    return None


def _calls(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = _text(node.value, constants)
            if text is not None:
                constants[node.targets[0].id] = text
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            name = function.id if isinstance(function, ast.Name) else name
            text = _text(node.args[0], constants)
            if text is not None:
                yield name, text


def _takes_apart(expression):
    try:
        compiled = re.compile(expression)
    except re.error:  # a text for something else that is called "match" or "split"
        return False
    if not compiled.groups:
        return False
    for line in LINES:
        for match in filter(None, (compiled.fullmatch(line), *compiled.finditer(line))):
            groups = [group.strip() for group in match.groups() if group]
            rest = [group for group in groups if VERSION in group and NAME not in group]
            if any(group in (NAME, NAME + "[extra]") for group in groups) and (
                rest or any("https://" in group for group in groups)
            ):
                return True
    return False


def _faults(path):
    for name, text in _calls(path):
        if name in METHODS and _takes_apart(text):
            yield text
        if name in ("split", "rsplit", "partition", "rpartition") and text.strip(" ") in (
            "==",
            "===",
        ):
            yield text
        if name in ("partition", "split") and text == " @ ":
            yield text


def test_nobody_else_takes_a_requirement_apart():
    assert len(SOURCES) > 400
    for path in SOURCES:
        name = str(path.relative_to(ROOT / "envdoctor"))
        allowed = tuple(ALLOWED.get(name, {"-": ""}))
        assert [text for text in _faults(path) if not text.startswith(allowed)] == [], name


def test_what_is_allowed_is_there():
    for path, beginnings in ALLOWED.items():
        faults = list(_faults(ROOT / "envdoctor" / path))
        assert all(any(text.startswith(begin) for text in faults) for begin in beginnings), path


@pytest.mark.parametrize(
    "expression",
    [
        r"([A-Za-z0-9][\w.-]*)\s*==\s*([0-9][\w.]*)(?![\w.*])",
        r"([^=<>~! ]+)(.*)",
        r"(\S+?)(?:\[.*?\])?\s*\(?([<>=!~]=?.+?)\)?(?:;.*)?",
        r"(?P<name>[\w.-]+) @ (?P<url>\S+)",
    ],
)
def test_what_takes_a_line_apart_is_seen(expression):
    assert _takes_apart(expression)
