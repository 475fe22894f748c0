"""Wheel and editable installs carry the compiled matrix: built with pip, used from a fresh venv."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import os, sys
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.version import Version
matrix = load_matrix()
print(type(matrix._files).__name__, "tomllib" in sys.modules or "tomli" in sys.modules)
print(matrix.gpu("NVIDIA H20", None).name, matrix.package("torch").release(Version("2.6.0")).builds[0].variant)
print(len(matrix.rows()), matrix.row("driver-for-cuda-13:torch").title)
"""

pytestmark = pytest.mark.slow


def run(*command, cwd=None):
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "ENVDOCTOR_MATRIX")
    }
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the sources, so that nothing is written into the working tree."""
    folder = tmp_path_factory.mktemp("checkout") / "source"
    folder.mkdir()
    for name in ("envdoctor", "matrices"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("_compiled", "__pycache__")
        )
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture
def python(tmp_path, prerequisite):
    """The interpreter of a fresh venv with packaging, and nothing of ours."""
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    interpreter = tmp_path / "venv" / "bin" / "python"
    found = run(
        str(interpreter), "-m", "pip", "install", "-q", "packaging", "setuptools>=70.1", "wheel"
    )
    prerequisite(
        found.returncode == 0, f"an index with packaging and setuptools: {found.stderr[-300:]}"
    )
    return str(interpreter)


def install(python, *arguments):
    found = run(
        python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", *arguments
    )
    assert found.returncode == 0, found.stderr


def ask(python, folder):
    found = run(python, "-c", PROGRAM, cwd=folder)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


def expected_lines(form, toml):
    source = run(sys.executable, "-c", PROGRAM, cwd=ROOT)
    assert source.returncode == 0, source.stderr
    return [f"{form} {toml}", *source.stdout.splitlines()[1:]]


def test_a_wheel(python, checkout, tmp_path):
    found = run(
        python,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(checkout),
    )
    assert found.returncode == 0, found.stderr
    (wheel,) = tmp_path.glob("envdoctor-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {
        "envdoctor/_compiled/core.json",
        "envdoctor/_compiled/texts.json",
        "envdoctor/_compiled/packages/torch.jsonl",
    } <= set(names)
    assert not any(name.startswith("matrices/") for name in names)
    assert not (checkout / "envdoctor" / "_compiled").exists()
    install(python, str(wheel))
    assert ask(python, tmp_path) == expected_lines("CompiledFiles", False)


def test_an_editable_install_follows_its_source(python, checkout, tmp_path):
    install(python, "-e", str(checkout))
    assert ask(python, tmp_path) == expected_lines("CompiledFiles", False)
    path = checkout / "matrices" / "gpus.toml"
    text = path.read_text()
    try:
        path.write_text(text + "# changed\n")
        assert ask(python, tmp_path) == expected_lines("SourceFiles", True)
    finally:
        path.write_text(text)
    assert ask(python, tmp_path) == expected_lines("CompiledFiles", False)
