"""Gets the metadata out of a wheel or a source archive on an index without downloading the wheel,
and without running anything.

A wheel: its last bytes hold the zip directory, which says where ``*.dist-info/METADATA`` lies. A
source archive is small or left
alone: PKG-INFO and ``*.egg-info/requires.txt`` are read from the stream. Nothing is ever written to
a path that an archive names.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import tarfile
import zlib
from typing import Any, Dict, Optional, Tuple

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from .errors import Refused, printable
from .metadata import MOST_BYTES
from .transport import Transport
from .zip_range import LOCAL, Member, RemoteFile, entries_of, read_directory

__all__ = ["read_offered", "read_sdist", "read_wheel"]

_TAIL = 1 << 15
#: Without ranges a wheel comes whole: small ones only.
_WHOLE_WHEEL = 64 << 20
_MOST_DIRECTORY = 32 << 20
_SDIST = 16 << 20
_UNPACKED = 256 << 20


def read_wheel(transport: Transport, address: str, name: str, version: Version) -> bytes:
    """Return METADATA of a wheel.

    Raises:
        Refused: no zip, no or several METADATA, another project's, larger than honest ones, members
            outside the archive.
        Unreachable: the index did not answer.
    """
    return _read_member(
        RemoteFile(transport, address, _TAIL, _WHOLE_WHEEL), name, version, "dist-info"
    )


def read_offered(transport: Transport, address: str, sha256: str) -> bytes:
    """Return the core-metadata file that an index offers beside a wheel (PEP 658), checked against
    its hash where there is one.
    """
    content = transport.get(f"{address}.metadata", MOST_BYTES).content
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise Refused("its core-metadata file has another hash than the index says")
    return content


def _read_member(archive: RemoteFile, name: str, version: Version, kind: str) -> bytes:
    member = _find(read_directory(archive, _MOST_DIRECTORY).content, name, version, kind)
    if member.flags & 0x1:
        raise Refused("its METADATA is encrypted")
    if member.method not in (0, 8):
        raise Refused(f"its METADATA is packed by method {member.method}")
    if member.size > MOST_BYTES or member.packed > MOST_BYTES:
        raise Refused(
            f"its METADATA has {max(member.size, member.packed)} bytes, at most {MOST_BYTES} are "
            "read"
        )
    # The local header's own extra field may be longer than the directory's: 256 bytes are room for
    # most.
    name_length = len(member.name.encode("utf-8", "surrogateescape"))
    start = archive.read(
        member.offset,
        min(LOCAL.size + name_length + member.packed + 256, archive.size - member.offset),
    )
    if len(start) < LOCAL.size or start[:4] != b"PK\x03\x04":
        raise Refused("its zip directory points at no member")
    local = LOCAL.unpack_from(start)
    begin = LOCAL.size + local[9] + local[10]
    packed = start[begin : begin + member.packed]
    if len(packed) < member.packed:
        packed = archive.read(member.offset + begin, member.packed)
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


def _find(directory: bytes, name: str, version: Version, kind: str) -> Member:
    """Return METADATA (or PKG-INFO) of the one top-level folder that is the project's."""
    members: Dict[str, Member] = {}
    others = []
    for member in entries_of(directory):
        if (
            "/../" in f"/{member.name}/"
            or member.name[:1] == "/"
            or "\\" in member.name
            or "\0" in member.name
            or member.name[1:2] == ":"
        ):
            raise Refused(f"it has a member outside the archive: {printable(member.name, 80)}")
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
        if members:
            raise Refused("it has several METADATA files")
        members[folder] = member
    if others:
        raise Refused(f"it has the metadata of another project: {printable(others[0], 80)}")
    if not members:
        raise Refused("it has no METADATA")
    return next(iter(members.values()))


def _is_of(stem: str, name: str, version: Version) -> bool:
    project, _, text = stem.rpartition("-")
    try:
        return canonicalize_name(project) == name and Version(text) == version
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


def read_sdist(
    transport: Transport, address: str, file_name: str, name: str, version: Version
) -> Tuple[bytes, Optional[bytes]]:
    """Return PKG-INFO and requires.txt (or None) of a source archive of at most 16 MiB.

    Raises:
        Refused: no such archive, or it is larger.
        Unreachable: the index did not answer.
    """
    if file_name.endswith(".zip"):
        return _read_member(
            RemoteFile(transport, address, _TAIL, _WHOLE_WHEEL), name, version, "source"
        ), None
    content = transport.get(address, _SDIST).content
    information: Optional[bytes] = None
    requires: Optional[bytes] = None
    try:
        packed: Any = (
            bz2.BZ2File(io.BytesIO(content))
            if file_name.endswith(".bz2")
            else gzip.GzipFile(fileobj=io.BytesIO(content))
        )
        with tarfile.open(fileobj=_Bounded(packed), mode="r|") as archive:
            for member in archive:
                parts = member.name.split("/")
                if member.name.startswith("/") or ".." in parts:
                    raise Refused(
                        f"it has a member outside the archive: {printable(member.name, 80)}"
                    )
                if parts[0] == ".":
                    parts = parts[1:]
                wanted = len(parts) == 2 and parts[1] == "PKG-INFO"
                egg = (
                    3 <= len(parts) <= 4
                    and parts[-2].endswith(".egg-info")
                    and parts[-1] == "requires.txt"
                )
                if not (wanted or egg) or not member.isreg():
                    continue
                if member.size > MOST_BYTES:
                    raise Refused(
                        f"its {parts[-1]} has {member.size} bytes, at most {MOST_BYTES} are read"
                    )
                file = archive.extractfile(member)
                data = file.read(MOST_BYTES) if file is not None else b""
                if wanted:
                    if not _is_of(parts[0], name, version):
                        raise Refused(
                            f"it has the metadata of another project: {printable(parts[0], 80)}"
                        )
                    information = data
                elif canonicalize_name(parts[-2][: -len(".egg-info")]) == name:
                    requires = data
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise Refused(
            f"it is no source archive, or cut off: {printable(str(error), 80)}"
        ) from error
    if information is None:
        raise Refused("it has no PKG-INFO")
    return information, requires
