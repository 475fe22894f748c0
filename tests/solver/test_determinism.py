"""The same request gives the same bytes on every Python and with every hash seed."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, Optional

import pytest

ROOT = Path(__file__).parents[2]
OTHERS = ("3.9", "3.13")


def answers(python: str, seed: str) -> bytes:
    environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    done = subprocess.run([python, "-m", "tests.solver.answers"], cwd=ROOT, env=environment, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def interpreter(version: str) -> Optional[str]:
    """An interpreter of this minor that can import packaging: on PATH, or among those that a version manager keeps."""
    candidates: List[str] = [shutil.which(f"python{version}") or ""]
    for root in (os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")):
        if root:
            candidates += sorted(glob.glob(os.path.join(root, "versions", f"{version}.*", "bin", "python")))
    needed = "import packaging.version, sys" + ("; import tomli" if version == "3.9" else "")
    for path in candidates:
        if path and os.path.exists(path):
            done = subprocess.run([path, "-c", f"{needed}; print(sys.version_info[:2])"], capture_output=True, text=True, check=False)
            if done.stdout.strip() == f"({version.replace('.', ', ')})":
                return path
    return None


@pytest.fixture(scope="module")
def reference() -> bytes:
    return answers(sys.executable, "0")


def test_the_hash_seed_changes_nothing(reference: bytes) -> None:
    assert b"nvidia-cublas-cu12==12.3.4.1" in reference
    assert b"update the driver" in reference
    for seed in ("1", "4242"):
        assert answers(sys.executable, seed) == reference


@pytest.mark.parametrize("version", OTHERS)
def test_the_python_that_runs_it_changes_nothing(version: str, reference: bytes) -> None:
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} with packaging here")
    assert answers(found, "7") == reference
