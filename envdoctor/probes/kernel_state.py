"""What the kernel of a node is set to, and what it has seen: huge pages, NUMA balancing, the clock
source, file systems that nodes share, and the Xids of its GPUs.

No start of a container reads this.
"""

from __future__ import annotations

import os

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import SharedMount, Xid
from ..model.pattern import pattern
from ..model.redaction import redact
from ..mounts import shared_mounts
from .machine import FOLDER_ONLY, Probe, reason_of
from .process_limits import parse_meminfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Tuple

    from .machine import Machine

__all__ = ["PROBES_HERE", "count_xids", "probe_kernel_state"]

_XIDS_MOST = 64
_RECORDS = 50_000  # the kernel's buffer holds fewer
_MOUNTS = 64
#: kernel-open/nvidia/nv.c, docs.nvidia.com/deploy/xid-errors: "NVRM: Xid (PCI:0000:18:00): 79, …"
_XID = pattern(r"(?a)NVRM: Xid \(PCI:([0-9a-fA-F:.]{5,20})[^)]{0,60}\): (\d{1,4})\b")

_FIELDS = (
    "memory.hugepages",
    "memory.transparent_hugepages",
    "numa.balancing",
    "clock.source",
    "mounts.shared",
    "gpus.xids",
)


def probe_kernel_state(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read what the kernel says."""
    if machine.root and not machine.exists("/proc/self"):
        return dict.fromkeys(_FIELDS, Unknown(FOLDER_ONLY))
    return dict(_facts(machine))


def _facts(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    sizes = parse_meminfo(machine.read_text("/proc/meminfo", 1 << 14) or "")
    meminfo = Evidence("/proc/meminfo", "Hugetlb")
    if "Hugetlb" in sizes:
        yield "memory.hugepages", Known(sizes["Hugetlb"], meminfo)
    else:
        yield "memory.hugepages", Unknown("/proc/meminfo has no Hugetlb")
    for field, path in (
        ("memory.transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("clock.source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ):
        word = _chosen(machine.read_text(path, 256) or "")
        yield field, Known(word, Evidence(path)) if word else Unknown(f"{path} cannot be read")
    path = "/proc/sys/kernel/numa_balancing"
    word = (machine.read_text(path, 16) or "").strip()
    yield (
        "numa.balancing",
        Known(word != "0", Evidence(path)) if word else Unknown(f"{path} cannot be read"),
    )
    yield "mounts.shared", _mounts(machine)
    yield "gpus.xids", _xids(machine)


def _chosen(text: str) -> str:
    """Return the word in brackets of ``always [madvise] never``, else the only one."""
    word = text.partition("[")[2].partition("]")[0] or text
    return word.strip()[:40]


def _mounts(machine: Machine) -> Fact[Any]:
    text = machine.read_text("/proc/self/mountinfo", 1 << 22)
    if text is None:
        return Unknown("/proc/self/mountinfo cannot be read")
    mounts = []
    for mount in shared_mounts(text)[:_MOUNTS]:
        size, available, error = None, None, ""
        source = redact(mount.source)[:200]
        if machine.root:  # the file systems of a recorded machine are not here
            mounts.append(SharedMount(mount.point, mount.kind, source))
            continue
        try:
            # Where that hangs, this probe runs in a child that is left behind (watched).
            volume = machine.use(os.statvfs, mount.point)
            size = volume.f_frsize * volume.f_blocks
            available = volume.f_frsize * volume.f_bavail
        except OSError as failure:
            error = reason_of(failure)
        mounts.append(SharedMount(mount.point, mount.kind, source, size, available, error))
    return Known(tuple(mounts), Evidence("/proc/self/mountinfo"))


def count_xids(lines: List[str]) -> Tuple[Xid, ...]:
    """Return the Xids in lines of a kernel log, in their order."""
    counts: Dict[Tuple[str, int], int] = {}
    for line in lines:
        match = _XID.search(line)
        if match:
            key = match.group(1), int(match.group(2))
            counts[key] = counts.get(key, 0) + 1
    return tuple([Xid(bus, number, count) for (bus, number), count in counts.items()])


def _xids(machine: Machine) -> Fact[Any]:
    """Return what the kernel's log holds of them; it is read only where a driver is loaded."""
    if not machine.exists("/sys/module/nvidia"):
        return Absent(Evidence("/sys/module", "no nvidia"))
    if machine.root:
        return Unknown(FOLDER_ONLY)
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return Unknown(f"/dev/kmsg: {reason_of(error)}")
    lines = []
    try:
        for _ in range(_RECORDS):
            try:
                record = os.read(descriptor, 8192)  # one at a time
            except BrokenPipeError:  # overwritten while it was read: the next one is there
                continue
            except OSError:  # EAGAIN: that was the last one
                break
            if b"Xid" in record:
                lines.append(record.decode("utf-8", "replace"))
    finally:
        os.close(descriptor)
    return Known(count_xids(lines)[:_XIDS_MOST], Evidence("/dev/kmsg", "since the node started"))


PROBES_HERE: Tuple[Probe, ...] = (Probe("kernel_state", probe_kernel_state, _FIELDS, False, 3.0),)
