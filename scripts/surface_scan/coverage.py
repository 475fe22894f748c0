"""How many of the releases are read and measured, by package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set

from .packages import Packages
from .store import Sources

__all__ = ["coverage_lines"]


def coverage_lines(
    packages: Packages, sources: Sources, matrices: Path, since: str
) -> Iterator[str]:
    """Yield a table: releases that the matrix lists from a day on, those whose archive was read,
    those whose imports were measured, statements; packages of which something is missing, then the
    sums.
    """
    total = [0, 0, 0, 0]
    yield f"{'package':<28}{'releases':>9}{'read':>7}{'measured':>10}{'statements':>12}"
    for name in packages.names:
        read = {archive.version for archive in sources.archives(name)}
        listed = _listed(matrices / "packages" / f"{name}.json", since) or read
        document = _document(matrices / "surfaces" / f"{name}.json")
        measured = set(document.get("measured", ()))
        statements: List[Any] = document.get("statements", [])
        numbers = [len(listed), len(listed & read), len(listed & measured), len(statements)]
        total = [sum(pair) for pair in zip(total, numbers)]
        if numbers[1] < numbers[0] or numbers[2] < numbers[0] or statements:
            yield _line(name, numbers)
    yield _line(f"all {len(packages.names)} packages", total)


def _line(name: str, numbers: List[int]) -> str:
    releases, read, measured, statements = numbers
    return f"{name:<28}{releases:>9}{read:>7}{measured:>10}{statements:>12}"


def _listed(path: Path, since: str) -> Set[str]:
    return {
        entry["version"]
        for entry in _document(path).get("releases", ())
        if entry["released"] >= since and not entry.get("yanked")
    }


def _document(path: Path) -> Dict[str, Any]:
    if not path.exists():
        return {}
    document: Dict[str, Any] = json.loads(path.read_text("utf-8"))
    return document
