"""A ``matrices/`` folder: which files it has, and whether they are those that were compiled."""

from __future__ import annotations

import os

from ..model.record import NamedTuple
from ..regular_files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping

__all__ = [
    "EXTRAS",
    "OTHER_FILES",
    "MatrixFiles",
    "find_extra",
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

#: What is read on demand alone: where it lies in ``matrices/``, a file or a folder of files.
EXTRAS = {
    "conda": "conda.toml",
    "listing": "index.json",
    "messages": "messages",
    "messages_index": "messages.json",
    "model_families": "model_families.json",
    "models": "models.toml",
    "names": "names",
    "names_index": "names.json",
    "profiles": "profiles",
    "signatures": "signatures.toml",
    "symbols": "symbols.json",
}


class MatrixFiles(NamedTuple):
    """The files that the core of a matrices folder is made of: paths by name relative to it."""

    folder: str
    tables: Dict[str, str]
    packages: Dict[str, str]
    surfaces: Dict[str, str]

    @property
    def all(self) -> Dict[str, str]:
        """The paths of all of them."""
        return {
            **self.tables,
            **{f"packages/{name}": path for name, path in self.packages.items()},
            **{f"surfaces/{name}": path for name, path in self.surfaces.items()},
        }


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


def find_extra(folder: str, name: str) -> Dict[str, str]:
    """Return the paths, by name relative to ``folder``, of what is read on demand alone: one file
    (``models.toml``), or those of a folder (``profiles``).
    """
    path = os.path.join(folder, name)
    if os.path.isfile(path):
        return {name: path}
    ending = ".toml" if name == "profiles" else ".json"
    return {f"{name}/{file}": os.path.join(path, file) for file in list_files(path, ending)}


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


def fingerprint(files: Mapping[str, str], times: bool) -> Dict[str, List[Any]]:
    """Return [size, mtime or None, hash] of files, paths by name."""
    entries: Dict[str, List[Any]] = {}
    for name, path in files.items():
        status = os.stat(path)
        entries[name] = [status.st_size, status.st_mtime_ns if times else None, _hash(path)]
    return entries


def is_fresh(recorded: Mapping[str, List[Any]], files: Mapping[str, str]) -> bool:
    """Tell whether files, paths by name, are those that were compiled; one is read only where size
    says yes and time says no.
    """
    if len(files) != len(recorded):
        return False
    for name, path in files.items():
        entry = recorded.get(name)
        if entry is None:
            return False
        status = os.stat(path)
        if status.st_size != entry[0] or (
            status.st_mtime_ns != entry[1] and _hash(path) != entry[2]
        ):
            return False
    return True


def _hash(path: str) -> str:
    import hashlib

    return hashlib.sha256(read_regular(path, _LARGEST)).hexdigest()[:32]
