"""What a release demands, kept by what its archive holds: when one package has a new release, the
releases of those that import it are not read again.

What is demanded hangs on three things: the sources of the release, the code that reads them, and
what was asked of the newest releases of other packages, whose functions tell when an import runs.
The first two make the key; the third is kept with its answers, and what was kept counts as long as
today's newest releases answer the same.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from .conditions import Limits
from .packages import Entry, Packages
from .release import Demand, Gate, Readings, Release
from .store import Sources

__all__ = ["Demanded", "KeptDemands"]

_FOLDER = Path(__file__).resolve().parent
#: What reads a demand from sources; who imports another module of this folder there adds it.
_READERS = ("conditions", "gates", "kept_demands", "module", "parsing", "release")


class Demanded(NamedTuple):
    """What a release demands: names it imports, and what its code does about versions, with path
    and line. entered: the modules that its entries reach, with what must be there, and from where.
    """

    demands: List[Demand]
    gates: List[Tuple[Gate, str, int]]
    entered: Dict[str, Tuple[Limits, Entry]]


class KeptDemands:
    """Reads what releases demand, or takes it from the store."""

    def __init__(
        self,
        packages: Packages,
        sources: Sources,
        readings: Readings,
        newest: Callable[[Optional[str]], Optional[Release]],
    ) -> None:
        self._packages = packages
        self._sources = sources
        self._readings = readings
        self._newest = newest
        self._watched: Dict[str, _Watched] = {}
        self._answered: Dict[str, Any] = {}
        #: What the release at hand was told by those of others.
        self.answers: Dict[str, Any] = {}

    def of(self, release: Release) -> Demanded:
        """Return what a release demands."""
        revision = _revision(self._packages, release.archive.package)
        key = f"demanded {_digest(sorted(release.archive.members.items()))}"
        text = self._sources.reading(key, revision)
        document = json.loads(text) if text is not None else None
        if document is not None and self._still_answered(document["answers"]):
            return _restored(document)
        self.answers = {}
        entries = self._packages.entries[release.archive.package]
        demands = release.demands(entries, self._watch)
        gates = list(release.gates(self._watch))
        demanded = Demanded(demands, gates, dict(release.entered))
        text = json.dumps(_document(demanded, self.answers), separators=(",", ":"))
        self._sources.keep_readings([(key, text)], revision)
        return demanded

    def _watch(self, package: Optional[str]) -> Optional[Release]:
        """Return the newest release of a package as one that notes what it is asked."""
        newest = self._newest(package)
        if newest is None or package is None:
            self.answers[f"{package}"] = newest is not None
            return None
        if package not in self._watched:
            archive = newest.archive
            self._watched[package] = _Watched(archive, self._packages, self._readings, self)
        return self._watched[package]

    def _still_answered(self, answers: Mapping[str, Any]) -> bool:
        return all(self._answer(question) == answer for question, answer in answers.items())

    def _answer(self, question: str) -> Any:
        if question not in self._answered:
            package, _, module = question.partition(" ")
            newest = self._newest(package)
            if newest is None or not module:
                answer: Any = newest is not None
            elif module.endswith("?"):
                answer = newest.has_module(module[:-1])
            else:
                answer = _source_of(newest, module)
            self._answered[question] = answer
        return self._answered[question]


class _Watched(Release):
    """The newest release of a package: notes what those that import it are told of it."""

    def __init__(self, archive: Any, packages: Packages, readings: Readings, to: KeptDemands):
        super().__init__(archive, packages, readings)
        self._to = to

    def has_module(self, module: str) -> Optional[bool]:
        """Tell whether there is such a module."""
        there = super().has_module(module)
        self._to.answers[f"{self.archive.package} {module}?"] = there
        return there

    def reading(self, module: str) -> Optional[Dict[str, Any]]:
        """Return the reading of a module."""
        self._to.answers[f"{self.archive.package} {module}"] = _source_of(self, module)
        return super().reading(module)


def _source_of(release: Release, module: str) -> List[str]:
    return [release.path_of(module), release.source_key(module)]


def _revision(packages: Packages, package: str) -> str:
    """Return what changes with the code that reads a demand, and with what it knows of packages."""
    known = (
        sorted(packages.modules.items()),
        sorted(packages.entries),
        sorted(packages.elsewhere),
        packages.entries[package],
        sorted(packages.starts.get(package, {}).items()),
    )
    return f"demanded {_of_code()[:16]} {_digest(known)[:16]}"


@functools.cache
def _of_code() -> str:
    sources = [(_FOLDER / f"{name}.py").read_text("utf-8") for name in _READERS]
    return _digest(sources)


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "surrogateescape")).hexdigest()


def _document(demanded: Demanded, answers: Mapping[str, Any]) -> Dict[str, Any]:
    """Return it as JSON: limits and entries, which repeat, stand once."""
    limits: Dict[Limits, int] = {}
    entries: Dict[Entry, int] = {}

    def numbered(fields: Iterable[Any]) -> List[Any]:
        return [
            limits.setdefault(field, len(limits))
            if isinstance(field, Limits)
            else entries.setdefault(field, len(entries))
            if isinstance(field, Entry)
            else field
            for field in fields
        ]

    return {
        "demands": [numbered(demand) for demand in demanded.demands],
        "gates": [[numbered(gate), path, line] for gate, path, line in demanded.gates],
        "entered": [numbered([module, *own]) for module, own in demanded.entered.items()],
        "limits": list(limits),
        "entries": list(entries),
        "answers": answers,
    }


def _restored(document: Mapping[str, Any]) -> Demanded:
    limits = [
        Limits(tuple(map(tuple, versions)), tuple(present), tuple(absent))
        for versions, present, absent in document["limits"]
    ]
    entries = [Entry(*entry) for entry in document["entries"]]
    demands = [
        Demand(
            *(provider, module, name),
            limits[own],
            entries[entry],
            *(path, line, tuple(map(tuple, alternatives)), used),
        )
        for provider, module, name, own, entry, path, line, alternatives, used in (
            document["demands"]
        )
    ]
    gates = [
        (Gate(*fields[:3], limits[fields[3]], *fields[4:]), path, line)
        for fields, path, line in document["gates"]
    ]
    entered = {module: (limits[own], entries[entry]) for module, own, entry in document["entered"]}
    return Demanded(demands, gates, entered)
