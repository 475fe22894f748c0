"""The files of matrices/surfaces: how they are written, and how they name releases."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Sequence

from envdoctor.file_replacement import replace_file

__all__ = ["SCHEMA", "newest", "place_spans", "read_document", "runs", "write_document"]

SCHEMA = 1


def read_document(path: Path) -> Dict[str, Any]:
    """Return a file as it is, an empty object where there is none."""
    document: Dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return document


def write_document(
    path: Path, values: Mapping[str, Any], statements: Sequence[Mapping[str, Any]]
) -> None:
    """Write a file, one line for each statement, measured today."""
    head = {
        "schema": SCHEMA,
        "name": path.stem,
        **({"purpose": values["purpose"]} if values.get("purpose") else {}),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "measured": values["measured"],
        **({"imports": values["imports"]} if "imports" in values else {}),
    }
    body = ",\n".join(json.dumps(statement, ensure_ascii=False) for statement in statements)
    text = json.dumps(head)[:-1] + ', "statements": [\n' + body + ("\n" if body else "") + "]}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(str(path), text.encode("utf-8"))


def runs(versions: Sequence[str], numbers: Iterable[int]) -> List[List[str]]:
    """Return [first, last] of each run of releases that follow one another."""
    return [[versions[first], versions[last]] for first, last in _runs(numbers)]


def place_spans(numbers: Iterable[int]) -> str:
    """Return places as a text: ``0-3,7``."""
    return ",".join(
        f"{first}" if first == last else f"{first}-{last}" for first, last in _runs(numbers)
    )


def newest(name: str, releases: Sequence[str], fits: Sequence[bool]) -> str:
    """The requirement for the newest releases in a row that fit, "" where none does."""
    last = max((number for number, fit in enumerate(fits) if fit), default=-1)
    if last < 0:
        return ""
    first = last
    while first and fits[first - 1]:
        first -= 1
    clauses = [f">={releases[first]}"] if first else []
    clauses += [f"<={releases[last]}"] if last + 1 < len(releases) else []
    return f"{name}{','.join(clauses)}"


def _runs(numbers: Iterable[int]) -> List[List[int]]:
    found: List[List[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
