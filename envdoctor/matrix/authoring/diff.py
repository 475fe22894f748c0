"""What differs between two matrices: rows, entries of the curated tables, profiles, models, conda
names, packages, releases.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping

from ...model.versions import parse_version
from ..compiled import KEYS
from ..loader import Matrix
from .row_answers import row_entry

__all__ = ["compare"]

#: Fields that tell where an entry stands or when it was read, not what it says.
_SILENT = frozenset(("origin",))


def compare(old: Matrix, new: Matrix, old_name: str, new_name: str) -> Dict[str, Any]:
    """Return every entry that was added, removed or changed, rows first."""
    changes = _table("rows", _stored(old), _stored(new), lambda entry: str(entry["title"]))
    for table in sorted(KEYS):
        if table == "gpu":
            continue
        changes += _table(table, _entries(old, table), _entries(new, table), _untitled)
    changes += _table(
        "gpu",
        _gpus(old),
        _gpus(new),
        lambda entry: f"{entry['compute_capability']}, {entry['architecture']}",
    )
    changes += _table("profiles", _mappings(old.profiles), _mappings(new.profiles), _untitled)
    changes += _table("models", _models(old), _models(new), lambda entry: str(entry["repository"]))
    changes += _table(
        "conda", _conda(old), _conda(new), lambda entry: str(entry["package"] or "no package")
    )
    changes += _table(
        "packages", _packages(old), _packages(new), lambda entry: f"{entry['releases']} releases"
    )
    for name in sorted(set(old.package_names) & set(new.package_names)):
        changes += _table(
            "releases",
            _releases(old, name),
            _releases(new, name),
            lambda entry: str(entry.get("released", "")),
            name,
        )
    return {
        "kind": "diff",
        "old": old_name,
        "new": new_name,
        "old_date": old.date,
        "new_date": new.date,
        "changes": changes,
    }


def _untitled(_entry: Mapping[str, Any]) -> str:
    return ""


def _stored(matrix: Matrix) -> Dict[str, Any]:
    return {row.id: row_entry(row) for row in matrix.rows() if row.origin != "derived"}


def _entries(matrix: Matrix, table: str) -> Dict[str, Any]:
    return {str(entry[KEYS[table]]): entry for entry in matrix.table_entries(table)}


def _gpus(matrix: Matrix) -> Dict[str, Any]:
    return {entry["name"]: entry for entry in matrix.gpu_entries()}


def _mappings(values: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        name: value if isinstance(value, dict) else {"value": value}
        for name, value in values.items()
    }


def _models(matrix: Matrix) -> Dict[str, Any]:
    return {model.name: model._asdict() for model in matrix.models}


def _conda(matrix: Matrix) -> Dict[str, Any]:
    return {name: entry._asdict() for name, entry in matrix.conda.items()}


def _packages(matrix: Matrix) -> Dict[str, Any]:
    """Packages as a whole; the releases of those that both have are compared one by one, so their
    number is no change here.
    """
    differences = {}
    for name in matrix.package_names:
        package = matrix.package(name)
        if package is not None:
            differences[name] = {
                "releases": len(package.versions),
                "source": package.source,
                "date": package.date,
                "trust": package.trust,
            }
    return differences


def _releases(matrix: Matrix, name: str) -> Dict[str, Any]:
    package = matrix.package(name)
    releases = {}
    for version in package.versions if package is not None else ():
        release = package.release(version) if package is not None else None
        if release is not None:
            entry = release._asdict()
            entry["builds"] = [build._asdict() for build in release.builds]
            releases[str(version)] = entry
    return releases


def _table(
    table: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    title: Callable[[Mapping[str, Any]], str],
    package: str = "",
) -> List[Dict[str, Any]]:
    changes = []
    ordered = sorted({*old, *new}, key=parse_version if package else None)
    for key in ordered:
        if key not in old:
            changes.append(_change(table, package, "added", key, title(new[key]), []))
        elif key not in new:
            changes.append(_change(table, package, "removed", key, title(old[key]), []))
        else:
            skipped = {*_SILENT, "releases"} if table == "packages" else _SILENT
            fields = [
                {
                    "name": field,
                    "old": _plain(old[key].get(field)),
                    "new": _plain(new[key].get(field)),
                }
                for field in dict.fromkeys([*old[key], *new[key]])
                if field not in skipped
                and _plain(old[key].get(field)) != _plain(new[key].get(field))
            ]
            if fields:
                changes.append(_change(table, package, "changed", key, title(new[key]), fields))
    return changes


def _change(
    table: str, package: str, change: str, key: str, title: str, fields: List[Dict[str, Any]]
) -> Dict[str, Any]:
    return {
        "table": table,
        "package": package,
        "change": change,
        "key": key,
        "title": title,
        "fields": fields,
    }


def _plain(value: Any) -> Any:
    """The value as JSON has it, so that a tuple equals its list."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
