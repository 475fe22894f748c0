"""What is mounted, from ``/proc/<pid>/mountinfo``."""

from __future__ import annotations

import os

from .model.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

__all__ = [
    "Mount",
    "SharedSource",
    "mounts_elsewhere",
    "parse_mountinfo",
    "points_elsewhere",
    "shared_mounts",
]

# File systems that answer out of this kernel and its own disks. What is not among them has a server
# or a program behind it, and may wait for that for ever.
_LOCAL = (
    " adfs affs apfs aufs bcachefs bfs bpf btrfs cgroup cgroup2 configfs cramfs debugfs devpts "
    "devtmpfs efivarfs erofs exfat ext2 ext3 ext4 f2fs fusectl hfs hfsplus hugetlbfs iso9660 jffs2 "
    "jfs minix mqueue msdos nilfs2 nsfs ntfs ntfs3 overlay proc pstore ramfs reiserfs romfs rootfs "
    "rpc_pipefs securityfs selinuxfs squashfs sysfs tmpfs tracefs ubifs udf ufs vfat xfs zfs "
    "zonefs "
)


class Mount(NamedTuple):
    """One line of ``/proc/<pid>/mountinfo``."""

    root: str
    point: str
    kind: str  # file system type
    options: Tuple[str, ...]  # of the super block


class SharedSource(NamedTuple):
    """A file system that other nodes see, too: its server or device, as the kernel words it."""

    point: str
    kind: str
    source: str


# File systems that several nodes have at once: filesystems/*.rst of the kernel, and what the
# clients of Lustre, GPFS, BeeGFS, WekaFS, Quobyte, JuiceFS and s3fs call themselves.
_SHARED = (
    " 9p afs beegfs ceph cifs fuse.ceph-fuse fuse.glusterfs fuse.juicefs fuse.lustre fuse.s3fs "
    "fuse.sshfs fuse.weka gfs2 gpfs lustre nfs nfs4 ocfs2 orangefs quobyte smb3 virtiofs wekafs "
)


def shared_mounts(text: str) -> Tuple[SharedSource, ...]:
    """Return the file systems that nodes share, of the text of ``/proc/<pid>/mountinfo``."""
    mounts = {}
    for line in text.split("\n"):
        left, dash, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if dash and len(before) > 4 and len(after) > 1 and f" {after[0]} " in _SHARED:
            point = _unescape(before[4])
            mounts[point] = SharedSource(point, after[0], _unescape(after[1]))
    return tuple(mounts.values())


def parse_mountinfo(text: str, kinds: Tuple[str, ...] = ("cgroup", "cgroup2")) -> Tuple[Mount, ...]:
    """Return the mounts of some file system types, in the order of ``/proc/<pid>/mountinfo``.

    The type is looked at first: other types have roots that are no paths (``net:[4026532281]``).
    """
    mounts = []
    for line in text.split("\n"):
        left, dash, right = line.partition(" - ")
        if not dash:
            continue
        after = right.split(" ")
        if after[0] not in kinds:
            continue
        before = left.split(" ")
        if len(before) < 6 or len(after) < 3:
            continue
        root, point = _unescape(before[3]), _unescape(before[4])
        if root.startswith("/") and point.startswith("/"):
            mounts.append(Mount(root, point, after[0], tuple(after[2].split(","))))
    return tuple(mounts)


def mounts_elsewhere() -> Tuple[str, ...]:
    """Return where file systems are mounted that may never answer, as this process sees them."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            return points_elsewhere(os.fsdecode(file.read()))
    except OSError:  # no /proc, and so nothing that could be said of a process in state D
        return ()


def points_elsewhere(text: str) -> Tuple[str, ...]:
    """Return where file systems are mounted that may never answer: NFS, FUSE, any network's.

    Those of the kernel's own folders (binfmt_misc is an autofs) are left out.
    """
    points = []
    for line in text.split("\n"):
        left, dash, right = line.partition(" - ")
        if not dash or f" {right.partition(' ')[0]} " in _LOCAL:
            continue
        point = _unescape(left.split(" ")[4])
        if not point.startswith(("/proc/", "/sys/", "/dev/")):
            points.append(point)
    return tuple(points)


def _unescape(text: str) -> str:
    r"""Undo the kernel's octal escapes: ``\040`` is a space, ``\134`` a backslash."""
    if "\\" not in text:
        return text
    head, *rest = text.split("\\")
    out = [head]
    for part in rest:
        if len(part) >= 3 and all(digit in "01234567" for digit in part[:3]):
            out.append(chr(int(part[:3], 8)) + part[3:])
        else:
            out.append("\\" + part)
    return "".join(out)
