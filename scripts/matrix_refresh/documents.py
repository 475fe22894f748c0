"""``packages/<name>.json`` and ``index.json``: what is there, what comes, and how it is written.

A package file keeps what metadata does not know: ``builds``, the file's ``source`` and ``trust``,
fields of a release that this program does not make, requirements of a release whose metadata could
not be read or says nothing, and releases that left the index. Its ``date`` moves only when
something else in it does, so that a run without news writes nothing.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from packaging.version import InvalidVersion, Version

from envdoctor.file_replacement import replace_file
from envdoctor.model.toml import parse_toml

from .errors import UsageFault

__all__ = [
    "Change",
    "Listed",
    "compare",
    "load_document",
    "load_listing",
    "merge",
    "read_toml",
    "render",
    "render_listing",
    "write_if_new",
]

SCHEMA = 1
SOURCE = "package metadata of the default index"

#: In this order in the file. Fields that are not here were put there by others and come last but
#: for ``builds``.
FIELDS = (
    "version",
    "released",
    "yanked",
    "yanked_reason",
    "requires_python",
    "requires",
    "malformed",
    "pythons",
    "platforms",
    "glibc",
    "sdist",
    "sdist_only",
    "differs",
)


class Listed(NamedTuple):
    """What the index has of one project: releases that the matrix takes, those of them that are
    yanked, and how many it leaves out.
    """

    releases: Tuple[str, ...]
    yanked: Tuple[str, ...]
    left_out: int


class Change(NamedTuple):
    """What a refresh does to one package."""

    added: Tuple[str, ...]
    changed: Tuple[str, ...]
    gone: Tuple[str, ...]


def read_toml(path: str) -> Dict[str, Any]:
    """Read a list that people write; raises :class:`UsageFault`."""
    try:
        with open(path, encoding="utf-8") as file:
            return parse_toml(file.read())
    except OSError as error:
        raise UsageFault(f"{path}: {error.strerror}") from error
    except ValueError as error:  # of TOML or UTF-8
        raise UsageFault(f"{path}: is not TOML: {error}") from error


def load_document(path: str, name: str) -> Optional[Dict[str, Any]]:
    """Return a package file, or None where there is none.

    Raises:
        UsageFault: a file that is no package file; it is never replaced unread.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageFault(
            f"{path}: expected a package file, found something that cannot be read: {error}"
        ) from error
    fits = (
        isinstance(document, dict)
        and document.get("schema") == SCHEMA
        and document.get("name") == name
        and isinstance(document.get("releases"), list)
    )
    if not fits or not all(
        isinstance(entry, dict) and _version(entry.get("version")) is not None
        for entry in document["releases"]
    ):
        raise UsageFault(f"{path}: expected the package file of {name}, schema {SCHEMA}")
    return document  # type: ignore[no-any-return]


def _version(text: Any) -> Optional[Version]:
    try:
        return Version(text)
    except (InvalidVersion, TypeError):
        return None


def merge(
    name: str,
    old: Optional[Mapping[str, Any]],
    entries: Sequence[Mapping[str, Any]],
    unread: Iterable[Version],
    date: str,
) -> Dict[str, Any]:
    """Return the new package file.

    Args:
        name: the package.
        old: the file that is there.
        entries: releases as ``releases.describe`` makes them.
        unread: releases with files that were refused or not reached: what stands there of their
            metadata stays.
        date: today.
    """
    before = {Version(entry["version"]): entry for entry in (old or {}).get("releases", ())}
    kept_metadata = set(unread)
    merged: Dict[Version, Dict[str, Any]] = {
        version: dict(entry) for version, entry in before.items()
    }
    for entry in entries:
        version = Version(entry["version"])
        known = before.get(version, {})
        made = dict(entry)
        if version in kept_metadata:
            for field in ("requires", "malformed", "requires_python", "differs"):
                if field in known:
                    made[field] = known[field]
        elif "requires" not in made and "requires" in known:
            made["requires"] = known["requires"]
        others = {
            key: value for key, value in known.items() if key not in FIELDS and key != "builds"
        }
        ordered = {field: made[field] for field in FIELDS if field in made}
        ordered.update(others)
        if "builds" in known:
            ordered["builds"] = known["builds"]
        merged[version] = ordered
    releases = [merged[version] for version in sorted(merged)]
    if old is not None and releases == old["releases"]:
        date = old["date"]
    head = old or {}
    return {
        "schema": SCHEMA,
        "name": name,
        "source": head.get("source", SOURCE),
        "date": date,
        "trust": head.get("trust", "established"),
        "releases": releases,
    }


def compare(
    old: Optional[Mapping[str, Any]], new: Mapping[str, Any], versions: Iterable[str]
) -> Change:
    """Return the versions that came, that changed, and that are in the matrix but no more on the
    index.
    """
    before = {entry["version"]: entry for entry in (old or {}).get("releases", ())}
    after = {entry["version"]: entry for entry in new["releases"]}
    there = {Version(text) for text in versions}
    return Change(
        tuple(version for version in after if version not in before),
        tuple(
            version
            for version, entry in after.items()
            if version in before and entry != before[version]
        ),
        tuple(version for version in after if Version(version) not in there),
    )


def render(document: Mapping[str, Any]) -> bytes:
    """Return a package file: one release per line."""
    head = ", ".join(
        f"{_dump(key)}: {_dump(value)}" for key, value in document.items() if key != "releases"
    )
    lines = ",\n".join(_dump(entry) for entry in document["releases"])
    return f'{{{head}, "releases": [\n{lines}\n]}}\n'.encode()


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def load_listing(path: str) -> Tuple[str, Dict[str, Listed]]:
    """Return date and projects of a listing; nothing where there is none.

    Raises:
        UsageFault: a file that is no listing.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        packages = {
            name: Listed(
                tuple(entry["releases"]),
                tuple(entry.get("yanked", ())),
                int(entry.get("left_out", 0)),
            )
            for name, entry in document["packages"].items()
        }
        return str(document["date"]), packages
    except FileNotFoundError:
        return "", {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageFault(
            f"{path}: expected an index listing, found something else: {error}"
        ) from error


def render_listing(packages: Mapping[str, Listed], date: str) -> bytes:
    """Return a listing: one project per line."""
    lines: List[str] = []
    for name in sorted(packages):
        project = packages[name]
        entry: Dict[str, Any] = {"releases": list(project.releases)}
        if project.yanked:
            entry["yanked"] = list(project.yanked)
        if project.left_out:
            entry["left_out"] = project.left_out
        lines.append(f"{_dump(name)}: {_dump(entry)}")
    head = (
        f'"schema": {SCHEMA}, "source": "project pages of the default index", "date": {_dump(date)}'
    )
    body = ",\n".join(lines)
    return f'{{{head}, "packages": {{\n{body}\n}}}}\n'.encode()


def write_if_new(path: str, content: bytes) -> bool:
    """Write a file where its content differs, and tell whether it did."""
    try:
        with open(path, "rb") as file:
            if file.read() == content:
                return False
    except FileNotFoundError:
        pass
    os.makedirs(os.path.dirname(path), exist_ok=True)
    replace_file(path, content)
    return True
