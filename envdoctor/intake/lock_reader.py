"""``envdoctor.lock.json``: read whole and strictly, for it says which contradictions are meant."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..errors import InputError
from ..model.evidence import Evidence, Fact, Known
from ..model.facts import Facts, LockOverride
from ..model.lock_file import SCHEMA_VERSION, Lock
from ..model.redaction import redact_tree
from ..model.resolution import BuildStep, Override, Pin, Reason, Requires
from ..model.row import Source
from ..model.serde import read_facts
from ..model.versions import Version, canonicalize_name, try_version
from ..text_files import read_text

__all__ = ["lock_facts", "parse_lock", "read_lock", "target_facts"]


def read_lock(folder: str) -> Lock:
    """Read the lock that ``envdoctor lock -o DIR`` wrote, from its folder or the file itself;
    raises :class:`InputError`.
    """
    path = os.path.join(folder, "envdoctor.lock.json") if os.path.isdir(folder) else folder
    if path != "-" and not os.path.isfile(path):  # a pipe would be waited for
        there = "what is no regular file" if os.path.exists(path) else "nothing"
        raise InputError(
            f"{path}: expected envdoctor.lock.json, as 'envdoctor lock -o DIR' writes it, found "
            f"{there}"
        )
    return parse_lock(read_text(path, waits=False), path)


def parse_lock(text: str, where: str) -> Lock:
    """Read the text of an ``envdoctor.lock.json``; raises :class:`InputError` that names ``where``
    and the key.
    """
    try:
        data = redact_tree(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{where}: expected a lock written by 'envdoctor lock', found text that is no JSON "
            f"({error})"
        ) from error
    if not isinstance(data, dict) or "schema_version" not in data or "pins" not in data:
        raise InputError(
            f"{where}: expected an object with 'schema_version' and 'pins', as 'envdoctor lock -o "
            "DIR' writes it"
        )
    if data["schema_version"] != SCHEMA_VERSION:
        raise InputError(
            f"{where}: a lock of schema version {data['schema_version']!r}, but this envdoctor "
            f"reads version {SCHEMA_VERSION}; "
            "write the lock anew with this release, or use the release that wrote it"
        )
    reader = _Reader(where)
    request = reader.member(data, "request", dict)
    requires = reader.member(data, "requires", dict)
    return Lock(
        reader.strings(request, "roots", "request."),
        tuple(
            reader.pin(entry, f"pins[{number}]")
            for number, entry in enumerate(reader.member(data, "pins", list))
        ),
        tuple(
            reader.override(entry, f"overrides[{number}]")
            for number, entry in enumerate(reader.member(data, "overrides", list))
        ),
        Requires(
            python=reader.member(requires, "python", str, "requires."),
            driver=reader.optional(requires, "driver", "requires."),
            glibc=reader.optional(requires, "glibc", "requires."),
            cuda=reader.optional(requires, "cuda", "requires."),
            sm=reader.strings(requires, "sm", "requires."),
            platform=reader.optional(requires, "platform", "requires.") or "linux",
            architecture=reader.optional(requires, "architecture", "requires.") or "x86_64",
        ),
        reader.texts(data, "settings"),
        reader.optional(request, "as_of", "request."),
        reader.strings(request, "allow_index", "request."),
        str(data.get("matrix", "")),
        where,
        reader.strings(data, "targets") if "targets" in data else (),
        tuple(
            read_facts(entry, f"{where}: machines[{number}]")
            for number, entry in enumerate(
                reader.member(data, "machines", list) if "machines" in data else []
            )
        ),
    )


class _Reader:
    """Takes members out of JSON objects, and says where one is not what it should be."""

    def __init__(self, where: str) -> None:
        self._where = where

    def member(self, table: Mapping[str, Any], key: str, kind: type, prefix: str = "") -> Any:
        value = table.get(key) if isinstance(table, dict) else None
        if not isinstance(value, kind):
            names: Dict[Any, str] = {str: "a string", dict: "an object", list: "a list"}
            raise InputError(
                f"{self._where}: {prefix}{key}: expected {names[kind]}, found {_found(value)}"
            )
        return value

    def optional(self, table: Mapping[str, Any], key: str, prefix: str = "") -> Optional[str]:
        return None if table.get(key) is None else str(self.member(table, key, str, prefix))

    def strings(self, table: Mapping[str, Any], key: str, prefix: str = "") -> Tuple[str, ...]:
        entries: List[Any] = self.member(table, key, list, prefix)
        if not all(isinstance(entry, str) for entry in entries):
            raise InputError(f"{self._where}: {prefix}{key}: expected a list of strings")
        return tuple(entries)

    def texts(self, table: Mapping[str, Any], key: str) -> Dict[str, str]:
        """Return an object of strings that may be left out."""
        texts = self.member(table, key, dict) if key in table else {}
        return {name: self.member(texts, name, str, f"{key}.") for name in texts}

    def version(self, table: Mapping[str, Any], key: str, place: str) -> Version:
        text: str = self.member(table, key, str, f"{place}.")
        version = try_version(text)
        if version is None:
            raise InputError(f"{self._where}: {place}.{key}: expected a version, found {text!r}")
        return version

    def pin(self, entry: Any, place: str) -> Pin:
        name = canonicalize_name(self.member(entry, "name", str, f"{place}."))
        reasons = [
            self.reason(reason, f"{place}.reasons")
            for reason in self.entries(entry, "reasons", place)
        ]
        return Pin(
            name,
            self.version(entry, "version", place),
            self.optional(entry, "index", f"{place}.") or "pypi",
            self.strings(entry, "extras", f"{place}.") if "extras" in entry else (),
            tuple(reasons),
            entry.get("yanked") is True,
            entry.get("from_source") is True,
            self.strings(entry, "requires", f"{place}.") if "requires" in entry else (),
            self.build(entry, place),
        )

    def build(self, entry: Mapping[str, Any], place: str) -> Optional[BuildStep]:
        """Return how a pin is built; None for a wheel, and in a lock of before this was kept."""
        if entry.get("build") is None:
            return None
        build: Mapping[str, Any] = self.member(entry, "build", dict, f"{place}.")
        return BuildStep(
            self.strings(build, "needs", f"{place}.build."),
            self.optional(build, "compiler", f"{place}.build.") or "",
            build.get("fetched") is True,
        )

    def reason(self, entry: Any, place: str) -> Reason:
        kind = self.member(entry, "kind", str, f"{place}.")  # also tells what is no table
        row, requirer, requirement = (
            self.optional(entry, key, f"{place}.") or ""
            for key in ("row", "requirer", "requirement")
        )
        return Reason(
            kind,
            self.member(entry, "text", str, f"{place}."),
            row,
            self.sources(entry, place),
            requirer,
            requirement,
        )

    def sources(self, entry: Mapping[str, Any], place: str) -> Tuple[Source, ...]:
        return tuple(
            Source(
                self.member(source, "address", str, f"{place}.sources."),
                self.optional(source, "quote", f"{place}.sources.") or "",
            )
            for source in self.entries(entry, "sources", place)
        )

    def entries(self, table: Mapping[str, Any], key: str, place: str) -> List[Any]:
        """Return a list that may be left out."""
        entries: List[Any] = self.member(table, key, list, f"{place}.") if key in table else []
        return entries

    def override(self, entry: Any, place: str) -> Override:
        texts = {
            key: self.member(entry, key, str, f"{place}.")
            for key in ("requirer", "requirer_version", "name", "specifier", "row")
        }
        return Override(
            canonicalize_name(texts["requirer"]),
            texts["requirer_version"],
            canonicalize_name(texts["name"]),
            texts["specifier"],
            str(self.version(entry, "version", place)),
            texts["row"],
            str(entry.get("title", "")),
            self.sources(entry, place),
        )


def _found(value: Any) -> str:
    return "nothing" if value is None else f"{value!r:.60}"


def target_facts(lock: Lock) -> Tuple[Facts, ...]:
    """Return the targets of a lock; one of which nothing is known where it keeps none."""
    return lock.machines or (Facts(),)


def lock_facts(lock: Lock) -> Dict[str, Fact[Any]]:
    """Return a lock as facts about what was meant, which the rules compare with what is."""
    here = Evidence(lock.path)
    requires = lock.requires
    machine = {
        name: value
        for name, value in (
            ("driver", requires.driver),
            ("glibc", requires.glibc),
            ("python", requires.python),
        )
        if value
    }
    if requires.sm:
        machine["sm"] = ",".join(requires.sm)
    return {
        "lock.asked": Known(lock.roots, here),
        "lock.pins": Known({pin.name: str(pin.version) for pin in lock.pins}, here),
        "lock.requires": Known(
            {**machine, "platform": requires.platform, "architecture": requires.architecture}, here
        ),
        "lock.overrides": Known(
            tuple(
                LockOverride(entry.requirer, entry.name, str(entry.version), entry.row)
                for entry in lock.overrides
            ),
            here,
        ),
    }
