"""The same request gives the same bytes on every Python and with every hash seed."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable, List, Optional

import packaging
import pytest
import tomli

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what solving depends on, which is pure Python: another interpreter need not
    have it installed.
    """
    folder = tmp_path_factory.mktemp("modules")
    for module in (packaging, tomli):
        (folder / module.__name__).symlink_to(Path(module.__file__).parent)
    return folder


def modules_for(python: str, folder: Path) -> Path:
    """The same, of releases for this interpreter: packaging 26.4 does not run on Python 3.9."""
    subprocess.run(
        [
            *["uv", "pip", "install", "--quiet", "--python", python, "--target", str(folder)],
            *["packaging", "tomli"],
        ],
        check=True,
        timeout=120,
    )
    return folder


def answers(python: str, seed: str, modules: Path) -> bytes:
    environment = {
        "PYTHONPATH": f"{ROOT}:{modules}",
        "PYTHONHASHSEED": seed,
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        [python, "-m", "tests.lock.solver.answers"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def interpreter(version: str) -> Optional[str]:
    """An interpreter of this minor: on PATH, or among those that a version manager keeps."""
    candidates: List[str] = [shutil.which(f"python{version}") or ""]
    for root in (os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")):
        if root:
            candidates += sorted(
                glob.glob(os.path.join(root, "versions", f"{version}.*", "bin", "python"))
            )
    for path in candidates:
        if path and os.path.exists(path):
            done = subprocess.run(
                [path, "-c", "import sys; print(sys.version_info[:2])"],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.stdout.strip() == f"({version.replace('.', ', ')})":
                return path
    return None


@pytest.fixture(scope="module")
def reference(modules: Path) -> bytes:
    found = answers(sys.executable, "0", modules)
    assert b"nvidia-cublas-cu12==12.3.4.1" in found
    assert b"update the driver" in found
    return found


@pytest.mark.slow  # the next has another seed, too
def test_the_hash_seed_changes_nothing(reference: bytes, modules: Path) -> None:
    assert answers(sys.executable, "4242", modules) == reference


@pytest.mark.parametrize(
    ("version", "seed"),
    [  # each with a hash seed of its own
        pytest.param("3.9", "1", marks=pytest.mark.slow),
        ("3.13", "7"),
    ],
)
def test_the_python_that_runs_it_changes_nothing(
    version: str,
    seed: str,
    reference: bytes,
    tmp_path: Path,
    prerequisite: Callable[[object, str], None],
) -> None:
    python = interpreter(version)
    prerequisite(python, f"no Python {version} here")
    prerequisite(shutil.which("uv"), "uv")
    assert python is not None
    assert answers(python, seed, modules_for(python, tmp_path)) == reference
