"""Writing files: whole or not at all, and never through a link that somebody planted.

A new file is made beside its place under a random name, exclusively (``O_EXCL``) and without
following a link, and takes its place by one ``rename``. Were the name predictable, a link left in a
folder where others may write would let root's report overwrite any file of the machine.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Optional, TextIO

__all__ = [
    "create_file",
    "name_beside",
    "open_growing",
    "replace_file",
    "stage_file",
    "sync_folder",
]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(path: str, content: bytes, *, mode: int = 0o666, durable: bool = True) -> None:
    """Write a file whole or not at all; raises :class:`OSError` or, for a null byte in its name,
    :class:`ValueError`.

    A file that was there keeps its mode, and its owner where this process may give files away. A
    link in its place is replaced, what it points at stays. Devices and pipes are written to.

    Args:
        path: Where it goes.
        content: All of it.
        mode: Of a file that was not there, less the umask.
        durable: Whether it has to survive a loss of power from here on.
    """
    if _is_stream(path):
        with open(_open_existing(path), "wb") as stream:
            stream.write(content)
        return
    staged = stage_file(path, content, mode=mode, durable=durable)
    try:
        os.replace(staged, path)
    except BaseException:
        os.unlink(staged)
        raise
    if durable:
        sync_folder(os.path.dirname(path))


def stage_file(path: str, content: bytes, *, mode: int = 0o666, durable: bool = True) -> str:
    """Write what is to become ``path`` beside it and return its name; ``os.replace`` is the rest.

    Raises as :func:`replace_file` does; then nothing is left.
    """
    before = _regular(path)
    staged = name_beside(path)
    file = create_file(staged, mode if before is None else 0o600)
    try:
        with file:
            if before is not None:
                _take_after(file.fileno(), before)
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
    except BaseException:  # an interruption too: no half file stays
        os.unlink(staged)
        raise
    return staged


def name_beside(path: str) -> str:
    """Return a name in the folder of ``path`` that nobody can guess."""
    return os.path.join(os.path.dirname(path), f".envdoctor-{os.urandom(8).hex()}.tmp")


def create_file(path: str, mode: int = 0o666) -> BinaryIO:
    """Open a file that must not be there yet, not even as a link; raises :class:`OSError`."""
    return open(os.open(path, _NEW, mode), "wb")


def open_growing(path: str, beginning: str = "") -> TextIO:
    """Open a text file that is written line by line while others read it; what it begins with is
    there whole before what it replaces is gone. Raises :class:`OSError`.
    """
    if not _is_stream(path):
        replace_file(path, beginning.encode("utf-8"), durable=False)
        return open(_open_existing(path, os.O_NOFOLLOW), "w", encoding="utf-8", newline="\n")
    stream = os.fdopen(_open_existing(path), "w", encoding="utf-8", newline="\n")
    stream.write(beginning)
    return stream


def sync_folder(folder: str) -> None:
    """Have the names in a folder survive a loss of power, where it can be opened."""
    try:
        descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # it may be written to and not read
        return
    try:
        os.fsync(descriptor)
    except OSError:  # a file system that cannot; the file itself was synchronized
        return
    finally:
        os.close(descriptor)


def _open_existing(path: str, flags: int = 0) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC | flags)


def _is_stream(path: str) -> bool:
    """Return whether there is something else than a file: a pipe, a device, a folder.

    Links count as what they lead to only where the system made them, as ``/dev/stdout`` is one.
    """
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    if stat.S_ISLNK(mode):
        folder = os.path.dirname(os.path.abspath(path))
        return folder in ("/dev", "/dev/fd") or folder.startswith("/proc/")
    return not stat.S_ISREG(mode)


def _regular(path: str) -> Optional[os.stat_result]:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _take_after(descriptor: int, before: os.stat_result) -> None:
    """Give a new file the owner and the mode of the one whose place it takes."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        with suppress(OSError):  # only root gives files away
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, before.st_mode & 0o777)
