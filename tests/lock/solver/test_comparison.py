"""scripts/compare_uv: the table is made by running uv, and a file without the markers is refused
before that.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

ROOT = Path(__file__).parents[3]
BEGIN, END = "<!-- uv-comparison:begin -->", "<!-- uv-comparison:end -->"


def compare(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "compare_uv"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=1200, check=False
    )


def test_a_file_without_markers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# nothing here\n")
    done = compare("--write", str(tmp_path / "page.md"))
    assert done.returncode == 1
    assert BEGIN in done.stderr


@pytest.mark.slow
def test_uv_takes_what_check_refuses_and_the_lock_does_not(
    tmp_path: Path, prerequisite: Callable[[bool, str], None]
) -> None:
    prerequisite(shutil.which("uv") is not None, "uv")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    done = compare("--write", str(page))
    assert done.returncode == 0, done.stderr
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert len([line for line in lines if line.startswith("| `")]) >= 10
    assert compare("--check", str(page)).returncode == 0
