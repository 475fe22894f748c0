"""What the kernel is set to and has logged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envdoctor.model.evidence import Absent, Known, Unknown
from envdoctor.model.facts import Xid
from envdoctor.mounts import shared_mounts
from envdoctor.probes.kernel_state import count_xids, probe_kernel_state
from envdoctor.probes.machine import FOLDER_ONLY, Machine

MOUNTS = r"""
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
45 27 0:50 / /data rw,relatime - nfs4 nfs01:/export/data rw,vers=4.2
46 27 0:51 / /my\040scratch rw shared:1 - lustre 10.0.0.1@o2ib:/fs rw
47 27 0:52 / /home/me/x rw - fuse.sshfs me@host:/x rw
48 27 0:53 / /tmp rw - tmpfs tmpfs rw
49 27 0:54 / /run/portal rw - fuse.portal portal rw
"""
LOG = [
    "4,1,2,-;NVRM: Xid (PCI:0000:18:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
    "4,2,3,-;NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.",
    "4,3,4,-;NVRM: Xid (PCI:0000:9a:00 GPU-I:05): 31, pid=7, MMU Fault",
    "6,4,5,-;eth0: link up",
]


def write(root, files):
    for path, text in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    return Machine(str(root))


def test_a_recorded_machine(tmp_path):
    machine = write(
        tmp_path,
        {
            "/proc/meminfo": "MemTotal: 100 kB\nHugetlb:  2097152 kB\n",
            "/proc/self/mountinfo": MOUNTS,
            "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
            "/proc/sys/kernel/numa_balancing": "1\n",
        },
    )
    facts = probe_kernel_state(machine)
    assert facts["memory.hugepages"].value == 2 << 30
    assert facts["memory.transparent_hugepages"].value == "madvise"
    assert facts["clock.source"].value == "hpet"
    assert facts["numa.balancing"].value is True
    assert [(mount.point, mount.kind) for mount in facts["mounts.shared"].value] == [
        ("/data", "nfs4"),
        ("/my scratch", "lustre"),
        ("/home/me/x", "fuse.sshfs"),
    ]
    assert isinstance(facts["gpus.xids"], Absent)


def test_xids_are_counted_by_device():
    assert count_xids(LOG) == (Xid("0000:18:00", 79, 2), Xid("0000:9a:00", 31, 1))


def test_a_folder_that_is_no_machine(tmp_path):
    (tmp_path / "etc").mkdir()
    facts = probe_kernel_state(Machine(str(tmp_path)))
    assert set(facts.values()) == {Unknown(FOLDER_ONLY)}


def test_this_machine_by_its_files():
    facts = probe_kernel_state(Machine())
    expected = [mount.point for mount in shared_mounts(Path("/proc/self/mountinfo").read_text())]
    assert [mount.point for mount in facts["mounts.shared"].value] == expected
    assert all(isinstance(fact, (Known, Absent, Unknown)) for fact in facts.values())


@pytest.mark.skipif(not os.path.exists("/sys/module"), reason="no /sys/module")
def test_the_log_is_read_only_where_a_driver_is(monkeypatch):
    """With a driver, the log's end is reached without waiting."""
    machine = Machine()
    monkeypatch.setattr(Machine, "exists", lambda self, path: path == "/sys/module/nvidia")
    fact = probe_kernel_state(machine)["gpus.xids"]
    assert isinstance(fact, (Known, Unknown))
