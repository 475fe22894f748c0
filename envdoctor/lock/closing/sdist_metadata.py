"""What a source archive says that it requires, read as data: none of its code runs."""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from email.parser import HeaderParser
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import unquote, urlsplit

from ...errors import EnvdoctorError
from ...model.sizes import size_text

__all__ = ["SdistMetadata", "Unreadable", "fetch_sdist", "read_sdist"]

_SIZE_LIMIT = 256 << 20
_FILE_LIMIT = 4 << 20
#: How much of an archive is unpacked: this, and so many times its own size.
_UNPACKED_LIMIT, _UNPACKED_TIMES = 64 << 20, 50
#: What tarfile, zipfile and what they unpack with raise for one that is none, or odd: a place
#: before its beginning, a member that is encrypted, a method that nobody knows.
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
)
_SECTION = re.compile(r"\[\s*([^:\]]*?)\s*(?::\s*(.*?))?\s*\]\Z")


class Unreadable(EnvdoctorError):
    """An archive that cannot be had, or that does not say what it requires."""


class SdistMetadata(NamedTuple):
    """What a source archive states: requirement lines, extras and ``Requires-Python``."""

    requires: Tuple[str, ...]
    extras: Tuple[str, ...] = ()
    requires_python: Optional[str] = None


def fetch_sdist(
    address: str, hashes: Mapping[str, str], environment: Mapping[str, str], timeout: float
) -> bytes:
    """Return a source archive from ``https:`` or ``file:``, compared with its hash; raises
    :class:`Unreadable`.

    Args:
        address: where it is.
        hashes: expected digests by algorithm, of which sha256 is compared.
        environment: variables that name a certificate file.
        timeout: seconds for the connection and between two reads.
    """
    parts = urlsplit(address)
    try:
        if parts.scheme == "file":
            with open(unquote(parts.path), "rb") as file:
                data = file.read(_SIZE_LIMIT + 1)
        else:
            data = _download(address, environment, timeout)
    except OSError as error:  # requests' own errors too
        raise Unreadable(f"its source archive cannot be read: {type(error).__name__}") from error
    if len(data) > _SIZE_LIMIT:
        raise Unreadable(f"its source archive is larger than {size_text(_SIZE_LIMIT)}")
    if "sha256" in hashes and hashlib.sha256(data).hexdigest() != hashes["sha256"]:
        raise Unreadable(
            "its source archive is not the one that the index describes: the hash differs"
        )
    return data


def _download(address: str, environment: Mapping[str, str], timeout: float) -> bytes:
    import requests

    content = io.BytesIO()
    with requests.get(
        address, stream=True, timeout=timeout, verify=environment.get("SSL_CERT_FILE") or True
    ) as answer:
        answer.raise_for_status()
        for chunk in answer.iter_content(1 << 20):
            content.write(chunk)
            if content.tell() > _SIZE_LIMIT:
                break
    return content.getvalue()


def read_sdist(data: bytes, name: str) -> SdistMetadata:
    """Read ``PKG-INFO`` and ``requires.txt`` of an archive named ``name``; raises
    :class:`Unreadable` where neither says what is required.
    """
    try:
        texts = _members(data, name)
    except _DAMAGED as error:
        raise Unreadable(f"its source archive is damaged: {type(error).__name__}") from error
    described = HeaderParser().parsestr(texts.get("PKG-INFO", ""))
    requires = [" ".join(line.split()) for line in described.get_all("Requires-Dist") or ()]
    extras = tuple(described.get_all("Provides-Extra") or ())
    python = described.get("Requires-Python")
    if requires:
        return SdistMetadata(tuple(requires), extras, python)
    if "requires.txt" in texts:
        lines, named = _requires_lines(texts["requires.txt"])
        return SdistMetadata(tuple(lines), tuple(named), python)
    dynamic = {value.lower() for value in described.get_all("Dynamic") or ()}
    static = (
        tuple(map(int, re.findall(r"\d+", described.get("Metadata-Version", "1.0"))[:2])) >= (2, 2)
        and "requires-dist" not in dynamic
    )
    if (
        "SOURCES.txt" in texts or static
    ):  # setuptools writes requires.txt beside it where anything is required
        return SdistMetadata((), extras, python)
    raise Unreadable("its source archive does not say what it requires")


def _members(data: bytes, name: str) -> Dict[str, str]:
    """Return the texts by file name: ``PKG-INFO`` of the top folder, the others of the
    ``.egg-info`` folder nearest to it.
    """
    members: Dict[str, Tuple[int, str]] = {}

    def take(path: str, read: bytes) -> None:
        *folders, base = path.split("/")
        wanted = (
            len(folders) == 1
            if base == "PKG-INFO"
            else bool(folders) and folders[-1].endswith(".egg-info")
        )
        if wanted and (base not in members or len(folders) < members[base][0]):
            members[base] = (len(folders), read.decode("utf-8"))

    names = ("PKG-INFO", "requires.txt", "SOURCES.txt")
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as zipped:
            for entry in zipped.infolist():
                if entry.filename.rpartition("/")[2] in names and entry.file_size <= _FILE_LIMIT:
                    take(entry.filename, zipped.read(entry))
    else:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
            left = _UNPACKED_LIMIT + _UNPACKED_TIMES * len(data)
            for member in archive:
                left -= member.size
                if left < 0:
                    raise Unreadable("its source archive unpacks to many times its size")
                if (
                    member.isfile()
                    and member.name.rpartition("/")[2] in names
                    and member.size <= _FILE_LIMIT
                ):
                    stream = archive.extractfile(member)
                    if stream is not None:
                        take(member.name, stream.read())
    return {base: text for base, (_, text) in members.items()}


def _requires_lines(text: str) -> Tuple[List[str], List[str]]:
    """Turn setuptools' ``requires.txt`` into requirement lines with markers, and the extras that it
    names.
    """
    lines: List[str] = []
    extras: List[str] = []
    marker = ""
    for line in map(str.strip, text.splitlines()):
        section = _SECTION.match(line)
        if section is not None:
            extra, condition = section.groups()
            if extra:
                extras.append(extra)
            parts = [f"({condition})" if condition else "", f'extra == "{extra}"' if extra else ""]
            marker = " and ".join(filter(None, parts))
        elif line:
            lines.append(f"{line} ; {marker}" if marker else line)
    return lines, extras
