"""Spans of places in a list of releases, ``0-3,7``, and the head of the documents that hold them:
``names/*.json``, ``messages/*.json`` and ``symbols.json``.
"""

from __future__ import annotations

from typing import Any, FrozenSet, Iterable, Iterator, List, Optional, Sequence, Tuple

from ..model.pattern import pattern
from ..model.versions import try_version

__all__ = [
    "Span",
    "are_spans",
    "are_texts",
    "head_fault",
    "packages_fault",
    "places_of",
    "span_holds",
    "spans_of",
    "text_of_places",
    "versions_fault",
]

#: The first and the last release of a run.
Span = Tuple[str, str]
_SPANS = pattern(r"(?:\d{1,6}(?:-\d{1,6})?(?:,(?=\d)|$))*")


def places_of(text: str) -> FrozenSet[int]:
    """Return all places of spans."""
    return frozenset(place for first, last in _ends(text) for place in range(first, last + 1))


def text_of_places(places: Iterable[int]) -> str:
    """Return places as ``0-3,7``."""
    runs: List[List[int]] = []
    for place in sorted(set(places)):
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def spans_of(text: str, versions: Sequence[str]) -> Tuple[Span, ...]:
    """Return spans of places as spans of these releases."""
    return tuple((versions[first], versions[last]) for first, last in _ends(text))


def span_holds(spans: Sequence[Span], versions: Sequence[str], version: str) -> Optional[bool]:
    """Tell whether spans of releases hold one; None for one that is none of ``versions``."""
    if version not in versions:
        return None
    place = versions.index(version)
    return any(versions.index(first) <= place <= versions.index(last) for first, last in spans)


def are_spans(text: Any, count: int) -> bool:
    """Tell whether a text is spans of places below ``count``; "" is none of them."""
    return (
        isinstance(text, str)
        and _SPANS.fullmatch(text) is not None
        and all(last < count for _, last in _ends(text))
    )


def _ends(text: str) -> Iterator[Tuple[int, int]]:
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield int(first), int(last or first)


def are_texts(values: Any) -> bool:
    """Tell whether a value is a list of texts."""
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def head_fault(document: Any, schema: int) -> str:
    """Tell what is wrong with the schema, the name, the date or the releases of a document, "" for
    nothing.
    """
    if not isinstance(document, dict) or document.get("schema") != schema:
        return f"expected an object with schema {schema}"
    if not isinstance(document.get("name"), str) or not isinstance(document.get("date"), str):
        return "expected a name and a date"
    return versions_fault(document.get("versions"))


def versions_fault(versions: Any) -> str:
    """Tell what is wrong with the releases that places count, "" for nothing."""
    if not are_texts(versions) or not versions or not all(map(try_version, versions)):
        return "expected texts of versions"
    return ""


def packages_fault(document: Any, schema: int) -> str:
    """Tell what is wrong with an index, texts by package, "" for nothing."""
    if not isinstance(document, dict) or document.get("schema") != schema:
        return f"expected an object with schema {schema}"
    packages = document.get("packages")
    if not isinstance(packages, dict) or not all(
        isinstance(words, str) for words in packages.values()
    ):
        return "expected an object of texts by package"
    return ""
