"""How many of the releases are read and measured, by package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Set

from envdoctor.matrix.measured_rows import BUILT_FOR_NUMPY_1, CANNOT_LOAD

from .call_statements import ARGUMENTS
from .packages import Packages
from .relations import RELATIONS
from .store import Sources

__all__ = ["coverage_lines"]

_COLUMNS = (
    "releases",
    "read",
    "measured",
    "imports",
    "gates",
    "symbols",
    "links",
    "metadata",
    "arguments",
)


def coverage_lines(
    packages: Packages, sources: Sources, matrices: Path, since: str
) -> Iterator[str]:
    """Yield a table: releases that the matrix lists from a day on, those whose archive was read,
    those whose imports and checks of versions were measured, statements about imports and about
    such checks; releases whose libraries were read against torch, and statements about these;
    statements that follow from metadata alone, and about arguments. Packages of which something is
    missing or said, then the sums, and how many releases hold each kind of knowledge.
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
        passed = sum(verbs.count(verb) for verb in ARGUMENTS)
        numbers = [
            len(listed),
            len(listed & read),
            len(listed & measured),
            verbs.count(""),
            len(verbs) - verbs.count("") - links - related - passed,
            len(_linked(symbols, name)),
            links,
            related,
            passed,
        ]
        total = [sum(pair) for pair in zip(total, numbers)]
        if numbers[1] < numbers[0] or numbers[2] < numbers[0] or any(numbers[3:]):
            yield _line(name, numbers)
    yield _line(f"all {len(packages.names)} packages", total)
    yield from _by_kind(matrices, symbols, since)


def _by_kind(matrices: Path, symbols: Mapping[str, Any], since: str) -> Iterator[str]:
    """Yield, of the releases that the matrix lists from a day on, how many hold each kind of
    knowledge, of how many that may.
    """
    held: Dict[str, List[int]] = {}
    names: Dict[str, Set[str]] = {}
    for path in sorted((matrices / "packages").glob("*.json")):
        measured = _document(matrices / "surfaces" / path.name).get("measured", ())
        linked = _of_symbols(symbols, path.stem)
        releases = [
            entry
            for entry in _document(path)["releases"]
            if entry["released"] >= since and not entry.get("yanked")
        ]
        has_code = any(build.get("sass") for entry in releases for build in entry.get("builds", ()))
        for entry in releases:
            compiled = any("manylinux" in word for word in entry.get("platforms", ()))
            coded = any(build.get("sass") for build in entry.get("builds", ()))
            for kind, may, has in (
                ("metadata", True, "requires" in entry),
                ("imports and checks", bool(measured), entry["version"] in measured),
                ("glibc of compiled wheels", compiled, "glibc" in entry),
                ("machine code for GPUs", has_code and compiled, coded),
                ("symbols of libraries", bool(linked) and compiled, entry["version"] in linked),
            ):
                if may:
                    counts = held.setdefault(kind, [0, 0])
                    counts[0] += has
                    counts[1] += 1
                    names.setdefault(kind, set()).add(path.stem)
    for kind, (has, every) in held.items():
        share = f"{100 * has / every:.1f} %"
        yield f"{kind}: {has} of {every} releases of {len(names[kind])} packages ({share})"


def _of_symbols(symbols: Mapping[str, Any], name: str) -> Set[str]:
    """The releases of a package whose libraries were read for any table of symbols.json."""
    if name == "torch":
        return set(symbols.get("versions", ()))
    parts = ("fits", "links", "numpy")
    read = {version for part in parts for version in symbols.get(part, {}).get(name, ())}
    for part in ("libraries", "asked"):
        read.update(symbols.get(part, {}).get(name, {}).get("versions", ()))
    return read


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
