"""Where rows that somebody wrote and rows that were measured do not agree."""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Sequence, Tuple

from ...model.row import EFFECTS, Row
from ...model.versions import Version, VersionSet
from ..loader import Matrix

__all__ = ["disagreements"]

_MEASURED = ("ED308", "ED309", "ED409")
_Pair = FrozenSet[str]


def disagreements(matrix: Matrix, written: Sequence[Row]) -> Iterator[Tuple[str, Row, str]]:
    """Yield (check, row, sentence) for written rows that measured ones contradict.

    "measured-otherwise": both speak of one missing name, and not of the same releases.
    "measured-graver": what the row calls harmless stops an import wherever the row holds.
    """
    measured: Dict[_Pair, List[Row]] = {}
    for row in matrix.rows():
        if row.origin == "derived" and row.code in _MEASURED:
            measured.setdefault(_pair(row), []).append(row)
    for row in written:
        others = measured.get(_pair(row), ())
        about = [other for other in others if _name_of(other) and _name_of(other) in row.symptom]
        if about:
            yield from _otherwise(row, about, matrix)
        yield from _graver(row, others, matrix)


def _pair(row: Row) -> _Pair:
    """The packages whose releases a row compares."""
    return frozenset(
        term.component for term in row.terms if term.scope == "env" and term.attribute == "version"
    )


def _name_of(row: Row) -> str:
    """The beginning of a measured symptom, up to the missing name."""
    return row.symptom.partition(" from ")[0]


def _otherwise(row: Row, measured: Sequence[Row], matrix: Matrix) -> Iterator[Tuple[str, Row, str]]:
    if len(measured) != 1:
        return
    (other,) = measured
    own, covered = _releases(row, matrix), _releases(other, matrix)
    for name in sorted(set(own) & set(covered)):
        if not covered[name]:
            continue
        oldest = min(covered[name])  # what is older was not measured
        more = own[name] - covered[name]
        said = [version for version in _all(matrix, name) if version in more and version >= oldest]
        if said:
            yield (
                "measured-otherwise",
                row,
                f"says more of {name} than {other.id}: {_few(said)}",
            )


def _graver(row: Row, measured: Sequence[Row], matrix: Matrix) -> Iterator[Tuple[str, Row, str]]:
    own = _releases(row, matrix)
    for other in measured:
        if not _conditions(other) <= _conditions(row):
            continue  # it is about another machine, or a third package
        covered = _releases(other, matrix)
        if (
            EFFECTS.index(other.effect) < EFFECTS.index(row.effect)
            and other.effect != "note"
            and all(own[name] and own[name] <= covered.get(name, frozenset()) for name in own)
        ):
            yield "measured-graver", row, f"is {row.effect}, where {other.id} {other.effect}"


def _conditions(row: Row) -> FrozenSet[Tuple[str, str, str]]:
    """What a row asks for beside versions of its packages."""
    return frozenset(
        (term.scope, term.component, term.attribute)
        for term in row.terms
        if (term.scope, term.attribute) != ("env", "version")
    )


def _releases(row: Row, matrix: Matrix) -> Dict[str, FrozenSet[Version]]:
    """The known releases that a row's ranges hold, by package."""
    held: Dict[str, FrozenSet[Version]] = {}
    for term in row.terms:
        if term.attribute != "version" or not isinstance(term.argument, VersionSet):
            continue
        releases = frozenset(
            version
            for version in _all(matrix, term.component)
            if (version in term.argument) is not (term.operator == "lacks")
        )
        held[term.component] = held.get(term.component, releases) & releases
    return held


def _all(matrix: Matrix, name: str) -> Tuple[Version, ...]:
    package = matrix.package(name)
    return package.versions if package is not None else ()


def _few(versions: Sequence[Version]) -> str:
    shown = [str(version) for version in versions[:3]]
    return ", ".join(shown) + (f" and {len(versions) - 3} more" if len(versions) > 3 else "")
