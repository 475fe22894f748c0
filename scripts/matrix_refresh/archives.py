"""Gets the metadata out of a wheel or a source archive on an index without downloading the wheel, and without running anything.

A wheel: its last bytes hold the zip directory, which says where ``*.dist-info/METADATA`` lies. A source archive is small or left
alone: PKG-INFO and ``*.egg-info/requires.txt`` are read from the stream. Nothing is ever written to a path that an archive names.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import struct
import tarfile
import zlib
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from .errors import Refused, printable
from .metadata import MOST_BYTES
from .transport import Transport

__all__ = ["read_offered", "read_sdist", "read_wheel"]

_TAIL = 1 << 15
#: Without ranges a wheel comes whole: small ones only.
_WHOLE_WHEEL = 64 << 20
_MOST_DIRECTORY = 32 << 20
_MOST_MEMBERS = 200_000
_SDIST = 16 << 20
_UNPACKED = 256 << 20

_END = b"PK\x05\x06"
_LOCATOR_64 = b"PK\x06\x07"
_END_64 = b"PK\x06\x06"
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


class _Window:
    """Parts of one remote file that were read already; ``read`` gets what is missing."""

    def __init__(self, transport: Transport, address: str) -> None:
        self._transport = transport
        self._address = address
        tail = transport.get_range(address, None, _TAIL, whole=_WHOLE_WHEEL)
        if tail.total is None:
            raise Refused("the server does not say how long it is")
        self.size = tail.total
        self._parts = [(tail.start, tail.content)]
        if tail.start + len(tail.content) != self.size:
            raise Refused("the server sent another part of the file than its end")

    @property
    def tail(self) -> Tuple[int, bytes]:
        """Offset and bytes of the last part that is known."""
        return self._parts[0]

    def read(self, start: int, length: int) -> bytes:
        """Return bytes; fewer only at the end of the file."""
        if start < 0 or length < 0 or start > self.size:
            raise Refused("its zip directory points outside the file")
        length = min(length, self.size - start)
        for offset, content in self._parts:
            if offset <= start and start + length <= offset + len(content):
                return content[start - offset : start - offset + length]
        if not length:
            return b""
        part = self._transport.get_range(self._address, start, length)
        if len(part.content) != length:
            raise Refused("the server sent less than was asked for")
        self._parts.append((start, part.content))
        return part.content


def read_wheel(transport: Transport, address: str, name: str, version: Version) -> bytes:
    """Return METADATA of a wheel.

    Raises:
        Refused: no zip, no or several METADATA, another project's, larger than honest ones, members outside the archive.
        Unreachable: the index did not answer.
    """
    return _read_member(_Window(transport, address), name, version, "dist-info")


def read_offered(transport: Transport, address: str, sha256: str) -> bytes:
    """Return the core-metadata file that an index offers beside a wheel (PEP 658), checked against its hash where there is one."""
    content = transport.get(f"{address}.metadata", MOST_BYTES).content
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise Refused("its core-metadata file has another hash than the index says")
    return content


def _read_member(window: _Window, name: str, version: Version, kind: str) -> bytes:
    member = _find(_directory(window), name, version, kind)
    if member.flags & 0x1:
        raise Refused("its METADATA is encrypted")
    if member.method not in (0, 8):
        raise Refused(f"its METADATA is packed by method {member.method}")
    if member.size > MOST_BYTES or member.packed > MOST_BYTES:
        raise Refused(f"its METADATA has {max(member.size, member.packed)} bytes, at most {MOST_BYTES} are read")
    name_length = len(member.name.encode("utf-8"))
    start = window.read(member.offset, _LOCAL.size + name_length + member.packed + 256)
    if len(start) < _LOCAL.size or start[:4] != b"PK\x03\x04":
        raise Refused("its zip directory points at no member")
    local = _LOCAL.unpack_from(start)
    begin = _LOCAL.size + local[9] + local[10]
    packed = start[begin : begin + member.packed]
    if len(packed) < member.packed:
        packed = window.read(member.offset + begin, member.packed)
    if len(packed) < member.packed:
        raise Refused("it is cut off")
    content = packed if member.method == 0 else _inflate(packed)
    if len(content) != member.size or zlib.crc32(content) != member.crc:
        raise Refused("its METADATA is damaged: size or checksum differ from the zip directory")
    return content


def _inflate(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj(-15)
    try:
        content = unpacker.decompress(packed, MOST_BYTES + 1)
    except zlib.error as error:
        raise Refused(f"its METADATA is damaged: {error}") from error
    if len(content) > MOST_BYTES:
        raise Refused(f"its METADATA unpacks to more than {MOST_BYTES} bytes")
    return content


def _directory(window: _Window) -> bytes:
    """Return the bytes of the central directory."""
    offset, tail = window.tail
    at = tail.rfind(_END)
    if at < 0 or at + 22 > len(tail):
        raise Refused("it is no zip archive, or cut off: no end record")
    (_, disk, _, _, _, length, start, _) = struct.unpack_from("<4s4H2LH", tail, at)
    if 0xFFFFFFFF in (length, start) or disk == 0xFFFF:
        length, start = _directory_64(window, offset + at)
    if length > _MOST_DIRECTORY:
        raise Refused(f"its zip directory has {length} bytes, at most {_MOST_DIRECTORY} are read")
    if start + length > offset + at:
        raise Refused("its zip directory points outside the file")
    return window.read(start, length)


def _directory_64(window: _Window, end: int) -> Tuple[int, int]:
    locator = window.read(end - 20, 20)
    if locator[:4] != _LOCATOR_64:
        raise Refused("its zip64 directory is missing")
    record = window.read(struct.unpack_from("<Q", locator, 8)[0], 56)
    if record[:4] != _END_64 or len(record) < 56:
        raise Refused("its zip64 directory is damaged")
    length, start = struct.unpack_from("<QQ", record, 40)
    return length, start


def _members(directory: bytes) -> Iterator[Member]:
    at = count = 0
    while at < len(directory):
        if at + _ENTRY.size > len(directory):
            raise Refused("its zip directory is cut off")
        (sign, _, _, flags, method, _, _, crc, packed, size, name_size, extra_size, note_size, _, _, _, offset) = _ENTRY.unpack_from(directory, at)
        if sign != b"PK\x01\x02":
            raise Refused("its zip directory is damaged")
        raw = directory[at + 46 : at + 46 + name_size]
        if b"/../" in b"/" + raw + b"/" or raw[:1] == b"/" or b"\\" in raw or b"\0" in raw or raw[1:2] == b":":
            raise Refused(f"it has a member outside the archive: {printable(raw.decode('utf-8', 'replace'), 80)}")
        count += 1
        if count > _MOST_MEMBERS:
            raise Refused(f"it has more than {_MOST_MEMBERS} members")
        if raw.endswith((b"/METADATA", b"/PKG-INFO")):
            if 0xFFFFFFFF in (packed, size, offset):
                packed, size, offset = _sizes_64(directory[at + 46 + name_size : at + 46 + name_size + extra_size], packed, size, offset)
            yield Member(raw.decode("utf-8", "replace"), flags, method, crc, packed, size, offset)
        at += 46 + name_size + extra_size + note_size


def _sizes_64(extra: bytes, packed: int, size: int, offset: int) -> Tuple[int, int, int]:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            values = iter(struct.unpack_from(f"<{length // 8}Q", extra, at + 4)) if at + 4 + length <= len(extra) else iter(())
            try:
                size = next(values) if size == 0xFFFFFFFF else size
                packed = next(values) if packed == 0xFFFFFFFF else packed
                offset = next(values) if offset == 0xFFFFFFFF else offset
            except StopIteration as error:
                raise Refused("its zip64 directory is damaged") from error
            return packed, size, offset
        at += 4 + length
    raise Refused("its zip64 directory is damaged")


def _find(directory: bytes, name: str, version: Version, kind: str) -> Member:
    """Return METADATA (or PKG-INFO) of the one top-level folder that is the project's."""
    found: Dict[str, Member] = {}
    others = []
    for member in _members(directory):
        folder, _, rest = member.name.partition("/")
        if kind == "dist-info":
            if not folder.endswith(".dist-info") or rest != "METADATA":
                continue
            stem = folder[: -len(".dist-info")]
        elif rest == "PKG-INFO":
            stem = folder
        else:
            continue
        if not _is_of(stem, name, version):
            others.append(folder)
            continue
        if found:
            raise Refused("it has several METADATA files")
        found[folder] = member
    if others:
        raise Refused(f"it has the metadata of another project: {printable(others[0], 80)}")
    if not found:
        raise Refused("it has no METADATA")
    return next(iter(found.values()))


def _is_of(stem: str, name: str, version: Version) -> bool:
    found, _, text = stem.rpartition("-")
    try:
        return canonicalize_name(found) == name and Version(text) == version
    except InvalidVersion:
        return False


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than an honest archive has."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._given = 0

    def read(self, size: int = -1) -> bytes:
        content: bytes = self._stream.read(min(size, 1 << 20) if size >= 0 else 1 << 20)
        self._given += len(content)
        if self._given > _UNPACKED:
            raise Refused(f"it unpacks to more than {_UNPACKED} bytes")
        return content


def read_sdist(transport: Transport, address: str, file_name: str, name: str, version: Version) -> Tuple[bytes, Optional[bytes]]:
    """Return PKG-INFO and requires.txt (or None) of a source archive of at most 16 MiB.

    Raises:
        Refused: no such archive, or it is larger.
        Unreachable: the index did not answer.
    """
    if file_name.endswith(".zip"):
        return _read_member(_Window(transport, address), name, version, "source"), None
    content = transport.get(address, _SDIST).content
    information: Optional[bytes] = None
    requires: Optional[bytes] = None
    try:
        packed: Any = bz2.BZ2File(io.BytesIO(content)) if file_name.endswith(".bz2") else gzip.GzipFile(fileobj=io.BytesIO(content))
        with tarfile.open(fileobj=_Bounded(packed), mode="r|") as archive:
            for member in archive:
                parts = member.name.split("/")
                if member.name.startswith("/") or ".." in parts:
                    raise Refused(f"it has a member outside the archive: {printable(member.name, 80)}")
                if parts[0] == ".":
                    parts = parts[1:]
                wanted = len(parts) == 2 and parts[1] == "PKG-INFO"
                egg = 3 <= len(parts) <= 4 and parts[-2].endswith(".egg-info") and parts[-1] == "requires.txt"
                if not (wanted or egg) or not member.isreg():
                    continue
                if member.size > MOST_BYTES:
                    raise Refused(f"its {parts[-1]} has {member.size} bytes, at most {MOST_BYTES} are read")
                file = archive.extractfile(member)
                data = file.read(MOST_BYTES) if file is not None else b""
                if wanted:
                    if not _is_of(parts[0], name, version):
                        raise Refused(f"it has the metadata of another project: {printable(parts[0], 80)}")
                    information = data
                elif canonicalize_name(parts[-2][: -len(".egg-info")]) == name:
                    requires = data
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise Refused(f"it is no source archive, or cut off: {printable(str(error), 80)}") from error
    if information is None:
        raise Refused("it has no PKG-INFO")
    return information, requires
