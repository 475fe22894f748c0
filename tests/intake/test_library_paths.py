"""Files of libraries, as the loader itself prints them."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.intake.pasted_report import parse_report

_FOLDER = "/usr/local/cuda-12.1/lib64"


@pytest.fixture
def library(tmp_path, prerequisite) -> Path:
    """A library under NCCL's file name, with the link that its soname is."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    some = next((line.split()[-1] for line in maps.splitlines() if "/libm." in line), "")
    prerequisite(some or ctypes.util.find_library("m"), "a library to copy")
    file = tmp_path / "libnccl.so.2.18.3"
    shutil.copyfile(some, file)
    (tmp_path / "libnccl.so.2").symlink_to(file)
    return file


def test_what_the_loader_says_it_loads(library, tmp_path):
    environment = {**os.environ, "LD_DEBUG": "libs", "LD_LIBRARY_PATH": str(tmp_path)}
    code = "import ctypes; ctypes.CDLL('libnccl.so.2')"
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    facts = parse_report(run.stderr)
    (nccl,) = [one for one in facts.value("libraries") if one.name == "libnccl"]
    assert nccl.loaded
    assert Path(nccl.path).resolve() == library
    assert facts.variable("LD_LIBRARY_PATH").value == str(tmp_path)


def test_what_ldd_resolves_is_a_copy_and_not_what_a_process_has_loaded(tmp_path, prerequisite):
    compiler = shutil.which("gcc") or shutil.which("cc")
    prerequisite(compiler, "a C compiler")
    source = tmp_path / "empty.c"
    source.write_text("int answer(void) { return 42; }\n", encoding="utf-8")
    soname = "-Wl,-soname,libcudart.so.12"
    subprocess.run(
        [compiler, "-shared", soname, "-o", "libcudart.so.12", source], cwd=tmp_path, check=True
    )
    subprocess.run(
        [compiler, "-shared", "-Wl,--no-as-needed", "-o", "user.so", source, "libcudart.so.12"],
        cwd=tmp_path,
        check=True,
    )
    for path, there in ((str(tmp_path), True), ("", False)):
        environment = {**os.environ, "LD_LIBRARY_PATH": path}
        shown = subprocess.run(
            ["ldd", "user.so"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert ("not found" in shown) is not there
        facts = parse_report(f"torch 2.6.0\n{shown}")
        assert facts.value("report.unread") == ()
        copies = facts.value("libraries", ())
        assert [one.soname for one in copies if not one.loaded] == ["libcudart.so.12"] * there


@pytest.mark.parametrize(
    ("line", "version", "toolkit"),
    [
        ("* Found CUDA runtime at: /usr/local/cuda/lib64/libcudart.so.11.8.89", "11.8.89", None),
        ("* Found CUDA runtime at: /usr/local/cuda/lib64/libcudart.so.11.0", None, None),
        (f"CUDA SETUP: CUDA runtime path found: {_FOLDER}/libcudart.so", None, "12.1"),
    ],
)
def test_copies_that_bitsandbytes_finds(line, version, toolkit):
    facts = parse_report(line)
    (copy,) = facts.value("libraries")
    assert (copy.version, copy.loaded) == (version, False)
    assert [one.version for one in facts.value("toolkits", ())] == [toolkit] * bool(toolkit)
