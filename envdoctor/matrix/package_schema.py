"""What a file of releases may hold.

``packages/<name>.json`` is ``{"schema": 1, "name", "source", "date", "trust", "releases": [...]}``,
one release per line, oldest first: version, released, yanked?, requires_python?, requires?
(requirement lines as in METADATA, extras as markers; left out: not read), malformed?, pythons?,
platforms?, glibc?, sdist?, sdist_only?, yanked_reason?, differs? (pythons, platforms, requires,
requires_python?), builds?. A build has the fields of ``tables.Build``. All but ``builds`` is made
by ``scripts/refresh_matrix``.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional, Set, Tuple

from ..model.versions import try_version
from .entries import Entry, Faults
from .tables import Build, Difference, Release

__all__ = ["parse_package"]

SCHEMA_VERSION = 1

_BUILD_KINDS: Mapping[str, type] = {
    "sass": list,
    "ptx": list,
    "needed": list,
    "entries": list,
    "tools": list,
    "bundled": list,
    "pythons": list,
    "glibc_parts": list,
    "cxx11abi": bool,
    "ptx_read": bool,
    "nightly": bool,
    "labelled_abi": bool,
    "fetched_under": list,
}
_SM = r"\d{1,2}\.\d[af]?"
_PTX = rf"ptx={_SM}@(?:\d+\.\d+|\?)(?:,{_SM}@(?:\d+\.\d+|\?))*"
_BUILD_FORMS: Mapping[str, Tuple[re.Pattern[str], str]] = {
    "entries": (
        re.compile(
            rf"(?:sass={_SM}(?:,{_SM})*(?:;{_PTX})?|{_PTX})(?:;in=[^;\s]+)?(?:;kernels=[^;\s]+)?"
        ),
        "sass=8.0,9.0a;ptx=8.0@8.7;in=_C;kernels=marlin",
    ),
    "tools": (
        re.compile(rf"[\w-]+=\d+\.\d+\.\d+;sm={_SM}(?:,{_SM})*"),
        "ptxas=12.8.93;sm=7.5,9.0a",
    ),
}
_RELEASE_KINDS: Mapping[str, type] = {
    "requires": list,
    "pythons": list,
    "platforms": list,
    "builds": list,
    "differs": list,
    "yanked": bool,
    "sdist": bool,
    "sdist_only": bool,
}
_DIFFERENCE_KINDS: Mapping[str, type] = {"pythons": list, "platforms": list, "requires": list}


def parse_package(
    document: Any, name: str, origin: str, faults: Faults
) -> Optional[Mapping[str, Any]]:
    """Check a package file whole and return it, or None where it has a fault."""
    before = len(faults.found)
    if not isinstance(document, dict):
        faults.add(origin, "", "expected a JSON object")
        return None
    if document.get("schema") != SCHEMA_VERSION:
        faults.add(origin, "schema", f"expected {SCHEMA_VERSION}, found {document.get('schema')!r}")
        return None
    entry = Entry(document, origin, faults)
    if entry.text("name") != name:
        entry.fault(
            "name", f"expected {name!r} as the file is called, found {document.get('name')!r}"
        )
    entry.provenance()
    entry.asked += ["schema", "releases"]
    entry.finish()
    releases = document.get("releases")
    if not isinstance(releases, list):
        faults.add(origin, "releases", "expected a list")
        return None
    versions: Set[Any] = set()
    release: Any
    for number, release in enumerate(releases, 1):
        if not isinstance(release, dict):
            faults.add(origin, f"releases[{number}]", "expected an object")
            continue
        where = f"{origin}: release {release.get('version')!r}"
        _fields(release, Release._fields, _RELEASE_KINDS, where, faults)
        _check_version(release.get("version"), versions, where, faults)
        for key, fields, kinds in _PARTS:
            _check_parts(release.get(key, ()), key, fields, kinds, where, faults)
    return document if len(faults.found) == before else None


#: The lists of objects in a release, with the fields of each.
_PARTS: Tuple[Tuple[str, Tuple[str, ...], Mapping[str, type]], ...] = (
    ("builds", Build._fields, _BUILD_KINDS),
    ("differs", Difference._fields, _DIFFERENCE_KINDS),
)


def _check_version(text: Any, versions: Set[Any], where: str, faults: Faults) -> None:
    """Check the version of a release, and add it to those of the file."""
    version = try_version(text) if isinstance(text, str) else None
    if version is None:
        faults.add(where, "version", "expected a PEP 440 version")
    elif version.local is not None:
        faults.add(where, "version", "a release has no local label")
    elif version in versions:
        faults.add(where, "version", "stands twice in this file")
    else:
        versions.add(version)


def _check_parts(
    parts: Any,
    key: str,
    fields: Tuple[str, ...],
    kinds: Mapping[str, type],
    where: str,
    faults: Faults,
) -> None:
    for position, part in enumerate(parts if isinstance(parts, list) else (), 1):
        if isinstance(part, dict):
            _fields(part, fields, kinds, f"{where}: {key}[{position}]", faults)
            _forms(part, f"{where}: {key}[{position}]", faults)
        else:
            faults.add(where, f"{key}[{position}]", "expected an object")


def _forms(build: Mapping[str, Any], where: str, faults: Faults) -> None:
    for key, (form, example) in _BUILD_FORMS.items():
        forms = build.get(key, ())
        for item in forms if isinstance(forms, list) else ():
            if isinstance(item, str) and not form.fullmatch(item):
                faults.add(where, key, f"expected the form {example!r}, found {item!r:.80}")


def _fields(
    values: Mapping[str, Any],
    known: Tuple[str, ...],
    kinds: Mapping[str, type],
    where: str,
    faults: Faults,
) -> None:
    for key, value in values.items():
        if key not in known:
            faults.add(where, key, "no such key")
            continue
        expected = kinds.get(key, str)
        fits = isinstance(value, expected)
        if fits and expected is list and key not in ("builds", "differs"):
            fits = all(isinstance(item, str) for item in list(value))
        if not fits:
            faults.add(
                where,
                key,
                f"expected {'strings' if expected is list else expected.__name__}, found "
                f"{value!r:.60}",
            )
