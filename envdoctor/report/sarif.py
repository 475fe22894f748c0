"""SARIF 2.1.0 (docs.oasis-open.org/sarif/sarif/v2.1.0)."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Sequence
from urllib.parse import quote

from ..model.finding import KINDS, Finding
from ..model.pattern import pattern
from ..model.report import Report
from .headline import summary_line
from .text import clean
from .view import View

__all__ = ["render"]

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {"error": "error", "warning": "warning", "advice": "note"}
_PATH = pattern(r"/[^\s:]*")


def render(report: Report, view: View) -> str:
    """Return the report as one SARIF run; ignored findings are suppressed results, undetermined
    ones are of kind "open".
    """
    from .. import __version__

    shown = [
        *report.findings,
        *report.undetermined,
        *(ignored.finding for ignored in report.ignored),
    ]
    results = [_result(finding) for finding in (*report.findings, *report.undetermined)]
    for ignored in report.ignored:
        justification = f"{clean(ignored.entry.reason)} (until {clean(ignored.entry.until)})"
        results.append(
            {
                **_result(ignored.finding),
                "suppressions": [{"kind": "external", "justification": justification}],
            }
        )
    run = {
        "tool": {
            "driver": {
                "name": "envdoctor",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": _rules(shown),
            }
        },
        "results": results,
        "invocations": [{"executionSuccessful": True, "exitCode": report.exit_code}],
        "properties": {"summary": summary_line(report), "matrixDate": report.matrix_date},
    }
    return (
        json.dumps(
            {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2 if view.verbose else 1
        )
        + "\n"
    )


def _rules(findings: Sequence[Finding]) -> List[Dict[str, Any]]:
    """Describe the rules behind the findings: a row of the matrix is a rule of its own."""
    from ..rules.codes import code_records

    records = code_records()
    rules = []
    for rule, finding in sorted({finding.rule: finding for finding in findings[::-1]}.items()):
        record = records.get(finding.code)  # None: a site's own code
        if record is not None and not finding.row:
            name, summary = record.name, record.summary
        else:
            name = finding.kind
            summary = f"Known combination: {KINDS.get(finding.kind, finding.kind)}"
        rules.append(
            {
                "id": clean(rule),
                "name": name,
                "shortDescription": {"text": summary},
                "help": {"text": f"envdoctor explain {clean(rule)}"},
                "properties": {"code": finding.code},
            }
        )
    return rules


def _result(finding: Finding) -> Dict[str, Any]:
    text = clean(finding.message)
    for remedy in finding.remedies:
        text += f" {remedy.label.capitalize()}: {clean(remedy.text)}"
    for source in finding.sources[:1]:
        text += f" Source: {clean(source.address)}"
    open_kind = finding.verdict == "undetermined"
    location: Dict[str, Any] = {
        "logicalLocations": [
            {"name": clean(finding.component), "fullyQualifiedName": clean(finding.key)}
        ]
    }
    path = next(
        (
            match.group()
            for entry in finding.evidence
            for match in [_PATH.match(entry.source)]
            if match
        ),
        None,
    )
    if path is not None:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": "file://" + quote(path, errors="surrogateescape")}
        }
    return {
        "ruleId": clean(finding.rule),
        "kind": "open" if open_kind else "fail",
        "level": "none" if open_kind else _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {"envdoctorKey/v1": clean(finding.key)},
        "properties": {
            "code": finding.code,
            "kind": finding.kind,
            "component": clean(finding.component),
            "trust": finding.trust,
            "row": finding.row,
            "missing": clean(str(finding.missing or "")),
            "nodes": [clean(name) for name in finding.nodes],
            "commands": [
                clean(str(command)) for remedy in finding.remedies for command in remedy.commands
            ],
            "evidence": [clean(str(entry)) for entry in finding.evidence],
        },
    }
