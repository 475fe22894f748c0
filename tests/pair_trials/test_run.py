"""The sandbox against the kernel, and drawn trials against the index and the packages themselves."""

import itertools
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.matrix.loader import load_matrix
from scripts.pair_trials.draw import Statements, Trial, draw
from scripts.pair_trials.run import MEMORY, Place, sandbox, try_one
from scripts.pair_trials.tally import judge

STATEMENTS = Statements(Path(__file__).resolve().parents[2] / "matrices")
#: Packages that need no torch: seconds instead of gigabytes.
LIGHT = ("gradio", "wandb", "huggingface-hub", "setuptools", "ray", "mistral-common", "datasets")


def inside(code):
    return subprocess.run(
        [*sandbox(), sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )


def test_the_sandbox_has_no_network(prerequisite):
    alone = subprocess.run(["unshare", "--net", "true"], capture_output=True)
    prerequisite(alone.returncode == 0, "namespaces")
    done = inside("import socket; print([name for _, name in socket.if_nameindex()])")
    assert done.stdout.strip() == "['lo']"


def test_the_sandbox_bounds_memory():
    assert inside(f"bytearray({MEMORY} + 1)").returncode == 1
    assert "MemoryError" in inside(f"bytearray({MEMORY} + 1)").stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blocks", "allowed"])
def test_drawn_trials_agree_with_check(tmp_path, prerequisite, kind):
    prerequisite(shutil.which("uv"), "uv")
    drawn = draw(random.Random("sample"), load_matrix(), STATEMENTS, [kind])
    light = (
        trial
        for trial in drawn
        if all(
            word.partition("==")[0] in LIGHT or "==" not in word for word in trial.requirements[:1]
        )
    )
    place, outcomes = Place(str(tmp_path), sys.executable), []
    for trial in itertools.islice(light, 3):
        record = try_one(trial, place, {})
        outcomes += [verdict.outcome for verdict in judge(record, STATEMENTS)]
    assert outcomes
    assert not {"false alarm", "miss"} & set(outcomes), outcomes


@pytest.mark.slow
def test_what_an_import_says_is_kept(tmp_path, prerequisite):
    prerequisite(shutil.which("uv"), "uv")
    trial = Trial("blocks", ("colorama==0.4.6",), "2024-04-04", "", ("colorama", "no_such"), "")
    record = try_one(trial, Place(str(tmp_path), sys.executable), {})
    assert record["state"] == "tried"
    assert record["installed"] == {"colorama": "0.4.6"}
    assert record["errors"]["colorama"] == []
    assert record["errors"]["no_such"][0] == "ModuleNotFoundError: No module named 'no_such'"
