"""What the terms and pins of rows say of each other: by their meaning, not by their text."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from ...model.requirement import parse_requirement, try_requirement
from ...model.row import Row, Term
from ...model.versions import Version, VersionSet

__all__ = [
    "exclude",
    "follows",
    "holds_for",
    "implies",
    "lies_inside",
    "meaning_of",
    "name_of",
    "parsed_pins",
    "range_of",
    "version_terms",
]


def version_terms(row: Row) -> Iterator[Term]:
    """Yield the terms of a row that are about versions of one distribution."""
    for term in row.terms:
        if (
            term.scope == "env"
            and term.attribute == "version"
            and term.component != "*"
            and isinstance(term.argument, VersionSet)
        ):
            yield term


def range_of(term: Term) -> Optional[VersionSet]:
    """Return the range that a term names, None where it names none."""
    return term.argument if isinstance(term.argument, VersionSet) else None


def _says_absent(term: Term) -> bool:
    return term.operator == "present" and term.argument is False


def exclude(term: Term, other: Term) -> bool:
    """Tell whether two terms on one subject can never hold together."""
    if _says_absent(term) or _says_absent(other):
        return any(entry.operator != "lacks" and not _says_absent(entry) for entry in (term, other))
    if term.attribute != other.attribute:
        return False
    versions, other_versions = meaning_of(term), meaning_of(other)
    if versions is not None and other_versions is not None:
        return not versions & other_versions
    labels, others = term.argument, other.argument
    if not (isinstance(labels, frozenset) and isinstance(others, frozenset)):
        return False
    exclusive = {
        ("any", "any"): not labels & others,
        ("any", "lacks"): labels <= others,
        ("lacks", "any"): others <= labels,
    }
    return exclusive.get((term.operator, other.operator), False)


def meaning_of(term: Term) -> Optional[VersionSet]:
    """Return the versions for which a term holds, None where it names none."""
    ranges = range_of(term)
    return None if ranges is None else ~ranges if term.operator == "lacks" else ranges


def name_of(requirement: str) -> str:
    """Return the canonical name in a requirement, "" where it is none."""
    parsed = try_requirement(requirement)
    return parsed.name if parsed is not None else ""


def parsed_pins(row: Row) -> Iterator[Tuple[str, str, VersionSet]]:
    """Yield the name, the text and the versions of each pin of a row."""
    for pin in row.pins:
        requirement = parse_requirement(pin)
        yield requirement.name, pin, requirement.versions


def holds_for(term: Term, version: Version) -> bool:
    """Tell whether a version meets a term."""
    ranges = range_of(term)
    return ranges is not None and (version in ranges) is not (term.operator == "lacks")


def lies_inside(wanted: VersionSet, term: Term) -> bool:
    """Tell whether everything that a pin admits is in a term's range."""
    meaning = meaning_of(term)
    return meaning is not None and bool(wanted) and (wanted & meaning) == wanted


def implies(narrow: Row, wide: Row) -> bool:
    """Tell whether every term of ``wide`` follows from one of ``narrow``."""
    return all(any(follows(term, wanted) for term in narrow.terms) for wanted in wide.terms)


def follows(term: Term, wanted: Term) -> bool:
    """Tell whether ``wanted`` holds wherever ``term`` does."""
    if term[:2] != wanted[:2]:
        return False
    if wanted.operator == "present":
        # Any positive statement about a thing says that it is there.
        return (wanted.argument is True and term.operator in ("in", "any", "has")) or (
            term.operator == "present" and term.argument is wanted.argument
        )
    if term.operator == "present":
        return term.argument is False and wanted.operator == "lacks"
    if term.attribute != wanted.attribute:
        return False
    one, two = term.argument, wanted.argument
    if term.operator == wanted.operator:
        return _within(two, one) if term.operator == "lacks" else _within(one, two)
    return (
        wanted.operator == "lacks"
        and term.operator in ("in", "any")
        and type(one) is type(two)
        and not one & two  # type: ignore[operator]
    )


def _within(one: object, two: object) -> bool:
    """Tell whether everything in one argument is in the other; both of one kind."""
    if isinstance(one, VersionSet) and isinstance(two, VersionSet):
        return (one & two) == one
    return isinstance(one, frozenset) and isinstance(two, frozenset) and one <= two
