"""Files that are read to their end: no pipe is waited for, and no device that never ends."""

from __future__ import annotations

import errno
import os
import stat

__all__ = ["NotRegularError", "open_regular", "read_regular"]

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_PART = 1 << 20
_REASON = "not a regular file"


class NotRegularError(OSError):
    """A pipe, a terminal, a device has this name, not a file."""


def open_regular(path: str) -> int:
    """Return the descriptor of a file, opened for reading; raises OSError, :class:`NotRegularError`
    among them.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        _check(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: str, limit: int, flags: int = 0) -> bytes:
    """Return at most ``limit`` bytes of a file; raises as :func:`open_regular` does."""
    descriptor = os.open(path, _FLAGS | flags)
    parts = []
    left = limit
    try:
        while left > 0:
            part = os.read(descriptor, left if left < _PART else _PART)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        # A pipe that nobody writes to has no byte, and a device has no end.
        if not parts or left <= 0:
            _check(descriptor)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    except BlockingIOError as error:  # somebody writes to it
        raise NotRegularError(_REASON) from error
    finally:
        os.close(descriptor)


def _check(descriptor: int) -> None:
    """Raise OSError where there is no file. The null device counts as an empty one: a link to it is
    how a file is turned off.
    """
    status = os.fstat(descriptor)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG or (kind == stat.S_IFCHR and status.st_rdev == os.makedev(1, 3)):
        return
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise NotRegularError(_REASON)
