"""Memory, ``/dev/shm``, limits and CPUs of this process, and what Ray and the JVM take them for.

What a program believes is computed by that program's own algorithm on the same files, so that the
difference to what the kernel enforces (:mod:`envdoctor.probes.container`) can be told before the
program runs.
"""

from __future__ import annotations

import os

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.record import NamedTuple
from ..model.sizes import parse_size
from ..mounts import parse_mountinfo
from .container import Files
from .core_files import inherited_limit
from .machine import FOLDER_ONLY, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, Optional, Tuple

    from .machine import Machine

__all__ = [
    "PROBES_HERE",
    "ResourceLimit",
    "count_list",
    "parse_limits",
    "parse_meminfo",
    "parse_status",
    "ray_system_memory",
    "ray_used_memory",
]


class ResourceLimit(NamedTuple):
    """A process limit; -1 is unlimited."""

    soft: int
    hard: int


def parse_limits(text: str) -> Dict[str, ResourceLimit]:
    """Return the limits of ``/proc/<pid>/limits`` by name (``Max open files``).

    The ``resource`` module would do, but minimal Pythons lack it, and a recorded machine has only
    the file.
    """
    limits = {}
    for line in text.split("\n"):
        # fs/proc/base.c: "%-25s %-20s %-20s" and a unit that may be missing.
        name, words = line[:25].strip(), line[25:].split()
        if len(words) < 2 or not name.startswith("Max "):
            continue
        soft, hard = _limit(words[0]), _limit(words[1])
        if soft is not None and hard is not None:
            limits[name] = ResourceLimit(soft, hard)
    return limits


def _limit(word: str) -> Optional[int]:
    if word == "unlimited":
        return -1
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 20 else None


def parse_meminfo(text: str) -> Dict[str, int]:
    """Return the sizes of ``/proc/meminfo``, in bytes."""
    sizes = {}
    for line in text.split("\n"):
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and words and words[0].isascii() and words[0].isdigit() and len(words[0]) <= 20:
            sizes[name.strip()] = int(words[0]) * (1024 if words[1:2] == ["kB"] else 1)
    return sizes


def parse_status(text: str) -> Dict[str, str]:
    """Return the fields of ``/proc/<pid>/status``."""
    fields = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            fields[name] = value.strip()
    return fields


def count_list(text: str) -> Optional[int]:
    """Return how many numbers a kernel list holds: ``0-3,8`` has five."""
    count = 0
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        if not (first.isascii() and first.isdigit() and len(first) <= 9):
            return None
        if dash:
            if not (last.isascii() and last.isdigit() and len(last) <= 9) or int(last) < int(first):
                return None
            count += int(last) - int(first) + 1
        else:
            count += 1
    return count


def ray_system_memory(files: Files, memory_total: int) -> Optional[int]:
    """Return what ``ray._common.utils.get_system_memory()`` will: fixed paths, MemTotal at most.

    Read from ray 2.60 (same in 2.x). None where Ray would fail on the file.
    """
    text = files.read_text("/sys/fs/cgroup/memory/memory.limit_in_bytes", 64)
    if text is not None:
        word = text.strip()
        return min(int(word), memory_total) if word.isascii() and word.isdigit() else None
    word = (files.read_text("/sys/fs/cgroup/memory.max", 64) or "").strip()
    return min(int(word), memory_total) if word.isascii() and word.isdigit() else memory_total


def ray_used_memory(files: Files) -> Optional[int]:
    """Return what ``ray._private.utils.get_used_memory()`` will; None where it asks psutil.

    Read from ray 2.60: use less inactive and active file pages. Ray 2.44 and older did not subtract
    the active ones.
    """
    for usage_path, stat_path, prefix in (
        (
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
            "/sys/fs/cgroup/memory/memory.stat",
            "total_",
        ),
        ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", ""),
    ):
        usage, stat = files.read_text(usage_path, 64), files.read_text(stat_path, 1 << 16)
        if usage is None or stat is None:
            continue
        table = dict(line.split(" ", 1) for line in stat.split("\n") if " " in line)
        numbers = [
            usage.strip(),
            table.get(f"{prefix}inactive_file", "").strip(),
            table.get(f"{prefix}active_file", "").strip(),
        ]
        if not all(number.isascii() and number.isdigit() for number in numbers):
            return None
        used, inactive, active = (int(number) for number in numbers)
        return used - inactive - active
    return None


def probe_limits(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read sizes of memory and ``/dev/shm``, process limits, CPUs, NUMA nodes and Ray's belief."""
    if machine.root and not machine.exists("/proc/self"):
        return dict.fromkeys(_FIELDS, Unknown(FOLDER_ONLY))
    facts: Dict[str, Fact[Any]] = {}
    facts.update(_memory(machine))
    facts.update(_java(machine))
    facts.update(_shm(machine))
    facts.update(_rlimits(machine))
    facts.update(_process(machine))
    return facts


def _memory(files: Files) -> Iterator[Tuple[str, Fact[Any]]]:
    text = files.read_text("/proc/meminfo", 1 << 14)
    sizes = parse_meminfo(text or "")
    where = Evidence("/proc/meminfo")
    for field, name in (
        ("memory.total", "MemTotal"),
        ("memory.available", "MemAvailable"),
        ("swap.total", "SwapTotal"),
    ):
        yield (
            field,
            Known(sizes[name], where) if name in sizes else Unknown(f"/proc/meminfo has no {name}"),
        )
    total = sizes.get("MemTotal")
    if total is None:
        for field in ("memory.psutil_belief", "memory.ray_belief", "memory.ray_usage"):
            yield field, Unknown("/proc/meminfo has no MemTotal")
        return
    yield (
        "memory.psutil_belief",
        Known(total, Evidence("/proc/meminfo", "psutil.virtual_memory().total is MemTotal")),
    )
    belief = ray_system_memory(files, total)
    fixed = (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes"
        if files.exists("/sys/fs/cgroup/memory")
        else "/sys/fs/cgroup/memory.max"
    )
    if belief is None:
        yield (
            "memory.ray_belief",
            Unknown(f"{fixed} contains no number; Ray will fail on it"),
        )
    else:
        source = "/proc/meminfo" if belief == total else fixed
        yield (
            "memory.ray_belief",
            Known(
                belief, Evidence(source, "Ray's own algorithm: this fixed path, at most MemTotal")
            ),
        )
    used = ray_used_memory(files)
    if used is None:
        yield "memory.ray_usage", Absent(Evidence(fixed, "no control group on Ray's fixed paths"))
    else:
        yield (
            "memory.ray_usage",
            Known(used, Evidence(fixed, "use less inactive and active file pages")),
        )


def _java(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    """Yield what the JVM will believe; the module that knows is loaded only where there is one."""
    folders = machine.environment.get("PATH", "").split(":")
    if machine.root or not (
        machine.environment.get("JAVA_HOME")
        or any(machine.exists(f"{folder}/java") for folder in folders if folder)
    ):
        none: Fact[Any] = (
            Unknown(FOLDER_ONLY) if machine.root else Absent(Evidence("JAVA_HOME, PATH", "no Java"))
        )
        yield from (("java.version", none), ("memory.jvm_belief", none))
        return
    from .java import java_facts

    yield from java_facts(
        machine, parse_meminfo(machine.read_text("/proc/meminfo", 1 << 14) or "").get("MemTotal")
    )


def _shm(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    text = machine.read_text("/proc/self/mountinfo", 1 << 22) or ""
    mounts = [mount for mount in parse_mountinfo(text, ("tmpfs",)) if mount.point == "/dev/shm"]
    options = ",".join(mounts[-1].options) if mounts else ""
    if machine.root:
        yield from _shm_of_image(options)
        return
    try:
        volume = os.statvfs("/dev/shm")
    except OSError as error:
        nothing: Fact[Any] = Unknown(f"/dev/shm: {error.strerror}")
        if isinstance(error, FileNotFoundError):
            nothing = Absent(Evidence("/dev/shm", "does not exist"))
        for name in ("shm.size", "shm.available", "shm.files"):
            yield name, nothing
        return
    size, free = volume.f_frsize * volume.f_blocks, volume.f_frsize * volume.f_bfree
    available = volume.f_frsize * volume.f_bavail
    detail = options or "not a separate tmpfs: the size is that of the underlying file system"
    yield "shm.size", Known(size, Evidence("statvfs /dev/shm", detail))
    yield "shm.available", Known(available, Evidence("statvfs /dev/shm"))
    if mounts:
        yield "shm.files", _shm_files(size - free, size)
    else:
        yield "shm.files", Unknown("/dev/shm is not a separate tmpfs")


def _shm_of_image(options: str) -> Iterator[Tuple[str, Fact[Any]]]:
    """What the mount of another machine's /dev/shm, as its files show it, tells."""
    sizes = (parse_size(entry[5:]) for entry in options.split(",") if entry.startswith("size="))
    size = next(sizes, None)
    unknown = Unknown("not this machine's /dev/shm")
    if size is not None:
        yield "shm.size", Known(size, Evidence("/proc/self/mountinfo", options))
    else:
        yield "shm.size", unknown
    yield "shm.available", unknown
    yield "shm.files", unknown


#: Who holds the files is looked up, process by process, where this share is used, or no more than
#: this is free.
_SHARE, _LITTLE = 0.2, 64 << 20


def _shm_files(used: int, size: int) -> Fact[Any]:
    if not used:
        return Known((), Evidence("statvfs /dev/shm", "nothing is used"))
    from .shm_usage import list_shared_files

    looked = used > size * _SHARE or size - used < _LITTLE
    try:
        files, whole = list_shared_files("/dev/shm", looked)
    except OSError as error:
        return Unknown(f"/dev/shm: {error.strerror}")
    seen = sum(file.memory_size for file in files)
    unseen = (
        f"; {used - seen} bytes more are used by what is not listed"
        if used > seen * 1.02 + (1 << 20)
        else ""
    )
    who = (
        "every process that is visible here was looked at"
        if whole
        else "not every process could be looked at"
        if looked
        else "holders not looked up"
    )
    return Known(files, Evidence("/dev/shm", f"{who}{unseen}"))


_CORE = "Max core file size"
_RLIMITS = (
    ("rlimit.nofile", "Max open files", "soft"),
    ("rlimit.nofile_hard", "Max open files", "hard"),
    ("rlimit.memlock", "Max locked memory", "soft"),
    ("rlimit.nproc", "Max processes", "soft"),
    ("rlimit.stack", "Max stack size", "soft"),
    ("rlimit.core", _CORE, "soft"),
)


def _rlimits(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    limits = parse_limits(machine.read_text("/proc/self/limits", 1 << 14) or "")
    core = None if machine.root else inherited_limit()
    if core is not None and _CORE in limits:
        limits[_CORE] = limits[_CORE]._replace(soft=core)
    for field, name, which in _RLIMITS:
        limit = limits.get(name)
        if limit is None:
            yield field, Unknown(f"/proc/self/limits has no '{name}'")
        else:
            yield (
                field,
                Known(
                    limit.soft if which == "soft" else limit.hard,
                    Evidence("/proc/self/limits", f"{name}, {which}"),
                ),
            )


#: Bits of include/uapi/linux/capability.h: each lifts a limit that is judged (memlock; nproc;
#: nproc).
_CAPABILITIES = ((14, "ipc_lock"), (21, "sys_admin"), (24, "sys_resource"))


def _process(files: Files) -> Iterator[Tuple[str, Fact[Any]]]:
    status = parse_status(files.read_text("/proc/self/status", 1 << 14) or "")
    # The kernel's answer of sched_getaffinity, cpusets included.
    cpus = count_list(status.get("Cpus_allowed_list", ""))
    if cpus:
        yield "cpu.count", Known(cpus, Evidence("/proc/self/status", "Cpus_allowed_list"))
    else:
        yield "cpu.count", Unknown("/proc/self/status is not readable")
    nodes = count_list(status.get("Mems_allowed_list", ""))
    if nodes:
        yield "numa.nodes", Known(nodes, Evidence("/proc/self/status", "Mems_allowed_list"))
    else:
        yield "numa.nodes", Unknown("/proc/self/status has no Mems_allowed_list")
    yield "process.capabilities", _capabilities(files, status.get("CapEff", ""))
    uid = _host_uid(status.get("Uid", ""), files.read_text("/proc/self/uid_map", 4096) or "")
    if uid is not None:
        yield "process.uid", Known(uid, Evidence("/proc/self/status", "Uid through uid_map"))
    else:
        yield "process.uid", Unknown("/proc/self/status has no Uid")
    if files.exists("/sys/class"):
        devices = tuple(files.listdir("/sys/class/infiniband") or ())
        yield "rdma.devices", Known(devices, Evidence("/sys/class/infiniband"))
    else:
        yield "rdma.devices", Unknown("/sys/class is not visible here")


def _capabilities(files: Files, mask: str) -> Fact[Any]:
    try:
        bits = int(mask, 16)
    except ValueError:
        return Unknown("/proc/self/status has no CapEff")
    # Inside a user namespace they hold for what belongs to that namespace, and limits are counted
    # outside of it.
    if not _is_initial_namespace(files):
        bits = 0
    held = tuple(name for bit, name in _CAPABILITIES if bits >> bit & 1)
    return Known(held, Evidence("/proc/self/status", "CapEff"))


def _is_initial_namespace(files: Files) -> bool:
    words = (files.read_text("/proc/self/uid_map", 4096) or "").split()
    return not words or words == ["0", "0", "4294967295"]


def _host_uid(words: str, mapping: str) -> Optional[int]:
    """Return the effective user id outside: user 0 of a rootless container is an ordinary one."""
    ids = words.split()
    if len(ids) < 2 or not ids[1].isdigit():
        return None
    uid = int(ids[1])
    for line in mapping.split("\n"):
        numbers = line.split()
        if len(numbers) == 3 and all(number.isascii() and number.isdigit() for number in numbers):
            inside, outside, length = (int(number) for number in numbers)
            if inside <= uid < inside + length:
                return outside + uid - inside
    return uid


_FIELDS = (
    "memory.total",
    "memory.available",
    "swap.total",
    "memory.psutil_belief",
    "memory.ray_belief",
    "memory.ray_usage",
    "java.version",
    "memory.jvm_belief",
    "shm.size",
    "shm.available",
    "shm.files",
    *(field for field, _, _ in _RLIMITS),
    "cpu.count",
    "numa.nodes",
    "process.capabilities",
    "process.uid",
    "rdma.devices",
)

PROBES_HERE: Tuple[Probe, ...] = (Probe("limits", probe_limits, _FIELDS, False, 2.0),)
