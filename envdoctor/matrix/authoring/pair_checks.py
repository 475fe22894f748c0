"""What is suspicious in two rows: one repeats, shadows or contradicts the other."""

from __future__ import annotations

from itertools import combinations
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ...model.row import EFFECTS, Row, Term
from ...model.versions import Version, VersionSet
from .remarks import Bench, Remarks, row_fault, row_note
from .term_relations import (
    exclude,
    follows,
    holds_for,
    implies,
    name_of,
    parsed_pins,
    version_terms,
)

__all__ = ["pair_remarks"]


def pair_remarks(
    rows: Sequence[Row], derived: Sequence[Row], chosen: Set[str], bench: Bench
) -> Remarks:
    """Written rows that say the same, that another one shadows, or whose pins lead into another
    one, derived ones too.
    """
    for row, other in _of_one_component(rows):
        if row.id in chosen or other.id in chosen:
            yield from _pair(row, other)
    by_package = _rows_by_package((*rows, *derived))
    for row in rows:
        pinned = _pinned_ranges(row)
        others = ((name, other) for name in pinned for other in by_package.get(name, ()))
        for name, other in others:
            if other is not row and (row.id in chosen or other.id in chosen):
                yield from _contradiction(row, other, name, pinned, bench)


def _of_one_component(rows: Sequence[Row]) -> Iterator[Tuple[Row, Row]]:
    by_component: Dict[Any, List[Row]] = {}
    for row in rows:
        by_component.setdefault(row.component, []).append(row)
    for group in by_component.values():
        yield from combinations(group, 2)


def _rows_by_package(rows: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
    by_package: Dict[str, List[Row]] = {}
    for row in rows:
        for name in {term.component for term in version_terms(row)}:
            by_package.setdefault(name, []).append(row)
    return by_package


def _pinned_ranges(row: Row) -> Dict[str, VersionSet]:
    pinned: Dict[str, VersionSet] = {}
    for name, _, wanted in parsed_pins(row):
        pinned[name] = pinned.get(name, VersionSet.all()) & wanted
    return pinned


def _pair(row: Row, other: Row) -> Remarks:
    covers, covered = implies(other, row), implies(row, other)
    if covers and covered:
        yield row_fault("repeated", other, f"asks for exactly what {row.id} asks for")
        return
    for wide, narrow, holds in ((row, other, covers), (other, row, covered)):
        if (
            holds
            and _as_bad(wide, narrow)
            and wide.kind == narrow.kind
            and set(wide.mitigations) <= set(narrow.mitigations)
        ):
            message = (
                f"wherever it holds, {wide.id} holds too, and says as much ({wide.effect}, "
                f"{wide.trust})"
            )
            if set(narrow.pins) <= set(wide.pins):
                yield row_fault("shadowed", narrow, message)
            else:
                yield row_note("shadowed", narrow, f"{message}; its pins differ")
            return
    if (
        row.kind == other.kind
        and _alike(row, other)
        and _together(row, other)
        and not (covers or covered)
    ):
        yield row_note(
            "overlapping",
            other,
            f"overlaps with {row.id}, which asks for the same things in other ranges",
        )


def _as_bad(wide: Row, narrow: Row) -> bool:
    """Tell whether a row is at least as grave and as sure as another."""
    return EFFECTS.index(wide.effect) <= EFFECTS.index(narrow.effect) and (
        wide.trust == "established" or narrow.trust != "established"
    )


def _together(row: Row, other: Row) -> bool:
    """Tell whether nothing keeps both rows from holding at once."""
    return not any(
        term[:2] == wanted[:2] and exclude(term, wanted)
        for term in row.terms
        for wanted in other.terms
    )


def _alike(row: Row, other: Row) -> bool:
    """Tell whether two rows ask for the same things, with labels in common."""
    if sorted(term[:4] for term in row.terms) != sorted(term[:4] for term in other.terms):
        return False
    pairs = (
        (term.argument, wanted.argument)
        for term in row.terms
        for wanted in other.terms
        if term[:4] == wanted[:4]
    )
    return all(
        not isinstance(one, frozenset) or not isinstance(two, frozenset) or bool(one & two)
        for one, two in pairs
    )


class _Reach(NamedTuple):
    """How following pins leads to a term of another row.

    every: every release that they admit meets it. led: it was not met before they were followed.
    """

    every: bool
    led: bool


def _contradiction(
    row: Row, other: Row, name: str, pinned: Mapping[str, VersionSet], bench: Bench
) -> Remarks:
    """Whoever follows the pins of ``row`` runs into ``other``: with every release that they admit,
    or with the newest, which pip takes.
    """
    if not _as_bad(other, row):
        return
    reaches = []
    for wanted in other.terms:
        reach = _reach(row, wanted, pinned, bench)
        if reach is None:
            return
        reaches.append(reach)
    pins = ", ".join(pin for pin in row.pins if name_of(pin) == name)
    if all(reach.every for reach in reaches):
        yield row_fault(
            "contradicting",
            row,
            f"every release of {name} that follows the pin {pins} is in {other.id}, with nothing "
            "else changed",
        )
    elif all(reach.led for reach in reaches):
        yield row_note(
            "pin-into-row",
            row,
            f"the newest release of {name} that follows the pin {pins} can be in {other.id}",
        )


def _reach(
    row: Row, wanted: Term, pinned: Mapping[str, VersionSet], bench: Bench
) -> Optional[_Reach]:
    """Return how the pins of a row lead to a term, None where they do not."""
    if wanted.scope == "env" and wanted.component in pinned:
        return _reach_of_pin(row, wanted, pinned[wanted.component], bench)
    if any(follows(term, wanted) for term in row.terms):
        return _Reach(every=True, led=True)
    return _Reach(every=False, led=True) if _shared(row, wanted, bench) else None


def _reach_of_pin(row: Row, wanted: Term, pin: VersionSet, bench: Bench) -> Optional[_Reach]:
    allowed = [version for version in bench.versions(wanted.component) if version in pin]
    if not allowed or wanted.attribute != "version" or not holds_for(wanted, allowed[-1]):
        return None
    # Else both may hold before the pins are followed.
    led = not _shared(row, wanted, bench)
    return _Reach(all(holds_for(wanted, version) for version in allowed), led)


def _shared(row: Row, wanted: Term, bench: Bench) -> List[Version]:
    """Return the releases that a row and a term of another one have in common; none where the row
    does not speak of the package.
    """
    terms = [term for term in version_terms(row) if term.component == wanted.component]
    if wanted.attribute != "version" or not terms:
        return []
    return [
        version
        for version in bench.versions(wanted.component)
        if all(holds_for(term, version) for term in (*terms, wanted))
    ]
