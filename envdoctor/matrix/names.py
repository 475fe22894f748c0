"""In which releases of a package a name exists, who imports it, and which releases of both fit.

``matrices/names.json`` holds what ``scripts/measure_surfaces --names`` read from the wheels: names
that some releases have and others do not. Only ``diagnose`` reads it.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ..model.record import NamedTuple
from ..model.version import Version
from ..model.versions import VersionSet, parse_version, try_version

__all__ = ["Importer", "NameHistory", "history_of", "history_without", "names_fault"]

Span = Tuple[str, str]


class Importer(NamedTuple):
    """A package whose code imports a name, in the releases of these spans."""

    package: str
    spans: Tuple[Span, ...]


class NameHistory(NamedTuple):
    """Where a name is: name is "" for a module itself. present: spans of releases that have it, of
    those from ``first`` to ``last``, which were read.
    """

    package: str
    module: str
    name: str
    present: Tuple[Span, ...]
    first: str
    last: str
    importers: Tuple[Importer, ...]

    @property
    def full_name(self) -> str:
        """What is imported, in one."""
        return f"{self.module}.{self.name}" if self.name else self.module

    def has(self, version: Version) -> Optional[bool]:
        """Tell whether a release has the name; None for one outside those that were read."""
        if not parse_version(self.first) <= version <= parse_version(self.last):
            return None
        return version in _set_of(self.present)

    def requirement(self, near: Optional[Version] = None) -> str:
        """Return the requirement for releases that have it: the span nearest to a version, which
        has no end on the side where nothing else was read.
        """
        first, last = self.present[-1]
        if near is not None:
            first, last = min(self.present, key=lambda span: _distance(span, near))
        clauses = [f">={first}"] if first != self.first else []
        clauses += [f"<={last}"] if last != self.last else []
        return f"{self.package}{','.join(clauses)}"

    def sentence(self) -> str:
        """Say where it is, as a sentence without a full stop."""
        ranges = [first if first == last else f"{first} to {last}" for first, last in self.present]
        return f"{self.package} has {self.full_name} in {_joined(ranges)} only"

    def asked_by(self, installed: Mapping[str, Version]) -> Tuple[Importer, ...]:
        """Return the installed packages whose release imports it."""
        return tuple(
            importer
            for importer in self.importers
            if importer.package in installed
            and installed[importer.package] in _set_of(importer.spans)
        )


def history_of(document: Mapping[str, Any], module: str, name: str = "") -> Optional[NameHistory]:
    """Return the history of a name; None where it is not known, or all releases that were read
    have it.

    Args:
        document: As ``names.json`` holds it.
        module: In dots, as Python names it.
        name: What is imported from it; "" for the module itself.
    """
    for package, of_package in document.get("packages", {}).items():
        spans = of_package["names"].get(module, {}).get(name)
        if spans is not None:
            versions = of_package["versions"]
            asked = of_package["asked"].get(module, {}).get(name, {})
            return NameHistory(
                package,
                module,
                name,
                tuple((versions[first], versions[last]) for first, last in spans),
                versions[0],
                versions[-1],
                tuple(
                    Importer(consumer, tuple((first, last) for first, last in of_consumer))
                    for consumer, of_consumer in asked.items()
                ),
            )
    return None


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
    missing = _set_of(tuple(lacking))
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


def names_fault(document: Any) -> str:
    """Tell what is wrong with ``names.json``, "" for nothing."""
    if not isinstance(document, dict) or document.get("schema") != 1:
        return "expected an object with schema 1"
    packages = document.get("packages")
    if not isinstance(document.get("date"), str) or not isinstance(packages, dict):
        return "expected a date and an object of packages"
    for package, entry in packages.items():
        fault = _package_fault(entry)
        if fault:
            return f"{package}: {fault}"
    return ""


def _package_fault(entry: Any) -> str:
    if not isinstance(entry, dict) or set(entry) != {"versions", "names", "asked"}:
        return "expected versions, names and asked"
    if not all(isinstance(text, str) and try_version(text) for text in entry["versions"]):
        return "expected texts of versions"
    last = len(entry["versions"])
    spans: List[Sequence[Any]] = [
        span for names in entry["names"].values() for of_name in names.values() for span in of_name
    ]
    if not all(0 <= first <= end < last for first, end in spans):
        return f"expected spans of places below {last}"
    return ""


def _set_of(spans: Sequence[Span]) -> VersionSet:
    return VersionSet.parse("||".join(f">={first},<={last}" for first, last in spans))


def _distance(span: Span, version: Version) -> Tuple[int, ...]:
    """How far a span is from a version: by major, minor and patch number."""
    first, last = (parse_version(text) for text in span)
    edge = first if version < first else last
    numbers = [(*edge.release, 0, 0, 0)[place] for place in range(3)]
    other = [(*version.release, 0, 0, 0)[place] for place in range(3)]
    return tuple(abs(one - two) for one, two in zip(numbers, other))


def _joined(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
