"""METADATA and PKG-INFO: bytes → requirements, or the reason why they are refused."""

from __future__ import annotations

import re
from email.parser import HeaderParser
from functools import cache
from typing import Iterable, List, NamedTuple, Optional, Tuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envdoctor.model.requirement import try_requirement

from .errors import Refused, printable

__all__ = [
    "MOST_BYTES",
    "Metadata",
    "malformed_line",
    "parse_metadata",
    "requirement_meaning",
    "requirement_name",
    "requires_of_egg_info",
    "tidy",
]

#: The largest honest METADATA seen has 0.5 MB (a change log in its description).
MOST_BYTES = 4 << 20
_MOST_LINES = 4000
_LONGEST_LINE = 2000
_FOLDING = re.compile(r"\s*[\r\n]\s*")


class Metadata(NamedTuple):
    """What a file asks for. ``requires`` is None where the metadata leaves that open."""

    requires: Optional[Tuple[str, ...]]
    requires_python: Optional[str]


def requirement_name(line: str) -> str:
    """Return the canonical name that a requirement line starts with, or ""."""
    requirement = try_requirement(line)
    return requirement.name if requirement is not None else ""


@cache
def tidy(line: str) -> str:
    """Return a requirement line in one form: ``torch[a, b] (>=2, <3) ; m`` becomes
    ``torch[a,b]>=2,<3; m``. The marker stays as it is.

    Not ``str(Requirement)``: its form depends on the release of packaging, and a rerun would change
    every file. A line that installers do not understand is "".
    """
    if not _is_requirement(line):
        return ""
    if Requirement(line).url:
        return line
    wanted, _, marker = line.partition(";")
    plain = "".join(wanted.split()).replace("(", "").replace(")", "")
    return f"{plain}; {marker.strip()}" if marker.strip() else plain


def malformed_line(lines: Iterable[str]) -> str:
    """Return the first requirement line that installers refuse, and with it the release: pip since
    24.1; "" where all can be read.
    """
    return next((line for line in lines if not _is_requirement(line)), "")


@cache
def _is_requirement(line: str) -> bool:
    try:
        Requirement(line)
    except InvalidRequirement:
        return False
    return True


@cache
def requirement_meaning(line: str) -> str:
    """Return a text that is equal for lines that ask for the same in another spelling: ``Torch
    (==2.0)`` and ``torch==2.0``.
    """
    if not _is_requirement(line):
        return "".join(line.split())
    requirement = Requirement(line)
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


def parse_metadata(content: bytes, name: str, version: Version, source: bool = False) -> Metadata:
    """Read the headers.

    Args:
        content: the file.
        name: canonical name that the archive's name promises.
        version: version that it promises.
        source: PKG-INFO of a source archive: before metadata 2.2 it says nothing by leaving
            requirements out.

    Raises:
        Refused: with the reason.
    """
    if len(content) > MOST_BYTES:
        raise Refused(f"its metadata has {len(content)} bytes, at most {MOST_BYTES} are read")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"its metadata is not UTF-8: {error.reason} at byte {error.start}") from error
    if "\0" in text:
        raise Refused("its metadata holds a NUL")
    message = HeaderParser().parsestr(text)
    found_name = str(message.get("Name", ""))
    if canonicalize_name(found_name) != name:
        raise Refused(f"its metadata is that of {printable(found_name, 80) or 'no name'}")
    found_version = str(message.get("Version", "")).strip()
    try:
        same = Version(found_version) == version
    except InvalidVersion:
        same = False
    if not same:
        raise Refused(f"its metadata is that of version {printable(found_version, 80) or 'none'}")
    lines = [_one_line(str(value)) for value in message.get_all("Requires-Dist", [])]
    if len(lines) > _MOST_LINES:
        raise Refused(f"its metadata has {len(lines)} requirements, at most {_MOST_LINES} are read")
    python = message.get("Requires-Python")
    requires: Optional[Tuple[str, ...]] = tuple(lines)
    if (
        source
        and not lines
        and not _is_final(
            str(message.get("Metadata-Version", "")),
            [str(value) for value in message.get_all("Dynamic", [])],
        )
    ):
        requires = None
    return Metadata(requires, None if python is None else _one_line(str(python)) or None)


def _one_line(value: str) -> str:
    line = _FOLDING.sub(" ", value).strip()
    if len(line) > _LONGEST_LINE or not line.isprintable():
        raise Refused(f"its metadata has an impossible line: {printable(line, 60)}")
    return line


def _is_final(metadata_version: str, dynamic: List[str]) -> bool:
    """PEP 643: from 2.2 on, what is not dynamic is the same in every wheel made of the archive."""
    major, _, minor = metadata_version.partition(".")
    recent = major.isdigit() and minor.isdigit() and (int(major), int(minor)) >= (2, 2)
    return recent and "requires-dist" not in {value.strip().lower() for value in dynamic}


def requires_of_egg_info(content: bytes) -> Tuple[str, ...]:
    """Return ``requires.txt``, which setuptools puts into source archives, as requirement lines:
    sections become markers.

    Raises:
        Refused: no text, or lines that are no requirements.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("its requires.txt is not UTF-8") from error
    lines: List[str] = []
    marker = extra = ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = (part.strip() for part in line[1:-1].partition(":"))
            continue
        try:
            requirement = Requirement(line)
        except InvalidRequirement as error:
            raise Refused(f"its requires.txt has no requirement: {printable(line, 60)}") from error
        own = str(requirement.marker) if requirement.marker is not None else ""
        requirement.marker = None
        conditions = [part for part in (own, marker) if part]
        if extra:
            conditions = [f"({part})" if " or " in part else part for part in conditions] + [
                f'extra == "{extra}"'
            ]
        elif len(conditions) > 1:
            conditions = [f"({part})" if " or " in part else part for part in conditions]
        lines.append(
            _one_line(
                f"{requirement} ; {' and '.join(conditions)}" if conditions else str(requirement)
            )
        )
    if len(lines) > _MOST_LINES:
        raise Refused(
            f"its requires.txt has {len(lines)} requirements, at most {_MOST_LINES} are read"
        )
    return tuple(lines)
