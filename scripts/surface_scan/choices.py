"""Which values of a launch setting each release of an engine takes, and the GPUs that it takes them
on: quantisation methods and attention backends, from the engines' registries and classes.

The words stand in registries (``names/<engine>.json``) and in what ``get_name`` of a class returns;
``get_min_capability`` of the class is what the engine holds against the GPU, where its loader says
"is not supported for the current GPU".
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .documents import runs
from .measure import Measurement
from .release import Release

__all__ = ["choices_document"]

_LEAST = re.compile(rb"is not supported for\s*[\"']?\s*[\"']?\s*the current GPU")
_LOADERS = re.compile(r".*(?:/config(?:/\w+)?|model_loader/\w+|/quantization/\w+)\.py")


def choices_document(
    listed: Mapping[str, Any], measurement: Measurement, names: Mapping[str, Mapping[str, Any]]
) -> Dict[str, Any]:
    """Return by setting, engine and word the releases that take it, and its least capability.

    listed: of ``families.toml``, by setting and engine: the ``tables`` that hold its words, and
    ``classes``, the folder with a class for each. names: of each engine, what was measured.
    """
    document: Dict[str, Any] = {}
    for setting, engines in listed.items():
        for engine, values in engines.items():
            if engine in names:
                words = _words(values, names[engine], measurement.releases(engine), measurement)
                document.setdefault(setting, {})[engine] = words
    return document


def _words(
    values: Mapping[str, Any],
    names: Mapping[str, Any],
    releases: Sequence[Release],
    measurement: Measurement,
) -> Dict[str, Any]:
    versions: List[str] = list(names["versions"])
    taken: Dict[str, Set[int]] = {}
    for table in values["tables"]:
        for span, text in names["registries"].get(table, {}).items():
            for word in text.split():
                taken.setdefault(word, set()).update(_places(span))
    least: Dict[str, Dict[int, int]] = {}
    source: Dict[str, Tuple[str, str, int]] = {}
    known: Set[int] = set().union(*taken.values()) if taken else set()
    for release in releases:
        if release.archive.version not in versions or "classes" not in values:
            continue
        place = versions.index(release.archive.version)
        enforced = _is_enforced(release, measurement)
        for path, (word, capability, line) in _methods(release, values["classes"], measurement):
            taken.setdefault(word, set()).add(place)
            source[word] = (release.archive.file, path, line)
            known.add(place)
            if capability and enforced:
                before = least.setdefault(word, {}).get(place, capability)
                least[word][place] = min(before, capability)
    return {
        word: _entry(versions, taken[word], known, least.get(word, {}), source.get(word))
        for word in sorted(taken)
        if re.fullmatch(r"[a-z][\w.-]+", word)
    }


def _entry(
    versions: List[str],
    taken: Set[int],
    known: Set[int],
    least: Mapping[int, int],
    source: Optional[Tuple[str, str, int]],
) -> Dict[str, Any]:
    entry: Dict[str, Any] = {
        "in": runs(versions, taken),
        # between the first and the last that take it nothing is said
        "before": runs(versions, [place for place in known if place < min(taken)]),
        "after": runs(versions, [place for place in known if place > max(taken)]),
    }
    if source is not None:
        entry["archive"], entry["path"], entry["line"] = source
    if least:
        entry["least"] = {
            f"{capability // 10}.{capability % 10}": runs(
                versions, [place for place, held in least.items() if held == capability]
            )
            for capability in sorted(set(least.values()))
        }
    return entry


def _methods(
    release: Release, folder: str, measurement: Measurement
) -> Iterator[Tuple[str, Tuple[str, Any, int]]]:
    for path, key in release.archive.members.items():
        if key and path.startswith(folder):
            for method in measurement.readings.methods(key):
                yield path, method


def _is_enforced(release: Release, measurement: Measurement) -> bool:
    return any(
        measurement.readings.says(key, _LEAST)
        for path, key in release.archive.members.items()
        if key and _LOADERS.fullmatch(path)
    )


def _places(span: str) -> Iterator[int]:
    for part in span.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
