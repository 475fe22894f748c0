"""Which releases of CUDA's libraries, and of its driver, have a symbol, and which releases of
others need it: ``libraries`` and ``asked`` of ``matrices/symbols.json``.

Of a library only those symbols are kept that some of its releases have and others do not; of what
others ask for only these.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatch
from itertools import repeat
from pathlib import Path
from types import MappingProxyType
from typing import (
    AbstractSet,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from packaging.version import Version

from envdoctor.matrix.measured_rows import DRIVER
from envdoctor.matrix.spans import places_of, text_of_places

from .cuda_symbols import PROVIDERS

__all__ = ["asked_of", "driver_symbols", "libraries_of", "major_of"]

_TYPEDEF = re.compile(r"PFN_(cu\w+?)_v(\d{4,5})(_pt[ds][sz])?\)")
_RUNTIME = re.compile(r"lib(?:cudart|cublas|cublasLt|cupti|nvrtc|nvJitLink)\.so\.(\d+)(?:\.0)?")
#: Symbols of older drivers are in every driver that serves a CUDA of today.
_FIRST_MAJOR = 11
Records = Mapping[str, Mapping[str, Mapping[str, Any]]]


def major_of(package: str) -> int:
    """Return the CUDA major of one of NVIDIA's packages: 12 of ``nvidia-nccl-cu12``."""
    match = re.search(r"-cu(\d\d)$", package)
    return int(match[1]) if match else 13


def libraries_of(
    records: Records,
    earlier: Mapping[str, Mapping[str, Any]],
    also: Mapping[str, AbstractSet[str]] = MappingProxyType({}),
) -> Dict[str, Dict[str, Any]]:
    """Return by package ``versions`` and ``symbols``: of each that varies, and of each file that
    does, the releases that have it, and all ``files``, by which others name it. The driver counts
    by the CUDA that it serves. What was said ``earlier`` of a package stays where it had more
    releases than were read here. Of symbols that vary ``also``, elsewhere, each is kept.
    """
    libraries = {}
    for package in PROVIDERS:
        releases = {
            version: {
                text
                for name, entry in record["cuda"].items()
                for text in (name.rsplit("/", 1)[-1], *entry["exported"])
                if "/lib/" in name
            }
            for version, record in records.get(package, {}).items()
            if all("exported" in entry for entry in record.get("cuda", {"": {}}).values())
        }
        libraries[package] = _varying(releases, also.get(package, frozenset()))
    types = {
        name
        for releases in records.values()
        for record in releases.values()
        for name in record.get("typedefs", ())
    }
    libraries[DRIVER] = _varying(driver_symbols(types))
    for name, values in earlier.items():
        if not set(values["versions"]) <= set(libraries[name]["versions"]):
            libraries[name] = dict(values)
    for name, values in libraries.items():
        files = {"libcuda.so.1"} if name == DRIVER else _sonames(records.get(name, {}))
        values["files"] = sorted(files.union(earlier.get(name, {}).get("files", ())))
    return {name: values for name, values in libraries.items() if values["symbols"]}


def _varying(
    releases: Mapping[str, Set[str]], also: AbstractSet[str] = frozenset()
) -> Dict[str, Any]:
    versions = sorted(releases, key=Version)
    having: Dict[str, List[int]] = {}
    for place, version in enumerate(versions):
        for symbol in releases[version]:
            having.setdefault(symbol, []).append(place)
    by_span: Dict[str, List[str]] = {}
    for symbol in sorted(having):
        if len(having[symbol]) < len(versions) or symbol in also:
            by_span.setdefault(text_of_places(having[symbol]), []).append(symbol)
    return {
        "versions": versions,
        "symbols": {span: " ".join(by_span[span]) for span in sorted(by_span)},
    }


def driver_symbols(types: Iterable[str]) -> Dict[str, Set[str]]:
    """Return by CUDA version what its driver exports, of all that came with CUDA 11 or later.

    The types in NVIDIA's headers say it: ``PFN_cuCtxCreate_v11040`` is a function that came with
    11.4. Its names in libcuda.so.1 are numbered in the same order: cuCtxCreate, _v2, _v3; one for
    each thread's own default stream ends as its type does (``_ptsz``).
    """
    came: Dict[str, Dict[int, Set[str]]] = {}
    for match in filter(None, map(_TYPEDEF.fullmatch, types)):
        came.setdefault(match[1], {}).setdefault(int(match[2]), set()).add(match[3] or "")
    by_version: Dict[Tuple[int, int], Set[str]] = {}
    for name, versions in came.items():
        own = [version for version in sorted(versions) if "" in versions[version]]
        for number, version in enumerate(own, 1):
            symbol = name if number == 1 else f"{name}_v{number}"
            names = {symbol + stream for stream in versions[version]}
            by_version.setdefault(divmod(version // 10, 100), set()).update(names)
    newest: Dict[int, int] = {}
    for major, minor in by_version:
        if major >= _FIRST_MAJOR:
            newest[major] = max(minor, newest.get(major, 0))
    there: Set[str] = set()
    releases = {}
    for major in sorted(newest):
        for minor in range(newest[major] + 1):
            there = there | by_version.get((major, minor), set())
            releases[f"{major}.{minor}"] = there
    return releases


def asked_of(
    records: Records,
    libraries: Mapping[str, Mapping[str, Any]],
    earlier: Mapping[str, Any],
    loads: Mapping[str, Sequence[str]],
) -> Dict[str, Dict[str, Any]]:
    """Return by package what its releases need of ``libraries`` that not all of theirs have:
    ``versions``, ``archives``, by library that is asked and file that asks ``symbols``, and which
    of these files are opened by each import (``loads``: patterns by package; NVIDIA's: by torch's).
    Of releases that were not read here what was said ``earlier`` stays.
    """
    sonames = {name: set(values["files"]) for name, values in libraries.items()}
    varying = {
        name: {symbol for names in values["symbols"].values() for symbol in names.split()}
        for name, values in libraries.items()
    }
    asked = {}
    for consumer in sorted({*records, *earlier}):
        releases = _releases_of(earlier.get(consumer))
        for version, record in records.get(consumer, {}).items():
            if "cuda" in record:
                needs = {
                    need
                    for need in _needs(consumer, record, sonames)
                    if need[2] in varying[need[0]] and not _is_of_its_major(need, record, libraries)
                }
                releases[version] = (record["archive"], needs)
        if releases:
            asked[consumer] = _packed(releases)
    opened = _opened(records.get("torch", {}))
    for consumer, values in asked.items():
        files = {name for by_file in values["symbols"].values() for name in by_file}
        was = set(earlier.get(consumer, {}).get("loaded", ()))
        values["loaded"] = sorted(
            name
            for name in files
            if name in was
            or name.rsplit("/", 1)[-1] in opened
            or any(fnmatch(name, pattern) for pattern in loads.get(consumer, ()))
        )
    return asked


def _opened(releases: Mapping[str, Mapping[str, Any]]) -> Set[str]:
    """The libraries that ``import torch`` opens, of its own and of others: what its extension needs
    and what these need in turn.
    """
    every: Set[str] = set()
    for record in releases.values():
        opened: Set[str] = set()
        files = record.get("cuda", {})
        needs = {name.rsplit("/", 1)[-1]: files[name].get("needed", ()) for name in files}
        waiting = [name.rsplit("/", 1)[-1] for name in files if name.startswith("torch/_C.")]
        while waiting:
            name = waiting.pop()
            if name not in opened:
                opened.add(name)
                waiting += needs.get(name, ())
        every |= opened
    return every


def _sonames(releases: Mapping[str, Mapping[str, Any]]) -> Set[str]:
    return {
        name.rsplit("/", 1)[-1]
        for record in releases.values()
        for name in record.get("cuda", {})
        if "/lib/" in name
    }


def _needs(
    consumer: str, record: Mapping[str, Any], sonames: Mapping[str, Set[str]]
) -> Iterator[Tuple[str, str, str]]:
    """Yield (package, file, symbol): what a file leaves to a library that it names as needed, and
    that library's own name.
    """
    files = {name: entry for name, entry in record["cuda"].items() if "needed" in entry}
    majors = {major_of(consumer)} if consumer in PROVIDERS else _majors(record)
    for name, entry in files.items():
        others = set(entry["needed"]) - {name.rsplit("/", 1)[-1]}
        for provider, own in sonames.items():
            if provider == consumer or not own & others:
                continue
            if provider == DRIVER or major_of(provider) in majors:
                for symbol in (*entry["undefined"], *(own & others)):
                    yield provider, name, symbol


def _majors(record: Mapping[str, Any]) -> Set[int]:
    """The CUDA that a wheel's libraries are linked to."""
    return {
        int(match[1])
        for entry in record["cuda"].values()
        for match in map(_RUNTIME.fullmatch, entry.get("needed", ()))
        if match is not None
    }


def _is_of_its_major(
    need: Tuple[str, str, str],
    record: Mapping[str, Any],
    libraries: Mapping[str, Mapping[str, Any]],
) -> bool:
    """Tell whether a function of the driver is in each that serves the CUDA of the wheel at all, in
    any of its minors. A wheel that is linked to no CUDA has it inside: of today, 12 at least.
    """
    provider, _, symbol = need
    if provider != DRIVER:
        return False
    library = libraries[DRIVER]
    first = next(
        min(places_of(span))
        for span, names in library["symbols"].items()
        if symbol in names.split()
    )
    oldest = max(_majors(record), default=12)
    return Version(library["versions"][first]) <= Version(f"{oldest}.0")


_Releases = Dict[str, Tuple[str, Set[Tuple[str, str, str]]]]


def _packed(releases: _Releases) -> Dict[str, Any]:
    versions = sorted(releases, key=Version)
    having: Dict[Tuple[str, str, str], List[int]] = {}
    for place, version in enumerate(versions):
        for need in releases[version][1]:
            having.setdefault(need, []).append(place)
    symbols: Dict[str, Dict[str, Dict[str, str]]] = {}
    for provider, name, symbol in sorted(having):
        by_span = symbols.setdefault(provider, {}).setdefault(name, {})
        span = text_of_places(having[provider, name, symbol])
        by_span[span] = f"{by_span[span]} {symbol}" if span in by_span else symbol
    archives = [releases[version][0] for version in versions] if symbols else []
    return {"versions": versions, "archives": archives, "symbols": symbols}


def _releases_of(values: Optional[Mapping[str, Any]]) -> _Releases:
    """Return what was packed, by release."""
    if values is None:
        return {}
    releases: _Releases = {
        version: (archive, set())
        for version, archive in zip(values["versions"], values["archives"] or repeat(""))
    }
    for provider, by_file in values["symbols"].items():
        for name, by_span in by_file.items():
            for span, symbols in by_span.items():
                for place in places_of(span):
                    releases[values["versions"][place]][1].update(
                        (provider, name, symbol) for symbol in symbols.split()
                    )
    return releases
