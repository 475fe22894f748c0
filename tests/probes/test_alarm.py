"""Probes of this process have an end: real sleeps, a real FIFO that nobody writes, real signals."""

import os
import signal
import threading
import time

import pytest

from envdoctor.model.evidence import Evidence, Known, Unknown
from envdoctor.probes import Alarm, Machine, Probe, run_probes
from envdoctor.probes.alarm import TooLong

HERE = Evidence("test")
GOOD = Probe("good", lambda machine: {"os.name": Known("x", HERE)}, ("os.name",))


def _sleep(machine):
    time.sleep(30)
    return {}


def _blocked_read(machine):
    reading, _ = os.pipe()
    try:
        os.read(reading, 1)
    except Exception:  # noqa: BLE001 - what a careless probe does must not hide that its time is over
        time.sleep(30)
    return {}


@pytest.mark.parametrize("function", [_sleep, _blocked_read])
def test_a_probe_that_does_not_come_back_costs_its_own_fields(function):
    before = signal.getsignal(signal.SIGALRM)
    start = time.monotonic()
    facts = run_probes(Machine(), (Probe("slow", function, ("driver.loaded",), False, 0.2), GOOD))
    assert time.monotonic() - start < 2
    assert facts.get("driver.loaded") == Unknown("took longer than 0.2 s", "slow")
    assert facts.value("os.name") == "x"
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_many_slow_reads_end_too():
    def crawl(machine):
        for _ in range(300):
            time.sleep(0.1)
        return {}

    start = time.monotonic()
    facts = run_probes(
        Machine(deadline=0.3), (Probe("crawl", crawl, ("driver.loaded",), False, 5.0),)
    )
    assert time.monotonic() - start < 2
    assert facts.get("driver.loaded") == Unknown("took longer than 0.3 s", "crawl")


def test_deep_is_held_to_the_total_only():
    def patient(machine):
        time.sleep(0.8)
        return {"os.name": Known("x", HERE)}

    assert (
        run_probes(
            Machine(deep=True), (Probe("patient", patient, ("os.name",), False, 0.1),)
        ).value("os.name")
        == "x"
    )


def test_outside_the_main_thread_probes_run_without_it():
    found = []
    thread = threading.Thread(
        target=lambda: found.append(run_probes(Machine(), (GOOD,)).value("os.name"))
    )
    thread.start()
    thread.join()
    assert found == ["x"]


def test_the_alarm_of_a_caller_stays_his():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with Alarm() as alarm:
            assert alarm.call(time.sleep, (0.4,), 0.1) is None
        assert rung == [True]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_late_signal_raises_nothing():
    with Alarm() as alarm:
        with pytest.raises(TooLong):
            alarm.call(time.sleep, (5,), 0.05)
        os.kill(os.getpid(), signal.SIGALRM)
        assert alarm.call(len, ("ab",), 5.0) == 2
