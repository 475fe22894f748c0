"""Whatever wraps it, an exception that nothing caught is printed as the failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.app import diagnose

from .wrapped_programs import PLAIN, TORCH, draw_failure, program

LOGS = Path(__file__).parent.parent / "data" / "logs" / "wrapped"


def run(command, path):
    done = subprocess.run(
        [*command, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": "", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode != 0
    log = path.with_suffix(".log")
    log.write_bytes(done.stdout)
    return log


def shows(log, seed, matrix):
    """Tell whether what is said first is the exception that was drawn."""
    kind, message, _ = draw_failure(seed)
    first = message.split("\\n")[0]
    traces = diagnose([str(log)], None, matrix).traces
    said = [traces[0].finding.message, *(entry.detail for entry in traces[0].finding.evidence)]
    return any(kind in line and first in line for line in said)


@pytest.mark.parametrize("name", sorted(PLAIN))
@pytest.mark.parametrize("seed", range(3))
def test_of_python(tmp_path, matrix, name, seed):
    path = tmp_path / "train.py"
    path.write_text(program(PLAIN[name], seed), encoding="utf-8")
    assert shows(run([sys.executable], path), seed, matrix)


@pytest.mark.parametrize("name", sorted(TORCH))
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_of_torch(tmp_path, matrix, torch_python, name, seed):
    path = tmp_path / "train.py"
    path.write_text(program(TORCH[name], seed), encoding="utf-8")
    assert shows(run([torch_python], path), seed, matrix)


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: path.stem)
def test_of_torchrun_and_ray(matrix, path):
    """Logs that torch 2.15 and Ray 2.49.2 wrote of these programs: ``NAME-SEED.log``."""
    assert shows(path, int(path.stem.rpartition("-")[2]), matrix)
