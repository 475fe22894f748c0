"""Files that a script names by the whole path of another machine, where a repository's own stands
behind it: the longest end of the path that the tree around the script has, of two parts at least.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Dict, List, Tuple

__all__ = ["path_in_tree"]

_MAX_LEVELS = 8
_MOST_FILES = 50_000
_FEWEST_PARTS = 2
_ENDINGS = (".py", ".json", ".yaml", ".yml")


def path_in_tree(base: str, path: str) -> str:
    """Return the file of the repository around ``base`` that ends as a whole path does; "" where
    there is none, or no single one that is nearest.
    """
    root = _repository(os.path.abspath(base))
    if not root or "\0" in path:
        return ""
    parts = [part for part in os.path.normpath(path).split(os.sep) if part]
    held = _files(root).get(parts[-1], ()) if parts else ()
    common = [(_common_end(one.split(os.sep), parts), one) for one in held]
    longest = max((count for count, _ in common), default=0)
    if longest < _FEWEST_PARTS:
        return ""
    own = os.path.relpath(os.path.abspath(base), root).split(os.sep)
    ends = [one for count, one in common if count == longest]
    near = [_common_start(one.split(os.sep), own) for one in ends]
    nearest = [one for one, count in zip(ends, near) if count == max(near)]
    return os.path.join(root, nearest[0]) if len(nearest) == 1 else ""


def _common_end(one: List[str], other: List[str]) -> int:
    return _common_start(one[::-1], other[::-1])


def _common_start(one: List[str], other: List[str]) -> int:
    count = 0
    for first, second in zip(one, other):
        if first != second:
            break
        count += 1
    return count


def _repository(folder: str) -> str:
    for _ in range(_MAX_LEVELS):
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        folder = os.path.dirname(folder)
    return ""


@lru_cache(maxsize=2)
def _files(root: str) -> Dict[str, Tuple[str, ...]]:
    """Return the files of a tree that a run may name, by their last part; nothing of one that is
    larger than any repository.
    """
    by_name: Dict[str, Tuple[str, ...]] = {}
    count = 0
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if not name.startswith(".")]
        count += len(names) + len(below)
        if count > _MOST_FILES:
            return {}
        for name in names:
            if name.endswith(_ENDINGS):
                path = os.path.relpath(os.path.join(folder, name), root)
                by_name[name] = (*by_name.get(name, ()), path)
    return by_name
