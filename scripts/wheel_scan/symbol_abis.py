"""The C++ ABI of builds, from the symbols of torch that their libraries leave undefined: written
into ``matrices/packages`` where a build's fat binaries were read and its symbols were not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from matrix_refresh.documents import load_document, render, write_if_new

from envdoctor.probes.elf import cxx11_abi_of

__all__ = ["write_abis"]


def write_abis(
    folder: Path, records: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Iterator[str]:
    """Write the C++ ABI of the index's builds for x86_64 where it is not known; yield a line for
    each package that changed.

    Args:
        folder: The package files.
        records: What was read of wheels, by package and release.
    """
    for package, releases in records.items():
        path = folder / f"{package}.json"
        document = load_document(str(path), package) if path.exists() else None
        for release in document["releases"] if document is not None else ():
            record = releases.get(release["version"], {})
            libraries = record.get("libraries", {}).values()
            abi = cxx11_abi_of(_undefined(libraries))
            for build in release.get("builds", ()) if abi is not None else ():
                if _is_of_index(build) and build.get("cxx11abi") is None:
                    build["cxx11abi"] = abi
        if document is not None and write_if_new(str(path), render(document)):
            yield f"{package}: C++ ABIs written"


def _undefined(libraries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return (name for library in libraries for name in library.get("undefined", ()))


def _is_of_index(build: Mapping[str, Any]) -> bool:
    return (
        build.get("index_name", "pypi") == "pypi"
        and build.get("architecture", "x86_64") == "x86_64"
    )
