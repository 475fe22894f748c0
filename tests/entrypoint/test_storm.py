"""Starts with random faults, 50 at a time. Each commit draws others: .ci/run takes two parts, 500
starts, whatever else its sample holds. ``scripts/storm_starts`` does thousands.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .conftest import ROOT

STARTS = 250


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_no_job_is_lost(part, pytestconfig, prerequisite):
    prerequisite(os.geteuid() == 0, "mounts need root")
    prerequisite(os.path.exists("/dev/fuse"), "/dev/fuse")
    seed = f"{pytestconfig.getoption('--seed')} {part}"
    words = [ROOT / "scripts" / "storm_starts", "--count", str(STARTS), "--seed", seed]
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{STARTS} starts in " in done.stdout
