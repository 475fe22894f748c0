"""What a group of processes uses of memory now, by pool of its control group and by process.

Cheap enough to be read every second: one directory of the control group, and ``/proc/<pid>/status``
of each process (``smaps`` would be exact about shared pages, and takes a lock on the process that
is watched for milliseconds per GiB).
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from ..model.record import NamedTuple
from ..mounts import parse_mountinfo
from .container import (
    Files,
    Hierarchy,
    find_hierarchy,
    find_memory_limit,
    parse_cgroup,
    parse_table,
)
from .process_limits import parse_meminfo, parse_status

__all__ = [
    "Group",
    "GroupUse",
    "ProcessUse",
    "find_group",
    "find_members",
    "find_tree",
    "read_group",
    "read_processes",
]


class Group(NamedTuple):
    """The memory control group whose limit will be met first.

    ``directory`` is None where the machine itself is the limit.
    """

    limit: int  # bytes
    source: str  # where the limit was read
    directory: Optional[str]
    version: int
    hidden: bool  # an outer limit cannot be excluded


class GroupUse(NamedTuple):
    """Memory of a group, bytes.

    ``used`` is without the file pages that the kernel drops before it kills.
    """

    used: int
    anonymous: int
    shared: int  # shmem: /dev/shm, pinned host memory of CUDA, object store
    file: int  # page cache without shmem
    kernel: int
    oom_kills: int


class ProcessUse(NamedTuple):
    """Memory of one process, bytes.

    ``started`` (ticks since boot) tells two processes of the same number apart.
    """

    pid: int
    started: int
    name: str
    anonymous: int
    shared: int

    @property
    def used(self) -> int:
        """What counts against a limit; shared pages count at each process that maps them."""
        return self.anonymous + self.shared


def find_group(files: Files, pid: int) -> Optional[Group]:
    """Return the memory group that limits a process, or the whole machine.

    None where neither a group nor ``/proc/meminfo`` can be read.
    """
    total = _machine_sizes(files).get("MemTotal")
    memberships = parse_cgroup(files.read_text(f"/proc/{pid}/cgroup", 1 << 16) or "")
    mounts = parse_mountinfo(files.read_text("/proc/self/mountinfo", 1 << 22) or "")
    hierarchy = find_hierarchy(files, memberships, mounts, "memory")
    if hierarchy is not None:
        group = _limiting_group(files, hierarchy)
        if group is not None and (total is None or group.limit < total):
            return group
    if total is None:
        return None
    hidden = hierarchy is None or not hierarchy.whole
    return Group(total, "/proc/meminfo, MemTotal", None, 0, hidden)


def _limiting_group(files: Files, hierarchy: Hierarchy) -> Optional[Group]:
    limit, source, directory, hidden = find_memory_limit(files, hierarchy)
    if limit is None:
        return None
    # A limit above what is mounted is known by its number alone; use is then counted in the highest
    # visible group.
    return Group(limit, source, directory or hierarchy.directories[-1], hierarchy.version, hidden)


def _machine_sizes(files: Files) -> Dict[str, int]:
    return parse_meminfo(files.read_text("/proc/meminfo", 1 << 14) or "")


def read_group(files: Files, group: Group) -> Optional[GroupUse]:
    """Return what the group uses now; None where it is gone."""
    if group.directory is None:
        return _use_of_machine(files, group.limit)
    names = _NAMES_V2 if group.version == 2 else _NAMES_V1
    usage = (files.read_text(f"{group.directory}/{names.usage}", 64) or "").strip()
    table = parse_table(files.read_text(f"{group.directory}/memory.stat", 1 << 16))
    if not usage.isdigit() or not table:
        return None
    events = parse_table(files.read_text(f"{group.directory}/{names.events}", 4096))
    reclaimable = table.get(names.inactive, 0) + table.get(names.active, 0)
    shared = table.get(names.shared, 0)
    file = max(0, table.get(names.file, 0) - shared)
    anonymous = table.get(names.anonymous, 0)
    return GroupUse(
        max(0, int(usage) - reclaimable),
        anonymous,
        shared,
        file,
        table.get("kernel", max(0, int(usage) - anonymous - shared - file)),
        events.get("oom_kill", 0),
    )


class _Names(NamedTuple):
    """What a version of control groups calls its files, and the lines of ``memory.stat``."""

    usage: str
    events: str
    inactive: str
    active: str
    shared: str
    file: str
    anonymous: str


_NAMES_V1 = _Names(
    "memory.usage_in_bytes",
    "memory.oom_control",
    "total_inactive_file",
    "total_active_file",
    "total_shmem",
    "total_cache",
    "total_rss",
)
_NAMES_V2 = _Names(
    "memory.current", "memory.events", "inactive_file", "active_file", "shmem", "file", "anon"
)


def _use_of_machine(files: Files, limit: int) -> Optional[GroupUse]:
    sizes = _machine_sizes(files)
    if "MemAvailable" not in sizes:
        return None
    events = parse_table(files.read_text("/proc/vmstat", 1 << 16))
    shared = sizes.get("Shmem", 0)
    return GroupUse(
        sizes.get("MemTotal", limit) - sizes["MemAvailable"],
        sizes.get("AnonPages", 0),
        shared,
        max(0, sizes.get("Cached", 0) + sizes.get("Buffers", 0) - shared),
        sizes.get("Slab", 0) + sizes.get("KernelStack", 0) + sizes.get("PageTables", 0),
        events.get("oom_kill", 0),  # of the whole machine, from Linux 4.13 on
    )


def find_tree(files: Files, pid: int) -> List[int]:
    """Return a process and all that descend from it, as far as their parents live."""
    children: Dict[int, List[int]] = {}
    for name in files.listdir("/proc") or ():
        if name.isdigit():
            after = (files.read_text(f"/proc/{name}/stat", 4096) or "").rpartition(")")[2].split()
            if len(after) > 1 and after[1].isdigit():
                children.setdefault(int(after[1]), []).append(int(name))
    pids, waiting = [], [pid]
    while waiting:
        current = waiting.pop()
        pids.append(current)
        waiting.extend(children.get(current, ()))
    return pids


def find_members(files: Files, group: Group) -> List[int]:
    """Return the processes of a group and of all groups below it; of the machine, all."""
    if group.directory is None:
        return [int(name) for name in files.listdir("/proc") or () if name.isdigit()]
    return [
        pid
        for folder in _folders(files, group.directory)
        for pid in _numbers(files.read_text(f"{folder}/cgroup.procs", 1 << 20))
    ]


def _folders(files: Files, directory: str) -> Iterator[str]:
    waiting = [directory]
    while waiting:
        folder = waiting.pop()
        yield folder
        # Control files have a dot after the controller's name; a group may have one too, so the
        # procs file decides.
        below = (
            f"{folder}/{name}"
            for name in files.listdir(folder) or ()
            if not name.startswith(("memory.", "cgroup."))
        )
        waiting.extend(child for child in below if files.exists(child + "/cgroup.procs"))


def _numbers(text: Optional[str]) -> Iterator[int]:
    return (int(word) for word in (text or "").split() if word.isdigit())


def read_processes(files: Files, pids: Sequence[int]) -> Tuple[ProcessUse, ...]:
    """Return what each process uses, without those that have ended and the kernel's threads."""
    processes = []
    for pid in pids:
        status = parse_status(files.read_text(f"/proc/{pid}/status", 1 << 14) or "")
        anonymous = _kibibytes(status.get("RssAnon", ""))
        shared = _kibibytes(status.get("RssShmem", ""))
        if anonymous is None or shared is None:
            continue
        after = (files.read_text(f"/proc/{pid}/stat", 4096) or "").rpartition(")")[2].split()
        started = int(after[19]) if len(after) > 19 and after[19].isdigit() else 0
        processes.append(ProcessUse(pid, started, status.get("Name", "?"), anonymous, shared))
    return tuple(processes)


def _kibibytes(text: str) -> Optional[int]:
    words = text.split()
    return int(words[0]) * 1024 if len(words) == 2 and words[0].isdigit() else None
