"""The baseline that ``envdoctor bake`` writes into an image, and the stamp by which a start sees
that nothing was installed since.

Read at every start, so next to nothing is imported here.
"""

from __future__ import annotations

import json
import os
import sys

from ..regular_files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Sequence

    from ..probes.machine import Machine

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
    text = read_regular(path, _LARGEST).decode("utf-8")
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


def take_stamp(machine: Machine) -> Dict[str, Any]:
    """Return what changes when something is installed, at the price of one listing and two looks a
    distribution.

    Names and times in seconds: inodes and parts of seconds do not survive the layers of an image.
    ``__pycache__`` and compiled files come and go with the first run, and the time of a folder with
    them.
    """
    return {**_of_process(), "folders": _folders(machine)}


def _of_process() -> Dict[str, Any]:
    """Return the part of a stamp that is read of no file."""
    return {
        "python": sys.version.split()[0],
        "prefix": sys.prefix,
        "variables": {name: os.environ[name] for name in VARIABLES if os.environ.get(name)},
    }


def _folders(machine: Machine) -> Dict[str, Dict[str, int]]:
    """Return the folders in which distributions are found, as they are read without site (a start
    runs without it, bake with it), with their names.
    """
    from ..probes.interpreter import listing, search_path_without_site

    stamp = {}
    for folder in search_path_without_site(machine):
        if folder.endswith(("site-packages", "dist-packages")) or any(
            name.endswith((".dist-info", ".egg-info")) for name in listing(machine, folder) or ()
        ):
            try:
                stamp[folder] = machine.use(_entries, folder)
            except OSError:  # a folder that cannot be listed is one more state to compare
                stamp[folder] = {}
    return stamp


def _entries(folder: str) -> Dict[str, int]:
    """Return the names in a folder, each distribution's with the time of its metadata; that is
    negative where this user may not read it.
    """
    changed: Dict[str, int] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(".dist-info"):
                changed[name] = _time_of(entry)
            elif name != "__pycache__" and not name.endswith(".pyc"):
                changed[name] = 0
    return changed


def _time_of(entry: os.DirEntry[str]) -> int:
    try:
        seconds = int(entry.stat().st_mtime)
    except FileNotFoundError:  # a link that leads nowhere
        return 0
    return seconds if os.access(f"{entry.path}/METADATA", os.R_OK) else -1 - seconds


def stale_reason(baseline: Dict[str, Any], machine: Machine) -> str:
    """Return what differs from when the baseline was written, or "" for nothing."""
    then, now = baseline["stamp"], _of_process()
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
    folders, folders_now = then.get("folders", {}), _folders(machine)
    if list(folders) != list(folders_now):
        return (
            f"distributions are looked for in {', '.join(folders_now)}, not in {', '.join(folders)}"
        )
    for folder, entries in folders_now.items():
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
