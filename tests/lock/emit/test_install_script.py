"""``install.sh`` in a real shell, with real uv and real pip, on wheels of the shape of the real
ones.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.lock.emit import install_script, render
from tests.lock.closing.synthetic_index import wheel

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
H20 = ("gpu=H20", "nvidia-driver=535.129.03")


@pytest.fixture(scope="module")
def override_lock(resolution):
    """torch 2.4.0 on an H20: its exact pin of cuBLAS is broken on purpose."""
    return resolution("torch==2.4.0", python="3.11", assume=H20)


@pytest.fixture
def wheels(override_lock, tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    for pin in override_lock.pins:
        requires = ["nvidia-cublas-cu12==12.1.3.1"] if pin.name == "torch" else []
        name, content, _ = wheel(pin.name, str(pin.version), requires)
        (folder / name).write_bytes(content)
    name, content, _ = wheel("nvidia-cublas-cu12", "12.1.3.1")
    (folder / name).write_bytes(content)
    return folder


def test_any_shell_reads_it(resolution, override_lock, tmp_path, prerequisite):
    prerequisite(shutil.which("shellcheck"), "shellcheck is not installed")
    for number, found in enumerate(
        (override_lock, resolution("vllm==0.8.5", "flash-attn"), resolution("numpy", assume=()))
    ):
        script = tmp_path / f"{number}.sh"
        script.write_text(install_script.render(found, "0"))
        for command in (["sh", "-n"], ["bash", "-n"], ["shellcheck", "--severity=style"]):
            done = subprocess.run([*command, script], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_installs_what_the_lock_says(override_lock, wheels, matrix, tmp_path, tool):
    if override_lock.requires.python != PYTHON:
        override_lock = override_lock._replace(
            requires=override_lock.requires._replace(python=PYTHON)
        )
    folder = tmp_path / "lock"
    folder.mkdir()
    for name, text in render(override_lock, "0", matrix).items():
        (folder / name).write_text(text)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    beside = f"{Path(sys.executable).parent}:" if tool == "uv" else ""
    environment = {
        "PATH": f"{beside}/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "UV_OFFLINE": "1",
        "UV_FIND_LINKS": str(wheels),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
    }
    done = subprocess.run(
        ["sh", folder / "install.sh", python], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    installed = {entry["name"]: entry["version"] for entry in json.loads(listed.stdout)}
    assert installed["nvidia-cublas-cu12"] == "12.3.4.1"
    for pin in override_lock.pins:
        assert installed[pin.name] == str(pin.version)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((sys.executable,), "expected Python 3.99, found"), (("no-such-python",), "no interpreter")],
)
def test_another_interpreter_is_refused(override_lock, tmp_path, arguments, words):
    other = override_lock._replace(requires=override_lock.requires._replace(python="3.99"))
    (tmp_path / "install.sh").write_text(install_script.render(other, "0"))
    done = subprocess.run(
        ["sh", tmp_path / "install.sh", *arguments],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == 2
    assert words in done.stderr
