"""A ``matrices/`` folder: which files it has, and whether they are those that were compiled."""

from __future__ import annotations

import os

from ..model.record import NamedTuple
from ..regular_files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Tuple

__all__ = [
    "OTHER_FILES",
    "MatrixFiles",
    "find_sources",
    "fingerprint",
    "is_fresh",
    "list_files",
    "read_source",
]

_LARGEST = 256 << 20  # bytes, as of an archive of a whole matrix

#: TOML files of ``matrices/`` that no check needs (``curated``), or that other parts of envdoctor
#: read.
OTHER_FILES = frozenset(("conda.toml", "models.toml", "signatures.toml"))


class MatrixFiles(NamedTuple):
    """The files of one matrices folder, as paths by name relative to it."""

    folder: str
    tables: Dict[str, str]
    packages: Dict[str, str]
    surfaces: Dict[str, str]


def find_sources(folder: str) -> MatrixFiles:
    """List ``*.toml``, ``errata/*.toml``, ``packages/*.json`` and ``surfaces/*.json`` of a folder,
    in order of their names.
    """
    tables = {
        name: os.path.join(folder, name)
        for name in list_files(folder, ".toml")
        if name not in OTHER_FILES
    }
    errata = os.path.join(folder, "errata")
    tables.update(
        (f"errata/{name}", os.path.join(errata, name)) for name in list_files(errata, ".toml")
    )
    return MatrixFiles(
        folder,
        tables,
        _list_documents(os.path.join(folder, "packages")),
        _list_documents(os.path.join(folder, "surfaces")),
    )


def _list_documents(folder: str) -> Dict[str, str]:
    return {name[:-5]: os.path.join(folder, name) for name in list_files(folder, ".json")}


def list_files(folder: str, ending: str) -> List[str]:
    """Return the names with an ending in a folder, sorted; none where there is no folder."""
    try:
        return sorted(
            name
            for name in os.listdir(folder)
            if name.endswith(ending) and not name.startswith(".")
        )
    except (FileNotFoundError, NotADirectoryError):
        return []


def read_source(path: str) -> str:
    """Return the text of a source file; raises OSError, also for a pipe, or UnicodeDecodeError."""
    return read_regular(path, _LARGEST).decode("utf-8")


def fingerprint(sources: MatrixFiles, times: bool) -> Dict[str, List[Any]]:
    """Return [size, mtime or None, hash] of every source file."""
    entries: Dict[str, List[Any]] = {}
    for name, path in _files(sources):
        status = os.stat(path)
        entries[name] = [status.st_size, status.st_mtime_ns if times else None, _hash(path)]
    return entries


def is_fresh(recorded: Mapping[str, List[Any]], sources: MatrixFiles) -> bool:
    """Tell whether the source files are those that were compiled; a file is read only where size
    says yes and time says no.
    """
    files = _files(sources)
    if len(files) != len(recorded):
        return False
    for name, path in files:
        entry = recorded.get(name)
        if entry is None:
            return False
        status = os.stat(path)
        if status.st_size != entry[0] or (
            status.st_mtime_ns != entry[1] and _hash(path) != entry[2]
        ):
            return False
    return True


def _files(sources: MatrixFiles) -> List[Tuple[str, str]]:
    return [
        *sources.tables.items(),
        *((f"packages/{name}", path) for name, path in sources.packages.items()),
        *((f"surfaces/{name}", path) for name, path in sources.surfaces.items()),
    ]


def _hash(path: str) -> str:
    import hashlib

    return hashlib.sha256(read_regular(path, _LARGEST)).hexdigest()[:32]
