"""The directory of a zip archive on a server, read by range requests.

Nothing of an archive is believed: the directory has to lie inside the file, its entries have to be
whole, their number is bounded.
"""

from __future__ import annotations

import struct
from typing import Iterator, List, NamedTuple, Tuple

from .errors import Refused
from .transport import Transport

__all__ = ["LOCAL", "Directory", "Member", "RemoteFile", "entries_of", "read_directory"]

_MOST_MEMBERS = 200_000

_END = b"PK\x05\x06"
_END_64 = b"PK\x06\x06"
_LOCATOR_64 = b"PK\x06\x07"
_ENTRY = struct.Struct("<4s6H3L5H2L")
#: The header before a member's content; its last two numbers are the lengths of the name and of the
#: extra field.
LOCAL = struct.Struct("<4s5H3L2H")


class Member(NamedTuple):
    """One entry of a zip directory."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


class Directory(NamedTuple):
    """The central directory: where it starts, how many entries it says to have, and its bytes."""

    start: int
    entries: int
    content: bytes


class RemoteFile:
    """A file on a server, of which the last ``tail`` bytes were read when made.

    Without ranges the server sends the file whole: it is taken up to ``whole`` bytes.

    Raises:
        Refused: a server that does not say how long the file is, or sends another part.
        Unreachable: the server did not answer.
    """

    def __init__(self, transport: Transport, address: str, tail: int, whole: int) -> None:
        self._transport = transport
        self._address = address
        end = transport.get_range(address, None, tail, whole=whole)
        if end.total is None:
            raise Refused("the server does not say how long it is")
        self.size = end.total
        if end.start + len(end.content) != self.size:
            raise Refused("the server sent another part of the file than its end")
        #: Offset and bytes of the part that is there already.
        self.tail: Tuple[int, bytes] = (end.start, end.content)

    def read(self, start: int, length: int) -> bytes:
        """Return exactly these bytes."""
        if start < 0 or length < 0 or start + length > self.size:
            raise Refused("its zip directory points outside the file")
        if not length:
            return b""
        offset, content = self.tail
        if offset <= start:
            return content[start - offset : start - offset + length]
        part = self._transport.get_range(self._address, start, length)
        if len(part.content) != length or part.total not in (None, self.size):
            raise Refused("the server sent less than was asked for, or another file")
        return part.content


def read_directory(file: RemoteFile, most: int) -> Directory:
    """Find the end record in the tail and read the directory that it points at, of at most ``most``
    bytes.
    """
    offset, tail = file.tail
    at = tail.rfind(_END)
    if at < 0 or at + 22 > len(tail):
        raise Refused("it is no zip archive, or cut off: no end record")
    (_, disk, _, _, count, length, start, _) = struct.unpack_from("<4s4H2LH", tail, at)
    end = offset + at
    if 0xFFFFFFFF in (length, start) or 0xFFFF in (disk, count):
        locator = file.read(end - 20, 20) if end >= 20 else b""
        if locator[:4] != _LOCATOR_64:
            raise Refused("its zip64 directory is missing")
        end = struct.unpack_from("<Q", locator, 8)[0]
        record = file.read(end, 56)
        if record[:4] != _END_64:
            raise Refused("its zip64 directory is damaged")
        count, length, start = struct.unpack_from("<QQQ", record, 32)
    if length > most:
        raise Refused(f"its zip directory has {length} bytes, at most {most} are read")
    if start + length > end:
        raise Refused("its zip directory points outside the file")
    return Directory(start, count, file.read(start, length))


def entries_of(directory: bytes) -> Iterator[Member]:
    """Yield the members that the bytes of a directory list; what is no UTF-8 in a name is kept as
    surrogates.
    """
    at = count = 0
    while at < len(directory):
        if at + _ENTRY.size > len(directory):
            raise Refused("its zip directory is cut off")
        (
            sign,
            _,
            _,
            flags,
            method,
            _,
            _,
            crc,
            packed,
            size,
            name_size,
            extra_size,
            note_size,
            _,
            _,
            _,
            offset,
        ) = _ENTRY.unpack_from(directory, at)
        if sign != b"PK\x01\x02":
            raise Refused("its zip directory is damaged")
        raw = directory[at + 46 : at + 46 + name_size]
        if len(raw) < name_size:
            raise Refused("its zip directory is cut off")
        count += 1
        if count > _MOST_MEMBERS:
            raise Refused(f"it has more than {_MOST_MEMBERS} members")
        if 0xFFFFFFFF in (packed, size, offset):
            size, packed, offset = _sizes_64(
                directory[at + 46 + name_size : at + 46 + name_size + extra_size],
                size,
                packed,
                offset,
            )
        yield Member(
            raw.decode("utf-8", "surrogateescape"), flags, method, crc, packed, size, offset
        )
        at += 46 + name_size + extra_size + note_size


def _sizes_64(extra: bytes, *values: int) -> List[int]:
    """Size, packed size and offset: those that do not fit stand in the zip64 field, in this order
    (APPNOTE 4.5.3).
    """
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1 and at + 4 + length <= len(extra):
            wide = iter(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
            try:
                return [next(wide) if value == 0xFFFFFFFF else value for value in values]
            except StopIteration as error:
                raise Refused("its zip64 directory is damaged") from error
        at += 4 + length
    raise Refused("its zip64 directory is damaged")
