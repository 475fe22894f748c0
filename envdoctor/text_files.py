"""Text files as users name them: a path, or ``-`` for standard input."""

from __future__ import annotations

import os
import sys

from .errors import InputError, NothingRecognised
from .model.sizes import size_text
from .regular_files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, List

__all__ = ["begins_with", "lines_of_file", "name_of", "read_text", "standard_input"]

#: Bytes. Facts of a machine with thousands of packages take 4 MiB.
_SIZE_LIMIT = 16 << 20
#: Of a missing file whose name is a statement.
_STATED = " (what is no file is stated with --assume KEY=VALUE ...)"


#: What was read of standard input: it is told by its content what it is, and then read as that.
_kept: List[bytes] = []


class _StandardInput:
    """Standard input once more: what was read of it, then the rest."""

    def __init__(self) -> None:
        self._pieces = list(_kept)

    def read(self, size: int) -> bytes:
        """Read as a file does, though at most what one source has."""
        if not self._pieces:
            return sys.stdin.buffer.read(size)
        piece = self._pieces.pop()
        if len(piece) > size:
            self._pieces.append(piece[size:])
        return piece[:size]


def standard_input() -> Any:
    """Return standard input, from its beginning also where :func:`read_text` has read it."""
    if sys.stdin is None:
        raise InputError("standard input is closed, so '-' cannot be read")
    return _StandardInput() if _kept else sys.stdin.buffer


def begins_with(path: str, *beginnings: bytes) -> bool:
    """Tell whether a file begins with one of these; False for one that cannot be read, and for
    standard input.
    """
    if path == "-":
        return False
    try:
        with open(path, "rb") as file:
            return file.read(8).startswith(beginnings)
    except (OSError, ValueError):
        return False


def read_text(path: str, lenient: bool = False, waits: bool = True) -> str:
    """Read a text file, or standard input for ``-``; raises :class:`InputError`.

    UTF-8, or UTF-16 with a byte order mark (what PowerShell's ``>`` writes). ``lenient`` replaces
    what does not decode; what is too large for anything but a log is then no fault of the input:
    :class:`NothingRecognised`. A pipe is waited for, except where ``waits`` is false.
    """
    where = name_of(path)
    try:
        if path == "-":
            data: bytes = standard_input().read(_SIZE_LIMIT + 1)
            _kept[:] = [data]
        elif waits:
            with open(path, "rb") as file:
                data = file.read(_SIZE_LIMIT + 1)
        else:
            data = read_regular(path, _SIZE_LIMIT + 1)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{where}: cannot be read: {getattr(error, 'strerror', None) or error}"
            + (_STATED if "=" in path and isinstance(error, FileNotFoundError) else "")
        ) from error
    if len(data) > _SIZE_LIMIT:
        size = size_text(_SIZE_LIMIT)
        if lenient and (path == "-" or os.path.isfile(path)):  # a device has no end
            raise NothingRecognised(
                f"{where}: larger than {size}",
                "a log of any size is read by 'envdoctor diagnose FILE'",
            )
        raise InputError(f"{where}: larger than {size}, so this is hardly the file that was meant")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding, "replace" if lenient else "strict")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: expected UTF-8 text, found the byte 0x{data[error.start]:02x} at offset "
            f"{error.start}"
        ) from error


def lines_of_file(path: str) -> Iterator[str]:
    """Yield the lines of a file of any size, or of standard input for ``-``, with their ends.

    Bytes that are no UTF-8 are replaced. Raises :class:`InputError`.
    """
    try:
        with open(sys.stdin.fileno() if path == "-" else path, "rb", closefd=path != "-") as file:
            while True:
                line = file.readline(_SIZE_LIMIT + 1)
                if not line:
                    return
                if len(line) > _SIZE_LIMIT:
                    raise InputError(
                        f"{name_of(path)}: a line of more than {size_text(_SIZE_LIMIT)}"
                    )
                yield line.decode("utf-8", "replace")
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(
            f"{name_of(path)}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


def name_of(path: str) -> str:
    """Return what a message calls this file."""
    return "standard input" if path == "-" else path
