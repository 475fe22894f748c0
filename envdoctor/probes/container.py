"""The limits of this process's control groups, v1 and v2, as the kernel enforces them.

Reading ``/sys/fs/cgroup/memory.max`` answers another question: below a Slurm step, a pod, ``docker
--cgroup-parent`` or a systemd slice the limit lies on a directory between there and the process. So
the process's own path (``/proc/self/cgroup``) is joined with what is mounted
(``/proc/self/mountinfo``), and every directory from the leaf to the mount is asked (kernel,
Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).

What lies above the mount is seen by nobody in the container: v1 tells the effective limit in
``memory.stat`` (``hierarchical_memory_limit``), v2 tells nothing. There "no limit" is never said,
only "no limit visible".
"""

from __future__ import annotations

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.record import NamedTuple
from ..mounts import Mount, parse_mountinfo
from .machine import FOLDER_ONLY, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple

    from .machine import Machine
else:
    Protocol = object

__all__ = [
    "PROBES_HERE",
    "Files",
    "Hierarchy",
    "Membership",
    "MemoryLimit",
    "find_hierarchy",
    "find_memory_limit",
    "mounts_of",
    "parse_cgroup",
    "parse_table",
]

#: v1 counts in pages and shows "no limit" as the greatest multiple of the page size below 2^63,
#: which differs between 4 KiB and 64 KiB pages.
_UNLIMITED = 1 << 62
_SEARCH_LIMIT = 256
_CONTROL_FILES = (
    "cgroup.",
    "memory.",
    "cpu.",
    "cpuset.",
    "cpuacct.",
    "pids.",
    "io.",
    "blkio.",
    "hugetlb.",
    "misc.",
    "rdma.",
    "dmem.",
)


class Files(Protocol):
    """What is asked of a machine: its files."""

    def read_text(self, path: str, limit: int = ...) -> Optional[str]:
        """Return the text of a file, or None where it cannot be read."""

    def listdir(self, path: str) -> Optional[Sequence[str]]:
        """Return the sorted names in a directory, or None where it cannot be read."""

    def exists(self, path: str) -> bool:
        """Tell whether a path exists."""

    def realpath(self, path: str) -> str:
        """Resolve every symbolic link."""


class Membership(NamedTuple):
    """One line of ``/proc/<pid>/cgroup``: v2 has no controllers, a named v1 ``name=systemd``."""

    controllers: Tuple[str, ...]
    path: str
    deleted: bool = False


class Hierarchy(NamedTuple):
    """The directories that rule one controller, this process's own first.

    ``whole``: the last one is the root of the hierarchy itself, so that nothing above it can limit
    this process.
    """

    version: int
    directories: Tuple[str, ...]
    whole: bool


class MemoryLimit(NamedTuple):
    """The smallest limit on the way up, and where it lies.

    ``directory`` is None where it lies above what is mounted.
    """

    limit: Optional[int]
    source: str
    directory: Optional[str]
    hidden: bool


def parse_cgroup(text: str) -> Tuple[Membership, ...]:
    """Return the hierarchies that ``/proc/<pid>/cgroup`` lists."""
    memberships = []
    for line in text.split("\n"):
        number, colon, rest = line.partition(":")
        controllers, second, path = rest.partition(":")
        if not colon or not second or not number.isdigit() or not path.startswith("/"):
            continue
        deleted = path.endswith(" (deleted)")
        if deleted:
            path = path[: -len(" (deleted)")]
        memberships.append(
            Membership(tuple(name for name in controllers.split(",") if name), path, deleted)
        )
    return tuple(memberships)


def find_hierarchy(
    files: Files, memberships: Sequence[Membership], mounts: Sequence[Mount], controller: str
) -> Optional[Hierarchy]:
    """Return the directories that rule ``controller`` for this process, or None."""
    version, membership = _membership_of(memberships, controller)
    if membership is None:
        return None
    if version == 2:
        fitting = [mount for mount in mounts if mount.kind == "cgroup2"]
    else:
        fitting = mounts_of(mounts, controller)
    # What shows most ancestors comes first; of two mounts of the same part the later one lies on
    # top.
    fitting.reverse()
    fitting.sort(key=lambda mount: _exposure(mount.root))
    for way in (_by_name, _by_search):
        for mount in fitting:
            below = way(files, membership, mount)
            if below is not None:
                return _hierarchy(files, version, mount.point, below)
    return None


def mounts_of(mounts: Sequence[Mount], controller: str) -> List[Mount]:
    """Return the mounts of the v1 hierarchy that has a controller."""
    return [mount for mount in mounts if mount.kind == "cgroup" and controller in mount.options]


def _membership_of(
    memberships: Sequence[Membership], controller: str
) -> Tuple[int, Optional[Membership]]:
    """Return the cgroup version that rules a controller, and the line that says where.

    A line that lists the controller wins over ``0::``: hybrid hosts mount an empty v2 hierarchy
    beside v1.
    """
    for line in memberships:
        if controller in line.controllers:
            return 1, line
    return 2, next((line for line in memberships if not line.controllers), None)


def _by_name(files: Files, membership: Membership, mount: Mount) -> Optional[Tuple[str, ...]]:
    """The names from a mount to this process's directory, where they can be told from its path."""
    below = _relative(membership.path, mount.root)
    if below is None:
        return None
    while membership.deleted and below and not files.exists(_join(mount.point, below)):
        below = below[:-1]
    return below if files.exists(_join(mount.point, below) + "/cgroup.procs") else None


def _steps(path: str) -> Tuple[int, Tuple[str, ...]]:
    """Return how many levels above its namespace's root a path starts, and the names from there."""
    parts = [part for part in path.split("/") if part]
    up = 0
    while up < len(parts) and parts[up] == "..":
        up += 1
    return up, tuple(parts[up:])


def _exposure(root: str) -> Tuple[int, int]:
    up, parts = _steps(root)
    return (-up, len(parts))


def _relative(path: str, root: str) -> Optional[Tuple[str, ...]]:
    """Return the names that lead from a mount's root to a path; None where none lead there."""
    path_up, path_parts = _steps(path)
    root_up, root_parts = _steps(root)
    if path_up == root_up and path_parts[: len(root_parts)] == root_parts:
        return path_parts[len(root_parts) :]
    return None


def _join(point: str, below: Sequence[str]) -> str:
    return "/".join([point.rstrip("/"), *below])


def _by_search(files: Files, _: Membership, mount: Mount) -> Optional[Tuple[str, ...]]:
    """Look for this process in the directories of a mount.

    Names are missing where the mount's root lies above the namespace.
    """
    own = (files.read_text("/proc/self/stat", 4096) or "").partition(" ")[0]
    if not own:
        return None
    waiting: List[Tuple[str, ...]] = [()]
    for place in range(_SEARCH_LIMIT):
        if place == len(waiting):
            return None
        below = waiting[place]
        if own in (files.read_text(_procs(mount, below), 1 << 16) or "").split():
            return below
        waiting += _children(files, mount, below)
    return None


def _children(files: Files, mount: Mount, below: Tuple[str, ...]) -> Iterator[Tuple[str, ...]]:
    for name in files.listdir(_join(mount.point, below)) or ():
        child = (*below, name)
        if not name.startswith(_CONTROL_FILES) and files.exists(_procs(mount, child)):
            yield child


def _procs(mount: Mount, below: Sequence[str]) -> str:
    return _join(mount.point, below) + "/cgroup.procs"


def _hierarchy(files: Files, version: int, point: str, below: Sequence[str]) -> Hierarchy:
    directories = tuple(_join(point, below[:length]) for length in range(len(below), -1, -1))
    top = directories[-1]
    # Only the true root lacks cgroup.events (v2), and only it has release_agent (v1): a namespace's
    # root looks like "/" too.
    whole = (
        not files.exists(top + "/cgroup.events")
        if version == 2
        else files.exists(top + "/release_agent")
    )
    return Hierarchy(version, directories, whole)


def _number(text: Optional[str]) -> Optional[int]:
    """Return a file's one number; None for ``max``, for nothing, and for what is no number."""
    words = (text or "").split()
    if len(words) != 1 or not words[0].isascii() or not words[0].isdigit() or len(words[0]) > 20:
        return None
    return int(words[0])


def parse_table(text: Optional[str]) -> Dict[str, int]:
    """Return a file of ``name number`` lines."""
    table = {}
    for line in (text or "").split("\n"):
        name, _, value = line.partition(" ")
        number = _number(value)
        if name and number is not None:
            table[name] = number
    return table


def find_memory_limit(files: Files, hierarchy: Hierarchy) -> MemoryLimit:
    """Return the memory limit that the kernel enforces on this process."""
    name = "memory.max" if hierarchy.version == 2 else "memory.limit_in_bytes"
    limits: List[Tuple[int, str]] = []
    for directory in hierarchy.directories:
        value = _number(files.read_text(f"{directory}/{name}", 64))
        if value is not None and value < _UNLIMITED:
            limits.append((value, directory))
    if hierarchy.version == 1:
        leaf = f"{hierarchy.directories[0]}/memory.stat"
        effective = parse_table(files.read_text(leaf, 1 << 16)).get("hierarchical_memory_limit")
        if effective is not None:
            return _effective_limit(effective, leaf, limits, name)
    if not limits:
        return MemoryLimit(None, f"{hierarchy.directories[0]}/{name}", None, not hierarchy.whole)
    # min() keeps the first of equals: the one nearest to the process.
    limit, directory = min(limits, key=lambda pair: pair[0])
    return MemoryLimit(limit, f"{directory}/{name}", directory, not hierarchy.whole)


def _effective_limit(
    effective: int, leaf: str, limits: Sequence[Tuple[int, str]], name: str
) -> MemoryLimit:
    """The kernel's own answer, ancestors included, also those above a namespace.

    Without use_hierarchy (before Linux 5.11) ancestors do not count at all, and a walk would be
    wrong.
    """
    if effective >= _UNLIMITED:
        return MemoryLimit(None, leaf, None, False)
    for limit, directory in limits:
        if limit == effective:
            return MemoryLimit(limit, f"{directory}/{name}", directory, False)
    return MemoryLimit(effective, leaf, None, False)


def _smallest(files: Files, hierarchy: Hierarchy, name: str) -> Optional[Tuple[int, str]]:
    """Return the smallest number that a file holds on the way up, and that file."""
    best: Optional[Tuple[int, str]] = None
    for directory in hierarchy.directories:
        path = f"{directory}/{name}"
        value = _number(files.read_text(path, 64))
        if value is not None and value < _UNLIMITED and (best is None or value < best[0]):
            best = (value, path)
    return best


def _cpu_quota(files: Files, hierarchy: Hierarchy) -> Optional[Tuple[float, str]]:
    """Return the smallest CPU bandwidth on the way up, in cores."""
    best: Optional[Tuple[float, str]] = None
    for directory in hierarchy.directories:
        if hierarchy.version == 2:
            path = f"{directory}/cpu.max"
            words = (files.read_text(path, 64) or "").split()
            quota, period = (
                (_number(words[0]), _number(words[1])) if len(words) == 2 else (None, None)
            )
        else:
            path = f"{directory}/cpu.cfs_quota_us"
            quota = _number(files.read_text(path, 64))  # -1 is no quota
            period = (
                _number(files.read_text(f"{directory}/cpu.cfs_period_us", 64)) if quota else None
            )
        if quota and period and (best is None or quota / period < best[0]):
            best = (quota / period, path)
    return best


def probe_container(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read what the control groups allow, and which container runtime shows."""
    if machine.root and not machine.exists("/proc/self"):
        return dict.fromkeys(
            (*_LIMIT_FIELDS, "container.runtime", "kubernetes.pod"), Unknown(FOLDER_ONLY)
        )
    mounts_text = machine.read_text("/proc/self/mountinfo", 1 << 22)
    memberships = parse_cgroup(machine.read_text("/proc/self/cgroup", 1 << 16) or "")
    facts: Dict[str, Fact[Any]] = dict(_runtime(machine, mounts_text or "", memberships))
    if mounts_text is None or not memberships:
        missing = Unknown("/proc/self/cgroup or /proc/self/mountinfo is not readable")
        return {**dict.fromkeys(_LIMIT_FIELDS, missing), **facts}
    mounts = parse_mountinfo(mounts_text)
    facts["cgroup.version"] = Known(_version(mounts), Evidence("/proc/self/mountinfo"))
    facts.update(_memory_facts(machine, memberships, mounts))
    facts.update(_group_facts(machine, memberships, mounts))
    return facts


def _version(mounts: Sequence[Mount]) -> str:
    second = any(mount.kind == "cgroup2" for mount in mounts)
    first = any(
        mount.kind == "cgroup" and not any(option.startswith("name=") for option in mount.options)
        for mount in mounts
    )
    return {(True, True): "hybrid", (True, False): "v1", (False, True): "v2"}.get(
        (first, second), "none"
    )


def _memory_facts(
    files: Files, memberships: Sequence[Membership], mounts: Sequence[Mount]
) -> Iterator[Tuple[str, Fact[Any]]]:
    hierarchy = find_hierarchy(files, memberships, mounts, "memory")
    if hierarchy is None:
        reason = Unknown("the directory of this process's memory control group is not visible here")
        for name in (
            "memory.limit",
            "memory.high",
            "memory.usage",
            "memory.reclaimable",
            "memory.oom_kills",
            "swap.limit",
        ):
            yield name, reason
        yield (
            "memory.limit_hidden",
            Known(True, Evidence("/proc/self/cgroup", "its directory is not mounted here")),
        )
        return
    limit = find_memory_limit(files, hierarchy)
    leaf = hierarchy.directories[0]
    yield (
        "memory.limit_hidden",
        Known(
            limit.hidden,
            Evidence(
                hierarchy.directories[-1],
                "" if not limit.hidden else "not the root of the hierarchy",
            ),
        ),
    )
    yield "memory.limit", _limit_fact(files, limit)
    if hierarchy.version == 2:
        high = _smallest(files, hierarchy, "memory.high")
        yield "memory.high", _or_absent(high, hierarchy, f"{leaf}/memory.high")
    else:
        yield "memory.high", Absent(Evidence(leaf, "cgroup v1 has no memory.high"))
    yield from _usage_facts(files, hierarchy, limit)
    yield "swap.limit", _swap_fact(files, hierarchy)


def _limit_fact(files: Files, limit: MemoryLimit) -> Fact[int]:
    if limit.limit is None:
        if limit.hidden:
            return Unknown(
                f"{limit.source} shows no limit, but an outer one cannot be excluded from inside "
                "this container"
            )
        return Absent(Evidence(limit.source, "no limit up to the root of the hierarchy"))
    total = _memory_total(files)
    if total is not None and limit.limit > total:
        return Known(total, Evidence(limit.source, f"{limit.limit}, more than MemTotal"))
    return Known(limit.limit, Evidence(limit.source, str(limit.limit)))


def _memory_total(files: Files) -> Optional[int]:
    for line in (files.read_text("/proc/meminfo", 1 << 14) or "").split("\n"):
        if line.startswith("MemTotal:"):
            number = _number(line[9:].replace("kB", ""))
            return None if number is None else number * 1024
    return None


def _or_absent(smallest: Optional[Tuple[int, str]], hierarchy: Hierarchy, path: str) -> Fact[int]:
    if smallest is not None:
        return Known(smallest[0], Evidence(smallest[1]))
    if hierarchy.whole:
        return Absent(Evidence(path, "not set up to the root of the hierarchy"))
    return Unknown(
        f"{path} shows none, but an outer one cannot be excluded from inside this container"
    )


def _usage_facts(
    files: Files, hierarchy: Hierarchy, limit: MemoryLimit
) -> Iterator[Tuple[str, Fact[Any]]]:
    """Yield use, reclaimable part and OOM kills of the limiting group, else of this process's."""
    if limit.limit is not None and limit.directory is None:
        reason = Unknown(f"{limit.source} gives the limit of a group that is not visible here")
        yield "memory.usage", reason
        yield "memory.reclaimable", reason
    else:
        directory = limit.directory or hierarchy.directories[0]
        name, prefix = (
            ("memory.current", "")
            if hierarchy.version == 2
            else ("memory.usage_in_bytes", "total_")
        )
        usage = _number(files.read_text(f"{directory}/{name}", 64))
        if usage is None:
            yield "memory.usage", Unknown(f"{directory}/{name} is not readable")
        else:
            yield "memory.usage", Known(usage, Evidence(f"{directory}/{name}"))
        stat = parse_table(files.read_text(f"{directory}/memory.stat", 1 << 16))
        inactive, active = stat.get(f"{prefix}inactive_file"), stat.get(f"{prefix}active_file")
        if inactive is None or active is None:
            yield "memory.reclaimable", Unknown(f"{directory}/memory.stat is not readable")
        else:
            # Docker and cAdvisor subtract the inactive part only, Ray both; shared memory is in
            # neither.
            detail = f"inactive_file {inactive} + active_file {active}"
            yield (
                "memory.reclaimable",
                Known(inactive + active, Evidence(f"{directory}/memory.stat", detail)),
            )
    yield "memory.oom_kills", _oom_fact(files, hierarchy, limit)


def _oom_fact(files: Files, hierarchy: Hierarchy, limit: MemoryLimit) -> Fact[int]:
    """Count the OOM kills from this process's group up to the limiting one.

    v1 counts a kill in the group of the victim alone, so groups add up; v2 counts it in every
    ancestor too (unless mounted with memory_localevents), so the greatest number is the sum.
    """
    directories = hierarchy.directories
    if limit.directory is not None:
        directories = directories[: directories.index(limit.directory) + 1]
    else:
        directories = directories[:1]
    name = "memory.events" if hierarchy.version == 2 else "memory.oom_control"
    counts = [
        parse_table(files.read_text(f"{directory}/{name}", 4096)).get("oom_kill")
        for directory in directories
    ]
    numbers = [count for count in counts if count is not None]
    if not numbers:
        return Unknown(f"{directories[0]}/{name} does not count OOM kills")
    return Known(
        max(numbers) if hierarchy.version == 2 else sum(numbers),
        Evidence(f"{directories[-1]}/{name}"),
    )


def _swap_fact(files: Files, hierarchy: Hierarchy) -> Fact[int]:
    leaf = hierarchy.directories[0]
    if hierarchy.version == 2:
        return _or_absent(
            _smallest(files, hierarchy, "memory.swap.max"), hierarchy, f"{leaf}/memory.swap.max"
        )
    stat = parse_table(files.read_text(f"{leaf}/memory.stat", 1 << 16))
    memory, both = stat.get("hierarchical_memory_limit"), stat.get("hierarchical_memsw_limit")
    if memory is None or both is None:
        return Unknown(f"{leaf}/memory.stat does not give the limit of memory and swap together")
    if both >= _UNLIMITED:
        return Absent(Evidence(f"{leaf}/memory.stat", "hierarchical_memsw_limit is not set"))
    return Known(
        max(0, both - memory),
        Evidence(f"{leaf}/memory.stat", "hierarchical_memsw_limit - hierarchical_memory_limit"),
    )


def _group_facts(
    files: Files, memberships: Sequence[Membership], mounts: Sequence[Mount]
) -> Iterator[Tuple[str, Fact[Any]]]:
    cpu = find_hierarchy(files, memberships, mounts, "cpu")
    yield "cpu.quota", _cpu_quota_fact(cpu, files)
    pids = find_hierarchy(files, memberships, mounts, "pids")
    yield "pids.limit", _pids_limit_fact(pids, files)


def _cpu_quota_fact(hierarchy: Optional[Hierarchy], files: Files) -> Fact[Any]:
    if hierarchy is None:
        return _hidden_group("cpu")
    name = "cpu.max" if hierarchy.version == 2 else "cpu.cfs_quota_us"
    path = f"{hierarchy.directories[0]}/{name}"
    unlimited = Absent(Evidence(path, "no quota up to the root of the hierarchy"))
    return _known_limit(_cpu_quota(files, hierarchy), hierarchy, path, unlimited)


def _pids_limit_fact(hierarchy: Optional[Hierarchy], files: Files) -> Fact[Any]:
    if hierarchy is None:
        return _hidden_group("pids")
    path = f"{hierarchy.directories[0]}/pids.max"
    unlimited = Known(-1, Evidence(path, "no limit up to the root of the hierarchy"))
    return _known_limit(_smallest(files, hierarchy, "pids.max"), hierarchy, path, unlimited)


def _hidden_group(controller: str) -> Fact[Any]:
    return Unknown(
        f"the directory of this process's {controller} control group is not visible here"
    )


def _known_limit(
    limit: Optional[Tuple[Any, str]], hierarchy: Hierarchy, path: str, unlimited: Fact[Any]
) -> Fact[Any]:
    """Return a limit that was read, with its file; where none shows, ``unlimited`` if every group
    up to the root was read.
    """
    if limit is not None:
        return Known(limit[0], Evidence(limit[1]))
    if hierarchy.whole:
        return unlimited
    # Kubernetes sets podPidsLimit on the pod's group, which its containers do not see.
    return Unknown(
        f"{path} shows no limit, but an outer one cannot be excluded from inside this container"
    )


_MARKS = (
    ("APPTAINER_CONTAINER", "apptainer"),
    ("SINGULARITY_CONTAINER", "apptainer"),
    ("ENROOT_ROOTFS", "enroot"),
)
_MARK_FILES = (("/run/.containerenv", "podman"), ("/.dockerenv", "docker"))
_MARK_GROUPS = (
    ("/docker/", "docker"),
    ("/docker-", "docker"),
    ("/libpod-", "podman"),
    ("/kubepods", "kubernetes"),
    ("/lxc/", "lxc"),
)
_NAMED = {"docker": "docker", "podman": "podman", "lxc": "lxc", "lxc-libvirt": "lxc"}


def _runtime(
    machine: Machine, mountinfo: str, memberships: Sequence[Membership]
) -> Iterator[Tuple[str, Fact[Any]]]:
    """Yield whether this is a pod, and the container runtime by the marks that runtimes leave."""
    pod = "KUBERNETES_SERVICE_HOST" in machine.environment or machine.exists(
        "/var/run/secrets/kubernetes.io/serviceaccount"
    )
    if pod:
        yield "kubernetes.pod", Known(True, Evidence("KUBERNETES_SERVICE_HOST"))
    else:
        detail = "neither KUBERNETES_SERVICE_HOST nor a service account"
        yield "kubernetes.pod", Known(False, Evidence("environment", detail))
    mark = next(_runtime_marks(machine, pod, memberships), None)
    if mark is not None:
        yield "container.runtime", Known(*mark)
    else:
        yield "container.runtime", _without_mark(mountinfo)


def _runtime_marks(
    machine: Machine, pod: bool, memberships: Sequence[Membership]
) -> Iterator[Tuple[str, Evidence]]:
    """Yield the runtimes that show themselves, the surest sign first."""
    environment: Mapping[str, str] = machine.environment
    for variable, name in _MARKS:
        if environment.get(variable):
            yield name, Evidence(f"environment variable {variable}")
    if pod:
        yield "kubernetes", Evidence("KUBERNETES_SERVICE_HOST")
    for path, name in _MARK_FILES:
        if machine.exists(path):
            yield name, Evidence(path)
    # systemd's CONTAINER_INTERFACE names this variable.
    named = _NAMED.get(environment.get("container", ""))
    if named is not None:
        yield named, Evidence("environment variable container")
    for membership in memberships:
        for part, name in _MARK_GROUPS:
            if part in membership.path + "/":
                yield name, Evidence("/proc/self/cgroup", membership.path)


def _without_mark(mountinfo: str) -> Fact[str]:
    if not mountinfo:
        return Unknown("/proc/self/mountinfo is not readable")
    layered = parse_mountinfo(mountinfo, ("overlay", "aufs", "fuse.fuse-overlayfs"))
    if any(mount.point == "/" for mount in layered):
        return Unknown("the root file system is a container's, but no runtime names itself")
    return Absent(Evidence("/.dockerenv, /run/.containerenv, environment, /proc/self/cgroup"))


_LIMIT_FIELDS = (
    "cgroup.version",
    "memory.limit",
    "memory.limit_hidden",
    "memory.high",
    "memory.usage",
    "memory.reclaimable",
    "memory.oom_kills",
    "swap.limit",
    "cpu.quota",
    "pids.limit",
)

PROBES_HERE: Tuple[Probe, ...] = (
    Probe(
        "container",
        probe_container,
        (*_LIMIT_FIELDS, "container.runtime", "kubernetes.pod"),
        False,
        2.0,
    ),
)
