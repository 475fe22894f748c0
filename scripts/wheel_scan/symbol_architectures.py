"""What the wheels for aarch64 hold otherwise than those for x86_64: ``aarch64`` of
``matrices/symbols.json``.

Both are built of one source, so that mostly nothing differs; then only the releases that were read
are named. Of a package that differs the tables are kept as a whole.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import AbstractSet, Any, Dict, Iterator, Mapping, Sequence, Set, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from packaging.version import Version

from envdoctor.matrix.spans import places_of
from envdoctor.matrix.symbols import AARCH64, TABLES, as_read_on_aarch64

from .cuda_spans import asked_of, libraries_of
from .numpy_abi import numpy_of
from .symbol_links import links_of
from .symbol_spans import fits_of, with_earlier

__all__ = ["of_aarch64"]

Records = Mapping[str, Mapping[str, Mapping[str, Any]]]


def of_aarch64(
    document: Mapping[str, Any],
    earlier: Mapping[str, Any],
    records: Records,
    needed: Mapping[str, Mapping[str, AbstractSet[str]]],
    exported: Mapping[str, AbstractSet[str]],
    loads: Mapping[str, Sequence[str]],
) -> Dict[str, Any]:
    """Return ``versions``, the releases of packages whose wheels for aarch64 were read, and of the
    tables what differs there.

    Args:
        document: The tables of x86_64.
        earlier: An earlier document: what it says of releases that were not read here stays.
        records: What was read of wheels for aarch64, by package and release.
        needed: The symbols of torch that wheels for aarch64 leave undefined.
        exported: The releases of torch whose wheels for aarch64 export a symbol; none where not all
            of them were read here.
        loads: Patterns of the libraries that a package loads.
    """
    read = {
        name: set(text.split())
        for name, text in earlier.get(AARCH64, {}).get("versions", {}).items()
    }
    for name, releases in records.items():
        if releases:
            read.setdefault(name, set()).update(releases)
    versions = {name: " ".join(sorted(read[name], key=Version)) for name in sorted(read)}
    before = as_read_on_aarch64(earlier)
    of_x86 = as_read_on_aarch64({**document, AARCH64: {"versions": versions}})
    varying = {
        name: {word for words in values["symbols"].values() for word in words.split()}
        for name, values in of_x86["libraries"].items()
    }
    libraries = libraries_of(records, before["libraries"], varying)
    of_arm: Dict[str, Mapping[str, Any]] = {
        "libraries": libraries,
        "asked": asked_of(records, libraries, before["asked"], loads),
        "numpy": numpy_of(records, before["numpy"]),
        **with_earlier(
            {
                "versions": document["versions"],
                "links": links_of(document, records, loads),
                "fits": fits_of(needed, exported, document["versions"]),
            },
            before,
        ),
    }
    tables: Dict[str, Any] = {"versions": versions}
    for table in TABLES:
        differing = {
            name: values
            for name, values in of_arm[table].items()
            if name in versions
            and _said(values, table) != _said(of_x86[table].get(name, {}), table)
        }
        if differing:
            tables[table] = differing
    return tables


#: Where something was read, which has another name for each architecture.
_WITNESS = ("archive", "path", "library")


def _said(values: Mapping[str, Any], table: str) -> Any:
    """What a table says of a package, by release, without where it was read."""
    if "versions" not in values:
        return {version: _without_witness(value) for version, value in values.items()}
    said: Dict[str, Set[Any]] = {}
    if table == "libraries":  # one that has no symbol of these is one more release, too
        said = {version: set() for version in values["versions"]}
    for keys, span, words in _leaves(values["symbols"], ()):
        for place in places_of(span):
            needs = said.setdefault(values["versions"][place], set())
            needs.update((*keys, word) for word in words.split())
    return said


def _without_witness(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: text for key, text in value.items() if key not in _WITNESS}


def _leaves(
    values: Mapping[str, Any], keys: Tuple[str, ...]
) -> Iterator[Tuple[Tuple[str, ...], str, str]]:
    """Yield (the keys above it, span, words) of objects in objects."""
    for key, value in values.items():
        if isinstance(value, dict):
            name = key.replace(AARCH64, "x86_64")
            yield from _leaves(value, (*keys, name))
        else:
            yield keys, key, value
