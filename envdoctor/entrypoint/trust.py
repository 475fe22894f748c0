"""What a matrix is known by, where only a pinned one is trusted."""

from __future__ import annotations

import hashlib
import os

__all__ = ["digest_of"]

_PREFIX = "sha256:"


def digest_of(folder: str) -> str:
    """Return the digest of the files of an installed matrix, by path and content; of an update all
    count but ``origin.json``, which says where it was downloaded.
    """
    whole = hashlib.sha256()
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            inside = os.path.relpath(path, folder)
            if inside == "origin.json":
                continue
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).hexdigest()
            whole.update(f"{content}  {inside}\n".encode("utf-8", "surrogateescape"))
    return _PREFIX + whole.hexdigest()
