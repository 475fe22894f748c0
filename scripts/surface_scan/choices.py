"""Which values of a launch setting each release of an engine takes, and the GPUs that it takes them
on: quantisation methods and attention backends, from the engines' registries and classes.

The words stand in registries (``names/<engine>.json``), in enumerations, and in what ``get_name``
of a class returns; ``get_min_capability`` of the class is what the engine holds against the GPU,
where its loader says "is not supported for the current GPU".
"""

from __future__ import annotations

import re
from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    Optional,
    Pattern,
    Sequence,
    Set,
    Tuple,
)

from .documents import runs
from .gpu_answers import CAPABILITIES
from .measure import Measurement
from .release import Release

__all__ = ["choices_document", "variables_document"]

_LEAST = re.compile(rb"is not supported for\s*[\"']?\s*[\"']?\s*the current GPU")
#: What is raised of an attention backend that was asked for and does not serve the GPU.
_CHECKED = re.compile(rb"is not valid for")
_LOADERS = re.compile(
    r".*(?:/config(?:/\w+)?|model_loader/\w+|/quantization/\w+|/platforms/cuda)\.py"
)


def choices_document(
    listed: Mapping[str, Any], measurement: Measurement, names: Mapping[str, Mapping[str, Any]]
) -> Dict[str, Any]:
    """Return by setting, engine and word the releases that take it, and its least capability.

    listed: of ``families.toml``, by setting and engine: the ``tables`` that hold its words,
    ``classes``, the folder with a class for each, and ``enums`` in files below ``enum_folders``,
    whose values may name the classes that say which GPUs they serve. names: of each engine, what
    was measured.
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
    words = _Words(versions)
    for table in values.get("tables", ()):
        for span, text in names["registries"].get(table, {}).items():
            for word in text.split():
                if re.fullmatch(r"[a-z][\w.-]+", word):
                    words.taken.setdefault(word, set()).update(_places(span))
    words.known = set().union(*words.taken.values()) if words.taken else set()
    for release in releases:
        if release.archive.version in versions:
            words.read(release, values, measurement)
    return {word: words.entry(word) for word in sorted(words.taken)}


class _Words:
    """Where values are taken, by place in the versions, with the GPUs that they are not taken
    on.
    """

    def __init__(self, versions: Sequence[str]) -> None:
        self._versions = versions
        self.taken: Dict[str, Set[int]] = {}
        self.known: Set[int] = set()
        self._least: Dict[str, Dict[int, int]] = {}
        self._refused: Dict[str, Dict[int, FrozenSet[str]]] = {}
        self._source: Dict[str, Tuple[str, str, int]] = {}
        self._says: Dict[str, str] = {}

    def read(self, release: Release, values: Mapping[str, Any], measurement: Measurement) -> None:
        """Add what a release takes."""
        place = self._versions.index(release.archive.version)
        if "refusing" in values:
            self._read_refusals(place, release, values, measurement)
        if "classes" in values:
            self._read_methods(place, release, values["classes"], measurement)
        enforced = "enums" in values and _says(release, _CHECKED, measurement)
        for path, key in release.archive.members.items() if "enums" in values else ():
            if not key or not path.startswith(tuple(values["enum_folders"])):
                continue
            for word, made_by in measurement.readings.members(key, values["enums"]).items():
                self.taken.setdefault(word, set()).add(place)
                self._source.setdefault(word, (release.archive.file, path, 0))
                self.known.add(place)
                refused = _refused_by(made_by, release, measurement) if enforced else None
                if refused:
                    self._refused.setdefault(word, {})[place] = refused

    def _read_refusals(
        self, place: int, release: Release, values: Mapping[str, Any], measurement: Measurement
    ) -> None:
        """Add the GPUs that a release refuses for a word, by the checks in some of its files."""
        known = set(self.taken)
        for path, key in release.archive.members.items():
            if not key or not path.startswith(tuple(values["refusing"])):
                continue
            for refusal in measurement.readings.refusals(key):
                word = refusal.word
                if refusal.of_torch is not values.get("of_torch", False):
                    continue
                if not refusal.of_torch and word not in known:
                    continue
                if refusal.of_torch:  # which data types there are is torch's to say
                    self.taken.setdefault(word, set()).add(place)
                self._refused.setdefault(word, {})[place] = refusal.refused
                self._source[word] = (release.archive.file, path, refusal.line)
                self._says[word] = refusal.message

    def _read_methods(
        self, place: int, release: Release, folder: str, measurement: Measurement
    ) -> None:
        enforced = _says(release, _LEAST, measurement)
        for path, (word, capability, line) in _methods(release, folder, measurement):
            if not re.fullmatch(r"[a-z][\w.-]+", word):
                continue
            self.taken.setdefault(word, set()).add(place)
            self._source[word] = (release.archive.file, path, line)
            self.known.add(place)
            if capability and enforced:
                before = self._least.setdefault(word, {}).get(place, capability)
                self._least[word][place] = min(before, capability)

    def entry(self, word: str) -> Dict[str, Any]:
        """Return what is written of a word."""
        least, refused = self._least.get(word, {}), self._refused.get(word, {})
        taken, source = self.taken[word], self._source.get(word)
        entry = _entry(self._versions, taken, self.known, least, source)
        if word in self._says:
            entry["says"] = self._says[word]
        groups = sorted({gpus for gpus in refused.values() if gpus}, key=sorted)
        if groups:
            entry["refused"] = {
                " ".join(text for text in CAPABILITIES if text in gpus): runs(
                    self._versions, [place for place in sorted(refused) if refused[place] == gpus]
                )
                for gpus in groups
            }
        return entry


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


def _refused_by(
    made_by: str, release: Release, measurement: Measurement
) -> Optional[FrozenSet[str]]:
    """The compute capabilities that a class refuses, which stands as the value of a member."""
    module, _, name = made_by.rpartition(".")
    key = release.source_key(module) if module else ""
    backends = measurement.readings.backends(key) if key else []
    return next((refused for word, refused, _ in backends if word == name), None)


def _says(release: Release, text: Pattern[bytes], measurement: Measurement) -> bool:
    return any(
        measurement.readings.says(key, text)
        for path, key in release.archive.members.items()
        if key and _LOADERS.fullmatch(path)
    )


def _places(span: str) -> Iterator[int]:
    for part in span.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def variables_document(
    listed: Mapping[str, Any], measurement: Measurement
) -> Dict[str, Dict[str, str]]:
    """Return by engine the variables of its own that not all of its releases name anywhere in their
    Python sources, by the releases that do: ``0.6.4 0.11.0`` from the one to the other, with
    commas between such.

    listed: of ``families.toml``: the ``prefixes`` of an engine's variables.
    """
    document = {}
    for engine, values in listed.items():
        releases = measurement.releases(engine)
        word = re.compile(
            rb"(?<![A-Z0-9_])(?:%s)[A-Z0-9_]*[A-Z0-9]"
            % b"|".join(prefix.encode() for prefix in values["prefixes"])
        )
        named: Dict[str, Set[int]] = {}
        for place, release in enumerate(releases):
            for key in filter(None, release.archive.members.values()):
                for text in measurement.readings.words(key, word):
                    named.setdefault(text, set()).add(place)
        versions = [release.archive.version for release in releases]
        by_spans: Dict[str, List[str]] = {}
        for text, places in sorted(named.items()):
            if len(places) < len(releases):
                spans = runs(versions, sorted(places))
                by_spans.setdefault(",".join(map(" ".join, spans)), []).append(text)
        document[engine] = {spans: " ".join(words) for spans, words in by_spans.items()}
    return document
