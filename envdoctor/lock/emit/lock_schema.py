"""The JSON Schema of ``envdoctor.lock.json``, published as ``schemas/lock.schema.json``."""

from __future__ import annotations

from typing import Any, Dict

from ...model.facts import SCHEMA_VERSION as FACTS_VERSION
from .lock_json import SCHEMA_VERSION

__all__ = ["lock_schema"]

_TEXT: Dict[str, Any] = {"type": "string"}
_MAYBE: Dict[str, Any] = {"type": ["string", "null"]}
_FLAG: Dict[str, Any] = {"type": "boolean"}


def lock_schema() -> Dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a lock."""
    sources = _list(
        {**_object({"address": _TEXT, "quote": _TEXT}), "required": ["address"]},
        "Where the knowledge comes from.",
    )
    reason = {
        **_object({"kind": _TEXT, "text": _TEXT, "row": _TEXT, "sources": sources}),
        "required": ["kind", "text"],
    }
    pin = {
        "name": _TEXT,
        "version": {**_TEXT, "description": "With the local label of a build from another index."},
        "index": _TEXT,
        "extras": _list(_TEXT),
        "yanked": _FLAG,
        "from_source": _FLAG,
        "requires": _list(_TEXT, "Names of pins that it requires."),
        "reasons": _list(reason),
    }
    override = {
        "requirer": _TEXT,
        "requirer_version": _TEXT,
        "name": _TEXT,
        "specifier": {**_TEXT, "description": "What the requirer asks for, and does not get."},
        "version": _TEXT,
        "row": _TEXT,
        "title": _TEXT,
        "sources": sources,
    }
    step = {
        "name": _TEXT,
        "extras": _list(_TEXT),
        "url": _TEXT,
        "reference": _TEXT,
        "requirement": _TEXT,
        "note": _TEXT,
    }
    line = {
        "name": _TEXT,
        "version": _TEXT,
        "hashes": _list(
            {"type": "string", "pattern": "^[a-z0-9]+:[0-9a-f]+$"},
            "Of every file of the release; none where none is to be had.",
        ),
        "via": _list(_TEXT, "Names that require it."),
        "index": _TEXT,
    }
    closure = {
        "state": {"enum": ["closed", "partial", "core", "refused"]},
        "reason": {**_TEXT, "description": "Why it is not closed."},
        "message": {**_TEXT, "description": "The words of the tool that refused."},
        "tool": _TEXT,
        "platform": {**_TEXT, "description": "The wheels that the lines stand for."},
        "sources": _list(_TEXT, "Options that name further indexes, without credentials."),
        "lines": _list(
            _object(line), "Every package, the core pins too; empty where the lock is not closed."
        ),
    }
    machine = _object(
        {
            "schema_version": {"const": FACTS_VERSION},
            "facts": {"type": "object", "description": "See facts.schema.json."},
        }
    )
    table = {
        "schema_version": {"const": SCHEMA_VERSION},
        "envdoctor": _TEXT,
        "matrix": {**_TEXT, "description": "Date of the matrix."},
        "closed": {
            "enum": [True, False, "partial"],
            "description": "Partial: every line is pinned, some have no hash.",
        },
        "request": _object(
            {
                "roots": _list(_TEXT),
                "not_judged": _list(_TEXT, "Requests that the matrix does not know."),
                "python": _TEXT,
                "platform": _TEXT,
                "architecture": _TEXT,
                "as_of": _MAYBE,
                "allow_index": _list(_TEXT),
                "profile": {
                    **_TEXT,
                    "description": "Request of a profile (verl:0.7-vllm), or empty.",
                },
            }
        ),
        "targets": _list(_TEXT, "In words."),
        "machines": _list(
            machine, "The same as facts, which every command reads with --facts or --target."
        ),
        "requires": _object(
            {
                "python": _TEXT,
                "driver": _MAYBE,
                "glibc": _MAYBE,
                "cuda": _MAYBE,
                "sm": _list(_TEXT),
                "platform": _TEXT,
                "architecture": _TEXT,
            }
        ),
        "settings": {
            "type": "object",
            "additionalProperties": _TEXT,
            "description": "Variables without which a row would apply.",
        },
        "pins": _list(_object(pin)),
        "overrides": _list(_object(override)),
        "sources": _list(
            _object(step),
            "What is installed from repositories after the pins, without its dependencies.",
        ),
        "warnings": _list(reason),
        "notes": _list(_TEXT),
        "closure": _object(closure),
    }
    found = _object(table)
    found["required"].remove("machines")  # locks of before it was written are read, too
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "envdoctor lock",
        **found,
    }


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
