"""A zip archive on a server, read by range requests: its directory, and members as streams of
inflated pieces.

Nothing of an archive is believed: sizes are compared with the file, members may not overlap, a
stream ends at the size that the directory gives and is compared with its checksum.
"""

from __future__ import annotations

import zlib
from typing import Dict, Iterable, Iterator, List, Tuple

from matrix_refresh.errors import Refused, printable
from matrix_refresh.transport import Transport
from matrix_refresh.zip_range import LOCAL, Member, RemoteFile, entries_of, read_directory

__all__ = ["Member", "RemoteZip"]

_TAIL = 1 << 16
_PIECE = 8 << 20
#: What is inflated from one piece at a time.
_OUTPUT = 4 << 20
_MOST_DIRECTORY = 64 << 20
#: Wanted members that lie nearer than this are asked for at once.
_GAP = 1 << 18


class RemoteZip:
    """The directory of one remote archive, read when made.

    Raises:
        Refused: no zip, cut off, or a directory that no honest writer makes.
        Unreachable: the server did not answer.
    """

    def __init__(self, transport: Transport, address: str, piece: int = _PIECE) -> None:
        self._file = RemoteFile(transport, address, _TAIL, _TAIL)
        self.size = self._file.size
        self._piece = piece
        #: Offset and bytes of what ``fetch_ahead`` read.
        self._ahead: Tuple[int, bytes] = (0, b"")
        directory = read_directory(self._file, _MOST_DIRECTORY)
        #: Where the members end.
        self._limit = directory.start
        self.members: Dict[str, Member] = {}
        for member in entries_of(directory.content):
            if member.name in self.members:
                raise Refused(f"it has two members of one name: {printable(member.name, 80)}")
            self.members[member.name] = member
        if len(self.members) != directory.entries:
            raise Refused(
                f"its zip directory has {len(self.members)} members and says {directory.entries}"
            )
        self._check_places()

    def _check_places(self) -> None:
        """Members lie one after another before the directory: overlapping ones are how zip bombs
        are made.
        """
        before = 0
        for member in sorted(self.members.values(), key=lambda member: member.offset):
            if member.offset < before:
                raise Refused(f"its members overlap at {printable(member.name, 80)}")
            before = (
                member.offset
                + LOCAL.size
                + len(member.name.encode("utf-8", "surrogateescape"))
                + member.packed
            )
        if before > self._limit:
            raise Refused("a member reaches into the zip directory")

    def near(self, names: Iterable[str]) -> Iterator[List[str]]:
        """Yield the names in groups whose members lie near each other, and have them ready until
        the next group: one request for each group instead of one for each member.
        """
        group: List[Member] = []
        for member in sorted(
            (self.members[name] for name in names), key=lambda member: member.offset
        ):
            if group and (
                member.offset - self._end(group[-1]) > _GAP
                or self._end(member) - group[0].offset > self._piece
            ):
                yield self._fetch_ahead(group)
                group = []
            group.append(member)
        if group:
            yield self._fetch_ahead(group)
        self._ahead = (0, b"")

    def _end(self, member: Member) -> int:
        # 1 KiB for the local header's extra field, as in _packed.
        length = len(member.name.encode("utf-8", "surrogateescape"))
        return min(member.offset + LOCAL.size + length + 1024 + member.packed, self._limit)

    def _fetch_ahead(self, group: List[Member]) -> List[str]:
        start = group[0].offset
        self._ahead = (start, self._file.read(start, self._end(group[-1]) - start))
        return [member.name for member in group]

    def _read(self, start: int, length: int) -> bytes:
        offset, content = self._ahead
        if offset <= start and start + length <= offset + len(content):
            return content[start - offset : start - offset + length]
        return self._file.read(start, length)

    def stream(self, name: str, limit: int) -> Iterator[bytes]:
        """Yield the content of a member in pieces of at most 4 MiB.

        Raises:
            Refused: encrypted, packed by another method than deflate, larger than ``limit``,
                damaged, or more than the directory says.
        """
        member = self.members[name]
        if member.flags & 0x1:
            raise Refused(f"{printable(name, 80)} is encrypted")
        if member.method not in (0, 8):
            raise Refused(f"{printable(name, 80)} is packed by method {member.method}")
        if member.size > limit:
            raise Refused(
                f"{printable(name, 80)} has {member.size} bytes, at most {limit} are read"
            )
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
            raise Refused(
                f"{printable(name, 80)} is damaged: size or checksum differ from the zip directory"
            )

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
        # The local header's own extra field may be longer than the directory's; 1 KiB holds all
        # that writers make.
        head = self._read(
            member.offset,
            min(
                LOCAL.size + length + 1024 + min(member.packed, 1 << 16),
                self._limit - member.offset,
            ),
        )
        if len(head) < LOCAL.size or head[:4] != b"PK\x03\x04":
            raise Refused(f"its zip directory points at no member: {printable(member.name, 80)}")
        local = LOCAL.unpack_from(head)
        begin = LOCAL.size + local[9] + local[10]
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
