"""What is asked for, held against what there is: markers, releases and extras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, FrozenSet, List, Sequence, Set, Tuple

from ..errors import InputError, suggest
from ..matrix.derive import find_builds
from ..matrix.loader import Matrix
from ..matrix.tables import Package
from ..matrix.tags import glibc_for, serves_python
from ..model.request import Request, Root, SourceStep, parse_root, parse_source
from ..model.requirement import parse_requirement, try_requirement
from ..model.versions import Version, VersionSet, canonicalize_name, parse_version, split_clauses
from .solver.target_lines import TargetLines

if TYPE_CHECKING:
    from packaging.tags import Tag

__all__ = ["check_asked", "check_wheels", "indexes_of", "read_roots", "read_sources"]

_NEAR = 0.8  # how alike an extra has to be to one that there is


def read_roots(lines: Sequence[str], request: Request) -> Tuple[Root, ...]:
    """Return the lines whose markers hold where a request is for; raises :class:`InputError`."""
    here = TargetLines(request.python, request.platform, request.architecture)
    roots: Dict[Root, None] = {}
    for text in lines:
        requirement = try_requirement(text)
        if requirement is None or not requirement.marker or requirement.url:
            roots[parse_root(text)] = None
            continue
        _check_marker(requirement.marker, text)
        line = here.line(text)
        if line is not None and line.always:
            roots[parse_root(text.partition(";")[0])] = None
    return tuple(roots)


def read_sources(lines: Sequence[str], request: Request) -> Tuple[SourceStep, ...]:
    """Return what comes from repositories where a request is for; raises :class:`InputError`."""
    here = TargetLines(request.python, request.platform, request.architecture)
    steps = []
    for text in lines:
        requirement = parse_requirement(text)
        if requirement.marker:
            _check_marker(requirement.marker, text)
            line = here.line(f"{requirement.name} ; {requirement.marker}")
            if line is None or not line.always:
                continue
            text = text[: text.rindex(";")]
        steps.append(parse_source(text))
    return tuple(steps)


def _check_marker(marker: str, text: str) -> None:
    from packaging.markers import InvalidMarker, Marker

    try:
        Marker(marker)
    except InvalidMarker as error:
        raise InputError(f"{text}: {str(error).splitlines()[0]}") from error


def check_asked(request: Request, pythons: Sequence[str], matrix: Matrix) -> None:
    """Raise :class:`InputError` for a Python, a release or an extra that there is not."""
    for specifier in pythons:
        if parse_version(request.python) not in VersionSet.parse(specifier):
            raise InputError(
                f"the project asks for Python {specifier}, but the lock is for {request.python}; "
                "give --python-version"
            )
    for root in request.roots:
        package = matrix.package(root.name)
        if package is not None:
            _check_release(root, package, matrix)
            _check_extras(root, package)


def check_wheels(wheels: Sequence[str], request: Request) -> None:
    """Raise :class:`InputError` for a wheel, by its file name, that is for another Python or
    platform than the request.
    """
    python = parse_version(request.python)
    asked = {root.name for root in (*request.roots, *request.others)}
    for file in wheels:
        name, _, tags = _parts(file)
        fits = any(
            serves_python(f"{tag.interpreter}{'t' * tag.abi.endswith('t')}-{tag.abi}", python)
            and glibc_for(tag.platform, request.platform, request.architecture) is not None
            for tag in tags
        )
        if name in asked and not fits:
            raise InputError(
                f"{file}: expected a wheel for Python {request.python} on {request.platform} "
                f"{request.architecture}, found one for {', '.join(sorted(map(str, tags)))}"
            )


def indexes_of(wheels: Sequence[str], architecture: str, matrix: Matrix) -> List[str]:
    """Return the indexes that have the builds which are given as wheels, by their file names."""
    indexes: Dict[str, None] = {}
    for file in wheels:
        name, version, _ = _parts(file)
        package = matrix.package(name)
        release = package.release(parse_version(version.public)) if package is not None else None
        if release is not None and version.local is not None:
            builds = find_builds(release, version, architecture)
            indexes.update(dict.fromkeys(build.index_name for build in builds))
    return [index for index in indexes if index != "pypi"]


def _parts(file: str) -> Tuple[str, Version, FrozenSet[Tag]]:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        name, version, _, tags = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise InputError(f"{file}: is no name of a wheel: {error}") from error
    return name, parse_version(str(version)), tags


def _check_release(root: Root, package: Package, matrix: Matrix) -> None:
    wanted = VersionSet.parse(root.specifier)
    releases = package.versions
    for operator, text in split_clauses(root.specifier):
        if operator == "===":
            own = parse_version(parse_version(text).public)
            written = next((str(version) for version in releases if version == own), "")
            if written and written != text.partition("+")[0].lower():
                raise InputError(
                    f"{root.text}: === compares letter by letter, and {root.name} has no release "
                    f"that is written so; ask for =={text} or ==={written}"
                )
    if any(version in wanted for version in releases) or not releases:
        return
    exact = parse_requirement(root.text).exact
    if (
        exact is not None and "+" in exact
    ):  # a build of another index, of which the solver says more
        return
    near = _nearest(wanted, releases)
    newer = "; 'envdoctor matrix update' may bring newer ones" if near[-1] == releases[-1] else ""
    raise InputError(
        f"{root.text}: the matrix of {matrix.date} has no such release of {root.name}; the nearest "
        f"{'are' if len(near) > 1 else 'is'} {' and '.join(map(str, near))}{newer}"
    )


def _nearest(wanted: VersionSet, releases: Sequence[Version]) -> List[Version]:
    """The final releases next to a range that holds none."""
    low, high = wanted.intervals[0]
    final = [version for version in releases if not version.is_prerelease] or list(releases)
    below = [version for version in final if low is None or version < low]
    above = [version for version in final if high is not None and version >= high]
    return [*below[-1:], *above[:1]] or [final[-1]]


def _check_extras(root: Root, package: Package) -> None:
    """Extras that nothing of the stack hangs on are not known here: only what looks like a slip is
    refused.
    """
    known = _extras(package)
    for extra in root.extras:
        letters = extra.strip("0123456789.-")
        others = [name for name in known if name.strip("0123456789.-") != letters]
        near = suggest(extra, others, _NEAR, 1) if extra not in known else ""
        if near:
            raise InputError(f"{root.text}: {root.name} has no extra {extra!r}{near}")


def _extras(package: Package) -> FrozenSet[str]:
    extras: Set[str] = set()
    for _, release in package.releases():
        for line in release.requires or ():
            if "extra" in line:
                requirement = try_requirement(line)
                if requirement is not None:
                    extras.update(map(canonicalize_name, requirement.marker_extras))
    return frozenset(extras)
