"""Compiled code in one file: what is loaded from it does what the source does, and whatever is
wrong with it, the source serves.
"""

import json
import marshal
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WRITER = ROOT / "scripts" / "compile_code"
NAME = f"{sys.implementation.cache_tag}.code"
# What the interpreter itself compiled (its own audit event, PEP 578), and who loaded what, after a
# whole check.
SPY = """
import json, sys
compiled = []
sys.addaudithook(lambda event, arguments: compiled.append(arguments[1]) if event == "compile" else None)
from envdoctor import app
report = app.check(app.gather(app.Sources(facts=[sys.argv[1]])))
loaders = {name: type(module.__loader__).__module__ for name, module in sys.modules.items() if name.startswith("envdoctor")}
trace = ""
try:
    app.read_text("/nonexistent")
except Exception as error:
    trace = error.__traceback__.tb_next.tb_frame.f_code.co_filename
print(json.dumps({"compiled": [str(name) for name in compiled], "loaders": loaders, "findings": len(report.findings), "trace": trace}))
"""


@pytest.fixture
def installed(tmp_path):
    """Return the folder of an installed envdoctor with compiled code and without .pyc files."""
    package = tmp_path / "site" / "envdoctor"
    shutil.copytree(
        ROOT / "envdoctor", package, ignore=shutil.ignore_patterns("__pycache__", "*.code")
    )
    subprocess.run(
        [sys.executable, str(WRITER), str(package), str(package / "_compiled")], check=True
    )
    return package


def look(package):
    """Run a check from a package; return what the spy saw.

    ``-E`` without ``-B`` would write .pyc files.
    """
    facts = ROOT / "tests" / "data" / "machines" / "cpu-vllm-0.10.2" / "facts.json"
    facts = (
        facts
        if facts.exists()
        else next((ROOT / "tests" / "data" / "machines").rglob("facts.json"))
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", SPY, str(facts)]
    done = subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout)


def ours(seen):
    return {name for name in seen["compiled"] if "envdoctor" in name}


def test_a_check_compiles_two_files_and_finds_the_same(installed):
    seen = look(installed)
    # What a check of this machine never loads is left out: here facts come from a file, and the
    # memory model is asked.
    left_out = {name for name in ours(seen) if "/intake/" in name or "/memory/" in name}
    assert ours(seen) - left_out == {
        str(installed / "__init__.py"),
        str(installed / "precompiled.py"),
    }
    loaded = {name for name, loader in seen["loaders"].items() if loader == "envdoctor.precompiled"}
    assert {"envdoctor.app", "envdoctor.matrix", "envdoctor.rules.packages"} <= loaded
    assert seen["trace"] == str(installed / "app.py")
    (installed / "_compiled" / NAME).unlink()
    plain = look(installed)
    assert "envdoctor.precompiled" not in plain["loaders"].values()
    assert len(ours(plain)) > 30
    assert plain["findings"] == seen["findings"]


def test_source_that_was_changed_counts(installed):
    with open(installed / "errors.py", "a") as file:
        file.write("# a patch\n")
    seen = look(installed)
    assert str(installed / "errors.py") in ours(seen)
    assert seen["loaders"]["envdoctor.app"] == "envdoctor.precompiled"


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:6],
        lambda content: content[:500],
        lambda content: b"\0\0\0\0" + content[4:],
        lambda content: content[:4] + b"\xff\xff\xff\x7f" + content[8:],
        lambda content: content[:8] + marshal.dumps(["no table"]) + content[30:],
        lambda content: content[: len(content) // 2],
        lambda content: content[: -len(content) // 3] + b"\xff" * (len(content) // 3),
    ],
    ids=[
        "empty",
        "short-head",
        "short-table",
        "other-python",
        "huge-table",
        "other-table",
        "half",
        "garbage",
    ],
)
def test_damaged_file_is_passed_over(installed, damage):
    path = installed / "_compiled" / NAME
    path.write_bytes(damage(path.read_bytes()))
    assert look(installed)["findings"] >= 0


def test_optimised_interpreter_has_its_own_code(installed):
    """-O leaves assert statements out, -OO docstrings too: neither is what the file holds."""
    spy = (
        "import sys, envdoctor.app; print(type(sys.modules['envdoctor.app'].__loader__).__module__)"
    )
    for flag, loader in (("-O", "_frozen_importlib_external"), ("-B", "envdoctor.precompiled")):
        command = [sys.executable, flag, "-c", spy]
        done = subprocess.run(
            command,
            env={"PYTHONPATH": str(installed.parent), "PATH": ""},
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == loader


def test_same_source_gives_the_same_bytes(installed, tmp_path):
    subprocess.run(
        [sys.executable, str(WRITER), str(installed), str(tmp_path)],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert (tmp_path / NAME).read_bytes() == (installed / "_compiled" / NAME).read_bytes()


def test_folder_that_is_no_package_is_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, str(WRITER), str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "expected the folder of a package" in done.stderr
