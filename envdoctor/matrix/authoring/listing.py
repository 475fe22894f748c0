"""What there is in the matrix, topic by topic: ``envdoctor matrix list``.

What it knows of one entry: ``lookup``.
"""

from __future__ import annotations

from ..loader import Matrix
from .row_answers import row_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional

__all__ = ["TOPICS", "listing"]

#: What ``list`` knows, with a line for ``--help``.
TOPICS: Mapping[str, str] = {
    "packages": "distributions with the number and range of their releases",
    "rows": "known-bad combinations",
    "gpus": "models with compute capability and PCI ids",
    "drivers": "driver branches",
    "toolkits": "CUDA toolkit releases",
    "signatures": "lines of logs and what they mean",
    "profiles": "frameworks and the sets that their maintainers tested",
    "models": "language models with their size",
    "conda": "what conda calls a distribution",
}


def listing(matrix: Matrix, topic: Optional[str]) -> Dict[str, Any]:
    """Return one of ``TOPICS`` in short, or without one how much there is of each."""
    if topic is None:
        return {
            "kind": "summary",
            "date": matrix.date,
            "origin": matrix.origin,
            "counts": {name: len(make(matrix)) for name, make in _LISTS.items()},
            "releases": sum(entry["releases"] for entry in _list_packages(matrix)),
        }
    return {"kind": "list", "topic": topic, "date": matrix.date, "entries": _LISTS[topic](matrix)}


def _list_packages(matrix: Matrix) -> List[Dict[str, Any]]:
    entries = []
    for name in matrix.package_names:
        package = matrix.package(name)
        versions = package.versions if package is not None else ()
        ends = (
            {"first": str(versions[0]), "last": str(versions[-1])}
            if versions
            else {"first": None, "last": None}
        )
        entries.append(
            {
                "name": name,
                "releases": len(versions),
                **ends,
                "date": package.date if package is not None else None,
            }
        )
    return entries


def _list_rows(matrix: Matrix) -> List[Dict[str, Any]]:
    keys = ("id", "code", "title", "effect", "trust", "component", "date")
    stored = [row_entry(row) for row in matrix.rows() if row.origin != "derived"]
    return [
        {key: entry[key] for key in keys} for entry in sorted(stored, key=lambda entry: entry["id"])
    ]


def _list_drivers(matrix: Matrix) -> List[Dict[str, Any]]:
    return [
        {
            "branch": entry.branch,
            "cuda": entry.cuda,
            "type": entry.kind,
            "status": entry.status,
            "end_of_life": entry.end_of_life,
        }
        for entry in matrix.driver_branches.values()
    ]


def _list_toolkits(matrix: Matrix) -> List[Dict[str, Any]]:
    return [
        {
            "version": entry.version,
            "branch": entry.branch,
            "driver": entry.driver,
            "min_driver": entry.min_driver,
        }
        for entry in matrix.toolkits.values()
    ]


def _list_gpus(matrix: Matrix) -> List[Dict[str, Any]]:
    keys = ("name", "compute_capability", "type", "architecture", "memory", "pci_ids")
    return [{key: entry[key] for key in keys} for entry in matrix.gpu_entries()]


def _list_profiles(matrix: Matrix) -> List[Dict[str, Any]]:
    return [
        {"name": name, "title": str(value.get("title", ""))}
        for name, value in sorted(matrix.profiles.items())
    ]


def _list_models(matrix: Matrix) -> List[Dict[str, Any]]:
    keys = (
        "name",
        "repository",
        "parameters",
        "active",
        "layers",
        "kv_heads",
        "head_dim",
        "date",
        "trust",
    )
    return [{key: getattr(model, key) for key in keys} for model in matrix.models]


def _list_conda(matrix: Matrix) -> List[Dict[str, Any]]:
    keys = ("distribution", "package", "channel", "date", "trust")
    return [{key: getattr(entry, key) for key in keys} for entry in matrix.conda.values()]


def _list_signatures(matrix: Matrix) -> List[Dict[str, Any]]:
    return [
        {
            "id": entry.id,
            "layer": entry.layer,
            "role": entry.role,
            "title": entry.title,
            "trust": entry.trust,
            "date": entry.date,
        }
        for entry in matrix.signatures
    ]


_LISTS: Mapping[str, Callable[[Matrix], List[Dict[str, Any]]]] = {
    "packages": _list_packages,
    "rows": _list_rows,
    "gpus": _list_gpus,
    "drivers": _list_drivers,
    "toolkits": _list_toolkits,
    "signatures": _list_signatures,
    "profiles": _list_profiles,
    "models": _list_models,
    "conda": _list_conda,
}
