"""A process that leaks at a known rate in a real control group: when the kernel kills it is
foretold from the first third of its life.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
MIB = 1 << 20
LIMIT = 360 * MIB

LEAK = """
import random, sys, time
rate, choice = float(sys.argv[1]), random.Random(int(sys.argv[2]))
held, taken, begun = [], 0.0, time.monotonic()
while True:
    while taken < rate * (time.monotonic() - begun):
        size = choice.uniform(0.1, 1.5)
        held.append(bytearray(b"x") * int(size * (1 << 20)))
        taken += size
    time.sleep(choice.uniform(0.01, 0.08))
"""

#: What repeated offload does: pinned memory that is kept, one piece more at each step of the
#: training.
STAIRS = """
import time
held = []
while True:
    held.append(bytearray(b"x") * (24 << 20))
    time.sleep(1)
"""

WATCH = """
import json, sys, time
sys.path.insert(0, {repository!r})
from envdoctor.watch.sampling import watch
begun = time.monotonic()
def tell(outlook):
    arrival = outlook.arrival
    culprit = outlook.growing and outlook.growing[0].pid
    print(json.dumps([time.monotonic() - begun, outlook.trend.shape, arrival and arrival.likely, culprit]), flush=True)
found = watch(pid=int(sys.argv[1]), interval=0.1, report=tell, report_every=0.5)
print(json.dumps([found.duration, "end", found.oom_kills, found.cost]), flush=True)
"""


def live_and_die(command):
    """Watch a process until the kernel kills it; return its life in seconds, what was told
    meanwhile, and the last line.
    """
    process = subprocess.Popen(command)
    begun = time.monotonic()
    deaths = []
    waiter = threading.Thread(
        target=lambda: deaths.append((process.wait(), time.monotonic() - begun))
    )
    waiter.start()
    program = WATCH.format(repository=str(REPOSITORY))
    watcher = subprocess.run(
        [sys.executable, "-c", program, str(process.pid)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    waiter.join(60)
    ((status, life),) = deaths
    assert status == -signal.SIGKILL, watcher.stderr
    *told, last = [json.loads(line) for line in watcher.stdout.splitlines()]
    assert last[1:3] == ["end", 1]
    assert last[3] < 0.15 * life
    return process.pid, life, told


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("rate", [12, 24, 48])
def test_foretells_the_kill_from_a_third_of_the_life(memory_group, in_group, rate, seed):
    (memory_group / "memory.limit_in_bytes").write_text(str(LIMIT))
    pid, life, told = live_and_die(
        in_group(memory_group, [sys.executable, "-c", LEAK, str(rate), str(seed)])
    )
    elapsed, shape, likely, culprit = next(line for line in told if line[0] >= life / 3)
    assert (shape, culprit) == ("steady", pid)
    assert elapsed + likely == pytest.approx(life, rel=0.2), told


@pytest.mark.slow
def test_tells_the_stairs_of_repeated_offload_from_a_leak(memory_group, in_group):
    (memory_group / "memory.limit_in_bytes").write_text(str(LIMIT))
    _, life, told = live_and_die(in_group(memory_group, [sys.executable, "-c", STAIRS]))
    elapsed, shape, likely, _ = next(line for line in told if line[0] >= life / 2)
    assert shape == "stairs"
    assert elapsed + likely == pytest.approx(life, rel=0.2), told


def test_says_that_the_kernel_killed_and_returns_the_run_s_own_code(memory_group, in_group):
    (memory_group / "memory.limit_in_bytes").write_text(str(120 * MIB))
    watch = [
        sys.executable,
        "-m",
        "envdoctor",
        "watch",
        "--interval",
        "0.1",
        "--",
        sys.executable,
        "-c",
        LEAK,
        "60",
        "1",
    ]
    done = subprocess.run(
        in_group(memory_group, watch),
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 128 + signal.SIGKILL
    assert "the kernel killed 1 process(es)" in done.stderr
    assert "120 MiB" in done.stderr
