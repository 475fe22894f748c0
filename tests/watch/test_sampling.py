"""Sampling: what goes wrong in it never ends the run, nor what is known of it."""

from __future__ import annotations

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
    assert recording.outlook.trend.level >= recording.outlook.sample.use.used // 2
