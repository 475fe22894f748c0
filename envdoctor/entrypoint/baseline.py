"""The baseline that ``envdoctor bake`` writes into an image, and the stamp by which a start sees
that nothing was installed since.

Read at every start, so next to nothing is imported here.
"""

from __future__ import annotations

import json
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence

__all__ = [
    "SCHEMA_VERSION",
    "VARIABLES",
    "default_path",
    "find_baseline",
    "read_baseline",
    "stale_reason",
    "take_stamp",
]

SCHEMA_VERSION = 2

_LARGEST = 64 << 20
#: The variables of the host half that lead to files of the environment half: what was judged of
#: the image holds for these values.
VARIABLES = (
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONNOUSERSITE",
    "CUDA_HOME",
    "CUDA_PATH",
)


def default_path() -> str:
    """Return where a baseline lies: inside the environment, so that it goes where the environment
    goes.
    """
    return os.path.join(sys.prefix, "share", "envdoctor", "baseline.json")


def read_baseline(path: str) -> Dict[str, Any]:
    """Return a baseline; raises OSError, or ValueError where it is none that this version reads."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would be waited for
        raise ValueError("it is no regular file")
    with open(path, "rb") as file:
        text = file.read(_LARGEST).decode("utf-8")
    try:
        baseline = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if (
        not isinstance(baseline, dict)
        or baseline.get("schema_version") != SCHEMA_VERSION
        or not isinstance(baseline.get("stamp"), dict)
    ):
        raise ValueError(f"it is no baseline of schema version {SCHEMA_VERSION}")
    return baseline


def take_stamp() -> Dict[str, Any]:
    """Return what changes when something is installed, at the price of one listing and one stat a
    distribution.

    Names and times in seconds: inodes and parts of seconds do not survive the layers of an image.
    ``__pycache__`` and compiled files come and go with the first run, and the time of a folder with
    them.
    """
    return {
        "python": sys.version.split()[0],
        "prefix": sys.prefix,
        "variables": {name: os.environ[name] for name in VARIABLES if os.environ.get(name)},
        "folders": {folder: _entries(folder) for folder in _folders()},
    }


def _folders() -> List[str]:
    """Return the folders in which distributions are found, as they are read without site: a start
    runs without it, bake with it.
    """
    from ..probes.interpreter import search_path_without_site

    return [
        folder
        for folder in search_path_without_site()
        if folder.endswith(("site-packages", "dist-packages")) or _has_metadata(folder)
    ]


def _has_metadata(folder: str) -> bool:
    try:
        return os.path.isdir(folder) and any(
            name.endswith((".dist-info", ".egg-info")) for name in os.listdir(folder or ".")
        )
    except OSError:
        return False


def _entries(folder: str) -> Dict[str, int]:
    """Return the names in a folder, each distribution's with the time of its metadata."""
    changed: Dict[str, int] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name != "__pycache__" and not name.endswith(".pyc"):
                    changed[name] = int(entry.stat().st_mtime) if name.endswith(".dist-info") else 0
    except OSError:  # a folder that is not there is one more state to compare
        return changed
    return changed


def stale_reason(baseline: Dict[str, Any]) -> str:
    """Return what differs from when the baseline was written, or "" for nothing."""
    then, now = baseline["stamp"], take_stamp()
    for name in ("python", "prefix"):
        if then.get(name) != now[name]:
            return f"{name} was {then.get(name)}, is {now[name]}"
    before = then.get("variables", {})
    for name in VARIABLES:
        if before.get(name) != now["variables"].get(name):
            return (
                f"{name} was {before.get(name) or 'not set'}, is "
                f"{now['variables'].get(name) or 'not set'}"
            )
    folders = then.get("folders", {})
    if list(folders) != list(now["folders"]):
        return (
            f"distributions are looked for in {', '.join(now['folders'])}, not in "
            f"{', '.join(folders)}"
        )
    for folder, entries in now["folders"].items():
        if entries != folders[folder]:
            return _difference(folder, folders[folder], entries)
    return ""


def _difference(folder: str, before: Dict[str, int], now: Dict[str, int]) -> str:
    words = (
        ("added", _not_in(now, before)),
        ("removed", _not_in(before, now)),
        ("changed", [name for name in now if before.get(name) != now[name]]),
    )
    for word, names in words:
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            return f"{names[0]}{more} {word} in {folder}"
    return ""


def _not_in(names: Dict[str, int], others: Dict[str, int]) -> Sequence[str]:
    return sorted(name for name in names if name not in others)


def find_baseline(path: Optional[str]) -> Optional[str]:
    """Return the baseline that serves: the one that was named, else that of the environment where
    there is one.
    """
    if path is not None:
        return path
    usual = default_path()
    return usual if os.path.exists(usual) else None
