"""The JSON Schema of ``diagnose --format json``, published as ``schemas/diagnosis.schema.json``."""

from __future__ import annotations

from typing import Any, Dict

from ..model.finding import KINDS
from ..model.signature import CERTAINTIES, CONFIDENCES, ROLES
from .diagnosis_text import DIAGNOSIS_SCHEMA_VERSION
from .schema import finding_properties, list_schema, object_schema

__all__ = ["diagnosis_schema"]

_TEXT: Dict[str, Any] = {"type": "string"}
_COUNT: Dict[str, Any] = {"type": "integer", "minimum": 0}


def diagnosis_schema() -> Dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the diagnosis."""
    clock = object_schema(
        {
            "kind": {"enum": ["calendar", "boot"]},
            "seconds": {
                "type": "number",
                "description": "Since the year began, or since the kernel started.",
            },
        }
    )
    line = object_schema(
        {
            "source": _TEXT,
            "number": {"type": "integer", "minimum": 1},
            "text": _TEXT,
            "process": {**_TEXT, "description": "Who wrote it, as far as a prefix tells."},
            "clock": {"anyOf": [clock, {"type": "null"}]},
        }
    )
    suspect = object_schema(
        {
            "text": _TEXT,
            "component": _TEXT,
            "kind": {"enum": sorted(KINDS)},
            "confidence": {"enum": list(CONFIDENCES)},
            "row": {**_TEXT, "description": "Id of the matrix row behind it, or empty."},
            "remedies": list_schema(object_schema({"text": _TEXT, "commands": list_schema(_TEXT)})),
            "collect": list_schema(_TEXT, "What would decide."),
        }
    )
    trace = object_schema(
        {
            **finding_properties(),
            "root": {
                "type": "boolean",
                "description": "Shown on its own: what it followed from is none of these.",
            },
            "certainty": {
                "enum": list(CERTAINTIES),
                "description": (
                    "candidate: the cause is not established, the suspects are all there is."
                ),
            },
            "role": {"enum": list(ROLES)},
            "meaning": _TEXT,
            "times": {
                **_COUNT,
                "description": "Lines that were counted; at least, where a log holds very many.",
            },
            "lines": list_schema(line, "The first ones and the last."),
            "suspects": list_schema(suspect, "The surest first."),
            "collect": list_schema(_TEXT, "What else to look at."),
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "envdoctor diagnosis of logs",
        **object_schema(
            {
                "schema_version": {"const": DIAGNOSIS_SCHEMA_VERSION},
                "tool": object_schema(
                    {"name": {"const": "envdoctor"}, "version": _TEXT, "matrix_date": _TEXT}
                ),
                "summary": object_schema(
                    {"line": {"type": "string", "maxLength": 80}, "exit_code": {"enum": [0, 1]}}
                ),
                "read": object_schema(
                    {
                        "sources": list_schema(_TEXT),
                        "lines": _COUNT,
                        "bytes": {**_COUNT, "description": "Unpacked."},
                        "looked_for": {**_COUNT, "description": "Signatures and symptoms of rows."},
                        "facts_from": {
                            **_TEXT,
                            "description": "Empty: nothing is known of the environment.",
                        },
                    }
                ),
                "traces": list_schema(
                    trace, "Roots in their order, each followed by its consequences."
                ),
                "findings": list_schema(
                    object_schema(finding_properties()), "What else is wrong with the environment."
                ),
            }
        ),
    }
