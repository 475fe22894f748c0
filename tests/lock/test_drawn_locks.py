"""Locks drawn by the seed of the slow tests: judged by what is not the solver, installed and
imported, and held beside uv's choice.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("lock_grid", ("--sample", "12", "--jobs", "1")),
        ("try_locks", ("--count", "1", "--kind", "single", "pair")),
        ("compare_uv", ("--draw", "2")),
    ],
)
def test_a_seeded_sample(
    script: str,
    options: tuple[str, ...],
    request: pytest.FixtureRequest,
    prerequisite: Callable[[bool, str], None],
) -> None:
    prerequisite(shutil.which("uv") is not None, "uv")
    seed = request.config.getoption("--seed")
    command = [sys.executable, str(ROOT / "scripts" / script), *options, "--seed", seed]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
    assert f"seed {seed}" in done.stdout
