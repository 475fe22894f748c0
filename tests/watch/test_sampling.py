"""Sampling: what goes wrong in it never ends the run, nor what is known of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from envdoctor.watch import sampling
from envdoctor.watch.sampling import watch

RUN = ["sh", "-c", "sleep 0.5; exit 7"]


def failing(*_args):
    raise RuntimeError("sampling broke")


@pytest.mark.parametrize("step", ["read_group", "find_tree", "read_processes", "find_trend"])
@pytest.mark.parametrize("always", [True, False])
def test_a_fault_while_sampling_leaves_the_run_alone(monkeypatch, step, always):
    whole = getattr(sampling, step)
    calls = []

    def broken(*args):
        calls.append(step)
        return failing() if always or len(calls) == 2 else whole(*args)

    monkeypatch.setattr(sampling, step, broken)
    began = time.monotonic()
    recording = watch(command=RUN, interval=0.05, report_every=0.1)
    assert recording.exit_code == 7
    assert time.monotonic() - began < 5
    assert len(calls) > 1
    assert "sampling broke" in recording.failure
    if not always:
        assert recording.taken > 2


def test_a_fault_of_what_is_reported_leaves_the_run_alone():
    recording = watch(command=RUN, interval=0.05, report_every=0.01, report=failing)
    assert recording.exit_code == 7
    assert recording.taken > 2
    assert "sampling broke" in recording.failure


def test_the_outlook_is_of_the_group_and_of_the_latest_sample(monkeypatch):
    """Also where every second sample was thinned away, and the processes of it have ended."""
    monkeypatch.setattr(sampling, "_KEPT", 4)
    monkeypatch.setattr(sampling, "_KEPT_OF_PROCESS", 4)
    command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.05; done"]
    seen = []
    recording = watch(command=command, interval=0.05, report_every=0.01, report=seen.append)
    assert recording.failure == ""
    assert recording.outlook is not None
    assert recording.outlook.sample.elapsed >= recording.samples[-1].elapsed
    assert recording.outlook.trend.level >= recording.outlook.sample.own.used // 2


GROWS = """
import time
held = []
for _ in range(30):
    held.append(bytearray(b"x") * (4 << 20))
    time.sleep(0.05)
"""


def own_limit(monkeypatch):
    """Have the machine be the limit, whatever group the tests run in."""
    group = sampling.find_group(sampling.Machine(), 1)
    whole = group._replace(directory=None)
    monkeypatch.setattr(sampling, "find_group", lambda *_: whole)


def test_without_a_limit_of_its_own_a_run_is_judged_by_its_own_growth(monkeypatch):
    """Another process grows ten times as fast meanwhile: that is no trend of this one."""
    own_limit(monkeypatch)
    other = subprocess.Popen([sys.executable, "-c", GROWS.replace("4 << 20", "40 << 20")])
    try:
        level = watch(command=["sleep", "1.6"], interval=0.05, report_every=0.1)
    finally:
        other.kill()
        other.wait()
    assert level.outlook.trend.shape == "level"
    assert level.peak < 100 << 20
    assert level.is_own
    grown = watch(command=[sys.executable, "-c", GROWS], interval=0.05, report_every=0.1)
    assert grown.outlook.trend.shape == "steady"
    assert 110 << 20 < grown.peak < 200 << 20
    arrival = grown.outlook.arrival
    room = grown.outlook.sample.room(grown.group.limit)
    assert arrival.likely == pytest.approx(room / grown.outlook.trend.slope, rel=0.2)


def test_what_is_not_yet_the_command_is_not_counted(monkeypatch):
    """Between fork and exec the child shares all the memory of this process."""
    own_limit(monkeypatch)

    def become(command):
        time.sleep(0.1)
        os.execvp(command[0], command)

    recording = watch(command=["sleep", "0.3"], become=become, interval=0.01)
    assert recording.exit_code == 0
    assert recording.taken > 3
    assert recording.peak < 10 << 20


def test_kills_are_noted_when_they_are_seen(monkeypatch):
    """The counter of the group moves by three before its fourth sample."""
    reads = []
    whole = sampling.read_group

    def counted(*args):
        reads.append(1)
        return whole(*args)._replace(oom_kills=2 if len(reads) < 4 else 5)

    monkeypatch.setattr(sampling, "read_group", counted)
    recording = watch(command=["sleep", "1"], interval=0.05)
    assert len(reads) > 4
    assert recording.oom_kills == 3
    (moment,) = recording.killed_at
    assert 0.1 < moment < recording.duration
