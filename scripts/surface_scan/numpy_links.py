"""Statements about packages whose extension modules are built against NumPy 1, beside NumPy 2:
``numpy`` of symbols.json, as ``scripts/measure_symbols`` writes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envdoctor.matrix.measured_rows import BUILT_FOR_NUMPY_1
from envdoctor.matrix.symbols import as_read_on_aarch64
from envdoctor.model.requirement import try_requirement

from .documents import runs

__all__ = ["numpy_statements"]

#: What import_array() of NumPy 1 holds (numpy/core/code_generators/generate_numpy_api.py). People
#: read something else: NumPy 2 answers first, or Cython finds that a dtype has another size.
_HELD = "module compiled against ABI version 0x%x but this version of numpy is 0x%x"


def numpy_statements(
    matrices: Path, document: Mapping[str, Any], consumer: str
) -> List[Dict[str, Any]]:
    """Return one statement about the releases of a package that are built against NumPy 1, whatever
    the machine, none where the metadata of all of them keep NumPy 2 out.

    Args:
        matrices: The folder, for the releases of the package and of NumPy.
        document: symbols.json.
        consumer: The package.
    """
    built: Mapping[str, Mapping[str, str]] = document.get("numpy", {}).get(consumer, {})
    versions = sorted(built, key=Version)
    on_arm = as_read_on_aarch64(document)["numpy"].get(consumer, {})
    old = [
        place
        for place, version in enumerate(versions)
        if built[version]["major"] == on_arm.get(version, built[version])["major"] == "1"
    ]
    numpy = [entry["version"] for entry in _releases(matrices, "numpy")]
    second = [place for place, version in enumerate(numpy) if Version(version).major == 2]
    requires = {
        entry["version"]: entry.get("requires", ()) for entry in _releases(matrices, consumer)
    }
    newest = [numpy[place] for place in second]
    if not any(_admits(requires.get(versions[place], ()), newest) for place in old):
        return []
    witness = built[versions[old[-1]]]
    own, theirs = runs(versions, old), runs(numpy, second)
    return [
        {
            "id": "built-for-numpy-1",
            "provider": "numpy",
            "module": "",
            "name": "_ARRAY_API",
            "effect": "blocks",
            "verb": BUILT_FOR_NUMPY_1,
            "text": _HELD,
            "in": own,
            "lacking": theirs,
            "kind": "too-new",
            "component": "numpy",
            "archive": witness["archive"],
            "path": witness["path"],
            "line": 0,
            "pin": "numpy<2",
        }
    ]


def _releases(matrices: Path, name: str) -> List[Dict[str, Any]]:
    path = matrices / "packages" / f"{name}.json"
    document = json.loads(path.read_text("utf-8")) if path.exists() else {"releases": []}
    releases: List[Dict[str, Any]] = document["releases"]
    return releases


def _admits(requires: Sequence[str], versions: Sequence[str]) -> bool:
    """Tell whether requirement lines admit one of these releases of NumPy, whatever the Python."""
    requirements = [requirement for requirement in map(try_requirement, requires) if requirement]
    specifiers = [
        SpecifierSet(requirement.specifier)
        for requirement in requirements
        if requirement.name == "numpy" and not requirement.marker_extras
    ]
    return not specifiers or any(
        version in specifier for specifier in specifiers for version in versions
    )
