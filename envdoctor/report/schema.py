"""The JSON Schema of ``check --format json``, published as ``schemas/report.schema.json``."""

from __future__ import annotations

from typing import Any, Dict

from ..model.finding import KINDS, SEVERITIES
from ..model.row import TRUSTS
from .json_report import REPORT_SCHEMA_VERSION

__all__ = ["finding_properties", "list_schema", "object_schema", "report_schema"]

_TEXT: Dict[str, Any] = {"type": "string"}
_COUNT: Dict[str, Any] = {"type": "integer", "minimum": 0}


def report_schema() -> Dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the report."""
    finding = finding_properties()
    ignored = object_schema(
        {
            "finding": {"$ref": "#/$defs/finding"},
            "pattern": _TEXT,
            "until": _TEXT,
            "reason": _TEXT,
            "origin": _TEXT,
        }
    )
    table = object_schema(
        {
            "schema_version": {"const": REPORT_SCHEMA_VERSION},
            "tool": object_schema(
                {"name": {"const": "envdoctor"}, "version": _TEXT, "matrix_date": _TEXT}
            ),
            "summary": object_schema(
                {
                    "line": {"type": "string", "maxLength": 80},
                    "errors": _COUNT,
                    "warnings": _COUNT,
                    "advice": _COUNT,
                    "undetermined": _COUNT,
                    "ignored": _COUNT,
                    "exit_code": {"enum": [0, 1]},
                }
            ),
            "targets": list_schema(
                object_schema(
                    {
                        "name": _TEXT,
                        "line": _TEXT,
                        "facts": {
                            "type": "object",
                            "additionalProperties": _TEXT,
                            "description": "python, torch, driver, gpus, limit in words.",
                        },
                        "failed_probes": {
                            "type": "object",
                            "additionalProperties": _TEXT,
                            "description": "Field to reason.",
                        },
                    }
                )
            ),
            "findings": list_schema(
                object_schema(
                    {
                        **finding,
                        "root": {
                            "type": "boolean",
                            "description": "Shown on its own: its cause is none of these.",
                        },
                    }
                )
            ),
            "undetermined": list_schema({"$ref": "#/$defs/finding"}),
            "open_questions": list_schema(
                object_schema(
                    {
                        "missing": _TEXT,
                        "waiting": list_schema(_TEXT),
                        "count": _COUNT,
                        "supply": _TEXT,
                    }
                )
            ),
            "ignored": list_schema(ignored),
            "expired": list_schema(ignored),
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "envdoctor check report",
        **table,
        "$defs": {"finding": object_schema(finding)},
    }


def finding_properties() -> Dict[str, Any]:
    """Return what each finding has, by name."""
    return {
        "code": {
            "type": "string",
            "pattern": "^ED[0-9]{3}$",
            "description": "Permanent; never reused.",
        },
        "key": {
            **_TEXT,
            "description": "Stable between runs; what ignore files and caused_by name.",
        },
        "component": {
            **_TEXT,
            "description": "What is at fault: a distribution, nvidia-driver, gpu, container …",
        },
        "kind": {"enum": sorted(KINDS), "description": "What is wrong with it."},
        "severity": {"enum": list(SEVERITIES)},
        "verdict": {"enum": ["violated", "undetermined"]},
        "message": {**_TEXT, "description": "One sentence with both values."},
        "subject": {
            **_TEXT,
            "description": (
                "What it is about where the component is not enough: a GPU, a path, a node."
            ),
        },
        "evidence": list_schema(
            object_schema({"source": _TEXT, "detail": _TEXT}), "Where each value was read."
        ),
        "sources": list_schema(
            object_schema({"address": _TEXT, "quote": _TEXT}), "Where the knowledge comes from."
        ),
        "remedies": list_schema(
            object_schema(
                {
                    "text": _TEXT,
                    "commands": list_schema(_TEXT),
                    "safety": {"enum": ["safe", "changes-environment", "changes-host"]},
                }
            ),
            "What to do, best first.",
        ),
        "row": {**_TEXT, "description": "Id of the matrix row behind it, or empty."},
        "trust": {"enum": list(TRUSTS)},
        "missing": {**_TEXT, "description": "Undetermined: the one fact that would decide."},
        "caused_by": {
            "type": ["string", "null"],
            "description": "Key of the finding that is the root.",
        },
        "nodes": list_schema(_TEXT, "The nodes it holds for, where several were judged."),
        "rows": list_schema(
            _TEXT, "Ids of further rows of the same severity that this finding speaks for."
        ),
    }


def object_schema(properties: Dict[str, Any]) -> Dict[str, Any]:
    """Return the schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_schema(items: Dict[str, Any], description: str = "") -> Dict[str, Any]:
    """Return the schema of a list."""
    return {
        "type": "array",
        "items": items,
        **({"description": description} if description else {}),
    }
