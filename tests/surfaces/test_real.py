"""Committed statements against the packages themselves: installed, and asked for the name."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.model.versions import VersionSet, parse_version

SURFACES = Path(__file__).resolve().parents[2] / "matrices" / "surfaces"
#: Packages that install in seconds on any Python, without a compiler, and import without a GPU.
SMALL = ("huggingface-hub", "openai", "setuptools", "starlette")
DRAWN = 6


def drawn():
    statements = [
        (document["name"], statement)
        for path in sorted(SURFACES.glob("*.json"))
        for document in [json.loads(path.read_text())]
        for statement in document["statements"]
        if statement["provider"] in SMALL and statement["module"] and statement.get("pin")
    ]
    chosen = random.Random(2026).sample(statements, DRAWN)
    return [pytest.param(name, entry, id=f"{entry['id']}:{name}") for name, entry in chosen]


def imported(folder, requirement, statement):
    """Install a release with what it needs; return what the import printed as its error."""
    target = folder / requirement.replace("=", "").replace("<", "").replace(">", "")
    subprocess.run(
        ["uv", "pip", "install", "-q", "--python", sys.executable, "--target", target, requirement],
        check=True,
        timeout=300,
    )
    line = f"import {statement['module']}"
    if statement["name"]:
        line = f"from {statement['module']} import {statement['name']}"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(target)!r}); {line}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


@pytest.mark.slow
@pytest.mark.parametrize(("consumer", "statement"), drawn())
def test_what_is_missing_is_missing(tmp_path, prerequisite, consumer, statement):
    prerequisite(shutil.which("uv"), "uv")
    provider = statement["provider"]
    lacking = statement["lacking"][-1][-1]
    error = imported(tmp_path, f"{provider}=={lacking}", statement)
    assert error.startswith(("ImportError", "ModuleNotFoundError")), error
    module = statement["module"].rpartition(".")[2]
    assert (statement["name"] or module) in error or module in error, error
    outside = statement["pin"]
    spans = "||".join(f">={first},<={last}" for first, last in statement["lacking"])
    if outside.startswith(provider):
        assert not VersionSet.parse(outside[len(provider) :]) & VersionSet.parse(spans)
        assert imported(tmp_path, outside, statement) == ""
    assert parse_version(lacking) in VersionSet.parse(spans)
