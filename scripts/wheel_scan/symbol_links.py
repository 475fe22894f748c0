"""With which releases of torch a package's wheel cannot be loaded, and for want of which symbol:
``links`` of ``matrices/symbols.json``.

Said only of packages of which it was tried that they load a library whenever they are imported
(``loads`` in surface_scan/packages.toml), and only for a symbol that some releases of torch export
and others do not, in no wheel of theirs: neither for x86_64 nor for aarch64, which had the new C++
ABI first. A build of torch without CUDA has no symbol of libc10_cuda at all.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from packaging.version import Version

from envdoctor.matrix.spans import text_of_places
from envdoctor.matrix.symbols import history_of

__all__ = ["links_of"]


def links_of(
    document: Mapping[str, Any],
    records: Mapping[str, Mapping[str, Mapping[str, Any]]],
    loads: Mapping[str, Sequence[str]],
) -> Dict[str, Dict[str, Dict[str, str]]]:
    """Return by package and release: ``lacking`` (places of releases of torch), ``symbol``,
    ``library`` and ``archive`` as witness; no releases of torch for one that fits all, nothing of
    one that was not judged.

    Args:
        document: In which releases of torch symbols are.
        records: What was read of wheels, by package and release.
        loads: Patterns of the libraries that a package loads: of those that fit one pattern any
            will do, and of each pattern one has to.
    """
    places: Dict[str, Optional[FrozenSet[int]]] = {}
    links: Dict[str, Dict[str, Dict[str, str]]] = {}
    for package in sorted(set(records) & set(loads)):
        for version in sorted(records[package], key=Version):
            record = records[package][version]
            entry = _link(document, record, loads[package], places)
            if entry:
                links.setdefault(package, {})[version] = {
                    **entry,
                    "archive": record.get("archive", ""),
                }
    return links


def _link(
    document: Mapping[str, Any],
    record: Mapping[str, Any],
    patterns: Sequence[str],
    places: Dict[str, Optional[FrozenSet[int]]],
) -> Dict[str, str]:
    witnesses: Dict[int, Tuple[str, str]] = {}
    judged = False
    for pattern in patterns:
        libraries = {
            name: library
            for name, library in sorted(record.get("libraries", {}).items())
            if fnmatch(name, pattern)
        }
        if not all("undefined" in library for library in libraries.values()):
            return {}
        lacks = [_lacks(document, library["undefined"], places) for library in libraries.values()]
        judged |= bool(lacks)
        for place in set(lacks[0]).intersection(*lacks[1:]) if lacks else ():
            witnesses.setdefault(place, (next(iter(libraries)), lacks[0][place]))
    if not witnesses:
        return {"lacking": ""} if judged else {}
    pairs = list(witnesses.values())
    library, symbol = max(sorted(set(pairs)), key=pairs.count)
    return {"lacking": text_of_places(witnesses), "symbol": symbol, "library": library}


def _lacks(
    document: Mapping[str, Any],
    symbols: Iterable[str],
    places: Dict[str, Optional[FrozenSet[int]]],
) -> Dict[int, str]:
    """Return the places of the releases of torch that lack one of these symbols, each with the one
    that most of them lack.
    """
    missing: List[Tuple[str, FrozenSet[int]]] = []
    for symbol in symbols:
        if symbol not in places:
            places[symbol] = _without(document, symbol)
        absent = places[symbol]
        if absent:
            missing.append((symbol, absent))
    missing.sort(key=lambda item: (-len(item[1]), item[0]))
    lacking: Dict[int, str] = {}
    for symbol, absent in missing:
        for place in absent:
            lacking.setdefault(place, symbol)
    return lacking


def _without(document: Mapping[str, Any], symbol: str) -> Optional[FrozenSet[int]]:
    """Return the places of the releases of torch that do not have a symbol, None where it is not
    known of.
    """
    history = history_of(document, symbol, all_wheels=True)
    if history is None:
        return None
    return frozenset(
        place
        for place, version in enumerate(history.versions)
        if history.has(Version(version)) is False
    )
