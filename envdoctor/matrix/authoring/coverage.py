"""How much of the package index the matrix holds, by the listing that ``scripts/refresh_matrix``
commits (``matrices/index.json``).
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ...errors import MatrixError
from ...model.versions import Version, VersionSet, parse_version, try_version
from ..glibc_floors import glibc_floor
from ..loader import Matrix
from ..tables import Release, release_key

__all__ = ["REQUIRED", "measure"]

#: What has to be complete: every listed release in these ranges is in the matrix, with its
#: dependencies; where the package has code for GPUs and wheels on the index, also with SM list and
#: glibc floor.
REQUIRED: Mapping[str, str] = {
    "torch": ">=1.13",
    "vllm": ">=0.2",
    "ray": ">=2.0",
    "verl": "",
    "openrlhf": "",
    "sglang": ">=0.4",
    "flash-attn": ">=2.0",
    "transformers": ">=4.30",
    "deepspeed": ">=0.9",
}


def measure(
    matrix: Matrix, listing: Mapping[str, Any], names: Iterable[str] = ()
) -> Dict[str, Any]:
    """Compare matrix and listing, package by package.

    Args:
        matrix: what is known.
        listing: ``index.json``.
        names: only these packages; all where left out.

    Raises:
        MatrixError: a listing of another form.
    """
    versions_by_name = _listed(listing)
    chosen = sorted(names) or sorted({*versions_by_name, *matrix.package_names, *REQUIRED})
    packages = []
    missing: List[Dict[str, str]] = []
    for name in chosen:
        if name in versions_by_name:
            entry, gaps = _package(matrix, name, versions_by_name[name])
            packages.append(entry)
            missing += gaps
        elif name in REQUIRED:
            missing.append(
                {"name": name, "version": "every release", "lacks": "not on the listing"}
            )
    return {
        "kind": "coverage",
        "listing_date": str(listing.get("date", "")),
        "matrix_date": matrix.date,
        "packages": packages,
        "missing": missing,
        "unlisted": [
            name for name in chosen if name not in versions_by_name and name not in REQUIRED
        ],
    }


#: What is counted of each release.
_HELD = ("in_matrix", "with_dependencies", "with_sm", "with_glibc", "binary")


def _listed(listing: Mapping[str, Any]) -> Dict[str, List[Version]]:
    packages = listing.get("packages")
    if listing.get("schema") != 1 or not isinstance(packages, dict):
        raise MatrixError(["index.json: expected schema 1 with 'packages'"])
    versions_by_name: Dict[str, List[Version]] = {}
    faults = []
    for name, entry in packages.items():
        releases = entry.get("releases") if isinstance(entry, dict) else None
        versions = (
            [try_version(text) if isinstance(text, str) else None for text in releases]
            if isinstance(releases, list)
            else [None]
        )
        if None in versions:
            faults.append(f"index.json: packages.{name}: expected a list of versions in 'releases'")
        versions_by_name[name] = sorted(version for version in versions if version is not None)
    if faults:
        raise MatrixError(faults)
    return versions_by_name


def _package(
    matrix: Matrix, name: str, versions: List[Version]
) -> Tuple[Dict[str, Any], List[Dict[str, str]]]:
    required = VersionSet.parse(REQUIRED[name]) if name in REQUIRED else None
    package = matrix.package(name)
    has_code = name in matrix.code_demands
    keys = {release_key(version) for version in versions}
    counts = dict.fromkeys(_HELD, 0)
    gaps = []
    for version in versions:
        held = _held(package.release(version) if package is not None else None)
        for key in counts:
            counts[key] += held[key]
        if required is not None and version in required:
            gaps += [
                {"name": name, "version": str(version), "lacks": word}
                for word in _lacking(held, has_code)
            ]
    known = [str(version) for version in package.versions] if package is not None else []
    measured, linked = (
        {release_key(parse_version(text)) for text in texts}
        for texts in (matrix.measured_releases(name), matrix.linked_releases(name))
    )
    entry = {
        "name": name,
        "listed": len(versions),
        "required": None if required is None else REQUIRED[name] or "every release",
        **counts,
        "with_imports": len(keys & measured),
        "with_symbols": len(keys & linked),
        "has_code": has_code,
        "gone_from_index": [text for text in known if release_key(parse_version(text)) not in keys],
    }
    return entry, gaps


def _held(release: Optional[Release]) -> Dict[str, bool]:
    """Return what the matrix holds of a release; some of it only binary ones have."""
    if release is None:
        return dict.fromkeys(_HELD, False)
    binary = any("linux" in platform for platform in release.platforms)
    return {
        "in_matrix": True,
        "with_dependencies": release.requires is not None,
        "with_sm": binary and any(build.sass for build in release.builds),
        "with_glibc": binary and glibc_floor(release) is not None,
        "binary": binary,
    }


def _lacking(held: Mapping[str, bool], has_code: bool) -> List[str]:
    if not held["in_matrix"]:
        return ["not in the matrix"]
    gaps = [] if held["with_dependencies"] else ["no dependencies"]
    if held["binary"] and has_code and not held["with_sm"]:
        gaps.append("no SM list")
    if held["binary"] and not held["with_glibc"]:
        gaps.append("no glibc floor")
    return gaps
