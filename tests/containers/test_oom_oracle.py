"""The kernel's OOM killer decides: a limit is predicted, then memory is taken until SIGKILL, and
both are compared.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1 << 20
#: What the interpreter itself takes inside the group.
OVERHEAD = 32 * MIB
ENOUGH = 320

EAT = """
import os
held = []
for count in range({enough}):
    held.append(bytes(bytearray(os.urandom(4096)) * 256))
    os.write(1, b".")
"""


def eat_until_killed(command):
    """Run a program that prints one line and then a dot for each MiB; return the line, the MiB, and
    its status.
    """
    done = subprocess.run(command, capture_output=True, timeout=60)
    first, _, dots = done.stdout.partition(b"\n")
    assert first, done.stderr.decode()
    return json.loads(first)["facts"], dots.count(b"."), done.returncode


def grow(group: Path, seed: int):
    """Make a chain of two to five groups below one another, some with limits; return the leaf and
    the true limit.
    """
    choice = random.Random(seed)
    leaf, limits = group, []
    for level in range(choice.randint(2, 5)):
        leaf = leaf / f"level {level}" if choice.random() < 0.3 else leaf / f"level{level}"
        leaf.mkdir()
        if choice.random() < 0.5:
            limit = choice.randrange(72, 200) * MIB
            (leaf / "memory.limit_in_bytes").write_text(str(limit))
            limits.append(limit)
        if choice.random() < 0.3:
            sibling = leaf.parent / "beside"
            sibling.mkdir()
            (sibling / "memory.limit_in_bytes").write_text(str(8 * MIB))
    return leaf, min(limits, default=None)


@pytest.mark.parametrize("view", ["plain", "namespace", "namespace with its own mount"])
@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 10))]
)
def test_predicts_where_the_kernel_kills(memory_group, in_group, describe, seed, view):
    leaf, truth = grow(memory_group, seed)
    program = [sys.executable, "-c", describe + EAT.format(enough=ENOUGH)]
    if view == "namespace":
        program = ["unshare", "-C", *program]
    elif view == "namespace with its own mount":
        mount = (
            "umount /sys/fs/cgroup/memory && mount -t cgroup -o memory none "
            '/sys/fs/cgroup/memory && exec "$@"'
        )
        program = ["unshare", "-m", "-C", "sh", "-c", mount, "sh", *program]
    facts, eaten, status = eat_until_killed(in_group(leaf, program))
    kind, predicted, where = facts["memory.limit"]
    if truth is None:
        assert kind == "Absent", where
        assert (status, eaten) == (0, ENOUGH)
    else:
        assert (kind, predicted) == ("Known", truth), where
        assert status == -signal.SIGKILL
        assert predicted - OVERHEAD <= eaten * MIB <= predicted
    assert facts["memory.limit_hidden"][1] is False  # v1 tells


def test_counts_the_kills(memory_group, in_group, describe):
    leaf = memory_group / "leaf"
    leaf.mkdir()
    (memory_group / "memory.limit_in_bytes").write_text(str(80 * MIB))
    command = in_group(leaf, [sys.executable, "-c", describe + EAT.format(enough=ENOUGH)])
    before, _, status = eat_until_killed(command)
    assert status == -signal.SIGKILL
    after, _, _ = eat_until_killed(command)
    assert (before["memory.oom_kills"][1], after["memory.oom_kills"][1]) == (0, 1)


def test_usage_and_shared_memory_are_told_apart_from_what_can_be_reclaimed(
    memory_group, in_group, describe, tmp_path
):
    """What lies in /dev/shm is charged, and is no reclaimable file page."""
    (memory_group / "memory.limit_in_bytes").write_text(str(200 * MIB))
    fill = (
        "mount -t tmpfs -o size=100m tmpfs /dev/shm && head -c 60M /dev/zero >/dev/shm/x && "
        'exec "$@"'
    )
    program = ["unshare", "-m", "sh", "-c", fill, "sh", sys.executable, "-c", describe]
    done = subprocess.run(
        in_group(memory_group, program), capture_output=True, text=True, timeout=60
    )
    facts = json.loads(done.stdout)["facts"]
    assert facts["shm.size"][1] == 100 * MIB
    assert facts["shm.available"][1] == 40 * MIB
    assert facts["memory.usage"][1] >= 60 * MIB
    assert facts["memory.usage"][1] - facts["memory.reclaimable"][1] >= 60 * MIB
