"""Real containers on cgroup v1: every layout in which runtimes show a limit, or hide it, and what
Ray would make of it.
"""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow

MIB = 1 << 20


def facts_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["facts"]


def with_namespace(spec):
    spec["linux"]["namespaces"].append({"type": "cgroup"})


def limited(size):
    def change(spec):
        spec["linux"]["resources"]["memory"] = {"limit": size}

    return change


def below(group):
    """Let the container's group lie below one that already has a limit: docker run
    --cgroup-parent.
    """

    def change(spec):
        spec["linux"]["cgroupsPath"] = f"/{group.name}{spec['linux']['cgroupsPath']}"

    return change


def host_view(spec):
    """Docker run -v /sys/fs/cgroup:/sys/fs/cgroup:ro: the container sees the host's whole tree."""
    spec["mounts"] = [mount for mount in spec["mounts"] if mount["destination"] != "/sys/fs/cgroup"]
    spec["mounts"].append(
        {
            "destination": "/sys/fs/cgroup",
            "type": "none",
            "source": "/sys/fs/cgroup",
            "options": ["rbind", "ro"],
        }
    )


def both(*changes):
    def change(spec):
        for one in changes:
            one(spec)

    return change


@pytest.mark.parametrize(
    ("changes", "ray_sees_it"),
    [((), True), ((with_namespace,), True), ((host_view,), False)],
    ids=["host namespace", "own namespace", "host's tree mounted"],
)
def test_a_limit_on_the_container(runc, describe, changes, ray_sees_it):
    facts = facts_of(runc.run(describe, both(limited(256 * MIB), *changes)))
    assert facts["memory.limit"][:2] == ["Known", 256 * MIB]
    assert (facts["memory.ray_belief"][1] == 256 * MIB) is ray_sees_it
    assert facts["memory.psutil_belief"][1] == facts["memory.total"][1] > 256 * MIB


@pytest.mark.parametrize(
    "changes",
    [(), (with_namespace,), (host_view,)],
    ids=["host namespace", "own namespace", "host's tree mounted"],
)
def test_a_limit_above_the_container(runc, describe, memory_group, changes):
    """The case that Ray gets wrong: no file that the container sees holds the number, and the
    kernel enforces it.
    """
    (memory_group / "memory.limit_in_bytes").write_text(str(300 * MIB))
    facts = facts_of(runc.run(describe, both(below(memory_group), *changes)))
    assert facts["memory.limit"][:2] == ["Known", 300 * MIB]
    assert facts["memory.limit_hidden"][1] is False
    assert facts["memory.ray_belief"][1] == facts["memory.total"][1]


def test_no_limit_at_all(runc, describe):
    facts = facts_of(runc.run(describe))
    assert facts["memory.limit"][0] == "Absent"


def test_cpu_pids_files_and_shared_memory(runc, describe):
    def change(spec):
        spec["linux"]["resources"]["cpu"] = {"quota": 150000, "period": 100000}
        spec["linux"]["resources"]["pids"] = {"limit": 77}

    facts = facts_of(runc.run(describe, change))
    assert facts["cpu.quota"][1] == 1.5
    assert facts["pids.limit"][1] == 77
    assert (facts["rlimit.nofile"][1], facts["rlimit.nofile_hard"][1]) == (1024, 2048)
    assert facts["shm.size"][1] == 64 * MIB  # as Docker's default
    assert facts["process.capabilities"][1] == []


def test_an_ordinary_user_of_a_container(runc, describe):
    def change(spec):
        spec["process"]["user"] = {"uid": 12345, "gid": 12345}

    facts = facts_of(runc.run(describe, both(limited(128 * MIB), change)))
    assert facts["memory.limit"][1] == 128 * MIB
    assert facts["process.uid"][1] == 12345
