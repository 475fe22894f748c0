"""A matrices folder as an archive: unpacked only where every member is what a matrices folder
holds.

``.tar.gz`` or ``.zip``; the files stand at the top or in one folder ``matrices``. Nothing is
extracted by the archive's own idea of a path: a member is read, its name is checked against what
may stand there, and the bytes are written to a file of that name.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import tarfile
import zipfile
import zlib
from typing import IO, Any, Dict, Iterator, NamedTuple, Optional

from ...errors import InputError
from ...model.sizes import size_text

__all__ = ["NEEDED", "unpack"]

#: Without these a folder is no whole matrix.
NEEDED = ("drivers.toml", "cuda.toml", "gpus.toml")

_LARGEST = 32 << 20  # one file
_TOTAL = 256 << 20
_MEMBERS = 10_000  # files and folders
_NAME = re.compile(
    r"(?:[a-z0-9][a-z0-9-]*/)?(?:[a-z0-9][a-z0-9._-]*\.(?:toml|json|md|txt)|README\.md)"
)
_CHUNK = 1 << 16


class _Member(NamedTuple):
    name: str
    problem: str
    size: int
    content: Optional[IO[bytes]]


def unpack(path: str, destination: str) -> Dict[str, int]:
    """Write the files of an archive into an empty folder and return their sizes by name.

    Raises:
        InputError: the archive is damaged, or a member is none of a matrices folder; the message
            names it.
    """
    label = os.path.basename(path)
    members = _members(path, label)
    sizes: Dict[str, int] = {}
    total = 0
    try:
        for number, member in enumerate(members):
            if number >= _MEMBERS:
                raise InputError(_crowded(label))
            name = _checked(member, label)
            if name is None:
                continue
            if name in sizes:
                raise InputError(f"{label}: {_shown(member.name)}: stands twice in the archive")
            sizes[name] = _write(member, os.path.join(destination, name), label, _TOTAL - total)
            total += sizes[name]
    except (
        EOFError,
        OSError,
        ValueError,
        RuntimeError,
        NotImplementedError,
        zlib.error,
        tarfile.TarError,
        zipfile.BadZipFile,
    ) as error:
        # tarfile, gzip and zipfile say "damaged" in all these ways; InputError is none of them.
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(
                f"{error.filename or destination}: cannot be written: {error.strerror}"
            ) from error
        raise InputError(
            f"{label}: the archive is damaged: {str(error) or type(error).__name__}"
        ) from error
    for name in NEEDED:
        if name not in sizes:
            raise InputError(
                f"{label}: expected a matrices folder (at the top, or in a folder 'matrices'), "
                f"found no {name} in it"
            )
    return sizes


def _members(path: str, label: str) -> Iterator[_Member]:
    """Return the members of an archive by its kind, which its first bytes tell."""
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if magic[:2] == b"\x1f\x8b":
        return _tar_members(path, label)
    if magic == b"PK\x03\x04":
        return _zip_members(path)
    raise InputError(f"{label}: expected a .tar.gz or .zip of a matrices folder, found neither")


def _crowded(label: str) -> str:
    return f"{label}: the archive has more than {_MEMBERS} files and folders"


def _shown(name: str) -> str:
    return repr(name if len(name) < 200 else f"{name[:200]}…")


def _checked(member: _Member, label: str) -> Optional[str]:
    """Return the name within the folder, None for a folder; raises :class:`InputError` for what may
    not be there.
    """
    name = member.name
    if member.problem:
        raise InputError(f"{label}: {_shown(name)}: {member.problem}")
    if "\\" in name or "\x00" in name or name.startswith("/") or re.match(r"[A-Za-z]:", name):
        raise InputError(f"{label}: {_shown(name)}: an absolute path or a path of another system")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise InputError(f"{label}: {_shown(name)}: a path that leaves the archive")
    if parts and parts[0] == "matrices":
        parts = parts[1:]
    if member.content is None:
        if len(parts) > 1:
            raise InputError(
                f"{label}: {_shown(name)}: expected folders of one level such as 'errata'"
            )
        return None
    relative = "/".join(parts)
    if not _NAME.fullmatch(relative):
        raise InputError(
            f"{label}: {_shown(name)}: no name of a file of a matrices folder (such as "
            "'errata/vllm.toml', 'packages/torch.json')"
        )
    return relative


def _write(member: _Member, path: str, label: str, left: int) -> int:
    """Write one file; what a header says of its size is not believed."""
    limit = min(_LARGEST, left)
    if member.size > limit:
        raise InputError(
            f"{label}: {_shown(member.name)}: too large ({member.size} bytes; a file may have "
            f"{size_text(_LARGEST)}, all {size_text(_TOTAL)})"
        )
    os.makedirs(os.path.dirname(path), exist_ok=True)
    size = 0
    content = member.content
    with open(path, "xb") as file:
        while content is not None:
            chunk = content.read(_CHUNK)
            if not chunk:
                break
            size += len(chunk)
            if size > limit:
                raise InputError(
                    f"{label}: {_shown(member.name)}: too large (more than {size_text(_LARGEST)}, "
                    f"or all more than {size_text(_TOTAL)})"
                )
            file.write(chunk)
    return size


class _Limited:
    """A stream that gives out so much and no more: a gzip of zeros, or a header that says it has a
    gigabyte of names, ends here.
    """

    def __init__(self, stream: Any, limit: int, label: str) -> None:
        self._stream = stream
        self._left = limit
        self._label = label

    def read(self, size: int = -1) -> bytes:
        """Read as a file does."""
        content: bytes = self._stream.read(
            min(size, self._left + 1) if size >= 0 else self._left + 1
        )
        self._left -= len(content)
        if self._left < 0:
            raise InputError(f"{self._label}: unpacks to more than {size_text(_TOTAL)}")
        return content


def _tar_members(path: str, label: str) -> Iterator[_Member]:
    with gzip.open(path, "rb") as stream:
        limited: Any = _Limited(stream, _TOTAL + (_MEMBERS << 10), label)
        with tarfile.open(
            fileobj=limited, mode="r|", encoding="utf-8", errors="surrogateescape"
        ) as archive:
            for entry in archive:
                if entry.isdir():
                    yield _Member(entry.name, "", 0, None)
                elif entry.isreg() and not entry.issparse():
                    yield _Member(entry.name, "", entry.size, archive.extractfile(entry))
                else:
                    kind = (
                        "a link"
                        if entry.issym() or entry.islnk()
                        else "a device, a pipe or a sparse file"
                    )
                    yield _Member(entry.name, f"{kind}, expected files and folders only", 0, None)
        # What stands behind the archive's end is read too: a damaged or cut gzip stream is seen by
        # its checksum only there.
        while limited.read(_CHUNK):
            continue


def _zip_members(path: str) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        if len(archive.infolist()) > _MEMBERS:  # known before anything is unpacked
            raise InputError(_crowded(os.path.basename(path)))
        for entry in archive.infolist():
            kind = stat.S_IFMT(entry.external_attr >> 16)
            # zipfile cuts a name at a null byte and turns the system's separator round; the name in
            # the archive is what counts.
            name = entry.orig_filename
            if entry.flag_bits & 1:
                yield _Member(name, "is encrypted", 0, None)
            elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                yield _Member(
                    name,
                    f"{'a link' if kind == stat.S_IFLNK else 'a device or a pipe'}, expected files "
                    "and folders only",
                    0,
                    None,
                )
            elif name.endswith("/"):
                yield _Member(name, "", 0, None)
            else:
                with archive.open(entry) as content:
                    yield _Member(name, "", entry.file_size, content)
