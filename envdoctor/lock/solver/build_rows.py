"""Rows that no table holds: they follow from how wheels were compiled."""

from __future__ import annotations

from typing import List, Sequence, Set, Tuple

from ...matrix.loader import Matrix
from ...model.row import Row, Source, Term
from ...model.versions import Version, VersionSet
from .candidates import BUILT_BY_HAND, Catalog
from .source_builds import COMPILED, FETCHED, span_of, unbuildable_rows

__all__ = ["build_rows", "dropped_rows"]


def build_rows(names: Sequence[str], catalog: Catalog) -> List[Row]:
    """Return the rows that follow from how a wheel was compiled: its torch minor, the CUDA major
    and, where its label tells, the C++ ABI of torch.
    """
    if "torch" not in names:
        return []
    rows = [*unbuildable_rows(catalog.matrix.rows_about(names)), *_compiler_rows(names, catalog)]
    there = Term("env", "torch", "version", "present", True)
    for name in names:
        if name == "torch":
            continue
        minors: Set[Version] = set()
        majors: Set[int] = set()
        abis: Set[str] = set()
        for candidate in catalog.table(name).candidates:
            attributes = candidate.subject.attributes
            minor, cuda = attributes.get("torch"), attributes.get("cuda")
            if not isinstance(minor, Version) or (
                name in BUILT_BY_HAND and candidate.index_name == "pypi"
            ):
                continue
            minors.add(minor)
            if isinstance(cuda, Version):
                majors.add(cuda.release[0])
            if candidate.index_name not in ("pypi", "pytorch") and "cxx11abi" in attributes:
                abis.add(attributes["cxx11abi"])
        built = Term("env", name, "torch", "in", VersionSet.all())
        for minor in sorted(minors):
            span = VersionSet.parse(f"=={minor}.*")
            mine = Term("env", name, "torch", "in", span)
            rows.append(
                _build_row(
                    name,
                    f"torch-{minor}",
                    f"torch {minor}",
                    (mine, there, Term("env", "torch", "version", "lacks", span)),
                )
            )
        for major in sorted(majors):
            span = VersionSet.parse(f">={major},<{major + 1}")
            mine = Term("env", name, "cuda", "in", span)
            rows.append(
                _build_row(
                    name,
                    f"cuda-{major}",
                    f"a torch for CUDA {major}",
                    (mine, built, there, Term("env", "torch", "cuda", "lacks", span)),
                )
            )
        for abi in sorted(abis):
            wanted = frozenset((abi,))
            mine = Term("env", name, "cxx11abi", "any", wanted)
            label = Term("env", name, "index", "lacks", frozenset(("pypi", "pytorch")))
            terms = (mine, built, label, there, Term("env", "torch", "cxx11abi", "lacks", wanted))
            rows.append(
                _build_row(
                    name,
                    f"cxx11abi-{abi}",
                    f"a torch with the {'new' if abi == 'true' else 'old'} C++ ABI",
                    terms,
                )
            )
    return rows


def _compiler_rows(names: Sequence[str], catalog: Catalog) -> List[Row]:
    """Rows that ask for the nvcc of torch's CUDA where something is compiled with it."""
    majors = sorted(
        {
            cuda.release[0]
            for candidate in catalog.table("torch").candidates
            for cuda in [candidate.subject.attributes.get("cuda")]
            if isinstance(cuda, Version)
        }
    )
    how = {
        name: build.source
        for name, builds in catalog.matrix.source_builds.items()
        for build in builds
    }
    rows: List[Row] = []
    for name in names:
        groups = {
            str(candidate.subject.attributes[FETCHED])
            for candidate in catalog.table(name).candidates
            if candidate.subject.attributes.get(COMPILED) == "nvcc"
        }
        for fetched in sorted(groups):
            compiled = (
                Term("env", name, COMPILED, "any", frozenset(("nvcc",))),
                Term("env", name, FETCHED, "any", frozenset((fetched,))),
                Term("env", "torch", "version", "lacks", span_of(fetched)),
            )
            for major in majors:
                span = VersionSet.parse(f">={major},<{major + 1}")
                terms = (
                    *compiled,
                    Term("env", "torch", "cuda", "in", span),
                    Term("host", "host", "toolkit", "lacks", span),
                )
                title = (
                    f"building {name} for a torch of CUDA {major} takes the nvcc of CUDA {major}"
                )
                row = _build_row(name, f"nvcc-{major}", "", terms)
                rows.append(row._replace(title=title, kind="missing", sources=(how[name],)))
    return rows


def dropped_rows(names: Sequence[str], matrix: Matrix) -> List[Row]:
    """Return rows for builds whose code was not read: a CUDA newer than the last one that compiles
    for a device has none for it.
    """
    if "torch" not in names:
        return []
    rows = []
    for entry in matrix.capabilities.values():
        if entry.last_cuda is None:
            continue
        major, minor = entry.last_cuda.split(".")[:2]
        span = VersionSet.parse(f">={major}.{int(minor) + 1}")
        device = Term("gpu", "gpu", "sm", "any", frozenset((entry.capability,)))
        terms = (device, Term("env", "torch", "cuda", "in", span))
        title = (
            f"CUDA {entry.last_cuda} is the last that compiles code for {entry.architecture} "
            f"(compute capability {entry.capability})"
        )
        row = _build_row("torch", f"cuda-after-{entry.capability}", "", terms)
        rows.append(
            row._replace(title=title, code="ED120", kind="arch-missing", sources=(entry.source,))
        )
    return rows


def _build_row(name: str, what: str, needed: str, terms: Tuple[Term, ...]) -> Row:
    return Row(
        id=f"{name}-built-for-{what}",
        effect="blocks",
        trust="established",
        terms=terms,
        component=name,
        kind="abi-mismatch",
        code="ED401",
        title=f"this build of {name} is compiled for {needed}",
        symptom="",
        fix="",
        pins=(),
        overrides=(),
        mitigations=(),
        sources=(Source(f"wheels of {name}"),),
        date="",
        origin="build",
    )
