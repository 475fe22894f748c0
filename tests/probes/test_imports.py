"""What an import runs into: the interpreter that imports with that module hidden is the oracle."""

import subprocess
import sys

import pytest

from envdoctor.model.facts import Distribution
from envdoctor.probes import Machine, imports, probe_machine
from envdoctor.probes.imports import failing_imports, lacking

#: Distributions of this environment, with the modules that they are imported by and what they need.
REAL = {
    "jsonschema": ("jsonschema", ("attrs", "referencing", "rpds-py", "jsonschema-specifications")),
    "hypothesis": ("hypothesis", ("sortedcontainers",)),
    "referencing": ("referencing", ("attrs", "rpds-py", "typing-extensions")),
    "import-linter": ("importlinter", ("click", "grimp", "rich", "typing-extensions")),
}
MODULES = {"attrs": "attrs", "rpds-py": "rpds", "typing-extensions": "typing_extensions"}


def failing(folder, name, top, missing, files=()):
    machine = Machine()
    tops, places = {name: [top]}, {name: str(folder)}
    return list(failing_imports(machine, [str(folder), *files], {name: missing}, tops, places))


@pytest.fixture
def package(tmp_path):
    def write(**files):
        for path, text in files.items():
            file = tmp_path / "ours" / (path.replace("__in__", "/") + ".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return [
            (entry.detail, entry.path) for entry in failing(tmp_path, "ours", "ours", {"absent"})
        ]

    return write


@pytest.mark.parametrize(
    "text",
    [
        "import absent",
        "import absent.deep as other",
        "from absent import name",
        "import json, absent",
    ],
)
def test_what_is_executed_at_once_fails(package, tmp_path, text):
    assert package(__init__=f"\n{text}\n") == [("absent", f"{tmp_path}/ours/__init__.py:2")]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import absent\nexcept ImportError:\n    absent = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import absent",
        "def use():\n    import absent",
        "from contextlib import suppress\nwith suppress(ImportError):\n    import absent",
        "import json",
        "this is no Python",
    ],
)
def test_what_may_never_be_executed_says_nothing(package, text):
    assert package(__init__=text) == []


def test_the_package_is_followed(package, tmp_path):
    files = {
        "__init__": "from . import first\nfrom .sub.second import x",
        "first": "from ours import third",
        "third": "value = 1",
        "sub__in____init__": "",
        "sub__in__second": "import absent\nx = 1",
    }
    assert package(**files) == [("absent", f"{tmp_path}/ours/sub/second.py:1")]
    # What nothing imports is not executed, and a lazy package may bind the name to anything.
    assert package(**{**files, "__init__": "from . import first"}) == []
    assert package(**{**files, "__init__": "def __getattr__(n): ...\nfrom . import sub"}) == []


def test_a_module_that_somebody_else_brings_is_there(tmp_path, package):
    assert package(__init__="import absent")
    other = tmp_path / "other"
    other.mkdir()
    (other / "absent.py").write_text("")
    assert failing(tmp_path, "ours", "ours", {"absent"}, [str(other)]) == []
    (other / "absent.py").unlink()
    (other / "__editable___x_finder.py").write_text("")
    assert failing(tmp_path, "ours", "ours", {"absent"}, [str(other)]) == []


def test_requirements_with_markers_ask_for_nothing():
    listed = {
        "one": Distribution(
            "one", "1", requires=("two>=1", "Three ; extra == 'x'", "Fo_ur", "five")
        ),
        "five": Distribution("five", "1"),
    }
    assert lacking(listed) == {"one": {"two", "fo-ur"}}


def _without(hidden, held):
    return lambda walk, module: module not in hidden and held(walk, module)


@pytest.mark.parametrize("name", REAL)
def test_an_import_that_is_said_to_fail_does(name, tmp_path, monkeypatch):
    """Each requirement in turn is hidden from the walk, and from a real interpreter."""
    top, needs = REAL[name]
    facts = probe_machine()
    location = facts.value("distributions")[name].location
    held = imports._Walk._is_there
    claims = 0
    for need in needs:
        module = MODULES.get(need, need.replace("-", "_"))
        hidden = {module, "attr"} if need == "attrs" else {module}
        monkeypatch.setattr(imports._Walk, "_is_there", _without(hidden, held))
        monkeypatch.setitem(imports.DISTRIBUTION_OF, module, need)
        monkeypatch.setattr(imports, "_has_hooks", lambda *_: False)
        if not failing(location, name, top, {need}, [location]):
            continue
        claims += 1
        program = f"import sys; sys.modules.update(dict.fromkeys({sorted(hidden)})); import {top}"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=False, cwd=tmp_path
        )
        assert done.returncode != 0, (need, done.stdout)
        assert b"ModuleNotFoundError" in done.stderr, done.stderr
    assert claims, "nothing was claimed, so nothing was tested"
