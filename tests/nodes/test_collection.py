"""Programs that hang, die, flood or lie: what each costs the others."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
import zlib

import pytest

from envdoctor.model.node_answers import Answers
from envdoctor.nodes import collection
from envdoctor.nodes.collection import FAILED_MARK, NAMES_MARK, SEPARATOR, Job, collect
from envdoctor.nodes.payload import MARK

PRINT = "import sys; sys.stdout.write(sys.argv[1])"


def count(number):
    """Return facts: so many CPUs."""
    return {"cpu.count": {"value": number, "source": "test"}}


def answer(number):
    """Return the line of an answer with so many CPUs."""
    table = {"clock": time.time(), "facts": {"facts": count(number)}}
    return MARK + base64.b85encode(zlib.compress(json.dumps(table).encode())).decode() + "\n"


def printing(text, node="n"):
    return Job((sys.executable, "-c", PRINT, text), node)


def replies_of(*jobs, deadline=10.0, at_once=64):
    return {
        reply.node: reply
        for reply in collect(jobs, "program", Answers(), deadline=deadline, at_once=at_once)
    }


def shell(text, node):
    return Job(("sh", "-c", text), node)


def test_an_answer_is_found_in_whatever_a_login_prints():
    reply = replies_of(printing(f"Welcome!\r\n{answer(1)}bye"))["n"]
    assert (reply.host, reply.failed) == (count(1), "")
    assert abs(reply.clock_offset) < 1


def test_every_job_gets_the_whole_program():
    counts = [shell("cat | wc -c >&2; exit 3", f"n{number}") for number in range(8)]
    replies = collect(counts, "x" * 300_000, Answers(), deadline=20, at_once=8)
    assert {reply.failed.rpartition(": ")[2] for reply in replies} == {"300000"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exit 255", "exit code 255"),
        ("echo no route to host >&2; exit 255", "no route to host"),
        ("kill -9 $$", "signal 9"),
        ("true", "exit code 0"),
        (f"printf '{MARK}xxxx\\n'", "cannot be read"),
        (f"printf '{MARK}\\n'", "exit code 0"),
        ("echo token=hf_abcdefghijklmnopqrstuvwxyzabcdefgh >&2; exit 1", "token=***"),
    ],
)
def test_a_node_that_fails_is_one_line(text, reason):
    replies = replies_of(shell(text, "bad"), printing(answer(1), "good"))
    assert reason in replies["bad"].failed
    assert "abcdefgh" not in replies["bad"].failed
    assert replies["good"].host == count(1)


def test_a_program_that_is_not_there():
    assert "cannot be started" in replies_of(Job(("nonesuch-program",), "n"))["n"].failed


def test_an_answer_that_never_ends_when_unpacked(monkeypatch):
    monkeypatch.setattr(collection, "_MOST_UNPACKED", 1 << 16)
    packed = base64.b85encode(zlib.compress(b"0" * (1 << 20))).decode()
    assert "too large when unpacked" in replies_of(printing(f"{MARK}{packed}\n"))["n"].failed


def test_a_flood_is_stopped():
    began = time.monotonic()
    replies = replies_of(Job(("yes",), "flood"), printing(answer(1), "good"), deadline=60)
    assert "MiB of output" in replies["flood"].failed
    assert replies["good"].host == count(1)
    assert time.monotonic() - began < 50  # not the deadline


def test_twenty_that_hang_cost_one_deadline_and_leave_nothing():
    mark = f"sleep 10{os.getpid()}"
    jobs = [shell(f"trap '' TERM; {mark}", f"h{number}") for number in range(20)]
    began = time.monotonic()
    replies = replies_of(*jobs, printing(answer(1), "good"), deadline=3)
    assert time.monotonic() - began < 3 + 5
    assert replies["good"].host == count(1)
    assert all("no answer within 3 s" in replies[f"h{number}"].failed for number in range(20))
    left = subprocess.run(["pgrep", "-f", mark], capture_output=True, check=False)
    assert left.stdout == b""


def test_what_runs_is_ended_where_nobody_waits_any_more():
    mark = f"sleep 20{os.getpid()}"
    replies = collect([shell(mark, "h"), printing(answer(1), "good")], "x", Answers(), deadline=60)
    assert next(replies).node == "good"
    replies.close()
    left = subprocess.run(["pgrep", "-f", mark], capture_output=True, check=False)
    assert left.stdout == b""


def test_no_more_run_at_once_than_was_said(tmp_path):
    text = f"touch {tmp_path}/$$; ls {tmp_path} | wc -l >&2; sleep 0.2; rm {tmp_path}/$$; exit 1"
    jobs = [shell(text, f"n{number}") for number in range(12)]
    counts = [
        int(reply.failed.rpartition(": ")[2]) for reply in collect(jobs, "", Answers(), at_once=3)
    ]
    assert len(counts) == 12
    assert max(counts) <= 3


def test_a_job_that_speaks_for_many():
    text = (
        f"{NAMES_MARK}{json.dumps({'a': {}, 'b': {}, 'c': {}})}\n"
        f"{MARK}a{SEPARATOR}{answer(1)[len(MARK) :]}"
        f"{FAILED_MARK}b{SEPARATOR}RayTaskError: no\n"
        f"{MARK}z{SEPARATOR}{answer(2)[len(MARK) :]}"  # not asked
    )
    replies = replies_of(printing(text, ""))
    assert replies["a"].host == count(1)
    assert replies["b"].failed == "RayTaskError: no"
    assert "exit code 0" in replies["c"].failed
    assert set(replies) == {"a", "b", "c"}


@pytest.mark.parametrize("command", ["true", "nonesuch-program"])
def test_a_job_that_names_nobody_has_a_title(command):
    (reply,) = replies_of(Job((command,), title="ray 10.0.0.1")).values()
    assert reply.node == "ray 10.0.0.1"
    assert reply.failed


def test_a_node_cannot_speak_for_another():
    text = f"{MARK}other{SEPARATOR}{answer(1)[len(MARK) :]}{answer(2)}"
    replies = replies_of(printing(text, "n"))
    assert set(replies) == {"n"}


def test_a_clock_that_is_wrong():
    table = {"clock": time.time() + 400, "facts": {"facts": {}}}
    text = MARK + base64.b85encode(zlib.compress(json.dumps(table).encode())).decode() + "\n"
    assert 380 < replies_of(printing(text))["n"].clock_offset < 401


@pytest.mark.parametrize("facts", [{"nonesuch": {"value": 1, "source": "x"}}, {"gpus": 3}, []])
def test_an_answer_whose_facts_are_none(facts):
    table = {"clock": time.time(), "facts": {"facts": facts}}
    text = MARK + base64.b85encode(zlib.compress(json.dumps(table).encode())).decode() + "\n"
    assert "cannot be read" in replies_of(printing(text))["n"].failed
