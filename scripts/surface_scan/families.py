"""Which releases of transformers and of engines know a family of models: from the measured names
to ``matrices/model_families.json``. What tells it: ``families.toml``.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Tuple

from matrix_refresh.documents import read_toml
from matrix_refresh.errors import UsageFault

from envdoctor.file_replacement import replace_file

from .choices import choices_document, variables_document
from .documents import read_document, runs
from .measure import Measurement

__all__ = ["family_document", "load_families", "write_families"]

_LIST = Path(__file__).resolve().parent / "families.toml"
SCHEMA = 1
_TRANSFORMERS = "transformers"


def load_families(path: Path = _LIST) -> Dict[str, Any]:
    """Read the list; raises :class:`UsageFault`."""
    return read_toml(str(path))


def write_families(measurement: Measurement, matrices: Path) -> int:
    """Write the document where something but its date changed; return how many families it has."""
    path = matrices / "model_families.json"
    document = family_document(load_families(), measurement, matrices)
    old = read_document(path)
    if {**old, "date": ""} != {**document, "date": ""}:
        families = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(entry)}"
            for name, entry in document["families"].items()
        )
        choices = ",\n".join(
            f"{json.dumps(setting)}: {{\n{_lines(engines)}\n}}"
            for setting, engines in document["choices"].items()
        )
        head = json.dumps({key: document[key] for key in ("schema", "date", "engines")})
        variables = ",\n".join(
            f"{json.dumps(engine)}: {{\n{_lines_of(words)}\n}}"
            for engine, words in document["variables"].items()
        )
        states = json.dumps(document["states"])
        text = (
            f'{head[:-1]}, "families": {{\n{families}\n}}, "choices": {{\n{choices}\n}},\n'
            f'"states": {states}, "variables": {{\n{variables}\n}}}}\n'
        )
        replace_file(str(path), text.encode("utf-8"))
    return len(document["families"])


def _lines(engines: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a setting's words by engine, one per line."""
    parts = []
    for engine, entries in engines.items():
        parts.append(f"{json.dumps(engine)}: {{\n{_lines_of(entries)}\n}}")
    return ",\n".join(parts)


def _lines_of(entries: Mapping[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(word)}: {json.dumps(entries[word])}" for word in entries)


def family_document(
    listed: Mapping[str, Any], measurement: Measurement, matrices: Path
) -> Dict[str, Any]:
    """Return what is written: of each engine whose names were measured its releases and its
    stand-in for models that it does not have, of each family where each of them has it.
    """
    engines: Dict[str, _Engine] = {}
    for name, values in listed["engine"].items():
        names = read_document(matrices / "names" / f"{name}.json")
        if names:
            engines[name] = _Engine(name, values, names, measurement)
    families = {}
    for family, values in listed["family"].items():
        entry: Dict[str, Any] = {"name": values["name"]}
        for name, engine in engines.items():
            found = engine.entry(values)
            if found is not None:
                entry[name] = found
        own = {
            name: spans
            for name, engine in engines.items()
            if (spans := engine.configurations(values.get("model_type", "")))
        }
        if own and _TRANSFORMERS in entry:
            entry[_TRANSFORMERS]["own"] = own
        families[family] = entry
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "engines": {name: engine.summary() for name, engine in engines.items()},
        "families": families,
        "choices": choices_document(
            listed.get("choice", {}),
            measurement,
            {name: engine.names for name, engine in engines.items()},
        ),
        "variables": variables_document(
            {name: of for name, of in listed.get("variable", {}).items() if name in engines},
            measurement,
        ),
        "states": {
            values["variable"]: [setting, engine]
            for setting, by_engine in listed.get("choice", {}).items()
            for engine, values in by_engine.items()
            if "variable" in values and engine in engines
        },
    }


class _Engine:
    """What was measured of transformers or of an engine."""

    def __init__(
        self,
        name: str,
        values: Mapping[str, Any],
        names: Mapping[str, Any],
        measurement: Measurement,
    ) -> None:
        self._name = name
        self._values = values
        self._names = names
        self._measurement = measurement
        self._versions: Sequence[str] = names["versions"]

    @property
    def names(self) -> Mapping[str, Any]:
        """What was measured of its names."""
        return self._names

    def summary(self) -> Dict[str, Any]:
        """Return its words, the newest release that was read, and the releases with a stand-in."""
        summary: Dict[str, Any] = {"title": self._values["title"], "newest": self._versions[-1]}
        tables = [table for table in self._names["registries"] if table != "--"]
        summary["stand_in"] = {
            kind: self._spans(self._of_places(words) | self._registered(words, tables))
            for kind, words in self._values.get("stand_in", {}).items()
        }
        return summary

    def entry(self, family: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
        """Return where it has a family, with the line that says so in the first release that has;
        None where nothing was measured, or where all releases have it.
        """
        words = (
            [family["model_type"]] if self._name == _TRANSFORMERS and "model_type" in family else []
        )
        if self._name != _TRANSFORMERS:
            words = family.get("architectures", [])
        place = family.get("places", {}).get(self._name)
        tables = self._values["tables"]
        numbers = self._of_places([place]) if place else self._registered(words, tables)
        # What the first tables have that were read says nothing of the releases before them.
        known = self._tabled(tables) if not place else frozenset(range(len(self._versions)))
        if not numbers or min(numbers) == min(known):
            return None
        word, archive, path, line = self._witness(min(numbers), words, place)
        entry = {
            "word": word,
            "in": self._spans(numbers),
            "archive": archive,
            "path": path,
            "line": line,
        }
        refused = self._registered(words, self._values.get("ended", ())) - numbers
        if refused:
            entry["refused"] = self._spans(refused)
        if "stand_in" in family:
            entry["stand_in"] = family["stand_in"]
        return entry

    def configurations(self, model_type: str) -> List[List[str]]:
        """Return the releases that bring the configuration of a model type themselves."""
        below = self._values.get("configs")
        numbers = self._of_places([f"{below}.{model_type}"]) if below and model_type else ()
        numbers = {*numbers, *self._registered([model_type], ["_CONFIG_REGISTRY"])}
        return self._spans(numbers) if below else []

    def _registered(self, words: Sequence[str], tables: Iterable[str]) -> FrozenSet[int]:
        numbers = set()
        for table in tables:
            for spans, registered in self._names["registries"].get(table, {}).items():
                if not set(words).isdisjoint(registered.split()):
                    numbers.update(_numbers(spans))
        return frozenset(numbers)

    def _tabled(self, tables: Iterable[str]) -> FrozenSet[int]:
        """The releases of which a table was read."""
        spans = [text for table in tables for text in self._names["registries"].get(table, {})]
        return frozenset(number for text in spans for number in _numbers(text))

    def _of_places(self, modules: Iterable[str]) -> FrozenSet[int]:
        modules_of = self._names["modules"]
        return frozenset(
            number for name in modules for number in _numbers(modules_of.get(name, ""))
        )

    def _spans(self, numbers: Iterable[int]) -> List[List[str]]:
        return runs(self._versions, numbers)

    def _witness(
        self, number: int, words: Sequence[str], place: Optional[str]
    ) -> Tuple[str, str, str, int]:
        """Return a word of those, and the archive, file and line in which a release has it."""
        release = self._measurement.releases(self._name)[number]
        if place:
            return place, release.archive.file, release.path_of(place), 1
        readings = self._measurement.readings
        for module in sorted(release.modules):
            key = release.source_key(module)
            for word in words if key else ():
                line = readings.line_with(key, word)
                tables = readings.registries(key).get("registries", {}) if line else {}
                if any(word in tables.get(table, ()) for table in self._values["tables"]):
                    return word, release.archive.file, release.path_of(module), line
        raise UsageFault(
            f"{self._name} {release.version}: {words} were measured, and are not there"
        )


def _numbers(text: str) -> List[int]:
    numbers: List[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
