"""What the matrix knows of a package, or of one of its releases."""

from __future__ import annotations

from ...model.requirement import Requirement, try_requirement
from ...model.row import Row
from ...model.versions import (
    InvalidSpecifier,
    Version,
    VersionSet,
    canonicalize_name,
    parse_version,
    try_version,
)
from ..bind import Subject, truth
from ..derive import build_attributes
from ..glibc_floors import glibc_floor
from ..loader import Matrix
from ..tables import Build, Package, Release
from .row_answers import NotKnown, speaking_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Tuple

__all__ = ["named_package", "specified_answer"]


def named_package(matrix: Matrix, text: str) -> Dict[str, Any]:
    """Return the releases of a package and the rows about it."""
    return package_answer(matrix, canonicalize_name(text), VersionSet.all())


def specified_answer(matrix: Matrix, requirement: Requirement) -> Dict[str, Any]:
    """Return what a requirement names: one release, or those in a range."""
    name, specifier = requirement.name, requirement.specifier
    version = try_version(requirement.exact) if "," not in specifier else None
    if version is not None and matrix.package(name) is not None:
        return release_answer(matrix, name, version)
    try:
        entry = package_answer(matrix, name, requirement.versions)
    except InvalidSpecifier as error:
        raise NotKnown(str(error)) from error
    if not entry["releases"] and matrix.package(name) is not None:
        raise NotKnown(f"no release of {name} is in {specifier}; the matrix has {entry['range']}")
    return entry


def _unknown_package(matrix: Matrix, name: str) -> NotKnown:
    return NotKnown(f"{name}: no such package in the matrix", matrix.package_names)


def package_answer(matrix: Matrix, name: str, wanted: VersionSet) -> Dict[str, Any]:
    """Return the releases in a range and the rows about them; of a package whose releases nobody
    read, the rows alone.
    """
    package = matrix.package(name)
    rows = speaking_rows(
        matrix,
        [name],
        lambda row: row.origin != "derived" and ":" not in row.id and _about(row, name, wanted),
    )
    if package is None:
        if not any(name in row.packages for row in matrix.rows_about([name])):
            raise _unknown_package(matrix, name)
        return _entry_of(name, "releases not read", rows)
    versions = package.versions
    span = f"{versions[0]} to {versions[-1]}" if versions else "no release"
    return {
        **_entry_of(name, span, rows),
        "source": package.source,
        "date": package.date,
        "trust": package.trust,
        "releases": [
            _short(release) for version, release in package.releases() if version in wanted
        ],
    }


def _entry_of(name: str, span: str, rows: List[Dict[str, Any]]) -> Dict[str, Any]:
    return {
        "kind": "package",
        "name": name,
        "range": span,
        "source": "",
        "date": None,
        "trust": None,
        "releases": [],
        "rows": rows,
    }


def _about(row: Row, name: str, wanted: VersionSet) -> bool:
    """Tell whether a row speaks of some release of a distribution in a range."""
    terms = [term for term in row.terms if term.scope == "env" and term.component == name]
    ranges = [
        term.argument
        for term in terms
        if term.operator == "in"
        and term.attribute == "version"
        and isinstance(term.argument, VersionSet)
    ]
    return bool(terms) and all(wanted & argument for argument in ranges)


def _short(release: Release) -> Dict[str, Any]:
    return {
        "version": release.version,
        "released": release.released,
        "yanked": release.yanked,
        "requires_python": release.requires_python,
        "dependencies": None if release.requires is None else len(release.requires),
        "cuda": sorted({build.cuda for build in release.builds if build.cuda}, key=parse_version),
        "sm": code_of_builds(release.builds),
        "glibc": glibc_floor(release),
        "sdist_only": release.sdist_only,
    }


def code_of_builds(builds: Iterable[Build]) -> List[str]:
    return sorted({sm for build in builds for sm in build.sass}, key=capability_order)


def capability_order(text: str) -> Tuple[int, int, str]:
    major, _, minor = text.partition(".")
    digits = minor.rstrip("af")
    return int(major), int(digits or 0), minor


def _unknown_release(matrix: Matrix, package: Package, version: Version) -> NotKnown:
    near = [str(known) for known in package.versions if known.release[:2] == version.release[:2]]
    if near:
        others = f"; it has {', '.join(near[-6:])}"
    elif package.versions:
        others = f"; it has {package.versions[0]} to {package.versions[-1]}"
    else:
        others = ""
    return NotKnown(f"{package.name} {version} is not in the matrix of {matrix.date}{others}")


def release_answer(matrix: Matrix, name: str, version: Version) -> Dict[str, Any]:
    package = matrix.package(name)
    if package is None:
        raise _unknown_package(matrix, name)
    release = package.release(version)
    if release is None:
        raise _unknown_release(matrix, package, version)
    attributes = [{"version": version, **build_attributes(build)} for build in release.builds] or [
        {"version": version}
    ]
    candidates = [Subject(True, entry) for entry in attributes]

    def speaks(row: Row) -> bool:
        terms = [term for term in row.terms if term.scope == "env" and term.component == name]
        return bool(terms) and any(
            all(truth(term, candidate) is not False for term in terms) for candidate in candidates
        )

    rows = speaking_rows(matrix, [name], speaks)
    return {
        "kind": "release",
        "name": name,
        "version": release.version,
        "released": release.released,
        "yanked": release.yanked,
        "yanked_reason": release.yanked_reason,
        "requires_python": release.requires_python,
        "requires": None if release.requires is None else list(release.requires),
        "pythons": list(release.pythons),
        "platforms": list(release.platforms),
        "sdist_only": release.sdist_only,
        "glibc": glibc_floor(release),
        "differs": [
            {
                "pythons": list(other.pythons),
                "platforms": list(other.platforms),
                "requires_python": other.requires_python,
                "requires": list(other.requires),
            }
            for other in release.differs
        ],
        "builds": [_build_entry(build) for build in release.builds],
        "pinned_by": _pinned_by(matrix, name, version),
        "rows": [row for row in rows if row["origin"] != "derived"],
        "derived": [row for row in rows if row["origin"] == "derived"],
        "source": package.source,
        "date": package.date,
        "trust": package.trust,
    }


def _build_entry(build: Build) -> Dict[str, Any]:
    return {
        "index": build.index_name,
        "variant": build.variant,
        "architecture": build.architecture,
        "cuda": build.cuda,
        "sm": list(build.sass),
        "ptx": list(build.ptx) if build.ptx_read else None,
        "ptx_cuda": build.ptx_cuda,
        "cxx11abi": build.cxx11abi,
        "glibc": build.glibc,
        "torch": build.torch,
        "needed": list(build.needed),
        "trust": build.trust,
        "source": build.source,
    }


def _pinned_by(matrix: Matrix, name: str, version: Version) -> List[Dict[str, str]]:
    """The releases whose metadata asks for exactly this one."""
    pins = []
    for other in matrix.package_names:
        package = matrix.package(other)
        if package is None or other == name:
            continue
        for _, release in package.releases():
            for line in release.requires or ():
                if "==" not in line or line[:1].lower() != name[0]:
                    continue
                requirement = try_requirement(line)
                if (
                    requirement is not None
                    and requirement.name == name
                    and try_version(requirement.exact) == version
                ):
                    pins.append({"name": other, "version": release.version, "line": line})
    return pins
