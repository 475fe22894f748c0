"""The JSON Schemas of ``check --format json`` and ``plan --format json``, published as ``schemas/report.schema.json`` and ``plan.schema.json``."""

from __future__ import annotations

from typing import Any, Dict

from ..memory.plan import PHASES, VERDICTS
from ..model.finding import KINDS, SEVERITIES
from ..model.row import TRUSTS
from ..model.workload import WORKLOAD_FIELDS
from .json_report import REPORT_SCHEMA_VERSION
from .plan_json import PLAN_SCHEMA_VERSION

__all__ = ["plan_schema", "report_schema"]

_TEXT: Dict[str, Any] = {"type": "string"}
_COUNT: Dict[str, Any] = {"type": "integer", "minimum": 0}


def _finding() -> Dict[str, Any]:
    """Return the members of one finding."""
    return {
        "code": {"type": "string", "pattern": "^ED[0-9]{3}$", "description": "Permanent; never reused."},
        "key": {**_TEXT, "description": "Stable between runs; what ignore files and caused_by name."},
        "component": {**_TEXT, "description": "What is at fault: a distribution, nvidia-driver, gpu, container …"},
        "kind": {"enum": sorted(KINDS), "description": "What is wrong with it."},
        "severity": {"enum": list(SEVERITIES)},
        "verdict": {"enum": ["violated", "undetermined"]},
        "message": {**_TEXT, "description": "One sentence with both values."},
        "subject": {**_TEXT, "description": "What it is about where the component is not enough: a GPU, a path, a node."},
        "evidence": _list(_object({"source": _TEXT, "detail": _TEXT}), "Where each value was read."),
        "sources": _list(_object({"address": _TEXT, "quote": _TEXT}), "Where the knowledge comes from."),
        "remedies": _list(
            _object(
                {
                    "text": _TEXT,
                    "commands": _list(_TEXT),
                    "safety": {"enum": ["safe", "changes-environment", "changes-host"]},
                }
            ),
            "What to do, best first.",
        ),
        "row": {**_TEXT, "description": "Id of the matrix row behind it, or empty."},
        "trust": {"enum": list(TRUSTS)},
        "missing": {**_TEXT, "description": "Undetermined: the one fact that would decide."},
        "caused_by": {"type": ["string", "null"], "description": "Key of the finding that is the root."},
        "nodes": _list(_TEXT, "The nodes it holds for, where several were judged."),
        "rows": _list(_TEXT, "Ids of further rows of the same severity that this finding speaks for."),
    }


def report_schema() -> Dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the report."""
    finding = _finding()
    ignored = _object({"finding": {"$ref": "#/$defs/finding"}, "pattern": _TEXT, "until": _TEXT, "reason": _TEXT, "origin": _TEXT})
    table = _object(
        {
            "schema_version": {"const": REPORT_SCHEMA_VERSION},
            "tool": _object({"name": {"const": "envdoctor"}, "version": _TEXT, "matrix_date": _TEXT}),
            "summary": _object(
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
            "targets": _list(
                _object(
                    {
                        "name": _TEXT,
                        "line": _TEXT,
                        "facts": {"type": "object", "additionalProperties": _TEXT, "description": "python, torch, driver, gpus, limit in words."},
                        "failed_probes": {"type": "object", "additionalProperties": _TEXT, "description": "Field to reason."},
                    }
                )
            ),
            "findings": _list(_object({**finding, "root": {"type": "boolean", "description": "Shown on its own: its cause is none of these."}})),
            "undetermined": _list({"$ref": "#/$defs/finding"}),
            "open_questions": _list(_object({"missing": _TEXT, "waiting": _list(_TEXT), "count": _COUNT, "supply": _TEXT})),
            "ignored": _list(ignored),
            "expired": _list(ignored),
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "envdoctor check report",
        **table,
        "$defs": {"finding": _object(finding)},
    }


def plan_schema() -> Dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a memory plan; sizes are bytes."""
    bounds = {"type": "array", "prefixItems": [_COUNT, _COUNT], "items": False, "minItems": 2, "description": "Low and high, bytes."}
    phases = {"type": "array", "items": {"enum": list(PHASES)}}
    verdict = {"enum": list(VERDICTS)}
    value: Dict[str, Any] = {"type": ["string", "number", "boolean", "object", "array"]}
    term = {
        "name": _TEXT,
        "role": {**_TEXT, "description": "Whose it is: actor, critic, ref, reward, rollout; empty where it is nobody's own."},
        "low": _COUNT,
        "high": _COUNT,
        "formula": {**_TEXT, "description": "In words; what no document gives says that it is an allowance."},
        "source": _TEXT,
        "phases": phases,
        "inputs": _list(_object({"field": {"enum": list(WORKLOAD_FIELDS)}, "value": value, "place": _TEXT})),
        "note": _TEXT,
    }
    pool = {
        "name": {"enum": ["host", "gpu", "shm"]},
        "subject": {**_TEXT, "description": "The role whose GPUs these are, where roles have their own."},
        "verdict": verdict,
        "low": _COUNT,
        "high": _COUNT,
        "peak": {"enum": list(PHASES)},
        "limit": _or_null(_object({"size": _COUNT, "usable": _COUNT, "reason": _TEXT})),
        "phases": _object(dict.fromkeys(PHASES, bounds)),
        "missing": _list(_TEXT, "Inputs without which high is no upper bound."),
        "doubts": _list(_TEXT, "Inputs that would narrow the bounds."),
        "terms": _list(_object(term)),
    }
    lever = {
        "pool": {"enum": ["host", "gpu", "shm", "cache"]},
        "subject": _TEXT,
        "settings": _list(_TEXT, "In the framework's own words."),
        "before": bounds,
        "after": bounds,
        "verdict": verdict,
        "cost": {"type": "integer", "minimum": 1},
        "price": _TEXT,
    }
    cache = {"verdict": verdict, "need": _COUNT, "low": _COUNT, "high": _COUNT, "length": _COUNT, "formula": _TEXT}
    setting = _object({"value": value, "place": _TEXT, "key": {**_TEXT, "description": "The framework's own key, or empty."}})
    pools = _list({"$ref": "#/$defs/pool"})
    table = _object(
        {
            "schema_version": {"const": PLAN_SCHEMA_VERSION},
            "tool": _object({"name": {"const": "envdoctor"}, "version": _TEXT}),
            "verdict": verdict,
            "workload": {"type": "object", "propertyNames": {"enum": list(WORKLOAD_FIELDS)}, "additionalProperties": setting},
            "pools": pools,
            "cache": _or_null(_object(cache)),
            "notes": _list(_TEXT),
            "findings": _list({"$ref": "#/$defs/finding"}),
            "levers": _list(_object(lever)),
            "changes": _list(_TEXT, "The --what-if settings, as given."),
            "before": _or_null(_object({"verdict": verdict, "pools": pools})),
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "envdoctor memory plan",
        **table,
        "$defs": {"finding": _object(_finding()), "pool": _object(pool)},
    }


def _or_null(schema: Dict[str, Any]) -> Dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: Dict[str, Any]) -> Dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: Dict[str, Any], description: str = "") -> Dict[str, Any]:
    return {"type": "array", "items": items, **({"description": description} if description else {})}
