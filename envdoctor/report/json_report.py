"""The report as JSON; ``schemas/report.schema.json`` says what is in it."""

from __future__ import annotations

import json

from ..model.finding import Finding, findings_tree
from ..model.report import Ignored, Report
from .headline import open_questions, summary_line, target_line, target_parts
from .text import clean
from .view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from ..model.differences import NodeDifference, Since

__all__ = [
    "BAKE_SCHEMA_VERSION",
    "REPORT_SCHEMA_VERSION",
    "dump_difference",
    "dump_finding",
    "dump_report",
    "dump_since",
    "render",
    "render_bake",
]

REPORT_SCHEMA_VERSION = 1
BAKE_SCHEMA_VERSION = 1


def render(report: Report, view: View) -> str:
    """Return the report as ASCII JSON, one member of the findings per line group."""
    return json.dumps(dump_report(report), indent=2 if view.verbose else 1) + "\n"


def render_bake(report: Report, baseline: Optional[str], require: str) -> str:
    """Return what ``envdoctor bake`` did as JSON (``schemas/bake.schema.json``).

    Args:
        report: What is wrong with the image on its target.
        baseline: The path of the baseline, None where none was written.
        require: The value of NVIDIA_REQUIRE_CUDA, or "".
    """
    table = {
        "schema_version": BAKE_SCHEMA_VERSION,
        "baseline": None if baseline is None else clean(baseline),
        "nvidia_require_cuda": require,
        "report": dump_report(report),
    }
    return json.dumps(table, indent=1) + "\n"


def dump_report(report: Report) -> Dict[str, Any]:
    """Return the report as a JSON object.

    Texts are cleaned as in every other format; raw facts are 'envdoctor probe --json'.
    """
    from .. import __version__

    return {
        "schema_version": REPORT_SCHEMA_VERSION,
        "tool": {"name": "envdoctor", "version": __version__, "matrix_date": report.matrix_date},
        "summary": {
            "line": summary_line(report),
            "errors": report.count_of("error"),
            "warnings": report.count_of("warning"),
            "advice": report.count_of("advice"),
            "undetermined": len(report.undetermined),
            "ignored": len(report.ignored),
            "exit_code": report.exit_code,
        },
        "targets": [
            {
                "name": clean(node.value("node.name", "")),
                "line": target_line(node),
                "facts": dict(target_parts(node)),
                "failed_probes": _failed(node),
            }
            for node in report.nodes
        ],
        "findings": [
            {**dump_finding(finding), "root": depth == 0}
            for finding, depth in findings_tree(report.findings)
        ],
        "undetermined": [dump_finding(finding) for finding in report.undetermined],
        "open_questions": [
            {
                "missing": question.missing,
                "waiting": list(question.codes),
                "count": question.findings,
                "supply": question.supply,
            }
            for question in open_questions(report)
        ],
        "ignored": [_ignored(ignored) for ignored in report.ignored],
        "expired": [_ignored(ignored) for ignored in report.expired],
        **({} if report.since is None else {"since": dump_since(report.since)}),
    }


def dump_difference(difference: NodeDifference, word: str) -> Dict[str, Any]:
    """Return what differs; ``word`` names the member of the other value: "others", "was"."""
    value, other = difference.value, difference.other
    return {
        "name": clean(difference.name),
        "value": None if value is None else clean(value),
        word: None if other is None else clean(other),
    }


def dump_since(since: Since) -> Dict[str, Any]:
    """Return what changed since a file was written."""
    return {
        "file": clean(since.where),
        "changed": [
            {
                "nodes": [clean(name) for name in entry.names],
                "differences": [dump_difference(one, "was") for one in entry.differences],
            }
            for entry in since.changed
        ],
        "unchanged": since.same,
        "added": [clean(name) for name in since.added],
        "gone": [clean(name) for name in since.gone],
        "silent": [clean(name) for name in since.silent],
        "appeared": [dump_finding(finding) for finding in since.appeared],
        "cured": [dump_finding(finding) for finding in since.cured],
    }


def _failed(node: Any) -> Dict[str, str]:
    from ..model.evidence import Unknown

    return {
        name: clean(str(fact))
        for name, fact in node
        if isinstance(fact, Unknown) and fact.probe is not None
    }


def dump_finding(finding: Finding) -> Dict[str, Any]:
    """Return one finding as a JSON object."""
    return {
        "code": finding.code,
        "rule": clean(finding.rule),
        "key": clean(finding.key),
        "component": clean(finding.component),
        "kind": finding.kind,
        "severity": finding.severity,
        "verdict": finding.verdict,
        "message": clean(finding.message),
        "subject": clean(finding.subject),
        "evidence": [
            {"source": clean(entry.source), "detail": clean(entry.detail)}
            for entry in finding.evidence
        ],
        "sources": [
            {"address": clean(entry.address), "quote": clean(entry.quote)}
            for entry in finding.sources
        ],
        "remedies": [
            {
                "text": clean(remedy.text),
                "commands": [clean(str(command)) for command in remedy.commands],
                "safety": remedy.safety,
            }
            for remedy in finding.remedies
        ],
        "row": finding.row,
        "trust": finding.trust,
        "effect": finding.effect,
        "title": clean(finding.title),
        "missing": clean(str(finding.missing or "")),
        "caused_by": None if finding.caused_by is None else clean(finding.caused_by),
        "nodes": [clean(name) for name in finding.nodes],
        "rows": list(finding.rows),
        "packages": [clean(name) for name in finding.packages],
        "gpus": list(finding.gpus),
        "presumed": finding.presumed,
    }


def _ignored(ignored: Ignored) -> Dict[str, Any]:
    entry = ignored.entry
    return {
        "finding": dump_finding(ignored.finding),
        "pattern": clean(entry.pattern),
        "until": clean(entry.until),
        "reason": clean(entry.reason),
        "origin": clean(entry.origin),
    }
