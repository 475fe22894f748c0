"""Process limits, sizes and beliefs: the parsers against the system's own answers, and on
anything.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.model.evidence import Absent, Known, Unknown
from envdoctor.probes import process_limits as limits
from envdoctor.probes.isolation import run_isolated
from envdoctor.probes.machine import FOLDER_ONLY, Machine

NAMES = {
    "Max open files": resource.RLIMIT_NOFILE,
    "Max locked memory": resource.RLIMIT_MEMLOCK,
    "Max processes": resource.RLIMIT_NPROC,
    "Max stack size": resource.RLIMIT_STACK,
    "Max core file size": resource.RLIMIT_CORE,
}


def write(root, files):
    for path, text in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return Machine(root=str(root), environment={})


def test_this_process_by_the_resource_module():
    found = limits.parse_limits(Path("/proc/self/limits").read_text())
    for name, number in NAMES.items():
        soft, hard = resource.getrlimit(number)
        assert found[name] == (soft, hard), name  # RLIM_INFINITY is -1


def test_a_lowered_limit_is_seen_by_the_child():
    program = (
        "import sys; sys.path.insert(0, '.')\nfrom envdoctor.probes.process_limits import "
        "*\nfrom envdoctor.probes.machine import Machine\n"
    )
    program += "print(PROBES_HERE[0].function(Machine())['rlimit.nofile'].value)"
    done = subprocess.run(
        ["sh", "-c", 'ulimit -Sn 321; exec "$@"', "sh", sys.executable, "-c", program],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "321", done.stderr


def test_a_child_that_leaves_no_core_tells_the_limit_of_its_parent(folder_for_cores):
    def ask():
        return str(limits.probe_limits(Machine())["rlimit.core"].value).encode()

    assert resource.getrlimit(resource.RLIMIT_CORE)[0] != 1
    assert int(run_isolated(ask, 20).output) == int(ask())


def test_memory_shm_and_cpus_by_the_system():
    facts = limits.probe_limits(Machine())
    assert facts["memory.total"].value == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert facts["memory.psutil_belief"].value == facts["memory.total"].value
    assert facts["cpu.count"].value == len(os.sched_getaffinity(0))
    found = os.statvfs("/dev/shm")
    assert facts["shm.size"].value == found.f_blocks * found.f_frsize
    assert facts["process.uid"].value == os.geteuid()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 1),
        ("0-3", 4),
        ("0-3,8,10-11\n", 7),
        ("", None),
        ("3-1", None),
        ("a", None),
        ("0-", None),
        ("-", None),
        ("٣", None),
    ],
)
def test_lists_of_the_kernel(text, count):
    assert limits.count_list(text) == count


def test_values_without_unit_and_unlimited():
    text = "Limit                     Soft Limit           Hard Limit           Units     \n"
    text += "Max nice priority         0                    0                    \n"
    text += "Max locked memory         unlimited            8388608              bytes     \n"
    assert limits.parse_limits(text) == {
        "Max nice priority": (0, 0),
        "Max locked memory": (-1, 8388608),
    }


@given(st.text(max_size=600))
def test_parsers_take_anything(text):
    for limit in limits.parse_limits(text).values():
        assert limit.soft >= -1
    assert all(size >= 0 for size in limits.parse_meminfo(text).values())
    limits.parse_status(text)
    count = limits.count_list(text)
    assert count is None or count >= 1


@given(
    st.dictionaries(
        st.sampled_from(
            ["/proc/meminfo", "/proc/self/limits", "/proc/self/status", "/proc/self/uid_map"]
        ),
        st.text(max_size=200),
    )
)
def test_the_probe_takes_any_files(tmp_path_factory, files):
    machine = write(
        tmp_path_factory.mktemp("machine"),
        {name: text.encode("utf-8", "replace").decode() for name, text in files.items()},
    )
    for fact in limits.probe_limits(machine).values():
        assert isinstance(fact, (Known, Absent, Unknown))


def test_a_folder_has_no_limits(tmp_path):
    assert set(limits.probe_limits(Machine(root=str(tmp_path))).values()) == {Unknown(FOLDER_ONLY)}


TOTAL = 64 << 30


@pytest.mark.parametrize(
    ("files", "belief"),
    [
        ({}, TOTAL),
        ({"/sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n"}, 1 << 30),
        ({"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, TOTAL),
        ({"/sys/fs/cgroup/memory.max": "2147483648\n"}, 2 << 30),
        ({"/sys/fs/cgroup/memory.max": "max\n"}, TOTAL),
        # v1 is looked at first, and then v2 no more.
        (
            {
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "/sys/fs/cgroup/memory.max": "1\n",
            },
            TOTAL,
        ),
        ({"/sys/fs/cgroup/memory/memory.limit_in_bytes": "\n"}, None),
    ],
)
def test_what_ray_will_believe(tmp_path, files, belief):
    machine = write(
        tmp_path,
        {"/proc/self/status": "", "/proc/meminfo": f"MemTotal: {TOTAL >> 10} kB\n", **files},
    )
    assert limits.ray_system_memory(machine, TOTAL) == belief
    fact = limits.probe_limits(machine)["memory.ray_belief"]
    assert fact.value == belief if belief is not None else isinstance(fact, Unknown)


def test_what_ray_counts_as_used(tmp_path):
    stat = "inactive_file 1\nactive_file 2\ntotal_inactive_file 100\ntotal_active_file 50\n"
    machine = write(
        tmp_path,
        {
            "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n",
            "/sys/fs/cgroup/memory/memory.stat": stat,
        },
    )
    assert limits.ray_used_memory(machine) == 850
    assert limits.ray_used_memory(write(tmp_path / "none", {})) is None


def test_capabilities_and_users_of_a_user_namespace(tmp_path):
    status = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"
    facts = limits.probe_limits(
        write(tmp_path, {"/proc/self/status": status, "/proc/self/uid_map": "0 100000 65536\n"})
    )
    assert facts["process.uid"].value == 100000
    assert facts["process.capabilities"].value == ()
    facts = limits.probe_limits(
        write(tmp_path, {"/proc/self/status": status, "/proc/self/uid_map": "0 0 4294967295\n"})
    )
    assert facts["process.uid"].value == 0
    assert facts["process.capabilities"].value == ("ipc_lock", "sys_admin", "sys_resource")


def test_shared_memory_of_a_recorded_machine(tmp_path):
    mount = "1 2 0:3 / /dev/shm rw - tmpfs shm rw,size=65536k\n"
    facts = limits.probe_limits(
        write(tmp_path, {"/proc/self/status": "", "/proc/self/mountinfo": mount})
    )
    assert facts["shm.size"].value == 64 << 20
    assert isinstance(facts["shm.available"], Unknown)
