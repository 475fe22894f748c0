"""scripts/check --changed takes the tests that concern a file, and says why."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "check"))


def chosen(name):
    return SCRIPT["tests_of"]([name])[name]


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("envdoctor/report/__init__.py", "tests/report/test_blocks.py"),
        ("envdoctor/report/github.py", "tests/report/test_github.py"),
        ("envdoctor/lock/emit/__init__.py", "tests/lock/emit/test_files.py"),
        ("envdoctor/matrix/schema.py", "tests/matrix/test_schema.py"),
        ("envdoctor/rules/wheel_tags.py", "tests/rules/test_wheel_tags.py"),
        ("envdoctor/model/facts.py", "tests/probes"),
        ("envdoctor/sources.py", "tests/test_sources.py"),
        ("matrices/errata/ray.toml", "tests/matrix"),
        ("tests/test_check.py", "tests/test_check.py"),
        ("tests/model/conftest.py", "tests/model/test_facts.py"),
        ("envdoctor/schemas/facts.schema.json", "tests/model/test_serde.py"),
        ("scripts/check", "tests/test_check.py"),
    ],
)
def test_what_concerns_a_file(name, test):
    assert test in chosen(name).tests


def test_a_module_of_a_package_is_not_the_package():
    """What imports ``envdoctor.rules.driver`` alone does not import ``envdoctor.rules``."""
    texts = {
        "tests/rules/test_one.py": "from envdoctor.rules.driver import RULES_HERE",
        "tests/rules/test_all.py": "from envdoctor.rules import CHECKS",
        "tests/cli/test_whole.py": "from envdoctor import rules",
    }
    package = SCRIPT["_tests_of_module"](Path("envdoctor/rules/__init__.py"), texts)
    assert package.tests == {"tests/rules/test_all.py", "tests/cli/test_whole.py"}
    module = SCRIPT["_tests_of_module"](Path("envdoctor/rules/driver.py"), texts)
    assert module.tests == {"tests/rules/test_one.py"}


def test_a_script_is_no_word():
    """Of the 91 files that say "check", few speak of the script."""
    assert len(chosen("scripts/check").tests) < 10


def test_what_everybody_imports_is_left_to_the_whole_suite():
    tests, reason = chosen("envdoctor/model/facts.py")
    assert {"tests/model/test_facts.py", "tests/entrypoint/test_halves.py"} <= tests
    assert len(tests) < 30
    assert reason.endswith("files import it: scripts/check runs all")
    for also in SCRIPT["ALSO"].values():
        assert all((ROOT / test).exists() for test in also)


def test_it_says_what_and_why(capsys):
    SCRIPT["say_choice"](SCRIPT["tests_of"](["envdoctor/matrix/schema.py", "matrices/cuda.toml"]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tests: ")
    assert any(
        "envdoctor/matrix/schema.py (they import it or are named after it)" in x for x in lines
    )
    assert "     tests/matrix for matrices/cuda.toml (the tests of the matrix)" in lines
