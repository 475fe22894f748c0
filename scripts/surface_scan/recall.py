"""Which of the rows that were written by hand the measured ones reproduce, release by release."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

from packaging.version import Version

from envdoctor.matrix.loader import Matrix
from envdoctor.model.row import Row
from envdoctor.model.versions import VersionSet, parse_version

from .documents import read_document
from .measure import Measurement
from .release import Release
from .store import Archive

__all__ = ["BASES", "MeasuredReleases", "Recalled", "recall", "recall_lines"]

_IMPORT = re.compile(r"cannot import name|No module named|ModuleNotFoundError|ImportError: cannot")
_GATE = re.compile(
    r"(?i)requires? .{0,40}(?:version|>=|==|at least|or (?:higher|newer|greater))|supports? .{0,30}"
    r"version|version .{0,60}(?:is|are) (?:required|needed|not supported)|please (?:upgrade|update|"
    r"install|reinstall|use)|is required for|but found|is installed with version|must be|"
    r"minimum|incompatible|not compatible|disabling|not found\b.*upgrade|need(?:s|ed)? .{0,30}>="
)
#: Bases by the texts that people see.
BASES = {"import": _IMPORT, "gate": _GATE}


class MeasuredReleases(Measurement):
    """The releases that the files of ``matrices/surfaces`` speak of: no source is read."""

    def releases(self, package: str) -> List[Release]:
        """Return the releases of a package that were measured, oldest first."""
        if package not in self._releases:
            document = read_document(self.matrices / "surfaces" / f"{package}.json")
            archives = [
                Archive(package, version, "", "", "", {})
                for version in document.get("measured", ())
            ]
            found = [Release(archive, self.packages, self.readings) for archive in archives]
            self._releases[package] = sorted(found, key=lambda release: release.version)
        return self._releases[package]


class Recalled(NamedTuple):
    """A written row and how many pairs of measured releases it and the measured rows share."""

    row: Row
    basis: str
    pairs: int
    shared: int

    @property
    def reproduced(self) -> bool:
        """Most of what the row says is measured: ends that were guessed do not count against it."""
        return self.pairs > 0 and self.shared >= 0.8 * self.pairs


def recall(matrix: Matrix, measurement: Measurement) -> Iterator[Recalled]:
    """Yield the written rows about two packages that both were measured."""
    measured: Dict[Tuple[str, str], List[Row]] = {}
    for row in matrix.rows():
        if row.code in ("ED308", "ED309"):
            consumer, provider = (term.component for term in row.terms[:2])
            measured.setdefault((consumer, provider), []).append(row)
            measured.setdefault((provider, consumer), []).append(row)
    for row in matrix.rows():
        if row.origin == "derived":
            continue
        basis = next((name for name, text in BASES.items() if text.search(row.symptom)), "")
        sets = _ranges(row)
        # An import of what is not installed at all is no question of releases.
        absent = any(term.argument is False for term in row.terms)
        if not basis or len(sets) != 2 or (basis == "import" and absent):
            continue
        (first, of_first), (second, of_second) = sets
        pairs = _pairs(measurement, first, of_first, second, of_second)
        if not pairs:
            continue
        shared = sum(
            any(
                _covers(other, first, one, second, two)
                for other in measured.get((first, second), ())
            )
            for one, two in pairs
        )
        yield Recalled(row, basis, len(pairs), shared)


def _ranges(row: Row) -> List[Tuple[str, VersionSet]]:
    """The two packages with their releases; "lacks" beside "present" is the rest of them."""
    present = {
        term.component for term in row.terms if (term.operator, term.argument) == ("present", True)
    }
    return [
        (term.component, term.argument if term.operator == "in" else ~term.argument)
        for term in row.terms
        if (term.scope, term.attribute) == ("env", "version")
        and isinstance(term.argument, VersionSet)
        and (term.operator == "in" or term.component in present)
    ]


def _pairs(
    measurement: Measurement, first: str, of_first: VersionSet, second: str, of_second: VersionSet
) -> Set[Tuple[str, str]]:
    """The pairs of measured releases in both ranges that metadata of either allow."""
    found = set()
    for package, own, other, others in (
        (first, of_first, second, of_second),
        (second, of_second, first, of_first),
    ):
        allowed_by = set()
        theirs = measurement.releases(other) if other in measurement.packages.entries else []
        mine = measurement.releases(package) if package in measurement.packages.entries else []
        for release in mine:
            if not _within(release.version, own):
                continue
            for admitted, that in zip(measurement.allowed(release, other), theirs):
                if admitted and _within(that.version, others):
                    pair = (release.archive.version, that.archive.version)
                    allowed_by.add(pair if package == first else pair[::-1])
        found = allowed_by if package == first else found & allowed_by
    return found


def _within(version: Version, versions: VersionSet) -> bool:
    return parse_version(str(version)) in versions


def _covers(row: Row, first: str, one: str, second: str, two: str) -> bool:
    installed = {first: parse_version(one), second: parse_version(two)}
    return all(
        (installed[term.component] in term.argument)  # type: ignore[operator]
        is not (term.operator == "lacks")
        for term in row.terms[:2]
    )


def recall_lines(found: Sequence[Recalled]) -> Iterator[str]:
    """Yield a table by basis, and the rows that are not reproduced."""
    for basis in BASES:
        rows = [item for item in found if item.basis == basis]
        good = [item for item in rows if item.reproduced]
        share = f"{100 * len(good) // len(rows)} %" if rows else "none"
        yield f"{basis}: {len(good)} of {len(rows)} written rows reproduced ({share})"
    for item in found:
        if not item.reproduced:
            yield f"  {item.basis}  {item.row.id}: {item.shared} of {item.pairs} pairs"
