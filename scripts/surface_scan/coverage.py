"""How many of the releases are read and measured, by package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Set

from matrix_refresh.documents import read_toml
from wheel_scan.cuda_symbols import CONSUMERS, PROVIDERS
from wheel_scan.members import ARCHITECTURES, PROFILES
from wheel_scan.symbols import LINKED

from envdoctor.matrix.measured_rows import BUILT_FOR_NUMPY_1, CANNOT_LOAD
from envdoctor.matrix.symbols import AARCH64

from .call_statements import ARGUMENTS
from .packages import Packages
from .relations import RELATIONS
from .store import Sources

__all__ = ["MOST_USED", "coverage_lines"]

#: The most used compiled packages, with how often each was downloaded, and who counted that.
MOST_USED = Path(__file__).resolve().parents[1] / "wheel_scan" / "most_used.toml"

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
    yield from _of_the_most_used(packages, matrices, symbols, since)


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
            for kind, may, has in (
                ("metadata", True, "requires" in entry),
                ("imports and checks", bool(measured), entry["version"] in measured),
                ("glibc of compiled wheels", compiled, "glibc" in entry),
                *(
                    (
                        f"machine code for GPUs, {architecture}",
                        has_code and architecture in _architectures(entry),
                        _has_read_code(entry, architecture),
                    )
                    for architecture in ARCHITECTURES
                ),
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


def _of_the_most_used(
    packages: Packages, matrices: Path, symbols: Mapping[str, Any], since: str
) -> Iterator[str]:
    """Yield how many wheels, and releases, of the packages in ``most_used.toml`` are measured, and
    of how many what is missing, by package.

    A wheel stands for those of its release for one architecture: they are built of one source. It
    is measured where the matrix holds all that applies to its package: the glibc that it wants;
    the symbols of torch, of CUDA's libraries or of the driver that it asks for; the NumPy that it
    is built against; and for which GPUs it has machine code.
    """
    wheels: Dict[str, List[int]] = {name: [0, 0] for name in ARCHITECTURES}
    releases = [0, 0]
    missing: Dict[str, Dict[str, int]] = {}
    names = read_toml(str(MOST_USED))["downloads"]
    for name in names:
        needs = _needs(name, packages)
        linked = {
            "x86_64": _of_symbols(symbols, name),
            AARCH64: set(symbols.get(AARCH64, {}).get("versions", {}).get(name, "").split()),
        }
        for entry in _document(matrices / "packages" / f"{name}.json").get("releases", ()):
            if entry["released"] < since or entry.get("yanked"):
                continue
            lacking = {
                architecture: _lacking(entry, architecture, needs, linked[architecture])
                for architecture in _architectures(entry)
            }
            for architecture, kinds in lacking.items():
                wheels[architecture][0] += not kinds
                wheels[architecture][1] += 1
                for kind in kinds:
                    counts = missing.setdefault(f"{kind}, {architecture}", {})
                    counts[name] = counts.get(name, 0) + 1
            releases[0] += bool(lacking) and not any(lacking.values())
            releases[1] += bool(lacking)
    counted = ", ".join(f"{has} of {of} for {name}" for name, (has, of) in wheels.items())
    yield (
        f"compiled wheels of the {len(names)} most used: {releases[0]} of {releases[1]} releases "
        f"(wheels: {counted})"
    )
    for kind, counts in missing.items():
        each = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield f"  without {kind}: {sum(counts.values())} ({each})"


def _needs(name: str, packages: Packages) -> Set[str]:
    """What a wheel of a package has to tell besides its glibc."""
    needs = set()
    if name in ("torch", *LINKED, *CONSUMERS, *PROVIDERS) or name in packages.built_with_numpy:
        needs.add("symbols")
    if name in PROFILES and PROFILES[name].has_code:
        needs.add("machine code")
    return needs


def _architectures(entry: Mapping[str, Any]) -> List[str]:
    """The machines for which a release has wheels for Linux with glibc, for CPython."""
    return [
        architecture
        for architecture in ARCHITECTURES
        if "glibc" in entry
        and any("manylinux" in word and architecture in word for word in entry["platforms"])
    ]


def _lacking(
    entry: Mapping[str, Any], architecture: str, needs: Set[str], linked: Set[str]
) -> List[str]:
    """What is not held of a wheel."""
    held = {
        "symbols": entry["version"] in linked,
        "machine code": _has_read_code(entry, architecture),
    }
    return sorted(kind for kind in needs if not held[kind])


def _has_read_code(entry: Mapping[str, Any], architecture: str) -> bool:
    """Whether machine code was read in a wheel of a release, or that it is built without CUDA."""
    return any(
        build.get("sass") or not build.get("cuda")
        for build in entry.get("builds", ())
        if build.get("architecture", "x86_64") == architecture
        and build.get("index_name", "pypi") == "pypi"
        and build.get("trust") != "reported"
    )


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
