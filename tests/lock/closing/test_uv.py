"""The names of platforms: real uv takes them, and takes the wheels of that platform."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable, Optional

import pytest

from envdoctor.lock.closing.uv import find_uv, python_platform

from .synthetic_index import Index


@pytest.mark.parametrize(
    ("platform", "architecture", "glibc", "tag"),
    [
        ("linux", "x86_64", "2.36", "manylinux_2_34_x86_64"),
        ("linux", "aarch64", "2.28", "manylinux_2_28_aarch64"),
        ("darwin", "arm64", None, "macosx_11_0_arm64"),
        ("darwin", "x86_64", None, "macosx_10_12_x86_64"),
        ("win32", "AMD64", None, "win_amd64"),
    ],
)
def test_uv_takes_the_wheels_of_a_platform_by_its_name(
    platform: str,
    architecture: str,
    glibc: Optional[str],
    tag: str,
    tmp_path: Path,
    prerequisite: Callable[[object, str], None],
) -> None:
    uv, name = find_uv({}), python_platform(platform, architecture, glibc)
    prerequisite(uv, "uv")
    assert uv is not None
    assert name is not None
    (tmp_path / "in.txt").write_text("ours\n")
    for own in (tag, "linux_riscv64"):
        shelf = Index().add("ours", "1.0", tag=f"cp312-cp312-{own}").write(tmp_path / own)
        options = ["--python-platform", name, "--python-version", "3.12", "--no-config"]
        options += ["--no-python-downloads", "--python", sys.executable]
        done = subprocess.run(
            [uv, "pip", "compile", "in.txt", "--no-index", "--find-links", shelf, *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert (done.returncode == 0) is (own == tag), done.stderr
