"""How many of the releases are read and measured, by package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Sequence, Set

from envdoctor.matrix.measured_rows import BUILT_FOR_NUMPY_1, CANNOT_LOAD

from .packages import Packages
from .relations import RELATIONS
from .store import Sources

__all__ = ["coverage_lines"]

_COLUMNS = ("releases", "read", "measured", "imports", "gates", "symbols", "links", "metadata")


def coverage_lines(
    packages: Packages, sources: Sources, matrices: Path, since: str
) -> Iterator[str]:
    """Yield a table: releases that the matrix lists from a day on, those whose archive was read,
    those whose imports and checks of versions were measured, statements about imports and about
    such checks; releases whose libraries were read against torch, and statements about these;
    statements that follow from metadata alone. Packages of which something is missing or said, then
    the sums.
    """
    symbols = _document(matrices / "symbols.json")
    total = [0] * len(_COLUMNS)
    yield _line("package", _COLUMNS)
    for name in packages.names:
        read = {archive.version for archive in sources.archives(name)}
        document = _document(matrices / "surfaces" / f"{name}.json")
        measured = set(document.get("measured", ()))
        listed = _listed(matrices / "packages" / f"{name}.json", since) or read or measured
        verbs = [entry.get("verb", "") for entry in document.get("statements", ())]
        links = verbs.count(CANNOT_LOAD) + verbs.count(BUILT_FOR_NUMPY_1)
        related = sum(verbs.count(verb) for verb in RELATIONS)
        numbers = [
            len(listed),
            len(listed & read),
            len(listed & measured),
            verbs.count(""),
            len(verbs) - verbs.count("") - links - related,
            len(_linked(symbols, name)),
            links,
            related,
        ]
        total = [sum(pair) for pair in zip(total, numbers)]
        if numbers[1] < numbers[0] or numbers[2] < numbers[0] or any(numbers[3:]):
            yield _line(name, numbers)
    yield _line(f"all {len(packages.names)} packages", total)


def _line(name: str, numbers: Sequence[Any]) -> str:
    return f"{name:<28}" + "".join(f"{number:>10}" for number in numbers)


def _linked(symbols: Mapping[str, Any], name: str) -> Set[str]:
    """The releases of a package whose libraries were read, of torch those whose exports were."""
    if name == "torch":
        return set(symbols.get("versions", ()))
    return {
        version for part in ("fits", "links") for version in symbols.get(part, {}).get(name, ())
    }


def _listed(path: Path, since: str) -> Set[str]:
    return {
        entry["version"]
        for entry in _document(path).get("releases", ())
        if entry["released"] >= since and not entry.get("yanked")
    }


def _document(path: Path) -> Dict[str, Any]:
    if not path.exists():
        return {}
    document: Dict[str, Any] = json.loads(path.read_text("utf-8"))
    return document
