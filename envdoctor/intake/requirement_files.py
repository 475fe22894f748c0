"""Files that say what shall be installed, as the patient: requirements, locks, conda environments.

Exact pins are candidates.
"""

from __future__ import annotations

import os
import re
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from ..errors import InputError
from ..model.facts import Facts
from ..model.redaction import redact
from ..model.requirement import joined_lines
from .conda_files import read_environment, read_explicit
from .installer_locks import read_pipfile_lock, read_toml_lock
from .package_entries import (
    WHEEL_INDEX,
    PackageEntry,
    applies,
    facts_of_entries,
    labelled,
    read_entry,
)

__all__ = ["parse_requirements"]

_PYTHON_COMMENT = re.compile(
    r"[^#]*#.*(?:with Python|--python-version[ =]|--python[ =])\s*(3\.\d{1,2}(?:\.\d{1,2})?)\b"
)
_INCLUDED = re.compile(r"(-r|-c|--requirement|--constraint)(?:[ =]\s*|(?<=-[rc]))(\S.*)")
_MOST_INCLUDED = 100  # files
_MOST_ENTRIES = 50_000  # the largest locks have some thousands


def parse_requirements(text: str, name: str, read: Optional[Callable[[str], str]] = None) -> Facts:
    """Read a requirements file, pylock.toml, uv.lock, poetry.lock, Pipfile.lock, environment.yml or
    conda's explicit list.

    Exact pins become distributions; a range becomes one whose version is not known, only where it
    lies. Only of a lock is the list complete. Raises :class:`InputError` with file and position for
    text that is broken.

    ``read`` gives the text of a file that ``-r`` and ``-c`` name; without it, and for an address,
    the list is not complete.
    """
    text = redact(_plain_ends(text))
    lowered = name.lower()
    if lowered.endswith((".json", "pipfile.lock")) or text.lstrip().startswith("{"):
        return read_pipfile_lock(text, name)
    if lowered.endswith((".toml", "uv.lock", "poetry.lock", "pdm.lock")) or re.search(
        r"^\[\[packages?\]\]\s*$", text, re.MULTILINE
    ):
        return read_toml_lock(text, name)
    if lowered.endswith((".yml", ".yaml")) or re.search(r"^dependencies:\s*$", text, re.MULTILINE):
        return read_environment(text, name)
    if re.search(r"^@EXPLICIT\s*$", text, re.MULTILINE):
        return read_explicit(text, name)
    reader = _Plain(name, read)
    reader.take(text, name)
    return reader.facts()


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")


class _Plain:
    """Reads a requirements file with those that it includes, as pip does."""

    def __init__(self, name: str, read: Optional[Callable[[str], str]]) -> None:
        self.name = name  # of the file that was given; others were never asked for by their name
        self.read = read
        self.pins: List[PackageEntry] = []
        self.constraints: List[PackageEntry] = []
        self.included: Dict[str, None] = {}
        self.hashed = 0
        self.whole = True  # every file that it includes was read
        self.label = ""
        self.python: Optional[Tuple[str, int]] = None

    def take(self, text: str, name: str, *, constrains: bool = False) -> None:
        """Take all lines of one file; those of ``-c`` only narrow what others ask for."""
        for number, line in joined_lines(text):
            comment = _PYTHON_COMMENT.match(line)
            if comment and self.python is None:
                self.python = (comment.group(1), number if name == self.name else 0)
            line = re.sub(r"(?:^|\s)#.*$", "", line).strip()
            if not line:
                continue
            if line.startswith("-") and not line.startswith(("-e ", "--editable")):
                self._take_option(line, f"{name}:{number}", constrains)
                continue
            if len(self.pins) + len(self.constraints) >= _MOST_ENTRIES:
                raise InputError(
                    f"{name}:{number}: more than {_MOST_ENTRIES} requirements, so this is hardly "
                    "the file that was meant"
                )
            pin = read_entry(line, number, name, quoted=name == self.name)
            if name != self.name:
                pin = pin._replace(line=0)
            self.hashed += "--hash" in line and not constrains
            (self.constraints if constrains else self.pins).append(pin)

    def _take_option(self, line: str, place: str, constrains: bool) -> None:
        index = WHEEL_INDEX.search(line)
        if index and re.match(r"(?:-i|--index-url|--extra-index-url|-f|--find-links)\b", line):
            self.label = f"+{index.group(1)}"
        included = _INCLUDED.match(line)
        if included is None:
            return
        target = included.group(2).strip("\"'")
        if self.read is None or "://" in target:
            self.whole = False
            return
        path = os.path.normpath(os.path.join(os.path.dirname(place), target))
        if path in self.included:
            return
        if len(self.included) >= _MOST_INCLUDED:
            raise InputError(f"{place}: more than {_MOST_INCLUDED} files are included")
        if not os.path.isfile(path):
            there = "something else" if os.path.exists(path) else "no such file"
            raise InputError(f"{place}: {line[:80]}: expected a file, found {there}")
        self.included[path] = None
        text = redact(_plain_ends(self.read(path)))
        self.take(text, path, constrains=constrains or included.group(1) in ("-c", "--constraint"))

    def facts(self) -> Facts:
        """Return what all lines say together."""
        if not self.pins:
            raise InputError(
                f"{self.name}: no requirement was found; expected lines such as 'torch==2.6.0', "
                "or a lock (pylock.toml, uv.lock, poetry.lock, Pipfile.lock, environment.yml)"
            )
        limits: Dict[str, List[PackageEntry]] = {}
        for limit in self.constraints:
            if applies(limit.marker):
                limits.setdefault(limit.name, []).append(limit)
        kept = [_limited(pin, limits.get(pin.name, ())) for pin in self.pins if applies(pin.marker)]
        return facts_of_entries(
            labelled(kept, self.label),
            self.name,
            complete=self.hashed == len(self.pins) and self.whole,
            python=self.python,
            included=tuple(self.included),
        )


def _limited(pin: PackageEntry, limits: Sequence[PackageEntry]) -> PackageEntry:
    """Return a requirement with what constraints say of its version."""
    for limit in limits:
        if pin.version is not None or pin.direct_url:
            break
        ranges = ",".join(filter(None, (pin.constraint, limit.constraint)))
        pin = pin._replace(
            version=limit.version, constraint="" if limit.version is not None else ranges
        )
    return pin
