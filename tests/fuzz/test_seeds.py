"""Every input that ever broke a parser or an output holds now; a minute looks for more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .invariants import Broken, check_texts, hold, planted
from .targets import DATA, REPOSITORY, TARGETS, regressions, seeds

INPUTS = [
    pytest.param(target, path, id=f"{target}-{path.name}")
    for target in TARGETS
    for path in regressions(target)
]


@pytest.mark.parametrize(("target", "path"), INPUTS)
def test_what_was_found_holds(target: str, path: Path) -> None:
    hold(TARGETS[target].run, path.read_bytes(), slower=4.0)


@pytest.mark.parametrize("target", TARGETS)
def test_a_seed_and_nothing_hold(target: str) -> None:
    for data in (b"", seeds(target)[0]):
        hold(TARGETS[target].run, data, slower=4.0)


def test_a_line_is_read_as_often_as_a_machine_has_devices() -> None:
    hold(TARGETS["report"].run, b" NVIDIA GeForce RTX 4090\n" * 8_000)


def test_seeds_belong_to_a_target() -> None:
    assert {path.name for path in (DATA / "fuzz").iterdir()} <= {*TARGETS, "README.md"}


@pytest.mark.parametrize(
    "text", ["a\x1bb", "a\u061cb", "a\U000e0041b", "x QzPlantedSecret", "\ud800"]
)
def test_a_bad_output_is_seen(text: str) -> None:
    with pytest.raises(Broken):
        check_texts([text])


def test_a_fault_a_leak_and_a_long_wait_are_seen() -> None:
    def leaks(data: bytes) -> None:
        check_texts([planted(data)])

    def fails(data: bytes) -> None:
        raise KeyError(data)

    def spins(data: bytes) -> None:
        sum(range(10**7))

    with pytest.raises(Broken, match="secret"):
        hold(leaks, b"a\nb")
    with pytest.raises(KeyError):
        hold(fails, b"")
    with pytest.raises(Broken, match="takes"):
        hold(spins, b"", slower=0.02)


@pytest.mark.slow
def test_a_minute_of_fuzzing_finds_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/fuzz", "--seconds", "60", "--out", str(tmp_path)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
