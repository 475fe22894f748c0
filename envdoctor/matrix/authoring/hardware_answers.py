"""What the matrix knows of a GPU, a compute capability, a driver branch or a CUDA version."""

from __future__ import annotations

import re

from ...model.pattern import pattern
from ...model.row import Row, Term
from ...model.versions import VersionSet, parse_version, try_version
from ..bind import Subject, truth
from ..derive import COMPAT_OF_CLASS, build_attributes
from ..derived_rows import runs_on
from ..loader import Matrix
from ..tables import Capability, GpuModel
from .row_answers import NotKnown, speaking_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Sequence

__all__ = ["architecture_answer", "capability_answer", "cuda_answer", "driver_answer", "gpu_answer"]

_CAPABILITY = pattern(r"(?i)(?:sm_?|compute_?(?:capability)?\s*)?(\d{1,2})\.?(\d)[af]?")
_NEVER = VersionSet()


def gpu_answer(matrix: Matrix, text: str) -> Dict[str, Any]:
    """Return what is known of a GPU, by its name or PCI id."""
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

    return speaking_rows(matrix, (), speaks)


def capability_answer(matrix: Matrix, text: str) -> Dict[str, Any]:
    """Return what is known of a compute capability: sm_90, 9.0."""
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


def architecture_answer(matrix: Matrix, text: str) -> Dict[str, Any]:
    """Return what is known of a GPU architecture: Hopper."""
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


def driver_answer(matrix: Matrix, text: str) -> Dict[str, Any]:
    """Return what is known of a driver branch, or of one release: 550, 550.54.15."""
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

    rows = speaking_rows(matrix, (), speaks)
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


def cuda_answer(matrix: Matrix, text: str) -> Dict[str, Any]:
    """Return what is known of a CUDA version: 12, 12.8, 12.8.1."""
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
        "rows": speaking_rows(matrix, (), speaks) if whole else [],
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
