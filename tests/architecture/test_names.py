"""A class name means one thing in the whole program."""

import ast
from pathlib import Path

import envdoctor

PACKAGE = Path(envdoctor.__file__).parent


def test_no_two_classes_share_a_name():
    places = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    shared = {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}
    assert shared == {}
