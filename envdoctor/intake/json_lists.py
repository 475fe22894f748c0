"""Lists of distributions as JSON: ``pip list`` and ``uv pip list`` with ``--format json``, ``conda
list --json``, and ``pip inspect``, whose descriptions of packages are no statements of a report.
"""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, List, Mapping, Tuple

from .clean_text import Line
from .draft import EXACT, Draft
from .package_lists import is_whole_list

__all__ = ["read_json_lists"]

_BEGINS = re.compile(
    r"^[ \t]*(?:\[\s*\{\s*\"(?:name|base_url|build_\w+|channel|dist_name)\"\s*:"
    r"|\{\s*\"version\"\s*:\s*\"\d\"\s*,\s*\"pip_version\")",
    re.MULTILINE,
)
_MARKS = ('"name"', '"pip_version"')
_MOST = 20  # lists of one text
_NOT_NEWLINE = re.compile(r"[^\n]")


def read_json_lists(text: str, draft: Draft) -> str:
    """Claim what lists of JSON hold; return the text with these blank, every line where it was."""
    if not any(mark in text for mark in _MARKS):
        return text
    for start, end, content in list(_lists(text))[:_MOST]:
        line = Line(text.count("\n", 0, start) + 1, "", "", 0)
        if isinstance(content, list):
            _read_entries(content, line, draft)
        else:
            _read_inspection(content, line, draft)
        text = text[:start] + _NOT_NEWLINE.sub(" ", text[start:end]) + text[end:]
    return text


def _lists(text: str) -> Iterator[Tuple[int, int, Any]]:
    """Yield where each list begins and ends, and what it is; one that was cut is none."""
    reached = 0
    for match in _BEGINS.finditer(text):
        start = match.end() - len(match.group().lstrip())
        if start < reached:
            continue
        try:
            content, reached = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        yield start, reached, content


def _read_entries(entries: List[Any], line: Line, draft: Draft) -> None:
    """Read what pip, uv or conda lists: conda names builds and channels."""
    listed = [entry for entry in entries if isinstance(entry, dict) and _has_texts(entry)]
    for entry in listed:
        if "channel" in entry:
            build, channel = str(entry.get("build_string", "")), str(entry["channel"])
            draft.conda(entry["name"], entry["version"], build, channel, line, EXACT)
        else:
            location = str(entry.get("editable_project_location") or "")
            draft.distribution(
                entry["name"],
                entry["version"],
                line,
                EXACT,
                location=location,
                editable=bool(location),
            )
    if is_whole_list([entry["name"] for entry in listed]):
        draft.complete_distributions(line, "a whole package list")


def _has_texts(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("name"), str) and isinstance(entry.get("version"), str)


def _read_inspection(content: Mapping[str, Any], line: Line, draft: Draft) -> None:
    """Read ``pip inspect`` (pip.pypa.io/en/stable/reference/inspect-report)."""
    entries = content.get("installed")
    names = []
    for entry in entries if isinstance(entries, list) else ():
        metadata = entry.get("metadata") if isinstance(entry, dict) else None
        if isinstance(metadata, dict) and _has_texts(metadata):
            names.append(metadata["name"])
            draft.distribution(
                metadata["name"],
                metadata["version"],
                line,
                EXACT,
                installer=str(entry.get("installer") or ""),
            )
    if is_whole_list(sorted(names, key=str.lower)):
        draft.complete_distributions(line, "pip inspect")
    markers = content.get("environment")
    for marker, value in markers.items() if isinstance(markers, dict) else ():
        if marker in _OF_MARKERS and isinstance(value, str) and value:
            draft.put(_OF_MARKERS[marker], value, line, EXACT)


#: Environment markers, and the fields that they are.
_OF_MARKERS = {
    "python_full_version": "python.version",
    "sys_platform": "os.platform",
    "platform_machine": "os.architecture",
    "platform_release": "os.kernel",
}
