"""Real environments from the index, broken in one way each: ``fix --apply``, then the import that
failed or would have been judged.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
HUGGING = ("transformers==4.46.3", "requests==2.32.3", "numpy<3")
PANDAS = ("pandas==2.2.2", "numpy<2")


def without(*names):
    return lambda python: uv("uninstall", python, *names)


def replaced_by(*requirements):
    return lambda python: uv("install", python, "--no-deps", *requirements)


def without_file(path):
    return lambda python: next(python.parents[1].glob(f"lib/python*/site-packages/{path}")).unlink()


#: What is installed, how it is broken, what is imported, and options of fix.
CASES = {
    "unknown to the matrix": (HUGGING, without("idna"), "requests", ()),
    "known": (HUGGING, without("numpy"), "transformers", ()),
    "many": (
        HUGGING,
        without("safetensors", "filelock", "certifi", "pyyaml", "tqdm"),
        "transformers, requests",
        (),
    ),
    "not at import": (HUGGING, without("tokenizers"), "tokenizers", ()),
    "too new": (HUGGING, replaced_by("tokenizers==0.21.0"), "transformers", ()),
    "too new, with requirements of its own": (
        HUGGING,
        replaced_by("huggingface-hub==1.0.0"),
        "transformers",
        (),
    ),
    "compiled for NumPy 1": (
        ("pandas==2.1.4", "numpy<2"),
        replaced_by("numpy==2.2.6"),
        "pandas",
        (),
    ),
    "no dateutil": (PANDAS, without("python-dateutil", "pytz"), "pandas", ()),
    "a file is gone": (HUGGING, without_file("numpy/_core/multiarray.py"), "numpy", ("--deep",)),
    "too old": (
        ("requests==2.31.0",),
        replaced_by("urllib3==1.20"),
        "requests",
        ("--to", "healthy"),
    ),
}


def run(*command, **options):
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, **options
    )


def uv(action, python, *words):
    done = run("uv", "pip", action, "--python", python, *words)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("case", CASES)
def test_a_broken_environment_works_again(case, tmp_path, prerequisite):
    prerequisite(shutil.which("uv"), "uv")
    packages, break_it, imported, options = CASES[case]
    python = tmp_path / "env" / "bin" / "python"
    assert run("uv", "venv", "--python", "3.11", tmp_path / "env").returncode == 0
    made = run("uv", "pip", "install", "--python", python, *packages)
    prerequisite(made.returncode == 0, f"the index: {made.stderr[-200:]}")
    program = (python, "-I", "-c", f"import {imported}")
    assert run(*program).returncode == 0
    break_it(python)
    if case != "not at import":
        assert run(*program).returncode != 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    fixed = run(
        *(sys.executable, "-m", "envdoctor", "fix", "--python", python, "--apply", "--yes"),
        *options,
        env=environment,
    )
    assert fixed.returncode == 0, fixed.stdout + fixed.stderr
    assert run(*program).returncode == 0, run(*program).stderr
