"""Checks a folder of matrix files whole, a site's own as well as ours, and says everything that is
wrong at once.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Mapping, Tuple

from ...errors import MatrixError
from ..folder import find_sources
from ..source import (
    compile_core,
    read_conda,
    read_listing,
    read_models,
    read_profiles,
    read_signatures,
)

__all__ = ["validate"]

#: What the core does not hold, and how it is read whole.
_OTHERS: Mapping[str, Callable[[str], Any]] = {
    "profiles": read_profiles,
    "models": read_models,
    "conda names": read_conda,
    "signatures": lambda folder: read_signatures(folder).get("signatures"),
    "index listing": read_listing,
}
#: What is read: files by their names, and of each folder those with an ending.
_FILES = ("index.json", "messages.json", "model_families.json", "names.json", "symbols.json")
_FOLDERS = {
    ".": ".toml",
    "errata": ".toml",
    "profiles": ".toml",
    "packages": ".json",
    "surfaces": ".json",
    "names": ".json",
    "messages": ".json",
}


def validate(folder: str) -> Dict[str, Any]:
    """Return the faults of a folder's files, each with file and key, or how much it holds.

    Nothing is imported or executed.
    """
    sources = find_sources(folder)
    faults: List[str] = []
    counts: Dict[str, int] = {}
    try:
        core, _ = compile_core(sources)
        counts = {
            "rows": len(core["rows"]),
            **{name: len(entries) for name, entries in core["tables"].items() if entries},
        }
        counts.update({"gpu": len(core["gpus"]["models"]), "packages": len(core["packages"])})
    except MatrixError as error:
        faults += error.faults
    for name, read in _OTHERS.items():
        values, wrong = _tried(read, folder)
        faults += wrong
        if values:
            counts[name] = len(values)
    if not faults and not any(counts.values()):
        faults.append(
            f"{folder}: expected *.toml, errata/*.toml or packages/*.json, found none of them"
        )
    return {
        "kind": "validate",
        "folder": folder,
        "faults": faults,
        "counts": {} if faults else counts,
        "not_read": _strangers(folder),
    }


def _tried(read: Callable[[str], Any], folder: str) -> Tuple[Any, Tuple[str, ...]]:
    try:
        return read(folder) or {}, ()
    except MatrixError as error:
        return {}, error.faults


def _strangers(folder: str) -> List[str]:
    """Files that no part of envdoctor reads: a misspelt ending would leave its rows out
    silently.
    """
    unknown = []
    for path, folders, names in os.walk(folder):
        relative = os.path.relpath(path, folder)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            where = name if relative == "." else f"{relative}/{name}"
            is_read = where in _FILES or name.endswith(_FOLDERS.get(relative, ()))
            if not (is_read or name.startswith(".") or name.endswith((".md", ".txt"))):
                unknown.append(where)
    return unknown
