"""The Python sources of releases, kept in one file by package, path, size and checksum: what two
releases share is read once, and a run may be killed at any time.

The file lies outside the repository ($XDG_CACHE_HOME/envdoctor/refresh/surfaces.sqlite).
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

__all__ = ["Archive", "Sources"]


class Archive(NamedTuple):
    """A wheel or source archive that was read.

    members: path below the folder that is on sys.path → key of its source, "" for what is there
    but was not read (an extension module, tests). modified from nothing: as the archive has it.
    """

    package: str
    version: str
    file: str
    sha256: str
    released: str
    members: Dict[str, str]


class Sources:
    """The store; one instance serves all threads of a run."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(
            os.path.join(folder, "surfaces.sqlite"), check_same_thread=False, timeout=60
        )
        self._database.executescript(
            """
            PRAGMA journal_mode=WAL;
            CREATE TABLE IF NOT EXISTS archive(
                sha256 TEXT PRIMARY KEY, package TEXT, version TEXT, file TEXT, released TEXT,
                members BLOB);
            CREATE INDEX IF NOT EXISTS archive_package ON archive(package);
            CREATE TABLE IF NOT EXISTS source(key TEXT PRIMARY KEY, content BLOB);
            CREATE TABLE IF NOT EXISTS reading(
                key TEXT PRIMARY KEY, revision TEXT, content BLOB);
            """
        )

    def missing(self, keys: Iterable[str]) -> Set[str]:
        """Return the keys whose source is not here yet."""
        wanted = set(keys)
        there: Set[str] = set()
        with self._lock:
            for key in wanted:
                if self._database.execute("SELECT 1 FROM source WHERE key=?", (key,)).fetchone():
                    there.add(key)
        return wanted - there

    def keep(self, archive: Archive, sources: Iterable[Tuple[str, bytes]]) -> None:
        """Keep an archive with the sources that were missing, all or nothing."""
        rows = [(key, zlib.compress(content, 6)) for key, content in sources]
        members = zlib.compress(json.dumps(archive.members).encode("utf-8", "surrogateescape"))
        with self._lock, self._database:
            self._database.executemany("INSERT OR IGNORE INTO source VALUES(?,?)", rows)
            self._database.execute(
                "INSERT OR REPLACE INTO archive VALUES(?,?,?,?,?,?)",
                (
                    archive.sha256,
                    archive.package,
                    archive.version,
                    archive.file,
                    archive.released,
                    members,
                ),
            )

    def has(self, sha256: str) -> bool:
        """Tell whether an archive was read."""
        with self._lock:
            found = self._database.execute("SELECT 1 FROM archive WHERE sha256=?", (sha256,))
            return found.fetchone() is not None

    def archives(self, package: str) -> List[Archive]:
        """Return the archives of a package, in no order."""
        with self._lock:
            rows = self._database.execute(
                "SELECT package, version, file, sha256, released, members FROM archive "
                "WHERE package=?",
                (package,),
            ).fetchall()
        return [Archive(*row[:5], json.loads(zlib.decompress(row[5]))) for row in rows]

    def days(self) -> Dict[str, List[Tuple[str, str]]]:
        """Return the versions of each package with the days on which they came."""
        with self._lock:
            rows = self._database.execute("SELECT package, version, released FROM archive")
            days: Dict[str, List[Tuple[str, str]]] = {}
            for package, version, released in rows:
                days.setdefault(package, []).append((version, released))
        return days

    def packages(self) -> Dict[str, int]:
        """Return how many archives there are of each package."""
        with self._lock:
            rows = self._database.execute("SELECT package, count(*) FROM archive GROUP BY package")
            return dict(rows.fetchall())

    def source(self, key: str) -> bytes:
        """Return a source; raises :class:`KeyError`."""
        with self._lock:
            row = self._database.execute(
                "SELECT content FROM source WHERE key=?", (key,)
            ).fetchone()
        if row is None:
            raise KeyError(key)
        return zlib.decompress(row[0])

    def reading(self, key: str, revision: str) -> Optional[str]:
        """Return what was read from a source by this revision of the reader, as JSON, or None."""
        with self._lock:
            row = self._database.execute(
                "SELECT content FROM reading WHERE key=? AND revision=?", (key, revision)
            ).fetchone()
        return zlib.decompress(row[0]).decode("utf-8") if row is not None else None

    def keep_readings(self, readings: Iterable[Tuple[str, str]], revision: str) -> None:
        """Keep what was read from sources."""
        rows = [(key, revision, zlib.compress(text.encode("utf-8"), 1)) for key, text in readings]
        with self._lock, self._database:
            self._database.executemany("INSERT OR REPLACE INTO reading VALUES(?,?,?)", rows)
