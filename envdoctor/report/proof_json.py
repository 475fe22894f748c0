"""What came of trying things as JSON; ``schemas/prove.schema.json`` says what is in it."""

from __future__ import annotations

import json

from .json_report import dump_finding, dump_report
from .proof_text import verdict_of
from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from ..model.proof import Comparison, Proof
    from .view import View

__all__ = ["PROVE_SCHEMA_VERSION", "render"]

PROVE_SCHEMA_VERSION = 1


def render(proof: Proof, view: View) -> str:
    """Return the proof as ASCII JSON."""
    table = {
        "schema_version": PROVE_SCHEMA_VERSION,
        "verdict": verdict_of(proof),
        "exit_code": proof.exit_code,
        "steps": [_step(entry) for entry in proof.compared],
        "skipped": [clean(text) for text in proof.skipped],
        "report": dump_report(proof.report),
    }
    return json.dumps(table, indent=2 if view.verbose else 1) + "\n"


def _step(entry: Comparison) -> Dict[str, Any]:
    step = entry.step
    return {
        "trial": step.trial,
        "subject": clean(step.subject),
        "name": clean(step.name),
        "rank": step.rank,
        "node": clean(step.node),
        "outcome": step.outcome,
        "error": clean(step.error),
        "value": step.value,
        "unit": clean(step.unit),
        "expected": step.expected,
        "expected_by": clean(step.expected_by),
        "said": [clean(line) for line in step.said.split("\n") if line.strip()],
        "check": entry.verdict,
        "findings": [dump_finding(finding) for finding in entry.findings],
    }
