"""A copy of an environment's folders that gives them back byte for byte, without the network and
after any interruption.

The copy lies in ``PREFIX/.envdoctor-change``, so on the same file system: what installers replace
(they unlink and write anew) is kept by hard links, which costs no space and 1.5 s for 50,000 files;
what is small and may be written in place (metadata, ``.pth``, scripts) is copied. ``state.json`` is
written last and removed first: with it there the copy is whole and the change unfinished, without
it nothing was changed.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..file_replacement import create_file, name_beside, replace_file, sync_folder

__all__ = [
    "FOLDER",
    "Restored",
    "discard_snapshot",
    "read_state",
    "restore_snapshot",
    "take_snapshot",
]

#: Name of the folder in the environment's prefix.
FOLDER = ".envdoctor-change"
_STATE = "state.json"
_COPIED_SUFFIXES = (".pth", ".egg-link", ".cfg", ".txt", ".json")
_SMALL = 1 << 16


class Restored(NamedTuple):
    """What a restore did: files put back, files removed, and files of which no true copy was
    left.
    """

    replaced: int
    removed: int
    lost: Tuple[str, ...]


def read_state(prefix: str) -> Optional[Dict[str, Any]]:
    """Return what an unfinished change left: None where there is none, nothing where it cannot be
    read, since then too the environment is half changed.
    """
    try:
        with open(os.path.join(prefix, FOLDER, _STATE), encoding="utf-8") as file:
            state: Dict[str, Any] = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def take_snapshot(prefix: str, folders: Sequence[str], notes: Dict[str, Any]) -> None:
    """Copy folders of an environment. Raises :class:`OSError`; then nothing is left.

    Args:
        prefix: the environment.
        folders: folders within ``prefix``, none within another.
        notes: what is to stand in ``state.json`` besides.
    """
    base = os.path.join(prefix, FOLDER)
    shutil.rmtree(base, ignore_errors=True)
    try:
        os.mkdir(base, 0o700)
        manifest: List[List[Any]] = []
        for number, folder in enumerate(folders):
            _copy_tree(folder, os.path.join(base, str(number)), number, manifest)
        state = {"folders": list(folders), **notes}
        # JSON in ASCII: names of files may hold bytes that are no UTF-8.
        replace_file(os.path.join(base, "files.json"), json.dumps(manifest).encode("ascii"))
        replace_file(os.path.join(base, _STATE), json.dumps(state).encode("ascii"))
    except BaseException:
        discard_snapshot(prefix)
        raise


def discard_snapshot(prefix: str) -> None:
    """Remove a snapshot; ``state.json`` goes first, so that a half-removed one is none."""
    base = os.path.join(prefix, FOLDER)
    try:
        os.unlink(os.path.join(base, _STATE))
        sync_folder(base)
    except OSError:  # there is none
        pass
    shutil.rmtree(base, ignore_errors=True)


def restore_snapshot(prefix: str) -> Restored:
    """Give the folders back as they were. May be run again after it was interrupted.

    Raises :class:`OSError`.
    """
    base = os.path.join(prefix, FOLDER)
    folders, wanted = _notes(base)
    removed = _remove_others(folders, base, wanted)
    replaced, lost = 0, []
    for path, entry in wanted.items():  # folders come before what is in them
        kept = os.path.normpath(os.path.join(base, str(entry[0]), entry[1]))
        if entry[2] == "d":
            if not os.path.isdir(path):
                os.mkdir(path)
            os.chmod(path, entry[3])
        elif not _is_as_it_was(path, entry):
            if entry[2] != "l" and not _has(os.lstat(kept), entry):
                lost.append(path)  # written in place through the link
            _put_back(kept, path, entry)
            replaced += 1
    for path, entry in reversed(list(wanted.items())):
        if entry[2] == "d":
            os.utime(path, ns=(entry[4], entry[4]))
    return Restored(replaced, removed, tuple(lost))


def _remove_others(folders: Sequence[str], base: str, wanted: Mapping[str, List[Any]]) -> int:
    """Remove what is not among the entries of a snapshot, or is of another kind; return how many
    those were.
    """
    removed = 0
    for folder in folders:
        for path, is_folder in _walk_up(folder, base):
            entry = wanted.get(path)
            if entry is None or (entry[2] == "d") != is_folder:
                os.rmdir(path) if is_folder else os.unlink(path)
                removed += 1
    return removed


def _notes(base: str) -> Tuple[List[str], Dict[str, List[Any]]]:
    """Return the folders of a snapshot and its entries by path; raises :class:`OSError`."""
    try:
        with open(os.path.join(base, _STATE), encoding="utf-8") as file:
            folders = json.load(file)["folders"]
        with open(os.path.join(base, "files.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        return folders, {
            os.path.normpath(os.path.join(folders[entry[0]], entry[1])): entry for entry in manifest
        }
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise OSError(errno.EINVAL, "what it says of itself is damaged", base) from error


# --------------------------------------------------------------------------------------------------
# files


def _copy_tree(folder: str, copy: str, number: int, manifest: List[List[Any]]) -> None:
    """Copy a folder. An entry of the manifest: folder, path in it, kind (d, f, l), mode, mtime in
    ns, size or target of a link.
    """
    about = os.stat(folder)
    manifest.append([number, ".", "d", stat.S_IMODE(about.st_mode), about.st_mtime_ns, 0])
    os.mkdir(copy)
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        with os.scandir(os.path.join(folder, inner)) as entries:
            children = sorted(entries, key=lambda entry: entry.name)
        for entry in children:
            if not inner and entry.name == FOLDER:
                continue
            path = os.path.join(inner, entry.name)
            about = entry.stat(follow_symlinks=False)
            mode = stat.S_IMODE(about.st_mode)
            if stat.S_ISLNK(about.st_mode):
                manifest.append(
                    [number, path, "l", mode, about.st_mtime_ns, os.readlink(entry.path)]
                )
            elif stat.S_ISDIR(about.st_mode):
                manifest.append([number, path, "d", mode, about.st_mtime_ns, 0])
                os.mkdir(os.path.join(copy, path))
                waiting.append(path)
            elif stat.S_ISREG(about.st_mode):
                manifest.append([number, path, "f", mode, about.st_mtime_ns, about.st_size])
                _keep(entry.path, os.path.join(copy, path), about)


def _keep(path: str, copy: str, about: os.stat_result) -> None:
    """Keep a file by a hard link, or where it may be written in place or cannot be linked by a
    copy.
    """
    folder, name = os.path.split(path)
    metadata = folder.endswith((".dist-info", ".egg-info"))
    top = os.path.basename(folder) in ("site-packages", "dist-packages", "bin")
    if about.st_size <= _SMALL and (metadata or top or name.endswith(_COPIED_SUFFIXES)):
        shutil.copy2(path, copy)
        return
    try:
        os.link(path, copy)
    except OSError:  # another file system, a file of someone else, too many links
        shutil.copy2(path, copy)


def _has(about: os.stat_result, entry: Sequence[Any]) -> bool:
    return (
        stat.S_ISREG(about.st_mode) and about.st_size == entry[5] and about.st_mtime_ns == entry[4]
    )


def _is_as_it_was(path: str, entry: Sequence[Any]) -> bool:
    try:
        about = os.lstat(path)
        if entry[2] == "l":
            return stat.S_ISLNK(about.st_mode) and os.readlink(path) == entry[5]
    except OSError:
        return False
    return _has(about, entry) and stat.S_IMODE(about.st_mode) == entry[3]


def _put_back(kept: str, path: str, entry: Sequence[Any]) -> None:
    """Put a file in its place whole: the copy stays, so that a restore that is interrupted can be
    run again.
    """
    beside = name_beside(path)
    if entry[2] == "l":
        os.symlink(entry[5], beside)
    else:
        try:
            os.link(kept, beside)
        except OSError:
            with open(kept, "rb") as source, create_file(beside, 0o600) as copy:
                shutil.copyfileobj(source, copy)
            shutil.copystat(kept, beside)
        os.chmod(beside, entry[3])
    os.replace(beside, path)


def _walk_up(folder: str, spared: str) -> Iterator[Tuple[str, bool]]:
    """Yield everything in a folder and whether it is a folder, what is in one before it."""
    if not os.path.isdir(folder):
        return
    for base, folders, files in os.walk(folder, topdown=False):
        if base == spared or base.startswith(spared + os.sep):
            continue
        for name in files:
            yield os.path.normpath(os.path.join(base, name)), False
        for name in folders:
            path = os.path.normpath(os.path.join(base, name))
            if path != spared:
                yield path, not os.path.islink(path)
