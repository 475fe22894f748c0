"""``install.sh`` in a real shell, with real uv and real pip, on wheels of the shape of the real
ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.lock.emit import install_script, render
from envdoctor.model.resolution import ClosedLine, Closure
from tests.lock.closing.synthetic_index import sdist, wheel

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
        (
            override_lock,
            override_lock._replace(closure=override_lock.closure._replace(local=("a", "b-c"))),
            resolution("vllm==0.8.5", "flash-attn"),
            resolution("numpy", assume=()),
        )
    ):
        script = tmp_path / f"{number}.sh"
        script.write_text(install_script.render(found, "0"))
        for command in (["sh", "-n"], ["bash", "-n"], ["shellcheck", "--severity=style"]):
            done = subprocess.run([*command, script], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_installs_what_the_lock_says(
    override_lock, wheels, matrix, environment_with_pip, tmp_path, tool
):
    if override_lock.requires.python != PYTHON:
        override_lock = override_lock._replace(
            requires=override_lock.requires._replace(python=PYTHON)
        )
    folder = tmp_path / "lock"
    folder.mkdir()
    for name, text in render(override_lock, "0", matrix).items():
        (folder / name).write_text(text)
    environment_with_pip(tmp_path / "venv")
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
    relative = python.relative_to(tmp_path)  # to where the caller stands, not to the script
    done = subprocess.run(
        ["sh", folder / "install.sh", f"./{relative}"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
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


BACKEND = """\
import base64, hashlib, zipfile
import {needed}
if {blind}:
    try:
        import torch_synthetic
    except ImportError:
        pass
    else:
        raise SystemExit("torch is there, so nvcc would be asked for")

def build_wheel(folder, settings=None, metadata=None):
    stem = "{stem}"
    files = {{
        stem + ".dist-info/METADATA": "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
        stem + ".dist-info/WHEEL":
            "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        stem + ".dist-info/RECORD": "",
    }}
    with zipfile.ZipFile(folder + "/" + stem + "-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return stem + "-py3-none-any.whl"
"""


def _archive(name, version, needed, blind):
    """A source archive with a build of its own that imports what it is built with."""
    stem = f"{name.replace('-', '_')}-{version}"
    backend = BACKEND.format(needed=needed, blind=blind, stem=stem, name=name, version=version)
    project = '[build-system]\nrequires = ["not-to-be-had"]\nbuild-backend = "own"\n'
    return sdist(
        name.replace("-", "_"),
        version,
        {
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "pyproject.toml": f'{project}backend-path = ["."]\n',
            "own.py": backend,
        },
    )


@pytest.mark.parametrize(
    ("closed", "tool"),
    [
        (True, "uv"),
        (False, "uv"),
        pytest.param(True, "pip", marks=pytest.mark.slow),
        pytest.param(False, "pip", marks=pytest.mark.slow),
    ],
)
def test_builds_have_what_they_need_in_the_order_that_they_need_it(
    resolution, matrix, environment_with_pip, tmp_path, tool, closed
):
    """deepspeed is built before torch is there, flash-attn after; neither in an isolated build."""
    found = resolution("deepspeed==0.16.9", "flash-attn==2.7.4.post1", "torch==2.6.0")
    found = found._replace(requires=found.requires._replace(python=PYTHON))
    folder, wheels = tmp_path / "lock", tmp_path / "wheels"
    folder.mkdir()
    wheels.mkdir()
    lines = {"wheel": "0.45", "ninja": "1.13", "psutil": "7.0", "py-cpuinfo": "9.0"}
    lines.update({pin.name: str(pin.version) for pin in found.pins})
    closed_lines = []
    for name, version in sorted(lines.items()):
        if name == "deepspeed":
            file, content = _archive(name, version, "py_cpuinfo_synthetic", True)
        elif name == "flash-attn":
            file, content = _archive(name, version, "torch_synthetic", False)
        else:
            file, content, _ = wheel(name, version)
        (wheels / file).write_bytes(content)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        closed_lines.append(ClosedLine(name, version, (digest,)))
    if closed:
        found = found._replace(closure=Closure("closed", lines=tuple(closed_lines)))
    for name, text in render(found, "0", matrix).items():
        (folder / name).write_text(text)
    environment_with_pip(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    beside = f"{Path(sys.executable).parent}:" if tool == "uv" else ""
    done = subprocess.run(
        ["sh", folder / "install.sh", python],
        env={
            "PATH": f"{beside}/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
            "UV_OFFLINE": "1",
            "UV_FIND_LINKS": str(wheels),
            "UV_CACHE_DIR": str(tmp_path / "uv"),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = subprocess.run(
        [python, "-m", "pip", "list", "--format", "freeze"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name, version in lines.items():
        assert f"{name}=={version}" in shown.splitlines()


def test_the_base_image_has_the_nvcc_of_what_is_compiled(resolution, matrix):
    newer = ("gpu=H100", "nvidia-driver=580.95.05")
    for found, base in (
        # its project has a wheel for torch 2.6
        (resolution("flash-attn==2.7.4.post1", "torch==2.6.0"), "python:3.11-slim"),
        # and none for 2.13, which is for CUDA 13.0
        (
            resolution("flash-attn==2.8.3", "torch==2.13.0", assume=newer, as_of=None),
            "nvidia/cuda:13.0.1-devel-ubuntu22.04",
        ),
    ):
        text = render(found, "0", matrix)["Dockerfile"]
        assert f"ARG BASE={base}\n" in text
        assert ("nvcc of torch's CUDA" in text) == base.startswith("nvidia")
