"""Accuracy on public cases, and what mutations and other words do to it: scripts/score_cases,
scripts/mutate_cases and scripts/rephrase_cases must not get worse.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CASES = ROOT / "tests" / "data" / "cases" / "public.jsonl"


def run(*command: str) -> str:
    """Run a script of the project and return what it printed."""
    ended = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout


def test_nine_of_ten_causes_are_named_and_health_raises_no_alarm() -> None:
    lines = run("scripts/score_cases", str(CASES)).splitlines()
    match = re.fullmatch(
        r"cases: (\d+)/(\d+) named, (\d+) false alarms on (\d+) healthy, (\d+) unrelated errors",
        lines[-1],
    )
    assert match is not None, lines[-1]
    _, _, alarms, healthy, unrelated = map(int, match.groups())
    assert (alarms, unrelated) == (0, 0)
    assert healthy >= 10
    inner = re.match(r"classes 1-8: (\d+)/(\d+) named", lines[-2])
    assert inner is not None
    assert int(inner.group(1)) >= 0.9 * int(inner.group(2))


@pytest.mark.parametrize(("name", "least"), [("public", 0.9), ("logs", 0.9)])
def test_with_their_logs_nine_of_ten_are_named_and_health_raises_no_alarm(
    name: str, least: float
) -> None:
    lines = run(
        "scripts/score_cases", str(CASES.parent / f"{name}.jsonl"), "--with-log"
    ).splitlines()
    match = re.fullmatch(
        r"cases: (\d+)/(\d+) named, (\d+) false alarms on (\d+) healthy, (\d+) unrelated errors",
        lines[-1],
    )
    assert match is not None, lines[-1]
    named, counted, alarms, _, unrelated = map(int, match.groups())
    assert named >= least * counted
    assert (alarms, unrelated) == (0, 0)


#: Every fifth case; as a slow test all of them.
SOME = pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])


def some_cases(folder: Path, step: int) -> str:
    """Write every ``step``-th case to a file and return its path."""
    path = folder / "cases.jsonl"
    path.write_text("".join(CASES.read_text().splitlines(keepends=True)[::step]))
    return str(path)


@SOME
def test_a_mutation_flips_the_verdict_only_across_a_boundary(tmp_path: Path, step: int) -> None:
    count = 200 // step
    cases = some_cases(tmp_path, step)
    words = ("scripts/mutate_cases", cases, "--count", str(count), "--seed", "7")
    lines = run(*words).splitlines()
    match = re.match(r"mutations: (\d+)/(\d+) behaved", lines[-1])
    assert match is not None, lines[-1]
    behaved, tried = map(int, match.groups())
    assert tried == count
    # Two lines that contradict each other (LD_LIBRARY_PATH before and after) may be shuffled: then
    # the later one holds.
    assert behaved >= 0.99 * tried, "\n".join(lines)
    assert "WRONG        across" not in "\n".join(lines), "\n".join(lines)


@SOME
def test_other_words_leave_the_verdict_as_it_is(tmp_path: Path, step: int) -> None:
    lines = run("scripts/rephrase_cases", some_cases(tmp_path, step)).splitlines()
    match = re.match(r"rephrased: (\d+)/(\d+) kept", lines[-1])
    assert match is not None, lines[-1]
    kept, tried = map(int, match.groups())
    assert tried > 250 // step
    assert kept >= 0.97 * tried, "\n".join(lines)
