"""Releases that keep in an extra the torch that the newest always asks for: without it they serve
for little.
"""

from __future__ import annotations

from functools import partial
from typing import Dict, List, Mapping, Set

from ...matrix.loader import Matrix
from ...matrix.tables import Package, Release
from ...model.request import Root
from ...model.requirement import Requirement, try_requirement
from ...model.resolution import Resolution
from .candidate_table import bits_of
from .candidates import Catalog

__all__ = ["extras_notes", "extras_with_torch", "without_torch"]


def extras_with_torch(root: Root, catalog: Catalog) -> Mapping[str, int]:
    """Return the extras that bring torch, each with the candidates of a root that it is taken with:
    none of a release that is asked for by its number, or with extras, and none where the newest
    release does not ask for torch itself.
    """
    if not catalog.brings_torch or root.extras or root.specifier.startswith("=="):
        return {}
    return catalog.once("torch extras", (root.name,), partial(_find, root.name, catalog))


def _find(name: str, catalog: Catalog) -> Mapping[str, int]:
    package = catalog.matrix.package(name)
    final = _final(package) if package is not None else []
    if not final or _of_torch(final[-1]) != {""}:
        return {}
    usual = _usual_extra(final)
    extras: Dict[str, int] = {}
    for number, candidate in enumerate(catalog.table(name).candidates if usual else ()):
        own = _of_torch(candidate.release)
        if own and "" not in own:
            extra = usual if usual in own else min(own)
            extras[extra] = extras.get(extra, 0) | 1 << number
    return extras


def _usual_extra(final: List[Release]) -> str:
    """The extra that brings torch in most releases, and of these the one with most of what the
    newest asks for; "" where none does.
    """
    served = [_of_torch(release) for release in final]
    last = max((place for place, own in enumerate(served) if own - {""}), default=None)
    if last is None:
        return ""
    wanted = _names_of(final[-1], "")
    return max(
        sorted(served[last] - {""}),
        key=lambda extra: (
            sum(extra in own for own in served),
            len(_names_of(final[last], extra) & wanted),
        ),
    )


def extras_notes(resolution: Resolution, catalog: Catalog) -> List[str]:
    """Say which roots were taken with an extra that nobody asked for."""
    notes = []
    for root in resolution.request.roots:
        extras, table = extras_with_torch(root, catalog), catalog.table(root.name)
        pin = resolution.pin(root.name)
        for extra, bits in sorted(extras.items()):
            versions = {table.at(bit).version for bit in bits_of(bits)}
            if pin is not None and pin.version in versions:
                notes.append(
                    f"{root.name} up to {max(versions)} asks for torch only with an extra, newer "
                    f"releases always do: taken as {root._replace(extras=(extra,)).text}"
                )
    return notes


def _final(package: Package) -> List[Release]:
    return [release for number, release in package.releases() if not number.is_prerelease]


def _names_of(release: Release, extra: str) -> Set[str]:
    """What a release asks for with an extra, or always."""
    return {
        requirement.name
        for requirement in _requirements_of(release)
        if (extra in requirement.marker_extras if extra else not requirement.marker_extras)
    }


def _requirements_of(release: Release) -> List[Requirement]:
    read = map(try_requirement, release.requires or ())
    return [requirement for requirement in read if requirement is not None]


def without_torch(resolution: Resolution, matrix: Matrix) -> List[str]:
    """Say where what is asked for comes without torch, though its newest release asks for it: such
    a release serves for little.
    """
    if resolution.pin("torch") is not None:
        return []
    notes = []
    for pin in resolution.pins:
        package = (
            matrix.package(pin.name)
            if any(root.name == pin.name for root in resolution.request.roots)
            else None
        )
        final = (
            [
                release
                for number, release in package.releases()
                if not number.is_prerelease and number >= pin.version
            ]
            if package is not None
            else []
        )
        if len(final) > 1 and _of_torch(final[-1]) == {""}:
            extras = sorted(_of_torch(final[0]) - {""})
            advice = (
                (
                    f"; its {'extra' if len(extras) == 1 else 'extras'} {', '.join(extras)} would "
                    "bring it"
                )
                if extras
                else ""
            )
            notes.append(
                f"{pin.name} {pin.version} asks for no torch, as {final[-1].version} does{advice}"
            )
    return notes


def _of_torch(release: Release) -> Set[str]:
    """The extras with which a release asks for torch; "" where it always does."""
    lines = [line for line in release.requires or () if line[:5].lower() == "torch"]
    read = map(try_requirement, lines)
    requirements = [line for line in read if line is not None and line.name == "torch"]
    if not all(requirement.marker_extras for requirement in requirements):
        return {""}
    return {extra for requirement in requirements for extra in requirement.marker_extras}
