"""What fills ``/dev/shm``: its files, who holds them, and deleted files that are still held.

A file is found by device and inode, not by name: ``/dev/shm/x`` of another container is another
file. Whoever holds nothing that is visible here may still live in a process namespace that is not.
"""

from __future__ import annotations

import os
import stat
import time

from ..model.facts import SharedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Tuple

__all__ = ["list_shared_files"]

_ENTRIES = 4096
_SHOWN = 32
_BUDGET = 0.3  # seconds for all processes


class _Held:
    __slots__ = ("holders", "name", "size")

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.holders: Dict[int, str] = {}


def list_shared_files(
    folder: str = "/dev/shm", holders: bool = True
) -> Tuple[Tuple[SharedFile, ...], bool]:
    """Return the largest files in a tmpfs, and whether every process could be looked at.

    Args:
        folder: Where it is mounted.
        holders: Look for the processes that hold each file, which takes up to ``_BUDGET`` seconds.

    Raises:
        OSError: The folder cannot be read.
    """
    device = os.stat(folder).st_dev
    by_inode: Dict[int, SharedFile] = {}
    _walk(folder, "", device, by_inode)
    held: Dict[int, _Held] = {}
    whole = _look_at_processes(folder, device, held) if holders else False
    files: List[SharedFile] = []
    for inode, file in by_inode.items():
        owner = held.pop(inode, None)
        names = _names(owner) if owner is not None else () if whole else None
        files.append(file._replace(holders=names))
    files += [
        SharedFile(entry.name, entry.size, None, _names(entry), True) for entry in held.values()
    ]
    files.sort(key=lambda file: (-file.memory_size, file.name))
    return tuple(files[:_SHOWN]), whole


def _walk(folder: str, below: str, device: int, files: Dict[int, SharedFile]) -> None:
    with os.scandir(f"{folder}/{below}" if below else folder) as entries:
        for entry in entries:
            if len(files) >= _ENTRIES:
                return
            name = f"{below}/{entry.name}" if below else entry.name
            try:
                info = entry.stat(follow_symlinks=False)
                if info.st_dev != device:
                    continue
                if stat.S_ISDIR(info.st_mode):
                    _walk(folder, name, device, files)
                elif stat.S_ISREG(info.st_mode):
                    files.setdefault(
                        info.st_ino, SharedFile(name, info.st_blocks * 512, info.st_uid)
                    )
            except OSError:  # removed meanwhile, or not ours to read
                continue


def _names(entry: _Held) -> Tuple[str, ...]:
    return tuple(f"{pid} {name}".strip() for pid, name in sorted(entry.holders.items()))


def _look_at_processes(folder: str, device: int, held: Dict[int, _Held]) -> bool:
    """Fill in what processes hold open or map; tell whether all of them could be looked at."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return False
    whole, end = True, time.monotonic() + _BUDGET
    for pid in pids:
        if time.monotonic() > end:
            return False
        try:
            _descriptors(pid, folder, device, held)
            _mappings(pid, folder, device, held)
        except (FileNotFoundError, ProcessLookupError):  # it ended
            continue
        except OSError:  # another user's
            whole = False
    return whole


def _descriptors(pid: int, folder: str, device: int, held: Dict[int, _Held]) -> None:
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            target = os.readlink(path)
            if not target.startswith(folder + "/"):
                continue
            info = os.stat(path)
        except FileNotFoundError:  # closed meanwhile
            continue
        if info.st_dev == device and stat.S_ISREG(info.st_mode):
            _note(held, info.st_ino, target, folder, info.st_blocks * 512, pid)


def _mappings(pid: int, folder: str, device: int, held: Dict[int, _Held]) -> None:
    with open(f"/proc/{pid}/maps", "rb") as file:
        lines = [line for line in file if os.fsencode(folder) + b"/" in line]
    for line in lines:
        words = os.fsdecode(line).rstrip("\n").split(None, 5)
        major, _, minor = words[3].partition(":")
        if len(words) < 6 or os.makedev(int(major, 16), int(minor, 16)) != device:
            continue
        start, _, last = words[0].partition("-")
        try:
            size = os.stat(f"/proc/{pid}/map_files/{words[0]}").st_blocks * 512
        except OSError:  # for root alone: the length of the mapping is what it can be at the most
            size = int(last, 16) - int(start, 16)
        _note(held, int(words[4]), words[5], folder, size, pid)


def _note(
    held: Dict[int, _Held], inode: int, target: str, folder: str, size: int, pid: int
) -> None:
    name = target[len(folder) + 1 :]
    if name.endswith(" (deleted)"):
        name = name[: -len(" (deleted)")]
    entry = held.setdefault(inode, _Held(name, size))
    entry.size = max(entry.size, size)
    entry.holders.setdefault(pid, _command(pid))


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
