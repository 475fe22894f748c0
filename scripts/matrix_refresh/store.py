"""What was read so far, by the hash of the file it came from.

An entry never changes: the hash is the index's, so a file that was replaced has another one. Pages
of projects are kept as they came last, for ``--offline-cache`` only. Every file is written beside
its place and moved there, so that a run may be killed at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Dict, NamedTuple, Optional

from envdoctor.file_replacement import replace_file

from .metadata import Metadata

__all__ = ["Page", "Store", "default_folder"]

#: Part of the path of every entry: raised when another reading of the same bytes is wanted.
_FORMAT = "1"


class Page(NamedTuple):
    """A page of the index as it came."""

    content: bytes
    content_type: str
    address: str


def default_folder() -> str:
    """Return where a run keeps what it read: ``$XDG_CACHE_HOME/envdoctor/refresh``."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "envdoctor", "refresh")


class Store:
    """Metadata by hash of the file, pages by index and project."""

    def __init__(self, folder: str, index: str) -> None:
        self._files = os.path.join(folder, "metadata", _FORMAT)
        self._pages = os.path.join(
            folder, "pages", hashlib.sha256(index.encode("utf-8")).hexdigest()[:16]
        )
        os.makedirs(self._files, exist_ok=True)
        os.makedirs(self._pages, exist_ok=True)

    def metadata(self, sha256: str) -> Optional[Metadata]:
        """Return what a file with this hash said, or None where it was not read yet."""
        entry = self._load(self._path(sha256)) if sha256 else None
        if not isinstance(entry, dict) or entry.get("sha256") != sha256:
            return None
        requires = entry.get("requires")
        return Metadata(None if requires is None else tuple(requires), entry.get("requires_python"))

    def keep_metadata(self, sha256: str, name: str, metadata: Metadata) -> None:
        """Keep what a file said; one without hash is read again each time."""
        if sha256:
            self._save(
                self._path(sha256),
                {
                    "sha256": sha256,
                    "file": name,
                    "requires": metadata.requires,
                    "requires_python": metadata.requires_python,
                },
            )

    def page(self, project: str) -> Optional[Page]:
        """Return the page of a project as it came last."""
        try:
            with open(os.path.join(self._pages, project), "rb") as file:
                head, _, content = file.read().partition(b"\n")
            content_type, address = json.loads(head)
        except (OSError, ValueError):
            return None
        return Page(content, content_type, address)

    def keep_page(self, project: str, page: Page) -> None:
        """Keep the page of a project."""
        head = json.dumps([page.content_type, page.address]).encode("utf-8")
        replace_file(os.path.join(self._pages, project), head + b"\n" + page.content)

    def _path(self, sha256: str) -> str:
        return os.path.join(self._files, sha256[:2], sha256)

    @staticmethod
    def _load(path: str) -> Any:
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    @staticmethod
    def _save(path: str, entry: Dict[str, Any]) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # No fsync: an entry that a power cut leaves empty is no JSON, and is read again.
        replace_file(path, json.dumps(entry, ensure_ascii=True).encode("ascii"), durable=False)
