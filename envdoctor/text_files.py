"""Text files as users name them: a path, or ``-`` for standard input."""

from __future__ import annotations

import sys

from .errors import InputError
from .model.sizes import size_text

__all__ = ["name_of", "read_text"]

#: Bytes. Facts of a machine with thousands of packages take 4 MiB.
_SIZE_LIMIT = 16 << 20


def read_text(path: str, lenient: bool = False) -> str:
    """Read a text file, or standard input for ``-``; raises :class:`InputError`.

    UTF-8, or UTF-16 with a byte order mark (what PowerShell's ``>`` writes). ``lenient`` replaces
    what does not decode.
    """
    where = name_of(path)
    try:
        if path == "-":
            if sys.stdin is None:
                raise InputError("standard input is closed, so '-' cannot be read")
            data = sys.stdin.buffer.read(_SIZE_LIMIT + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(_SIZE_LIMIT + 1)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{where}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error
    if len(data) > _SIZE_LIMIT:
        raise InputError(
            f"{where}: larger than {size_text(_SIZE_LIMIT)}, so this is hardly the file that was "
            "meant"
        )
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding, "replace" if lenient else "strict")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: expected UTF-8 text, found the byte 0x{data[error.start]:02x} at offset "
            f"{error.start}"
        ) from error


def name_of(path: str) -> str:
    """Return what a message calls this file."""
    return "standard input" if path == "-" else path
