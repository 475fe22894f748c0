"""Whether a release without a wheel can be built, and what that takes.

The matrix says how (``matrices/sdists.toml``); a release of which it says nothing is no candidate.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional

from ...matrix.loader import Matrix
from ...matrix.tables import Release, SourceBuild
from ...model.resolution import BuildStep
from ...model.row import Row, Term
from ...model.versions import Version, VersionSet, parse_version

__all__ = [
    "COMPILED",
    "FETCHED",
    "attributes_of",
    "build_of",
    "span_of",
    "step_of",
    "unbuildable_rows",
]

#: Attributes of a candidate that is built where it is installed: what compiles it ("nvcc",
#: "nothing"), and the minors of torch for which its build takes a wheel of its project instead.
COMPILED = "compiled_by"
FETCHED = "fetched_for"
_COMPILERS = frozenset(("nvcc", "nothing"))

#: The first release of each Python: PEPs 569, 596, 619, 664, 693, 719, 745 and 790.
_PYTHONS = {
    "3.8": "2019-10",
    "3.9": "2020-10",
    "3.10": "2021-10",
    "3.11": "2022-10",
    "3.12": "2023-10",
    "3.13": "2024-10",
    "3.14": "2025-10",
    "3.15": "2026-10",
}
#: Months before the first release in which its release candidates are out, for others to test.
_EARLY = 3


def build_of(
    name: str, version: Version, release: Release, python: Version, matrix: Matrix
) -> Optional[SourceBuild]:
    """Return how a release is built for a Python, or None where nothing is known of that."""
    for build in matrix.source_builds.get(name, ()):
        if version in build.versions:
            tried = build.python
            fits = _is_of_the_time(release, python) if tried is None else python in tried
            return build if fits else None
    return None


def _is_of_the_time(release: Release, python: Version) -> bool:
    """Tell whether a Python was out, or nearly, when a release came: nobody made it for a later
    one.
    """
    first = _PYTHONS.get(".".join(map(str, python.release[:2])))
    if first is None:
        return False
    year, month = map(int, first.split("-"))
    early = year * 12 + month - 1 - _EARLY
    return release.released[:7] >= f"{early // 12}-{early % 12 + 1:02d}"


def attributes_of(
    build: SourceBuild, release: Release, architecture: str, python: Version
) -> Mapping[str, str]:
    """Return what a candidate tells of being built."""
    tag = "cp" + "".join(map(str, python.release[:2]))
    fetched = {
        entry.torch
        for entry in release.builds
        if entry.index_name == build.fetches
        and entry.architecture == architecture
        and entry.torch is not None
        and (not entry.pythons or tag in entry.pythons)
    }
    return {
        COMPILED: build.compiler or "nothing",
        FETCHED: " ".join(sorted(fetched, key=parse_version)) or "none",
    }


def span_of(fetched: str) -> VersionSet:
    """Return the versions of torch that ``FETCHED`` speaks of."""
    span = VersionSet()
    for minor in fetched.split():
        span |= VersionSet.parse(f"=={minor}.*") if minor != "none" else VersionSet()
    return span


def unbuildable_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows that say what cannot be built, as rows that block what is built."""
    for row in rows:
        if row.kind == "unbuildable" and row.trust == "established":
            built = Term("env", row.component, COMPILED, "any", _COMPILERS)
            yield row._replace(effect="blocks", terms=(*row.terms, built))


def step_of(
    build: SourceBuild, attributes: Mapping[str, object], torch: Optional[Version]
) -> BuildStep:
    """Return how a chosen candidate is built beside the chosen torch."""
    fetched = torch is not None and torch in span_of(str(attributes.get(FETCHED, "none")))
    return BuildStep(build.needs, "" if fetched else build.compiler, fetched)
