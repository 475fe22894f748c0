"""Locks of other tools, as the patient: pylock.toml, those of uv, poetry and pdm, Pipfile.lock."""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional, Tuple

from ..errors import InputError
from ..model.facts import Facts
from ..model.requirement import try_requirement
from ..model.toml import parse_toml
from ..model.versions import canonicalize_name, try_version
from .package_entries import PackageEntry, applies, facts_of_entries, pinned

__all__ = ["read_pipfile_lock", "read_toml_lock"]

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"


def read_toml_lock(text: str, name: str) -> Facts:
    """Read pylock.toml (PEP 751), uv.lock, poetry.lock or pdm.lock."""
    try:
        data = parse_toml(text)
    except ValueError as error:
        raise InputError(f"{name}: is no TOML: {error}") from error
    entries = data.get("packages", data.get("package"))
    if not isinstance(entries, list):
        raise InputError(
            f"{name}: expected a lock with [[packages]] (pylock.toml) or [[package]] (uv.lock, "
            "poetry.lock), "
            f"found keys {', '.join(sorted(map(str, data))[:8]) or 'none'}"
        )
    pins = []
    for position, entry in enumerate(entries):
        pin = _locked(entry) if isinstance(entry, Mapping) else None
        if pin is None:
            raise InputError(
                f"{name}: package {position + 1}: expected a table with a 'name', found "
                f"{str(entry)[:60]!r}"
            )
        if applies(pin.marker) and not _is_own(entry):
            pins.append(pin)
    return facts_of_entries(pins, name, complete=True, python=_lock_python(data))


def _locked(entry: Mapping[str, Any]) -> Optional[PackageEntry]:
    name, version = entry.get("name"), entry.get("version")
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        return None
    marker = entry.get("marker", entry.get("markers", ""))
    markers = entry.get("resolution-markers")
    if isinstance(markers, list) and all(isinstance(item, str) for item in markers):
        marker = " or ".join(f"({item})" for item in markers)
    return PackageEntry(
        canonicalize_name(name),
        version if isinstance(version, str) else None,
        marker=marker if isinstance(marker, str) else "",
        direct_url=_url(entry),
    )


def _url(entry: Mapping[str, Any]) -> str:
    """Return where an entry of a lock comes from, if not from an index."""
    for key in ("source", "archive", "vcs"):
        source = entry.get(key)
        url = (source.get("url") or source.get("git")) if isinstance(source, Mapping) else None
        if isinstance(url, str):
            return url
    return ""


def _is_own(entry: Mapping[str, Any]) -> bool:
    """uv.lock lists the project itself; it is not installed from anywhere."""
    source = entry.get("source")
    return isinstance(source, Mapping) and ("virtual" in source or source.get("editable") == ".")


def _lock_python(data: Mapping[str, Any]) -> Optional[Tuple[str, int]]:
    """A lock for one Python minor names it; a wider range does not."""
    metadata = data.get("metadata")
    for text in (
        data.get("requires-python"),
        metadata.get("python-versions") if isinstance(metadata, Mapping) else None,
    ):
        exact = (
            re.fullmatch(r"={2,3}\s*(3\.\d{1,2})(?:\.\*|\.\d{1,2})?", text.strip())
            if isinstance(text, str)
            else None
        )
        if exact:
            return exact.group(1), 0
    return None


def read_pipfile_lock(text: str, name: str) -> Facts:
    """Read Pipfile.lock: the packages under ``default``."""
    data = _json(text, name)
    section = data.get("default") if isinstance(data, dict) else None
    if not isinstance(section, dict):
        shown = (
            "keys " + ", ".join(sorted(data)[:8]) if isinstance(data, dict) else type(data).__name__
        )
        raise InputError(f"{name}: expected a Pipfile.lock with 'default', found {shown}")
    pins = []
    for package, entry in section.items():
        if not isinstance(entry, dict):
            raise InputError(
                f"{name}: default.{package}: expected an object, found {type(entry).__name__}"
            )
        version = entry.get("version")
        marker = entry.get("markers")
        if applies(marker if isinstance(marker, str) else ""):
            pin = (
                pinned(try_requirement(f"{package}{version}")) if isinstance(version, str) else None
            )
            pins.append(PackageEntry(canonicalize_name(str(package)), pin))
    return facts_of_entries(pins, name, complete=True, python=_pipfile_python(data))


def _json(text: str, name: str) -> Any:
    import json

    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}:{error.colno}: is no JSON: {error}") from error
    except ValueError as error:
        raise InputError(f"{name}: is no JSON: {error}") from error
    except RecursionError as error:
        raise InputError(f"{name}: is nested too deeply") from error


def _pipfile_python(data: Mapping[str, Any]) -> Optional[Tuple[str, int]]:
    meta = data.get("_meta")
    requires = meta.get("requires") if isinstance(meta, dict) else None
    if not isinstance(requires, dict):
        return None
    python = requires.get("python_full_version") or requires.get("python_version")
    return (python, 0) if isinstance(python, str) and try_version(python) else None
