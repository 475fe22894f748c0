"""What a task of Ray's does on its node: whatever the program does there costs its own answer
alone, and leaves nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from envdoctor.nodes import ray_driver

MARK = "\x1emark:"
MOST = 1 << 16


def ask(program, seconds=20.0, arguments=()):
    return ray_driver.ask(program, seconds, MOST, MARK, list(arguments))


def test_an_answer_is_what_stands_behind_the_mark():
    program = f"import sys; print('x\\n{MARK}' + sys.argv[1])\n" + "#" * 300_000
    assert ask(program, arguments=["yes"]) == (True, "yes")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit('no such thing')", "the program ended with exit code 1: no such"),
        ("import os; os.kill(os.getpid(), 9)", "the program ended with signal 9"),
        ("print('x' * 99, flush=True)", "the program ended with exit code 0"),
        ("while True: print('x' * 999)", "more than 0 MiB of output"),
        ("import os, time; os.close(1); time.sleep(90)", "the program ended with signal 9"),
    ],
)
def test_a_program_that_fails_is_a_reason(program, words):
    has_answered, text = ask(program)
    assert not has_answered
    assert text.startswith(words)


def test_one_that_hangs_costs_its_time_and_leaves_nothing():
    mark = f"sleep 30{os.getpid()}"
    began = time.monotonic()
    program = f"import subprocess; subprocess.run({mark.split()!r})"
    assert ask(program, seconds=1.0) == (False, "no answer within 1 s")
    assert time.monotonic() - began < 10
    left = subprocess.run(["pgrep", "-f", mark], capture_output=True, check=False)
    assert left.stdout == b""


def node(name, number, **members):
    return {"NodeName": name, "NodeID": f"{number:056x}", "Alive": not members, **members}


def test_who_has_left_is_not_missed():
    """The reasons of two nodes that a Ray 2.44.1 and a 2.60.0 had lost, and one of a scaler."""
    lost = {"DeathReason": 2, "DeathReasonMessage": "health check failed"}
    alive, gone = ray_driver._named(
        [
            node("a", 1),
            node("a", 0xABC << 200),
            node("b", 2, **lost),
            node("again", 3, **lost),
            node("again", 4),
            node("stopped", 5, DeathReason=1, DeathReasonMessage="received SIGTERM"),
            node("idle", 6, DeathReason=4, DeathReasonMessage="idle"),
            node("old", 7, Alive=False),  # before Ray 2.9
        ]
    )
    assert list(alive) == ["a", "a#000abc00", "again"]
    assert gone == {"b": "health check failed", "old": "it gives no reason"}


def test_a_python_without_ray_says_so(tmp_path):
    """A folder of that name where it starts is none."""
    (tmp_path / "ray").mkdir()
    with open(ray_driver.__file__, encoding="utf-8") as file:
        command = [sys.executable, "-S", "-c", file.read(), "", "5", "9", '["", "", "", ""]', "{}"]
    done = subprocess.run(
        command, input="", capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "has no Ray (No module named 'ray'); --python" in done.stderr
