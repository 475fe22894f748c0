"""What comes without the torch that it needs: releases that keep it in an extra, and packages that
import it and do not ask for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterable, List, Sequence, Set, Tuple, Union

from ..model.versions import VersionSet

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..matrix.tables import Release
    from ..model.facts import Facts
    from ..model.request import Request
    from ..model.requirement import Requirement
    from ..model.resolution import Explanation, Pin, Resolution

__all__ = ["resolve_whole", "with_torch", "without_torch"]


def resolve_whole(
    request: Request, facts: Sequence[Facts], matrix: Matrix
) -> Union[Resolution, Explanation]:
    """Resolve a request. A root for which an old release was found that keeps in an extra what the
    newest always asks for is asked for again without such releases, else with that extra, unless
    that takes it more than a year further back.
    """
    from ..model.resolution import Resolution
    from .solver import resolve

    answer = resolve(request, facts, matrix)
    partial = _partial_roots(answer, matrix) if isinstance(answer, Resolution) else {}
    tries = (
        [
            root._replace(specifier=",".join(filter(None, (root.specifier, f">{last}"))))
            if root.name in partial
            else root
            for root in request.roots
            for last in [partial.get(root.name, ("", ""))[1]]
        ],
        [
            root._replace(extras=(partial[root.name][0],)) if root.name in partial else root
            for root in request.roots
        ],
    )
    for roots in tries if partial else ():
        again = resolve(request._replace(roots=tuple(roots)), facts, matrix)
        if isinstance(again, Resolution) and not _goes_years_back(again, answer, partial, matrix):
            notes = [
                f"{name} up to {last} asks for torch only with an extra, newer releases always do: "
                f"taken as {root.text}"
                for root in roots
                for name, (_, last) in partial.items()
                if name == root.name
            ]
            return again._replace(notes=(*again.notes, *notes))
    return with_torch(answer, facts, matrix) if isinstance(answer, Resolution) else answer


def _goes_years_back(
    again: Resolution,
    answer: Union[Resolution, Explanation],
    names: Iterable[str],
    matrix: Matrix,
) -> bool:
    """Tell whether a second answer has one of these packages more than a year older."""
    from datetime import date

    from .solver.staleness import YEAR

    def day(name: str, resolution: Union[Resolution, Explanation]) -> int:
        package, pin = matrix.package(name), resolution.pin(name)  # type: ignore[union-attr]
        release = package.release(pin.version) if package is not None and pin is not None else None
        released = release.released[:10] if release is not None else ""
        return date.fromisoformat(released).toordinal() if released else 0

    return any(day(name, answer) - day(name, again) > YEAR for name in names)


def with_torch(answer: Resolution, facts: Sequence[Facts], matrix: Matrix) -> Resolution:
    """Add torch where a package imports it that does not ask for it: torchao leaves the choice of
    an index to whoever installs it.
    """
    from ..model.request import Root
    from ..model.resolution import Reason, Resolution
    from .solver import resolve

    importing = [pin for pin in answer.pins if _imports_torch(pin, matrix)]
    if not importing or answer.pin("torch") is not None:
        return answer
    words = f"{importing[0].name} {importing[0].version}"
    request = answer.request
    again = resolve(request._replace(roots=(*request.roots, Root("torch"))), facts, matrix)
    if not isinstance(again, Resolution):
        note = f"{words} imports torch, which it does not ask for, and no torch fits it here"
        return answer._replace(notes=(*answer.notes, note))
    reason = Reason("required", f"{words} imports it, and does not ask for it")
    return again.with_reasons({"torch": reason})._replace(request=request)


def _imports_torch(pin: Pin, matrix: Matrix) -> bool:
    """Tell whether no part of a package can be imported without torch: a row was measured that
    says so of this release.
    """
    for row in matrix.rows_about([pin.name, "torch"]):
        ends = [term for term in row.terms if term.attribute == "version"]
        if row.code != "ED308" or row.effect != "blocks" or len(ends) < len(row.terms):
            continue
        versions = {term.component: term.argument for term in ends}
        own = versions.get(pin.name)
        holds = isinstance(own, VersionSet) and pin.version in own
        if holds and versions.keys() == {pin.name, "torch"}:
            return True
    return False


def _partial_roots(answer: Resolution, matrix: Matrix) -> Dict[str, Tuple[str, str]]:
    """Return the roots whose release asks for torch only with an extra, while the newest always
    does: the extra that did so in most releases, and of these the one with most of what the newest
    asks for, and the last such release.
    """
    partial = {}
    for root in answer.request.roots:
        pin, package = answer.pin(root.name), matrix.package(root.name)
        if pin is None or package is None or root.extras or root.specifier.startswith("=="):
            continue
        final = [release for number, release in package.releases() if not number.is_prerelease]
        own = package.release(pin.version)
        if own is None or not final or _of_torch(final[-1]) != {""} or "" in _of_torch(own):
            continue
        extras = sorted(_of_torch(own))
        if not extras:
            continue
        wanted, served = _names_of(final[-1], ""), [_of_torch(release) for release in final]
        extra = max(
            extras,
            key=lambda name: (
                sum(name in listed for listed in served),
                len(_names_of(own, name) & wanted),
            ),
        )
        last = [release for release in final if _of_torch(release) - {""}][-1]
        partial[root.name] = (extra, str(last.version))
    return partial


def _names_of(release: Release, extra: str) -> Set[str]:
    """What a release asks for with an extra, or always."""
    return {
        requirement.name
        for requirement in _requirements_of(release)
        if (extra in requirement.marker_extras if extra else not requirement.marker_extras)
    }


def _requirements_of(release: Release) -> List[Requirement]:
    from ..model.requirement import try_requirement

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
    requirements = [
        requirement for requirement in _requirements_of(release) if requirement.name == "torch"
    ]
    if not all(requirement.marker_extras for requirement in requirements):
        return {""}
    return {extra for requirement in requirements for extra in requirement.marker_extras}
