"""What the matrix knows of one thing: a release, a package, a GPU, a compute capability, a driver
branch, a CUDA version, a row.

Each answer is a JSON object with ``kind``; ``envdoctor.report.matrix_text`` writes it for people,
``--json`` as it is.
"""

from __future__ import annotations

import re

from ...model.pattern import pattern
from ...model.requirement import Requirement, requirement_fault, try_requirement
from ...model.row import Row, Term
from ...model.versions import (
    InvalidSpecifier,
    Version,
    VersionSet,
    canonicalize_name,
    parse_version,
    try_version,
)
from ..bind import Subject, truth
from ..derive import COMPAT_OF_CLASS, build_attributes
from ..derived_rows import runs_on
from ..glibc_floors import glibc_floor
from ..loader import Matrix
from ..tables import Build, Capability, GpuModel, Release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

__all__ = ["NotKnown", "find", "row_entry"]

_CAPABILITY = pattern(r"(?i)(?:sm_?|compute_?(?:capability)?\s*)?(\d{1,2})\.?(\d)[af]?")
_WORDED = pattern(r"(?i)(driver|cuda|toolkit|gpu|row|profile|package)\s+(\S.*)")
_NEVER = VersionSet()


class NotKnown(LookupError):
    """Nothing of that name; ``known`` are names that may have been meant."""

    def __init__(self, message: str, known: Iterable[str] = ()) -> None:
        self.known = tuple(known)
        super().__init__(message)


def find(matrix: Matrix, query: str) -> Dict[str, Any]:
    """Return what the matrix knows of ``query``.

    ``vllm==0.8.5``, ``vllm``, ``vllm>=0.8,<0.9``, ``H20``, ``10de:2329``, ``sm_90``, ``Hopper``,
    ``driver 550``, ``cuda 12.8``, a row's id or a profile's name. The words driver, cuda, gpu, row,
    profile and package before a name say which kind is meant.

    Raises:
        NotKnown: nothing goes by that name.
    """
    text = " ".join(query.split())
    worded = _WORDED.fullmatch(text)
    if worded is not None:
        return _WORDS[worded.group(1).lower()](matrix, worded.group(2))
    requirement = try_requirement(text)
    if requirement is not None and requirement.specifier:
        return _specified(matrix, requirement)
    if any(sign in text for sign in "<>="):
        raise NotKnown(requirement_fault(text))
    for attempt in (_row, _package, _profile, _gpu, _capability, _architecture):
        try:
            return attempt(matrix, text)
        except NotKnown:  # noqa: PERF203 - each reading of the text may fail on its own
            continue
    raise NotKnown(
        f"{text}: no such package, GPU, compute capability, profile or row", _names(matrix)
    )


def _names(matrix: Matrix) -> Iterator[str]:
    yield from matrix.package_names
    yield from {name for row in matrix.rows() for name in row.packages}
    yield from (model.name for model in matrix.gpus)
    yield from (row.id for row in matrix.rows())
    yield from (f"sm_{name.replace('.', '')}" for name in matrix.capabilities)
    yield from (f"driver {name}" for name in matrix.driver_branches)


# --------------------------------------------------------------------------------------------------
# rows


def row_entry(row: Row) -> Dict[str, Any]:
    """Return a row as JSON."""
    return {
        "id": row.id,
        "code": row.code,
        "title": row.title,
        "effect": row.effect,
        "trust": row.trust,
        "component": row.component,
        "kind": row.kind,
        "when": [f"{term.scope}: {term}" for term in row.terms],
        "unless": [f"{setting.component}={setting.value}" for setting in row.mitigations],
        "symptom": row.symptom,
        "fix": row.fix,
        "pins": list(row.pins),
        "overrides": list(row.overrides),
        "sources": [{"address": source.address, "quote": source.quote} for source in row.sources],
        "established_by": row.established_by,
        "date": row.date,
        "origin": row.origin,
    }


def _row(matrix: Matrix, text: str) -> Dict[str, Any]:
    row = matrix.row(text) or matrix.row(text.lower())
    if row is None:
        raise NotKnown(f"{text}: no such row", (row.id for row in matrix.rows()))
    return {"kind": "row", "row": row_entry(row)}


def _speaking(
    matrix: Matrix, names: Sequence[str], speaks: Callable[[Row], bool]
) -> List[Dict[str, Any]]:
    """The rows that speak of something, written rows before derived ones."""
    rows = matrix.rows_about(names) if names else matrix.rows()
    speaking = [matrix.complete(row) for row in rows if speaks(row)]
    return [row_entry(row) for row in sorted(speaking, key=lambda row: row.origin == "derived")]


# --------------------------------------------------------------------------------------------------
# packages


def _package(matrix: Matrix, text: str) -> Dict[str, Any]:
    return _package_entry(matrix, canonicalize_name(text), VersionSet.all())


def _specified(matrix: Matrix, requirement: Requirement) -> Dict[str, Any]:
    name, specifier = requirement.name, requirement.specifier
    version = try_version(requirement.exact) if "," not in specifier else None
    if version is not None and matrix.package(name) is not None:
        return _release(matrix, name, version)
    try:
        entry = _package_entry(matrix, name, requirement.versions)
    except InvalidSpecifier as error:
        raise NotKnown(str(error)) from error
    if not entry["releases"] and matrix.package(name) is not None:
        raise NotKnown(f"no release of {name} is in {specifier}; the matrix has {entry['range']}")
    return entry


def _unknown_package(matrix: Matrix, name: str) -> NotKnown:
    return NotKnown(f"{name}: no such package in the matrix", matrix.package_names)


def _package_entry(matrix: Matrix, name: str, wanted: VersionSet) -> Dict[str, Any]:
    """Return the releases in a range and the rows about them; of a package whose releases nobody
    read, the rows alone.
    """
    package = matrix.package(name)
    rows = _speaking(
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
        "sm": _code_of(release.builds),
        "glibc": glibc_floor(release),
        "sdist_only": release.sdist_only,
    }


def _code_of(builds: Iterable[Build]) -> List[str]:
    return sorted({sm for build in builds for sm in build.sass}, key=_capability_order)


def _capability_order(text: str) -> Tuple[int, int, str]:
    major, _, minor = text.partition(".")
    digits = minor.rstrip("af")
    return int(major), int(digits or 0), minor


def _release(matrix: Matrix, name: str, version: Version) -> Dict[str, Any]:
    package = matrix.package(name)
    if package is None:
        raise _unknown_package(matrix, name)
    release = package.release(version)
    if release is None:
        near = [
            str(known) for known in package.versions if known.release[:2] == version.release[:2]
        ]
        span = (
            f"; it has {', '.join(near[-6:])}"
            if near
            else f"; it has {package.versions[0]} to {package.versions[-1]}"
            if package.versions
            else ""
        )
        raise NotKnown(f"{name} {version} is not in the matrix of {matrix.date}{span}")
    attributes = [{"version": version, **build_attributes(build)} for build in release.builds] or [
        {"version": version}
    ]
    candidates = [Subject(True, entry) for entry in attributes]

    def speaks(row: Row) -> bool:
        terms = [term for term in row.terms if term.scope == "env" and term.component == name]
        return bool(terms) and any(
            all(truth(term, candidate) is not False for term in terms) for candidate in candidates
        )

    rows = _speaking(matrix, [name], speaks)
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


# --------------------------------------------------------------------------------------------------
# GPUs


def _gpu(matrix: Matrix, text: str) -> Dict[str, Any]:
    is_id = re.fullmatch(r"(?:0x)?(?:10de:)?[0-9a-f]{4}", text, re.IGNORECASE) is not None
    model = matrix.gpu(None if is_id and ":" in text else text, text if is_id else None)
    if model is None:
        shared = [
            entry
            for entry in matrix.gpu_entries()
            if is_id and text.lower().rpartition(":")[2] in entry["pci_ids"]
        ]
        if shared:
            raise NotKnown(
                f"{text}: several models share this PCI id: "
                f"{', '.join(entry['name'] for entry in shared)}"
            )
        raise NotKnown(f"{text}: no such GPU", (entry.name for entry in matrix.gpus))
    entry = next(entry for entry in matrix.gpu_entries() if entry["name"] == model.name)
    capability = matrix.capabilities.get(model.compute_capability)
    device = _device(model)
    return {
        "kind": "gpu",
        **entry,
        "forward_compatibility": COMPAT_OF_CLASS.get(model.kind),
        "capability": None if capability is None else _capability_entry(matrix, capability),
        "code": _code_support(matrix, model.compute_capability),
        "rows": _gpu_rows(matrix, device),
    }


def _device(model: GpuModel) -> Subject:
    attributes = {
        "model": model.name,
        "kind": model.kind,
        "architecture": model.architecture,
        "sm": model.compute_capability,
        "compute_capability": parse_version(model.compute_capability),
    }
    return Subject(True, attributes)


def _gpu_rows(matrix: Matrix, device: Subject) -> List[Dict[str, Any]]:
    def speaks(row: Row) -> bool:
        terms = [term for term in row.terms if term.scope == "gpu"]
        # code-for-X rows say of every package what ``code`` says in one line each.
        return (
            bool(terms)
            and not row.id.startswith(("code-for-", "ptx-"))
            and all(truth(term, device) is not False for term in terms)
        )

    return _speaking(matrix, (), speaks)


def _capability(matrix: Matrix, text: str) -> Dict[str, Any]:
    match = _CAPABILITY.fullmatch(text)
    name = f"{match.group(1)}.{match.group(2)}" if match is not None else ""
    capability = matrix.capabilities.get(name)
    if capability is None:
        raise NotKnown(
            f"{text}: no such compute capability",
            (f"sm_{known.replace('.', '')}" for known in matrix.capabilities),
        )
    device = Subject(
        True,
        {
            "sm": name,
            "compute_capability": parse_version(name),
            "architecture": capability.architecture,
        },
    )
    return {
        "kind": "capability",
        **_capability_entry(matrix, capability),
        "gpus": [model.name for model in matrix.gpus if model.compute_capability == name],
        "code": _code_support(matrix, name),
        "rows": _gpu_rows(matrix, device),
    }


def _architecture(matrix: Matrix, text: str) -> Dict[str, Any]:
    members = [
        entry
        for entry in matrix.capabilities.values()
        if entry.architecture.lower() == text.lower()
    ]
    if not members:
        raise NotKnown(
            f"{text}: no such architecture",
            sorted({entry.architecture for entry in matrix.capabilities.values()}),
        )
    return {
        "kind": "architecture",
        "name": members[0].architecture,
        "capabilities": [_capability_entry(matrix, entry) for entry in members],
        "gpus": [
            model.name for model in matrix.gpus if model.architecture == members[0].architecture
        ],
    }


def _capability_entry(matrix: Matrix, entry: Capability) -> Dict[str, Any]:
    return {
        "name": entry.capability,
        "architecture": entry.architecture,
        "first_cuda": entry.first_cuda,
        "last_cuda": entry.last_cuda,
        "first_driver": entry.first_driver,
        "last_driver": entry.last_driver,
        "date": matrix.table_entry("capability", entry.capability).get("date"),
        "trust": entry.trust,
        "source": entry.source.address,
    }


def _code_support(matrix: Matrix, capability: str) -> List[Dict[str, Any]]:
    """Of each package that needs code for the GPU: which releases have some for this one."""
    serving = runs_on(capability)
    support = []
    for name in sorted(matrix.code_demands):
        package = matrix.package(name)
        if package is None:
            continue
        read, having = [], []
        for version, release in package.releases():
            codes = [
                codes
                for codes in (build_attributes(build).get("code") for build in release.builds)
                if codes
            ]
            if codes:
                read.append(version)
                if any(not serving.isdisjoint(code) for code in codes):
                    having.append(version)
        support.append(
            {
                "package": name,
                "effect": matrix.code_demands[name].effect,
                "releases_read": len(read),
                "releases_with_code": len(having),
                "first": str(having[0]) if having else None,
                "last": str(having[-1]) if having else None,
                "newest_read": str(read[-1]) if read else None,
            }
        )
    return support


# --------------------------------------------------------------------------------------------------
# drivers and CUDA


def _driver(matrix: Matrix, text: str) -> Dict[str, Any]:
    number = text.upper().lstrip("R").split(".", 1)[0]
    branch = matrix.driver_branches.get(number)
    version = try_version(text.upper().lstrip("R"))
    if branch is None or version is None:
        raise NotKnown(
            f"driver {text}: no such branch", (f"driver {name}" for name in matrix.driver_branches)
        )
    exact = len(version.release) > 1
    span = VersionSet.parse(f"=={version}" if exact else f">={number},<{int(number) + 1}")
    newest = version if exact else parse_version(f"{number}.999")
    served = [
        entry for entry in matrix.cuda_majors.values() if newest >= parse_version(entry.min_driver)
    ]

    def known(capability: Capability) -> bool:
        return (
            capability.first_driver is None or int(capability.first_driver) <= int(number)
        ) and (capability.last_driver is None or int(capability.last_driver) >= int(number))

    def speaks(row: Row) -> bool:
        terms = [term for term in row.terms if term.scope == "host" and term.attribute == "driver"]
        return bool(terms) and all(
            isinstance(term.argument, VersionSet) and bool(_meant(term) & span) for term in terms
        )

    rows = _speaking(matrix, (), speaks)
    return {
        "kind": "driver",
        "branch": branch.branch,
        "release": text.upper().lstrip("R") if exact else None,
        "cuda": branch.cuda,
        "type": branch.kind,
        "status": branch.status,
        "end_of_life": branch.end_of_life,
        "cuda_majors": [
            {
                "major": entry.major,
                "min_driver": entry.min_driver,
                "source": entry.source.address,
                "date": matrix.table_entry("major", str(entry.major)).get("date"),
            }
            for entry in served
        ],
        "toolkits": [
            toolkit.version
            for toolkit in matrix.toolkits.values()
            if toolkit.branch == branch.branch
        ],
        "cuda_compat": [
            entry.cuda
            for entry in matrix.forward_compat.values()
            if branch.branch in entry.branches
        ],
        "capabilities": [
            entry.capability for entry in matrix.capabilities.values() if known(entry)
        ],
        "rows": rows,
        "date": matrix.table_entry("branch", branch.branch).get("date"),
        "trust": matrix.table_entry("branch", branch.branch).get("trust"),
        "source": branch.source.address,
    }


def _meant(term: Term) -> VersionSet:
    """The versions for which a term holds."""
    if not isinstance(term.argument, VersionSet):
        return _NEVER
    return ~term.argument if term.operator == "lacks" else term.argument


def _cuda(matrix: Matrix, text: str) -> Dict[str, Any]:
    version = try_version(text)
    parts = version.release if version is not None else ()
    toolkits = [
        toolkit
        for toolkit in matrix.toolkits.values()
        if parts and parse_version(toolkit.version).release[: len(parts)] == parts
    ]
    if version is None or not toolkits:
        minors = dict.fromkeys(".".join(name.split(".")[:2]) for name in matrix.toolkits)
        raise NotKnown(
            f"cuda {text}: no such toolkit in the matrix", (f"cuda {name}" for name in minors)
        )
    minor = ".".join(map(str, parts[:2]))
    major = matrix.cuda_majors.get(parts[0])
    whole = len(parts) > 1
    span = VersionSet.parse(f"=={minor}.*")

    def speaks(row: Row) -> bool:
        terms = [
            term
            for term in row.terms
            if (term.scope == "env" and term.attribute in ("cuda", "ptx_cuda"))
            or (term.scope == "host" and term.attribute == "toolkit")
        ]
        derived = row.id.startswith(("driver-for-cuda-", "ptx-"))
        return bool(terms) and not derived and all(bool(_meant(term) & span) for term in terms)

    def covers(capability: Capability) -> bool:
        first, last = parse_version(capability.first_cuda), try_version(capability.last_cuda)
        return first <= parse_version(minor) and (last is None or parse_version(minor) <= last)

    compat = matrix.forward_compat.get(minor)
    return {
        "kind": "cuda",
        "version": str(version),
        "toolkits": [
            {
                "version": toolkit.version,
                "branch": toolkit.branch,
                "driver": toolkit.driver,
                "min_driver": toolkit.min_driver,
                "compat_driver": toolkit.compat_driver,
                "date": matrix.table_entry("toolkit", toolkit.version).get("date"),
                "trust": toolkit.trust,
                "source": toolkit.source.address,
            }
            for toolkit in toolkits
        ],
        "min_driver": None if major is None else major.min_driver,
        "ptx_driver": next(
            (
                branch.branch
                for branch in matrix.driver_branches.values()
                if parse_version(branch.cuda) >= parse_version(minor)
            ),
            None,
        ),
        "compat_branches": [] if compat is None else list(compat.branches),
        "capabilities": [
            entry.capability for entry in matrix.capabilities.values() if whole and covers(entry)
        ],
        "builds": _builds_for(matrix, parts),
        "rows": _speaking(matrix, (), speaks) if whole else [],
    }


def _builds_for(matrix: Matrix, parts: Sequence[int]) -> List[Dict[str, Any]]:
    """Of each package: the releases that have a build for this CUDA version."""
    builds = []
    for name in matrix.package_names:
        package = matrix.package(name)
        if package is None:
            continue
        versions: Dict[str, List[str]] = {}
        for _, release in package.releases():
            for build in release.builds:
                cuda = try_version(build.cuda)
                if (
                    cuda is not None
                    and len(cuda.release) >= min(2, len(parts))
                    and cuda.release[: len(parts[:2])] == tuple(parts[:2])
                ):
                    known = versions.setdefault(build.index_name, [])
                    if release.version not in known:
                        known.append(release.version)
        builds += [
            {"package": name, "index": index, "releases": releases}
            for index, releases in sorted(versions.items())
        ]
    return builds


# --------------------------------------------------------------------------------------------------
# profiles


def _profile(matrix: Matrix, text: str) -> Dict[str, Any]:
    name = text.lower()
    profile = {key.lower(): value for key, value in matrix.profiles.items()}.get(name)
    if profile is None:
        raise NotKnown(f"{text}: no such profile", matrix.profiles)
    return {"kind": "profile", "name": name, "profile": profile}


_WORDS: Mapping[str, Callable[[Matrix, str], Dict[str, Any]]] = {
    "driver": _driver,
    "cuda": _cuda,
    "toolkit": _cuda,
    "gpu": _gpu,
    "row": _row,
    "profile": _profile,
    "package": _package,
}
