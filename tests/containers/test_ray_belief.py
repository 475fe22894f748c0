"""What Ray really believes, asked of a real Ray inside a group that it does not see."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

MIB = 1 << 20

ASK = """
import json
from ray._common.utils import get_system_memory
from ray._private.utils import get_used_memory, resolve_object_store_memory, estimate_available_memory
import psutil
total, free = get_system_memory(), estimate_available_memory()
store, seen = resolve_object_store_memory(free), psutil.virtual_memory().total
print(json.dumps({"total": total, "used": get_used_memory(), "free": free, "store": store, "psutil": seen}))
"""


def ask(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().split("\n")[-1])


def test_below_a_limit_that_ray_does_not_see(memory_group, in_group, describe, ray_python):
    leaf = memory_group / "job_5" / "step_0"
    leaf.mkdir(parents=True)
    (memory_group / "job_5" / "memory.limit_in_bytes").write_text(str(1024 * MIB))
    facts = ask(in_group(leaf, [sys.executable, "-c", describe]))["facts"]
    ray = ask(in_group(leaf, [ray_python, "-c", ASK]))
    assert ray["total"] == facts["memory.ray_belief"][1]
    assert ray["psutil"] == facts["memory.psutil_belief"][1]
    assert abs(ray["used"] - facts["memory.ray_usage"][1]) < 1024 * MIB
    assert facts["memory.limit"][1] == 1024 * MIB < ray["total"]  # Ray is wrong, and we said so


def test_where_ray_looks(memory_group, in_group, describe, ray_python):
    """A bind mount of the group onto Ray's fixed path is what docker run --memory shows."""
    (memory_group / "memory.limit_in_bytes").write_text(str(1024 * MIB))
    bind = f'mount --bind "{memory_group}" /sys/fs/cgroup/memory && exec "$@"'
    inside = ["unshare", "-m", "sh", "-c", bind, "sh"]
    facts = ask(in_group(memory_group, [*inside, sys.executable, "-c", describe]))["facts"]
    ray = ask(in_group(memory_group, [*inside, ray_python, "-c", ASK]))
    assert ray["total"] == facts["memory.ray_belief"][1] == facts["memory.limit"][1] == 1024 * MIB


def test_the_object_store_by_rays_own_arithmetic(memory_group, ray_python):
    """The formula of rule ED502, against resolve_object_store_memory with a small /dev/shm."""
    shm = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
    ray = ask(["unshare", "-m", "sh", "-c", shm, "sh", ray_python, "-c", ASK])
    assert ray["store"] == min(
        int(ray["free"] * 0.3), 200 * 10**9, max(10**10, int(64 * MIB * 0.95))
    )
    assert ray["store"] > 64 * MIB  # so Ray will use /tmp
