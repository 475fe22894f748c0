"""What the JVM will take for its memory: HotSpot's container support, on the files it reads.

Two generations differ. Up to JDK 20 the JVM reads its own group alone, and on v1 the hierarchy's
limit where its own file shows none. From JDK 25 on it walks from its group to the mount
(JDK-8322420, JDK-8343191), and no longer asks ``hierarchical_memory_limit``: a limit above what a
container sees is lost to it. Between them some releases have one part or the other by backport;
there a belief is named only where both agree.

Read from OpenJDK, src/hotspot/os/linux/cgroup*_linux.cpp; the JVMs 17 and 25 are asked in
tests/containers.
"""

from __future__ import annotations

import os

from ..model.evidence import Evidence, Fact, Known, Unknown
from ..mounts import Mount, parse_mountinfo
from .container import (
    Files,
    Membership,
    mounts_of,
    parse_cgroup,
    parse_table,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

    from .machine import Machine

__all__ = ["find_java", "java_facts", "jvm_memory"]

_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
_UNLIMITED = 1 << 62
_LAST_OLD, _FIRST_NEW = 20, 25


def find_java(files: Files, environment: Mapping[str, str]) -> Optional[str]:
    """Return the home of the Java that a program would start: JAVA_HOME, else the first on PATH."""
    homes = [environment["JAVA_HOME"].rstrip("/")] if environment.get("JAVA_HOME") else []
    for folder in environment.get("PATH", "").split(":"):
        if folder.startswith("/") and files.exists(f"{folder}/java"):
            homes.append(os.path.dirname(os.path.dirname(files.realpath(f"{folder}/java"))))
            break
    return next((home for home in homes if files.exists(f"{home}/release")), None)


def java_facts(machine: Machine, memory_total: Optional[int]) -> Iterator[Tuple[str, Fact[Any]]]:
    """Yield the version of Java, and what it will believe."""
    home = find_java(machine, machine.environment)
    if home is None:
        none = Unknown("Java is installed, but has no file 'release' that states its version")
        yield "java.version", none
        yield "memory.jvm_belief", none
        return
    version = _version(machine.read_text(f"{home}/release", 1 << 14) or "")
    if version is None:
        yield "java.version", Unknown(f"{home}/release has no JAVA_VERSION")
    else:
        yield "java.version", Known(version, Evidence(f"{home}/release"))
    if memory_total is None:
        yield "memory.jvm_belief", Unknown("/proc/meminfo has no MemTotal")
        return
    yield "memory.jvm_belief", _belief(machine, memory_total, version)


def _version(release: str) -> Optional[str]:
    for line in release.split("\n"):
        name, _, value = line.partition("=")
        if name == "JAVA_VERSION" and value:
            return value.strip().strip('"')
    return None


def _major(version: Optional[str]) -> Optional[int]:
    # 1.8.0_402, 17.0.9, 26-ea.
    parts = (version or "").replace("_", ".").replace("-", ".").split(".")
    number = parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0]
    return int(number) if number.isascii() and number.isdigit() else None


def _belief(files: Files, memory_total: int, version: Optional[str]) -> Fact[int]:
    major = _major(version)
    if major is not None and major < 11:
        return Unknown(f"the container support of Java {version} is not modelled")
    memberships = parse_cgroup(files.read_text("/proc/self/cgroup", 1 << 16) or "")
    mounts = parse_mountinfo(files.read_text("/proc/self/mountinfo", 1 << 22) or "")
    old, new = (
        jvm_memory(files, memberships, mounts, memory_total, walks) for walks in (False, True)
    )
    # Between the two a build may have the change or not.
    is_clear = major is not None and not _LAST_OLD < major < _FIRST_NEW
    if not is_clear and old != new:
        return Unknown(f"Java {version}: {old} without JDK-8322420, {new} with it")
    belief = old if major is not None and major <= _LAST_OLD else new
    source = "/proc/meminfo" if belief == memory_total else "/sys/fs/cgroup"
    return Known(belief, Evidence(source, f"HotSpot's own algorithm, Java {version}"))


def jvm_memory(
    files: Files,
    memberships: Sequence[Membership],
    mounts: Sequence[Mount],
    memory_total: int,
    walks: bool,
) -> int:
    """Return what the JVM takes for the physical memory.

    ``walks``: with JDK-8322420 and JDK-8343191.
    """
    if any(name in _CONTROLLERS for line in memberships for name in line.controllers):
        limit = _first(files, memberships, mounts, memory_total, walks)
    else:
        limit = _second(files, memberships, mounts, memory_total, walks)
    return memory_total if limit is None else limit


def _mount_of(mounts: Sequence[Mount]) -> Optional[Mount]:
    """The first below /sys/fs/cgroup; where there is none there, the last."""
    chosen: Optional[Mount] = None
    for mount in mounts:
        if chosen is None or not chosen.point.startswith("/sys/fs/cgroup"):
            chosen = mount
    return chosen


def _first(
    files: Files,
    memberships: Sequence[Membership],
    mounts: Sequence[Mount],
    memory_total: int,
    walks: bool,
) -> Optional[int]:
    chosen = {name: _mount_of(mounts_of(mounts, name)) for name in _CONTROLLERS}
    mount = chosen["memory"]
    path = next((line.path for line in memberships if "memory" in line.controllers), None)
    if mount is None or path is None or None in chosen.values():
        return None
    if not walks:
        return _first_old(files, mount, path, memory_total)
    folders = [mount.point + _below(files, mount, one) for one in _walked(path, mount.root)]
    return _lowest(files, [f"{folder}/memory.limit_in_bytes" for folder in folders], memory_total)


def _walked(path: str, root: str) -> List[str]:
    """The paths that a JVM with JDK-8343191 looks at, its own first."""
    if "../" in path:
        return ["/"]
    return [path] if path == root else [*_upwards(path), "/"]


def _below(files: Files, mount: Mount, path: str) -> str:
    """Where a JVM with JDK-8343191 looks for a path below a mount."""
    if mount.root == "/":
        return "" if path == "/" else path
    if path in (mount.root, "/"):
        return ""
    pieces = path.split("/")
    suffixes = ["/" + "/".join(pieces[start:]) for start in range(1, len(pieces))]
    return next((suffix for suffix in suffixes if files.exists(mount.point + suffix)), "")


def _first_old(files: Files, mount: Mount, path: str, memory_total: int) -> Optional[int]:
    if mount.root == "/":
        folder = mount.point + ("" if path == "/" else path)
    elif path == mount.root:
        folder = mount.point
    elif path.startswith(mount.root):
        folder = mount.point + path[len(mount.root) :]
    else:
        return None
    own = _number(files.read_text(f"{folder}/memory.limit_in_bytes", 64))
    if own is None:
        return None
    if own >= _UNLIMITED:
        own = parse_table(files.read_text(f"{folder}/memory.stat", 1 << 16)).get(
            "hierarchical_memory_limit", own
        )
    return own if own < memory_total else None


def _second(
    files: Files,
    memberships: Sequence[Membership],
    mounts: Sequence[Mount],
    memory_total: int,
    walks: bool,
) -> Optional[int]:
    mount = _mount_of([mount for mount in mounts if mount.kind == "cgroup2"])
    path = next((line.path for line in memberships if not line.controllers), None)
    if mount is None or path is None or not (walks or _all_enabled(files)):
        return None
    paths = _walked(path, "/") if walks else [path]
    folders = [mount.point + ("" if one == "/" else one) for one in paths]
    return _lowest(files, [f"{folder}/memory.max" for folder in folders], memory_total)


def _all_enabled(files: Files) -> bool:
    """Tell whether all controllers are enabled that an older JVM wants to see (JDK-8347129)."""
    text = files.read_text("/proc/cgroups", 1 << 14)
    if text is None:
        return True
    enabled = {
        words[0]
        for words in map(str.split, text.split("\n"))
        if len(words) == 4 and words[3] == "1"
    }
    return enabled.issuperset(_CONTROLLERS)


def _upwards(path: str) -> List[str]:
    pieces = path.split("/")
    return ["/".join(pieces[:length]) for length in range(len(pieces), 1, -1)]


def _lowest(files: Files, paths: Sequence[str], memory_total: int) -> Optional[int]:
    numbers = [_number(files.read_text(path, 64)) for path in paths]
    return min(
        (number for number in numbers if number is not None and number < memory_total), default=None
    )


def _number(text: Optional[str]) -> Optional[int]:
    word = (text or "").strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 20 else None
