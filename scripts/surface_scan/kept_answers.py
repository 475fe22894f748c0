"""Answers about archives, kept by the hash of each: what an archive does not have, or does not
take, stays so, and of a package of a hundred releases one is new.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any, Callable, Dict, Set

from .store import Archive, Sources

__all__ = ["KeptAnswers", "revision_here"]


@functools.cache
def revision_here() -> str:
    """Return a digest of what decides an answer besides the archive: the code that reads, and the
    list of packages. Whatever changes of it, all is asked again.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.iterdir()):
        if path.suffix in (".py", ".toml"):
            digest.update(path.name.encode("utf-8"))
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


class KeptAnswers:
    """Answers of one run and of those before it."""

    def __init__(self, sources: Sources, revision: str = "") -> None:
        """revision: of what decides an answer, that of the code here where it is empty."""
        self._sources = sources
        self._revision = revision or revision_here()
        self._known: Dict[str, Dict[str, Any]] = {}
        self._changed: Set[str] = set()

    def answer(self, archive: Archive, question: str, ask: Callable[[], Any]) -> Any:
        """Return what an archive answered to a question, or ask it now. The answer is JSON; where
        nothing was read of a release, it is asked each time.
        """
        if not archive.sha256:
            return ask()
        known = self._of_archive(archive.sha256)
        if question not in known:
            known[question] = ask()
            self._changed.add(archive.sha256)
        return known[question]

    def _of_archive(self, sha256: str) -> Dict[str, Any]:
        if sha256 not in self._known:
            self._known[sha256] = self._kept(sha256)
        return self._known[sha256]

    def _kept(self, sha256: str) -> Dict[str, Any]:
        text = self._sources.reading(f"answers {sha256}", self._revision)
        kept: Dict[str, Any] = json.loads(text) if text else {}
        return kept

    def flush(self) -> None:
        """Keep what was asked, beside what another run has kept meanwhile."""
        rows = []
        for sha256 in sorted(self._changed):
            answers = {**self._kept(sha256), **self._known[sha256]}
            rows.append((f"answers {sha256}", json.dumps(answers, separators=(",", ":"))))
        self._sources.keep_readings(rows, self._revision)
        self._changed.clear()
