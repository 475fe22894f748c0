"""A zip archive on a server, read by range requests: its directory, and members as streams of inflated pieces.

Nothing of an archive is believed: sizes are compared with the file, members may not overlap, a stream ends at the size that the
directory gives and is compared with its checksum.
"""

from __future__ import annotations

import struct
import zlib
from typing import Dict, Iterator, List, NamedTuple, Tuple

from matrix_refresh.errors import Refused, printable
from matrix_refresh.transport import Transport

__all__ = ["Member", "RemoteZip"]

_TAIL = 1 << 16
_PIECE = 8 << 20
#: What is inflated from one piece at a time.
_OUTPUT = 4 << 20
_MOST_DIRECTORY = 64 << 20
_MOST_MEMBERS = 200_000

_END = b"PK\x05\x06"
_END_64 = b"PK\x06\x06"
_LOCATOR_64 = b"PK\x06\x07"
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")


class Member(NamedTuple):
    """One entry of a zip directory."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


class RemoteZip:
    """The directory of one remote archive, read when made.

    Raises:
        Refused: no zip, cut off, or a directory that no honest writer makes.
        Unreachable: the server did not answer.
    """

    def __init__(self, transport: Transport, address: str, piece: int = _PIECE) -> None:
        self._transport = transport
        self._address = address
        self._piece = piece
        tail = transport.get_range(address, None, _TAIL, whole=_TAIL)
        if tail.total is None:
            raise Refused("the server does not say how long it is")
        self.size = tail.total
        if tail.start + len(tail.content) != self.size:
            raise Refused("the server sent another part of the file than its end")
        self._tail = (tail.start, tail.content)
        start, length, count = self._place()
        #: Where the members end.
        self._limit = start
        self.members: Dict[str, Member] = {}
        for member in _entries(self._read(start, length)):
            if member.name in self.members:
                raise Refused(f"it has two members of one name: {printable(member.name, 80)}")
            self.members[member.name] = member
        if len(self.members) != count:
            raise Refused(f"its zip directory has {len(self.members)} members and says {count}")
        self._check_places()

    def _read(self, start: int, length: int) -> bytes:
        if start < 0 or length < 0 or start + length > self.size:
            raise Refused("its zip directory points outside the file")
        if not length:
            return b""
        offset, content = self._tail
        if offset <= start:
            return content[start - offset : start - offset + length]
        part = self._transport.get_range(self._address, start, length)
        if len(part.content) != length or part.total not in (None, self.size):
            raise Refused("the server sent less than was asked for, or another file")
        return part.content

    def _place(self) -> Tuple[int, int, int]:
        """Start, length and count of the directory."""
        offset, tail = self._tail
        at = tail.rfind(_END)
        if at < 0 or at + 22 > len(tail):
            raise Refused("it is no zip archive, or cut off: no end record")
        (_, disk, _, _, count, length, start, _) = struct.unpack_from("<4s4H2LH", tail, at)
        end = offset + at
        if 0xFFFFFFFF in (length, start) or 0xFFFF in (disk, count):
            locator = self._read(end - 20, 20) if end >= 20 else b""
            if locator[:4] != _LOCATOR_64:
                raise Refused("its zip64 directory is missing")
            end = struct.unpack_from("<Q", locator, 8)[0]
            record = self._read(end, 56)
            if record[:4] != _END_64:
                raise Refused("its zip64 directory is damaged")
            count, length, start = struct.unpack_from("<QQQ", record, 32)
        if length > _MOST_DIRECTORY:
            raise Refused(f"its zip directory has {length} bytes, at most {_MOST_DIRECTORY} are read")
        if start + length > end:
            raise Refused("its zip directory points outside the file")
        return start, length, count

    def _check_places(self) -> None:
        """Members lie one after another before the directory: overlapping ones are how zip bombs are made."""
        before = 0
        for member in sorted(self.members.values(), key=lambda member: member.offset):
            if member.offset < before:
                raise Refused(f"its members overlap at {printable(member.name, 80)}")
            before = member.offset + _LOCAL.size + len(member.name.encode("utf-8", "surrogateescape")) + member.packed
        if before > self._limit:
            raise Refused("a member reaches into the zip directory")

    def stream(self, name: str, limit: int) -> Iterator[bytes]:
        """Yield the content of a member in pieces of at most 4 MiB.

        Raises:
            Refused: encrypted, packed by another method than deflate, larger than ``limit``, damaged, or more than the directory says.
        """
        member = self.members[name]
        if member.flags & 0x1:
            raise Refused(f"{printable(name, 80)} is encrypted")
        if member.method not in (0, 8):
            raise Refused(f"{printable(name, 80)} is packed by method {member.method}")
        if member.size > limit:
            raise Refused(f"{printable(name, 80)} has {member.size} bytes, at most {limit} are read")
        if member.method == 0 and member.size != member.packed:
            raise Refused(f"{printable(name, 80)} is stored with two sizes")
        checksum = given = 0
        for piece in self._inflated(member):
            given += len(piece)
            if given > member.size:
                raise Refused(f"{printable(name, 80)} unpacks to more than its {member.size} bytes")
            checksum = zlib.crc32(piece, checksum)
            yield piece
        if given != member.size or checksum != member.crc:
            raise Refused(f"{printable(name, 80)} is damaged: size or checksum differ from the zip directory")

    def content(self, name: str, limit: int) -> bytes:
        """Return a small member whole."""
        return b"".join(self.stream(name, limit))

    def _inflated(self, member: Member) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(-15)
        for piece in self._packed(member):
            if member.method == 0:
                yield piece
                continue
            waiting = piece
            while waiting:
                try:
                    content = unpacker.decompress(waiting, _OUTPUT)
                except zlib.error as error:
                    raise Refused(f"{printable(member.name, 80)} is damaged: {error}") from error
                if content:
                    yield content
                waiting = unpacker.unconsumed_tail
                if unpacker.eof:
                    return
        if member.method == 8:
            # What zlib still holds: a member of which everything was fed may have output left.
            while not unpacker.eof:
                try:
                    content = unpacker.decompress(b"", _OUTPUT)
                except zlib.error:
                    return
                if not content:
                    return
                yield content

    def _packed(self, member: Member) -> Iterator[bytes]:
        length = len(member.name.encode("utf-8", "surrogateescape"))
        # The local header's own extra field may be longer than the directory's; 1 KiB holds all that writers make.
        head = self._read(member.offset, min(_LOCAL.size + length + 1024 + min(member.packed, 1 << 16), self._limit - member.offset))
        if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
            raise Refused(f"its zip directory points at no member: {printable(member.name, 80)}")
        local = _LOCAL.unpack_from(head)
        begin = _LOCAL.size + local[9] + local[10]
        if member.offset + begin + member.packed > self._limit:
            raise Refused(f"{printable(member.name, 80)} reaches into the zip directory")
        first = head[begin : begin + member.packed]
        if first:
            yield first
        done = len(first)
        while done < member.packed:
            length = min(self._piece, member.packed - done)
            yield self._read(member.offset + begin + done, length)
            done += length


def _entries(directory: bytes) -> Iterator[Member]:
    at = count = 0
    while at < len(directory):
        if at + _ENTRY.size > len(directory):
            raise Refused("its zip directory is cut off")
        (sign, _, _, flags, method, _, _, crc, packed, size, name_size, extra_size, note_size, _, _, _, offset) = _ENTRY.unpack_from(directory, at)
        if sign != b"PK\x01\x02":
            raise Refused("its zip directory is damaged")
        raw = directory[at + 46 : at + 46 + name_size]
        if len(raw) < name_size:
            raise Refused("its zip directory is cut off")
        count += 1
        if count > _MOST_MEMBERS:
            raise Refused(f"it has more than {_MOST_MEMBERS} members")
        if 0xFFFFFFFF in (packed, size, offset):
            size, packed, offset = _sizes_64(directory[at + 46 + name_size : at + 46 + name_size + extra_size], size, packed, offset)
        yield Member(raw.decode("utf-8", "surrogateescape"), flags, method, crc, packed, size, offset)
        at += 46 + name_size + extra_size + note_size


def _sizes_64(extra: bytes, *values: int) -> List[int]:
    """Size, packed size and offset: those that do not fit stand in the zip64 field, in this order (APPNOTE 4.5.3)."""
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
