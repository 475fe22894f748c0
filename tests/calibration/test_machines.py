"""Golden machines: the facts of real machines, replayed, give the findings that were recorded and
read by a person.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from envdoctor.app import Options, check
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.serde import load_facts

MACHINES = sorted(
    path for path in (Path(__file__).parent.parent / "data" / "machines").iterdir() if path.is_dir()
)


def named(entries: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Errors and warnings; advice may come and go with the matrix."""
    return [
        entry
        for entry in entries
        if entry["severity"] != "advice" and entry["verdict"] == "violated"
    ]


@pytest.mark.parametrize("folder", MACHINES, ids=lambda folder: folder.name)
def test_a_captured_machine_gives_what_was_recorded(
    folder: Path, request: pytest.FixtureRequest
) -> None:
    facts = load_facts((folder / "facts.json").read_text(), folder.name)
    report = check(facts, load_matrix(), Options(today="2026-11-21"))
    found = [
        {
            "code": entry.code,
            "component": entry.component,
            "kind": entry.kind,
            "severity": entry.severity,
            "verdict": entry.verdict,
            "row": entry.row,
        }
        for entry in (*report.findings, *report.undetermined)
    ]
    if request.config.getoption("--update-golden"):
        (folder / "findings.json").write_text(json.dumps(found, indent=1) + "\n")
    assert named(found) == named(json.loads((folder / "findings.json").read_text()))
