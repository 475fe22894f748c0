"""Statements that follow from the matrix alone: releases that a package's later release excludes,
releases that its own extra does not take, and wheels that it fetches (``fetched_wheels``).

* An exclusion: a release admits what its next one excludes, by ``!=`` or by an upper bound, of
  releases that were there already. Who made the package learned that in between. A lower bound
  that was raised says nothing of the kind: it mostly follows what the code needs from then on.
* An extra that is named after a package: what it asks for is what the code was written for, and an
  installer looks at it only where the extra is asked for.
"""

from __future__ import annotations

import datetime
import functools
import json
from pathlib import Path
from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Sequence,
    Set,
    Tuple,
)

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envdoctor.matrix.measured_rows import EXCLUDED_LATER, FETCHES, NOT_IN_EXTRA
from envdoctor.model.requirement import Requirement, try_requirement
from envdoctor.model.versions import canonicalize_name

from .documents import read_document, runs, write_document
from .fetched_wheels import fetched_statements

__all__ = ["RELATIONS", "relation_statements", "write_relations"]

#: What the statements say that are made here.
RELATIONS = (EXCLUDED_LATER, NOT_IN_EXTRA, FETCHES)
_SINCE = "2023-01-01"
#: Days in which a maker of a package learns that a new release of another breaks it.
_LEARNED = 60
#: How long before an exclusion the releases came that it is said of.
_BEFORE = 120
#: So soon an exclusion is a warning, where every release of the months after it keeps it.
_SOON, _KEPT = 21, 90
#: An extra that takes no release of so many days is left from older times.
_STALE = 300
_UPPER = frozenset(("<", "<="))


class _Published(NamedTuple):
    version: Version
    text: str
    day: str
    requires: Mapping[str, Tuple[Requirement, ...]]


def relation_statements(
    matrices: Path, consumer: str, others: Sequence[Dict[str, Any]]
) -> List[Dict[str, Any]]:
    """Return the statements about a package that follow from the metadata of its releases.

    Args:
        matrices: The folder, for the releases.
        consumer: The package.
        others: Statements about it that were measured otherwise: what they say is not said again.
    """
    releases = _releases(matrices, consumer)
    names = {name for release in releases for name in release.requires} - {consumer}
    providers = {name: _releases(matrices, name) for name in sorted(names)}
    providers = {name: published for name, published in providers.items() if published}
    statements = [
        *_exclusions(consumer, releases, providers),
        *_extras(consumer, releases, providers),
    ]
    return [
        statement
        for statement in statements
        if not _is_said(statement, others, releases, providers[statement["provider"]])
    ] + fetched_statements(matrices, consumer)


def _releases(matrices: Path, name: str) -> List[_Published]:
    """Return the final releases of a package since 2023 whose metadata are known, oldest first."""
    path = matrices / "packages" / f"{name}.json"
    document = json.loads(path.read_text("utf-8")) if path.exists() else {"releases": []}
    published = [
        _Published(
            Version(entry["version"]),
            entry["version"],
            entry["released"],
            _by_name(entry["requires"]),
        )
        for entry in document["releases"]
        if not entry.get("yanked") and "requires" in entry and entry["released"] >= _SINCE
    ]
    return sorted(one for one in published if not one.version.is_prerelease)


def _exclusions(
    consumer: str, releases: Sequence[_Published], providers: Dict[str, List[_Published]]
) -> Iterator[Dict[str, Any]]:
    """Yield what the next release excludes of each provider."""
    for provider, published in providers.items():
        asked = [_always(release, provider) for release in releases]
        for place in range(1, len(releases)):
            excluded = _excluded(releases, asked, place, published)
            if excluded:
                versions = [published[number].version for number in excluded]
                own = _admitting(releases, asked, place, versions)
                sure = _is_sure(releases, asked, place, versions)
                yield _exclusion(
                    consumer, provider, releases, (own, place, sure), published, excluded
                )


def _is_sure(
    releases: Sequence[_Published],
    asked: Sequence[SpecifierSet],
    place: int,
    excluded: Sequence[Version],
) -> bool:
    """Tell whether an exclusion came soon and stayed: one that the next release takes back was an
    oversight, or the package was made to go with what it excluded.
    """
    day = releases[place].day
    kept = [
        after
        for after in range(place, len(releases))
        if 0 <= _days(day, releases[after].day) <= _KEPT
    ]
    soon = _days(releases[place - 1].day, day) <= _SOON
    return soon and all(version not in asked[after] for version in excluded for after in kept)


def _excluded(
    releases: Sequence[_Published],
    asked: Sequence[SpecifierSet],
    place: int,
    published: Sequence[_Published],
) -> Dict[int, str]:
    """What a release excludes that was there and that the one before it admits: by number, by which
    clause.
    """
    before, after = releases[place - 1], releases[place]
    if asked[place] == asked[place - 1] or not 0 <= _days(before.day, after.day) <= _LEARNED:
        return {}
    excluded: Dict[int, str] = {}
    for number, other in enumerate(published):
        if other.day <= after.day and other.version in asked[place - 1]:
            clause = _excluding(asked[place], other.version)
            new = _days(other.day, after.day) <= _LEARNED
            if clause and (new or clause.startswith("!=")):
                excluded[number] = clause
    return excluded


def _admitting(
    releases: Sequence[_Published],
    asked: Sequence[SpecifierSet],
    last: int,
    excluded: Sequence[Version],
) -> List[int]:
    """The releases in a row before one that admit what it excludes, of the months before it."""
    own: List[int] = []
    for place in range(last - 1, -1, -1):
        is_near = _days(releases[place].day, releases[last].day) <= _BEFORE
        if not is_near or not all(version in asked[place] for version in excluded):
            break
        own.insert(0, place)
    return own


def _exclusion(
    consumer: str,
    provider: str,
    releases: Sequence[_Published],
    places: Tuple[Sequence[int], int, bool],
    published: Sequence[_Published],
    excluded: Mapping[int, str],
) -> Dict[str, Any]:
    """What is said of the releases at some places: which one excludes something, and whether it is
    sure of that.
    """
    own, by, sure = places
    clauses = list(dict.fromkeys(excluded.values()))
    theirs = sorted(excluded)
    is_upper = all(clause[0] == "<" for clause in clauses)
    requirement = f"{provider}{','.join(clauses)}"
    return {
        "id": f"{releases[by].text}-excludes-{provider}-{published[theirs[0]].text}",
        "provider": provider,
        "module": "",
        "name": "",
        "effect": "degrades" if sure else "note",
        "verb": EXCLUDED_LATER,
        "text": requirement,
        "in": runs([release.text for release in releases], own),
        "lacking": runs([release.text for release in published], theirs),
        "kind": "too-new" if is_upper else "bad-version",
        "component": provider,
        "archive": f"{consumer} {releases[by].text}",
        "path": "METADATA",
        "line": 0,
        "pin": requirement,
    }


def _extras(
    consumer: str, releases: Sequence[_Published], providers: Dict[str, List[_Published]]
) -> Iterator[Dict[str, Any]]:
    """Yield which releases of a provider the extra of its name does not take."""
    for provider, published in providers.items():
        groups: Dict[Tuple[str, FrozenSet[int]], List[int]] = {}
        for place, release in enumerate(releases):
            lines = [each for each in release.requires.get(provider, ()) if _is_extra(each)]
            always = _always(release, provider)
            for line in lines[:1]:
                specifier = _specifier(line.specifier)
                taken = [other.day for other in published if other.version in specifier]
                if not taken or _days(max(taken), release.day) > _STALE:
                    continue
                outside = frozenset(
                    number
                    for number, other in enumerate(published)
                    if other.version not in specifier and other.version in always
                )
                if outside:
                    groups.setdefault((str(specifier), outside), []).append(place)
        for (text, outside), own in groups.items():
            theirs = sorted(outside)
            first = releases[own[0]].text
            kind = "version-mismatch"
            if theirs[-1] < len(published) - 1:
                kind = "too-old"
            elif theirs[0] > 0:
                kind = "too-new"
            yield {
                "id": f"extra-{provider}-{first}",
                "provider": provider,
                "module": "",
                "name": "",
                "effect": "note",
                "verb": NOT_IN_EXTRA,
                "text": f"{provider}{text}; extra == '{provider}'",
                "in": runs([release.text for release in releases], own),
                "lacking": runs([release.text for release in published], theirs),
                "kind": kind,
                "component": provider,
                "archive": f"{consumer} {releases[own[-1]].text}",
                "path": "METADATA",
                "line": 0,
                "pin": f"{provider}{text}",
            }


def _by_name(lines: Iterable[str]) -> Dict[str, Tuple[Requirement, ...]]:
    by_name: Dict[str, Tuple[Requirement, ...]] = {}
    for requirement in filter(None, map(_requirement, lines)):
        by_name[requirement.name] = (*by_name.get(requirement.name, ()), requirement)
    return by_name


_requirement = functools.lru_cache(maxsize=None)(try_requirement)


def _always(release: _Published, provider: str) -> SpecifierSet:
    """What a release asks of a package on every machine."""
    lines = (each for each in release.requires.get(provider, ()) if not each.marker)
    return _specifier(",".join(filter(None, (each.specifier for each in lines))))


@functools.cache
def _specifier(text: str) -> SpecifierSet:
    """The specifier of a text, anything where it is none."""
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return SpecifierSet()


def _is_extra(requirement: Requirement) -> bool:
    """Whether a line stands in an extra that is named after the package that it asks for."""
    extras = {canonicalize_name(extra) for extra in requirement.marker_extras}
    return requirement.name in extras and bool(requirement.specifier)


def _excluding(asked: SpecifierSet, version: Version) -> str:
    """The clause by which a release is kept out: another one, or newer ones; "" where it is not, or
    where a lower bound or an exact pin does that.
    """
    clauses = [clause for clause in asked if version not in _specifier(str(clause))]
    if len(clauses) != 1 or clauses[0].operator not in {"!=", *_UPPER}:
        return ""
    return str(clauses[0])


def _days(first: str, last: str) -> int:
    days = datetime.date.fromisoformat(last) - datetime.date.fromisoformat(first)
    return days.days


def _is_said(
    statement: Dict[str, Any],
    others: Sequence[Dict[str, Any]],
    releases: Sequence[_Published],
    published: Sequence[_Published],
) -> bool:
    """Tell whether other statements speak of each pair of releases of this one."""
    pairs = _pairs(statement, releases, published)
    for other in others:
        if other["provider"] == statement["provider"] and other.get("verb") not in RELATIONS:
            pairs -= _pairs(other, releases, published)
    return not pairs


def _pairs(
    statement: Dict[str, Any], releases: Sequence[_Published], published: Sequence[_Published]
) -> Set[Tuple[Version, Version]]:
    own = _within(statement["in"], releases)
    theirs = _within(statement["lacking"], published)
    return {(one, other) for one in own for other in theirs}


def _within(spans: Sequence[Sequence[str]], releases: Sequence[_Published]) -> List[Version]:
    ends = [(Version(first), Version(last)) for first, last in spans]
    return [
        release.version
        for release in releases
        if any(first <= release.version <= last for first, last in ends)
    ]


def write_relations(matrices: Path, consumers: Iterable[str]) -> List[str]:
    """Put the statements of packages into their files; return those whose file changed."""
    changed = []
    for consumer in consumers:
        path = matrices / "surfaces" / f"{consumer}.json"
        old = read_document(path)
        kept = [one for one in old.get("statements", ()) if one.get("verb") not in RELATIONS]
        statements = [*kept, *relation_statements(matrices, consumer, kept)]
        if statements != old.get("statements", []):
            write_document(path, {"measured": [], **old}, statements)
            changed.append(consumer)
    return changed
