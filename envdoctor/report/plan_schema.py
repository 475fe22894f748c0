"""The JSON Schema of ``plan --format json``, published as ``schemas/plan.schema.json``."""

from __future__ import annotations

from typing import Any, Dict

from ..model.memory_plan import PHASES, VERDICTS
from ..model.workload import WORKLOAD_FIELDS
from .plan_json import PLAN_SCHEMA_VERSION
from .schema import report_schema

__all__ = ["plan_schema"]

_TEXT: Dict[str, Any] = {"type": "string"}
_COUNT: Dict[str, Any] = {"type": "integer", "minimum": 0}


def plan_schema() -> Dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a memory plan; sizes are bytes."""
    bounds = {
        "type": "array",
        "prefixItems": [_COUNT, _COUNT],
        "items": False,
        "minItems": 2,
        "description": "Low and high, bytes.",
    }
    phases = {"type": "array", "items": {"enum": list(PHASES)}}
    verdict = {"enum": list(VERDICTS)}
    value: Dict[str, Any] = {"type": ["string", "number", "boolean", "object", "array"]}
    term = {
        "name": _TEXT,
        "role": {
            **_TEXT,
            "description": (
                "Whose it is: actor, critic, ref, reward, rollout; empty where it is nobody's own."
            ),
        },
        "low": _COUNT,
        "high": _COUNT,
        "formula": {
            **_TEXT,
            "description": "In words; what no document gives says that it is an allowance.",
        },
        "source": _TEXT,
        "phases": phases,
        "inputs": _list(
            _object({"field": {"enum": list(WORKLOAD_FIELDS)}, "value": value, "place": _TEXT})
        ),
        "note": _TEXT,
    }
    pool = {
        "name": {"enum": ["host", "gpu", "shm"]},
        "subject": {
            **_TEXT,
            "description": "The role whose GPUs these are, where roles have their own.",
        },
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
    cache = {
        "verdict": verdict,
        "need": _COUNT,
        "low": _COUNT,
        "high": _COUNT,
        "length": _COUNT,
        "formula": _TEXT,
    }
    setting = _object(
        {
            "value": value,
            "place": _TEXT,
            "key": {**_TEXT, "description": "The framework's own key, or empty."},
        }
    )
    pools = _list({"$ref": "#/$defs/pool"})
    table = _object(
        {
            "schema_version": {"const": PLAN_SCHEMA_VERSION},
            "tool": _object({"name": {"const": "envdoctor"}, "version": _TEXT}),
            "verdict": verdict,
            "workload": {
                "type": "object",
                "propertyNames": {"enum": list(WORKLOAD_FIELDS)},
                "additionalProperties": setting,
            },
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
        "$defs": {"finding": report_schema()["$defs"]["finding"], "pool": _object(pool)},
    }


def _or_null(schema: Dict[str, Any]) -> Dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Dict[str, Any], description: str = "") -> Dict[str, Any]:
    return {
        "type": "array",
        "items": items,
        **({"description": description} if description else {}),
    }
