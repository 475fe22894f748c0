"""In which releases of a package modules, names, attributes of classes and parameters of functions
exist, where they went, who imports them, and which releases of both fit.

``matrices/names/<package>.json`` holds what ``scripts/measure_surfaces --names`` read from the
wheels: what some releases have and others do not. ``matrices/names.json`` says which package has a
module, a class or a function, so that of the others nothing is read. Only ``diagnose`` reads them.
"""

from __future__ import annotations

from typing import (
    AbstractSet,
    Any,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ..model.record import NamedTuple
from ..model.version import Version
from ..model.versions import VersionSet, enumerated, parse_version, releases_of
from .spans import Span, are_spans, head_fault, packages_fault, places_of

__all__ = [
    "SCHEMA",
    "Importer",
    "NameHistory",
    "PackageNames",
    "Releases",
    "history_without",
    "index_fault",
    "names_fault",
    "owners_of",
]

SCHEMA = 2
_PARTS = ("modules", "names", "dynamic", "moved", "classes", "bases", "signatures", "registries")
_LIFE = "."  # stands for a class or a function itself
_MOST_ABOVE = 30  # classes above one that are looked at


class Importer(NamedTuple):
    """A package whose code imports a name, in the releases of these spans."""

    package: str
    spans: Tuple[Span, ...]


class Releases(NamedTuple):
    """The releases of a package from the first to the last that have something, "" for no end: of
    those that were read the oldest, or the newest, has it too.
    """

    package: str
    first: str
    last: str

    @property
    def words(self) -> str:
        """They in words, without the package."""
        if self.first and self.last:
            return releases_of(self.first, self.last)
        return f"{self.first} or newer" if self.first else f"{self.last} or older"

    def may_hold(self, version: Version) -> bool:
        """Tell whether a release may be one of them."""
        after = not self.first or version >= parse_version(self.first)
        return after and (not self.last or version <= parse_version(self.last))


class NameHistory(NamedTuple):
    """Where a name is: name is "" for a module itself. present: spans of releases that have it, of
    those from ``first`` to ``last``, which were read. kind: name, attribute, parameter, required (a
    parameter without which a call fails), override (a method without a parameter), or registry.
    open: spans of releases that may have it in a way that the source does not show. moved: the
    module that has it since. read: the oldest and the newest release of the package that were read,
    where its module, class or function is not in all of them.
    """

    package: str
    module: str
    name: str
    present: Tuple[Span, ...]
    first: str
    last: str
    importers: Tuple[Importer, ...] = ()
    kind: str = "name"
    open: Tuple[Span, ...] = ()
    moved: str = ""
    read: Span = ("", "")

    @property
    def full_name(self) -> str:
        """What is imported, in one."""
        return f"{self.module}.{self.name}" if self.name else self.module

    def has(self, version: Version) -> Optional[bool]:
        """Tell whether a release has the name; None for one outside those that were read."""
        if not parse_version(self.first) <= version <= parse_version(self.last):
            return None
        if version in VersionSet.spanning(self.present):
            return True
        return None if self.open and version in VersionSet.spanning(self.open) else False

    def side(self, version: Optional[Version] = None) -> str:
        """Tell on which side of those that have it a release is that lacks it: "newer", "older", or
        "" where both may be. Without a version, one of which nothing else is known.
        """
        if self.kind == "required":  # there the fault is to have it
            return ""
        after = self.present[-1][1] != self.last
        before = self.present[0][0] != self.first or len(self.present) > 1
        if version is not None:
            after = after and version > parse_version(self.present[-1][1])
            before = before and version < parse_version(self.present[0][0])
        if after == before:
            return ""
        return "newer" if after else "older" if len(self.present) == 1 or version else ""

    def sides(self, among: Optional[Releases] = None) -> List[str]:
        """Say which releases may lack it, where it was in one span, of those that are meant."""
        if self.kind == "required" or len(self.present) > 1:
            return []
        first, last = self.present[0]
        begins, ends = (among.first, among.last) if among is not None else ("", "")
        may_be_older = not begins or parse_version(begins) < parse_version(first)
        may_be_newer = not ends or parse_version(ends) > parse_version(last)
        older = [f"older than {first}"] if first != self.first and may_be_older else []
        newer = [f"newer than {last}"] if last != self.last and may_be_newer else []
        return older + newer

    def having(self) -> List[str]:
        """Say which releases cannot do without a parameter, where that began or ended once."""
        if self.kind != "required" or not self.fitting():
            return []
        (first, _), (_, last) = self.present[0], self.present[-1]
        began = len(self.present) == 1 and first not in (self.read[0], self.first)
        return [f"{first} or newer"] if began else [f"{last} or older"]

    def requirement(self, near: Optional[Version] = None) -> str:
        """Return the requirement for releases that have it: the span nearest to a version, which
        has no end on the side where nothing else was read.
        """
        first, last = self.present[-1]
        if near is not None:
            first, last = min(self.present, key=lambda span: _distance(span, near))
        clauses = [f">={first}"] if first != (self.read[0] or self.first) else []
        clauses += [f"<={last}"] if last != (self.read[1] or self.last) else []
        return f"{self.package}{','.join(clauses)}"

    def fitting(self) -> str:
        """Return the requirement for releases with which nobody misses it, or, of a parameter
        without which a call fails, that do not have it yet, or no more; "" where that is no range.
        """
        if self.kind != "required":
            requirement = self.requirement() if len(self.present) == 1 else self.package
            return requirement if requirement != self.package else ""
        (first, _), (_, last) = self.present[0], self.present[-1]
        if len(self.present) == 1 and first not in (self.read[0], self.first):
            return f"{self.package}<{first}"
        return f"{self.package}>{last}" if last not in (self.read[1], self.last) else ""

    def sentence(self) -> str:
        """Say where it is, as a sentence without a full stop."""
        releases = enumerated([self._words_of(*span) for span in self.present])
        owner = f"{self.package}'" if self.package.endswith("s") else f"{self.package}'s"
        if self.kind == "parameter":
            return f"{owner} {self.module} takes {self.name} in {releases} only"
        if self.kind == "required":
            return f"{owner} {self.module} cannot do without {self.name} in {releases}"
        if self.kind == "override":
            return f"{self.package} calls {self.module} without {self.name} in {releases} only"
        if self.kind == "name":
            return f"{self.package} has {self.full_name} in {releases} only"
        if self.kind == "attribute":
            return f"{owner} {self.module} has {self.name} in {releases} only"
        return f"{self.package} knows {self.name} in {releases} only"

    def _words_of(self, first: str, last: str) -> str:
        """Say a span of releases: older ones than were read may have it too, and newer ones."""
        if first == self.read[0] and first != last:
            return f"{last} or older"
        if last == self.read[1] and first != last:
            return f"{first} or newer"
        return releases_of(first, last)

    def asked_by(self, installed: Mapping[str, Version]) -> Tuple[Importer, ...]:
        """Return the installed packages whose release imports it."""
        return tuple(
            importer
            for importer in self.importers
            if importer.package in installed
            and installed[importer.package] in VersionSet.spanning(importer.spans)
        )


class PackageNames:
    """What is known of the names of one package, from its document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.package: str = document["name"]
        self._versions: Sequence[str] = document["versions"]

    @property
    def has_classes(self) -> bool:
        """Whether its classes and functions were measured, not its modules and registries alone."""
        return bool(self._document["classes"])

    def of_module(self, module: str, name: str = "") -> Optional[NameHistory]:
        """Return the history of a name of a module, of the module itself without one; None where
        that is not known, or where all releases that were read have it.

        Args:
            module: In dots, as Python names it.
            name: What is imported from it.
        """
        document = self._document
        if name:
            numbers = _numbers_of(document["names"].get(module, {}), name)
            life = places_of(document["modules"].get(module, "")) or None
            unclear = places_of(document["dynamic"].get(module, ""))
            if not numbers and f"{module}.{name}" in document["modules"]:
                return self.of_module(f"{module}.{name}")
        else:
            numbers = places_of(document["modules"].get(module, ""))
            unclear, life = frozenset(), None
        if not numbers:
            return None
        homes = document["moved"].get(module, {})
        asked = document["asked"].get(module, {}).get(name, {})
        if not asked and not name:
            asked = self._asking_below(module)
        importers = tuple(
            Importer(consumer, tuple((first, last) for first, last in spans))
            for consumer, spans in asked.items()
        )
        moved = next((home for home, words in homes.items() if name in (words.split() or [""])), "")
        history = self._history(module, name, "name", numbers, unclear - numbers, life)
        return history and history._replace(importers=importers, moved=moved)

    def ends_without(self, module: str, name: str) -> Optional[Span]:
        """Return the oldest and the newest release that were read where the names of a module were,
        and none of them brought or took this one: all have it, or none. None where that is not
        known.
        """
        document = self._document
        if not document["names"] or document["dynamic"].get(module):
            return None
        if self.of_module(module, name) is not None:
            return None
        return self._versions[0], self._versions[-1]

    def homes_of(self, name: str) -> List[str]:
        """Return the modules that some releases have a name in and others do not, those first that
        other packages import it from, then those that have it in most releases.
        """
        asked = self._document["asked"]
        having = {
            module: len(numbers)
            for module, spans in self._document["names"].items()
            if (numbers := _numbers_of(spans, name))
        }
        return sorted(
            having,
            key=lambda module: (name not in asked.get(module, ()), -having[module], module),
        )

    def _asking_below(self, module: str) -> Mapping[str, Sequence[Sequence[str]]]:
        """Return who imports something from what lies below a module, the first of each package."""
        below: Dict[str, Sequence[Sequence[str]]] = {}
        for place, names in self._document["asked"].items():
            if place == module or place.startswith(f"{module}."):
                for spans in names.values():
                    below = {**spans, **below}
        return below

    def of_attribute(self, word: str, attribute: str) -> Optional[NameHistory]:
        """Return the history of an attribute of the classes of a name and of those above them."""
        numbers: Set[int] = set()
        life: Set[int] = set()
        places = {*self._places("classes", word), *self._places("bases", word)}
        for place in self._with_bases(sorted(places)):
            spans = self._document["classes"].get(place, {})
            having = _numbers_of(spans, attribute)
            numbers |= having
            if place in places or having:
                life |= _numbers_of(spans, _LIFE)
        # What a class of another package hands down is not known here.
        unclear = frozenset(life - numbers) if self.bases_elsewhere(word) else frozenset()
        return self._history(word, attribute, "attribute", numbers, unclear, life)

    def of_parameter(
        self, function: str, name: str, required: bool = False
    ) -> Optional[NameHistory]:
        """Return the history of a parameter of the functions of a qualified name, ``required``:
        of being one without a default.
        """
        places = self._places("signatures", function)
        numbers: Set[int] = set()
        unclear: Set[int] = set()
        life: Set[int] = set()
        for place in places:
            spans = self._document["signatures"][place]
            numbers |= _numbers_of(spans, name)
            life |= _numbers_of(spans, _LIFE)
            if not required:
                numbers |= _numbers_of(spans, f"{name}=")
                unclear |= _numbers_of(spans, "**")
        kind = "required" if required else "parameter"
        return self._history(function, name, kind, numbers, frozenset(unclear - numbers), life)

    def of_constructors(self, name: str) -> Optional[NameHistory]:
        """Return the history of a parameter of the constructors that have or had it."""
        return self._of_functions("__init__", ".__init__", name)

    def of_calls(self, method: str, name: str) -> Optional[NameHistory]:
        """Return in which releases classes have a method of a name without a parameter: what
        overrides it without it was written for these.
        """
        with_it = self._of_functions(method, f".{method}", name)
        if with_it is None:
            return None
        number = {version: place for place, version in enumerate(self._versions)}
        life = range(number[with_it.first], number[with_it.last] + 1)
        having = {
            place
            for first, last in with_it.present
            for place in range(number[first], number[last] + 1)
        }
        return self._history(method, name, "override", set(life) - having, frozenset(), set(life))

    def _of_functions(self, shown: str, ending: str, name: str) -> Optional[NameHistory]:
        numbers: Set[int] = set()
        life: Set[int] = set()
        for place, spans in self._document["signatures"].items():
            if place.endswith(ending):
                having = _numbers_of(spans, name) | _numbers_of(spans, f"{name}=")
                if having:
                    numbers |= having
                    life |= _numbers_of(spans, _LIFE)
        return self._history(shown, name, "parameter", numbers, frozenset(), life)

    def inherited_from(self, function: str) -> List[str]:
        """Return what the constructor of a class takes the parameters of: ``module:Class`` of other
        packages.
        """
        return sorted(
            word[1:]
            for place in self._places("signatures", function)
            for words in self._document["signatures"][place].values()
            for word in words.split()
            if word.startswith("+")
        )

    def bases_elsewhere(self, word: str) -> List[str]:
        """Return the classes of other packages above those of a name, as ``module:Class``."""
        bases = self._document["bases"]
        places = self._with_bases(self._places("bases", word))
        above = {base for place in places for base in bases.get(place, "").split()}
        own = {_top(place) for place in bases}
        return sorted(place for place in above if _top(place) not in own)

    def with_places(self, places: Sequence[Tuple[str, str]]) -> Optional[Releases]:
        """Return the releases that have all of some modules, each with a function that ran in it;
        None where all of those that were read may have them, or none has all.

        A function counts where it is known since when it is defined there, and no class of the
        module has or had a method of that name, which a traceback does not tell from it.
        """
        every = frozenset(range(len(self._versions)))
        numbers = every
        for module, function in places:
            having = places_of(self._document["modules"].get(module, "")) or every
            life = _numbers_of(self._document["signatures"].get(f"{module}:{function}", {}), _LIFE)
            is_method = any(
                place.startswith(f"{module}:") and _numbers_of(spans, function)
                for place, spans in self._document["classes"].items()
            )
            numbers &= having if is_method else (having & life) or having
        if not numbers or len(numbers) == len(every):
            return None
        first, last = min(numbers), max(numbers)
        return Releases(
            self.package,
            self._versions[first] if first else "",
            self._versions[last] if last + 1 < len(self._versions) else "",
        )

    def of_registry(self, word: str) -> Optional[NameHistory]:
        """Return the history of a model architecture, a model type, a quantisation method."""
        numbers: Set[int] = set()
        tables = self._document["registries"]
        for table in tables:
            if table != "--":
                numbers |= _numbers_of(tables[table], word)
        return self._history("", word, "registry", numbers)

    def of_option(self, word: str) -> Optional[NameHistory]:
        """Return the history of an option of its command lines, without ``--``."""
        numbers = set(_numbers_of(self._document["registries"].get("--", {}), word))
        return self._history("", f"--{word}", "registry", numbers)

    def _history(
        self,
        module: str,
        name: str,
        kind: str,
        numbers: AbstractSet[int],
        unclear: FrozenSet[int] = frozenset(),
        life: Optional[AbstractSet[int]] = None,
    ) -> Optional[NameHistory]:
        """Return a history over the releases that have the module, class or function at all."""
        there = sorted(life or range(len(self._versions)))
        having = numbers & set(there)
        if not having or len(having) == len(there):
            return None
        return NameHistory(
            self.package,
            module,
            name,
            self._spans(having, there),
            self._versions[there[0]],
            self._versions[there[-1]],
            (),
            kind,
            self._spans(unclear & set(there), there),
            "",
            (self._versions[0], self._versions[-1]),
        )

    def _spans(self, numbers: AbstractSet[int], there: Sequence[int]) -> Tuple[Span, ...]:
        """Return [first, last] of those that follow one another among the releases there."""
        runs: List[List[int]] = []
        for place, number in enumerate(there):
            if number not in numbers:
                continue
            if runs and runs[-1][1] == place - 1:
                runs[-1][1] = place
            else:
                runs.append([place, place])
        return tuple(
            (self._versions[there[first]], self._versions[there[last]]) for first, last in runs
        )

    def _places(self, part: str, word: str) -> List[str]:
        ending = f":{word}"
        return [place for place in self._document[part] if place.endswith(ending)]

    def _with_bases(self, places: Sequence[str]) -> Iterator[str]:
        bases = self._document["bases"]
        waiting, seen = list(places), set(places)
        while waiting and len(seen) < _MOST_ABOVE:
            place = waiting.pop(0)
            yield place
            for base in bases.get(place, "").split():
                if base not in seen:
                    seen.add(base)
                    waiting.append(base)


def owners_of(index: Mapping[str, Any], word: str) -> List[str]:
    """Return the packages that have a class or function of this name, or this top-level module."""
    mark = f" {word} "
    return [package for package, words in index.get("packages", {}).items() if mark in f" {words} "]


def _top(place: str) -> str:
    """The top-level module of ``module:Class``."""
    return place.partition(":")[0].partition(".")[0]


def _numbers_of(spans: Mapping[str, str], name: str) -> FrozenSet[int]:
    numbers: Set[int] = set()
    for text, words in spans.items():
        if name in words and name in words.split():
            numbers |= places_of(text)
    return frozenset(numbers)


def history_without(
    package: str,
    module: str,
    name: str,
    lacking: Sequence[Span],
    releases: Sequence[Version],
    importers: Mapping[str, Sequence[Span]],
) -> Optional[NameHistory]:
    """Return the history of a name of which is known who lacks it, from the oldest to the newest
    release; None where no release is left.
    """
    missing = VersionSet.spanning(tuple(lacking))
    present: List[Tuple[str, str]] = []
    open_span = False
    for release in releases:
        if release in missing:
            open_span = False
            continue
        first = present.pop()[0] if open_span else str(release)
        present.append((first, str(release)))
        open_span = True
    if not present:
        return None
    return NameHistory(
        package,
        module,
        name,
        tuple(present),
        str(releases[0]),
        str(releases[-1]),
        tuple(Importer(consumer, tuple(spans)) for consumer, spans in sorted(importers.items())),
    )


def index_fault(document: Any) -> str:
    """Tell what is wrong with ``names.json``, "" for nothing."""
    return packages_fault(document, SCHEMA)


def names_fault(document: Any) -> str:
    """Tell what is wrong with a file of ``names/``, "" for nothing."""
    fault = head_fault(document, SCHEMA)
    if fault:
        return fault
    for part in (*_PARTS, "asked"):
        if not isinstance(document.get(part), dict):
            return f"expected an object of {part}"
    return next(filter(None, (_part_fault(document, part) for part in _PARTS)), "")


def _part_fault(document: Mapping[str, Any], part: str) -> str:
    last = len(document["versions"])
    texts: List[Any] = []
    for value in document[part].values():
        if part in ("modules", "dynamic"):
            texts.append(value)
        elif part == "bases":
            if not isinstance(value, str):
                return "bases: expected texts"
        elif not isinstance(value, dict) or not all(isinstance(w, str) for w in value.values()):
            return f"{part}: expected texts by text"
        elif part != "moved":
            texts += value
    if not all(are_spans(text, last) for text in texts):
        return f"{part}: expected spans such as 0-3,7 of places below {last}"
    return ""


def _distance(span: Span, version: Version) -> Tuple[int, ...]:
    """How far a span is from a version: by major, minor and patch number."""
    first, last = (parse_version(text) for text in span)
    edge = first if version < first else last
    numbers = [(*edge.release, 0, 0, 0)[place] for place in range(3)]
    other = [(*version.release, 0, 0, 0)[place] for place in range(3)]
    return tuple(abs(one - two) for one, two in zip(numbers, other))
