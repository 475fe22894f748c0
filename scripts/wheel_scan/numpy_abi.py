"""Against which NumPy the extension modules of wheels are built: ``numpy`` of
``matrices/symbols.json``.

``import_array()`` is compiled into each module that uses NumPy's C API, with its messages. That of
NumPy 2 looks for ``numpy._core._multiarray_umath`` first and runs with NumPy 1 as well; that of
NumPy 1 does not know this name and refuses every other ABI version than its own
(``_import_array`` in numpy/core/code_generators/generate_numpy_api.py, of both). Headers of
pybind11, which look functions up by themselves, hold none of these messages and are not spoken
of.
"""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any, Dict, Iterator, Mapping

from packaging.version import Version

from .zip_range import RemoteZip

__all__ = ["numpy_of", "read_numpy"]

_IMPORTS_ARRAY = b"FATAL: module compiled as little endian"
_OF_NUMPY_2 = b"numpy._core._multiarray_umath"
_MOST_MEMBER = 256 << 20


def read_numpy(
    pattern: str, archive: RemoteZip, record: Dict[str, Any]
) -> Iterator[Dict[str, Any]]:
    """Read ``numpy`` of a record: the first module of a pattern that uses the C API, and the major
    version of NumPy that it is built against, "" where none uses it; yields it once, an empty one
    where no module fits the pattern.
    """
    record["numpy"] = {}
    for name in sorted(archive.members):
        if not fnmatch(name, pattern):
            continue
        content = archive.content(name, _MOST_MEMBER)
        if _IMPORTS_ARRAY in content:
            record["numpy"] = {"path": name, "major": "2" if _OF_NUMPY_2 in content else "1"}
            break
        record["numpy"] = {"path": name, "major": ""}
    yield record


def numpy_of(
    records: Mapping[str, Mapping[str, Mapping[str, Any]]],
    earlier: Mapping[str, Mapping[str, Mapping[str, str]]],
) -> Dict[str, Dict[str, Dict[str, str]]]:
    """Return by package and release ``major``, where that is 1 ``path`` and ``archive`` as witness;
    releases that were not read now are as they were.

    Args:
        records: What was read of wheels, by package and release.
        earlier: What an earlier run returned.
    """
    built = {package: dict(releases) for package, releases in earlier.items()}
    for package, releases in records.items():
        for version, record in releases.items():
            if record.get("numpy"):
                entry = {**record["numpy"], "archive": record.get("archive", "")}
                built.setdefault(package, {})[version] = entry
    return {
        package: {
            version: _with_witness(built[package][version])
            for version in sorted(built[package], key=Version)
        }
        for package in sorted(built)
    }


def _with_witness(entry: Mapping[str, str]) -> Dict[str, str]:
    """What is kept of a release: nothing is said of one that NumPy 2 runs with."""
    return dict(entry) if entry["major"] == "1" else {"major": entry["major"]}
