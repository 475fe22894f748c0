"""The JSON Schema of ``envdoctor matrix … --json``, published as ``schemas/matrix.schema.json``."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from ..model.row import EFFECTS, TRUSTS

__all__ = ["MATRIX_SCHEMA_VERSION", "matrix_schema"]

MATRIX_SCHEMA_VERSION = 1

_TEXT: Dict[str, Any] = {"type": "string"}
_MAYBE: Dict[str, Any] = {"type": ["string", "null"]}
_COUNT: Dict[str, Any] = {"type": "integer", "minimum": 0}
_FLAG: Dict[str, Any] = {"type": "boolean"}


def matrix_schema() -> Dict[str, Any]:
    """Return the JSON Schema (draft 2020-12): one object, whose ``kind`` says what it holds."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "envdoctor matrix answer",
        "oneOf": [
            _object(
                {
                    "schema_version": {"const": MATRIX_SCHEMA_VERSION},
                    "kind": {"const": kind},
                    **fields,
                }
            )
            for kind, fields in _answers()
        ],
        "$defs": {"row": _row(), "code": _code(), "capability": _object(_capability())},
    }


def _answers() -> Tuple[Tuple[str, Dict[str, Any]], ...]:
    rows = _list({"$ref": "#/$defs/row"})
    provenance = {"source": _TEXT, "date": _MAYBE, "trust": _MAYBE}
    code = _list({"$ref": "#/$defs/code"})
    gpu = {
        "name": _TEXT,
        "compute_capability": _TEXT,
        "type": _TEXT,
        "architecture": _TEXT,
        "memory": {"type": ["integer", "null"], "description": "Bytes."},
        "pci_ids": _list(_TEXT),
    }
    release = {
        "version": _TEXT,
        "released": _TEXT,
        "yanked": _FLAG,
        "requires_python": _MAYBE,
        "sdist_only": _FLAG,
        "glibc": _MAYBE,
    }
    return (
        (
            "release",
            {
                "name": _TEXT,
                **release,
                "yanked_reason": _MAYBE,
                "differs": {
                    **_list(
                        _object(
                            {
                                "pythons": _list(_TEXT),
                                "platforms": _list(_TEXT),
                                "requires_python": _MAYBE,
                                "requires": _list(_TEXT),
                            }
                        )
                    ),
                    "description": "Wheels that ask for something else.",
                },
                "requires": {
                    "type": ["array", "null"],
                    "items": _TEXT,
                    "description": "What touches the stack; null: not read.",
                },
                "pythons": _list(_TEXT),
                "platforms": _list(_TEXT),
                "builds": _list(_build()),
                "pinned_by": _list(_object({"name": _TEXT, "version": _TEXT, "line": _TEXT})),
                "rows": rows,
                "derived": rows,
                **provenance,
            },
        ),
        (
            "package",
            {
                "name": _TEXT,
                "range": _TEXT,
                "releases": _list(
                    _object(
                        {
                            **release,
                            "dependencies": {"type": ["integer", "null"]},
                            "cuda": _list(_TEXT),
                            "sm": _list(_TEXT),
                        }
                    ),
                ),
                "rows": rows,
                **provenance,
            },
        ),
        (
            "gpu",
            {
                **gpu,
                "known_as": _list(_TEXT),
                "forward_compatibility": {
                    "type": ["boolean", "null"],
                    "description": (
                        "Whether cuda-compat works on this class of device; null: on "
                        "some of it only, or not known."
                    ),
                },
                "capability": {"anyOf": [{"$ref": "#/$defs/capability"}, {"type": "null"}]},
                "code": code,
                "rows": rows,
                **provenance,
            },
        ),
        ("capability", {**_capability(), "gpus": _list(_TEXT), "code": code, "rows": rows}),
        (
            "architecture",
            {
                "name": _TEXT,
                "capabilities": _list({"$ref": "#/$defs/capability"}),
                "gpus": _list(_TEXT),
            },
        ),
        (
            "driver",
            {
                "branch": _TEXT,
                "release": _MAYBE,
                "cuda": _TEXT,
                "type": _TEXT,
                "status": _TEXT,
                "end_of_life": _MAYBE,
                "cuda_majors": _list(
                    _object({"major": _COUNT, "min_driver": _TEXT, "source": _TEXT, "date": _MAYBE})
                ),
                "toolkits": _list(_TEXT),
                "cuda_compat": _list(_TEXT),
                "capabilities": _list(_TEXT),
                "rows": rows,
                **provenance,
            },
        ),
        (
            "cuda",
            {
                "version": _TEXT,
                "toolkits": _list(
                    _object(
                        {
                            "version": _TEXT,
                            "branch": _TEXT,
                            "driver": _MAYBE,
                            "min_driver": _TEXT,
                            "compat_driver": _MAYBE,
                            **provenance,
                        },
                    ),
                ),
                "min_driver": _MAYBE,
                "ptx_driver": _MAYBE,
                "compat_branches": _list(_TEXT),
                "capabilities": _list(_TEXT),
                "builds": _list(
                    _object({"package": _TEXT, "index": _TEXT, "releases": _list(_TEXT)})
                ),
                "rows": rows,
            },
        ),
        ("row", {"row": {"$ref": "#/$defs/row"}}),
        (
            "profile",
            {
                "name": _TEXT,
                "profile": {"type": "object", "description": "As the file of the profile says."},
            },
        ),
        (
            "summary",
            {
                "date": _TEXT,
                "origin": _TEXT,
                "counts": {"type": "object", "additionalProperties": _COUNT},
                "releases": _COUNT,
            },
        ),
        ("list", {"topic": _TEXT, "date": _TEXT, "entries": _list({"type": "object"})}),
        (
            "coverage",
            {
                "listing_date": _TEXT,
                "matrix_date": _TEXT,
                "packages": _list(
                    _object(
                        {
                            "name": _TEXT,
                            "listed": _COUNT,
                            "required": _MAYBE,
                            "in_matrix": _COUNT,
                            "with_dependencies": _COUNT,
                            "with_sm": _COUNT,
                            "with_glibc": _COUNT,
                            "binary": {
                                **_COUNT,
                                "description": "Releases with compiled Linux wheels.",
                            },
                            "has_code": {
                                **_FLAG,
                                "description": (
                                    "Needs code for the GPU, so that an SM list is asked for."
                                ),
                            },
                            "gone_from_index": _list(_TEXT),
                        }
                    )
                ),
                "missing": _list(_object({"name": _TEXT, "version": _TEXT, "lacks": _TEXT})),
                "unlisted": _list(_TEXT),
            },
        ),
        (
            "validate",
            {
                "folder": _TEXT,
                "faults": _list(_TEXT),
                "counts": {"type": "object", "additionalProperties": _COUNT},
                "not_read": _list(_TEXT),
            },
        ),
        (
            "lint",
            {
                "rows": _COUNT,
                "findings": _list(
                    _object(
                        {
                            "check": _TEXT,
                            "level": {"enum": ["fault", "note"]},
                            "subject": _TEXT,
                            "message": _TEXT,
                            "origin": _TEXT,
                        }
                    ),
                ),
            },
        ),
        (
            "diff",
            {
                "old": _TEXT,
                "new": _TEXT,
                "old_date": _TEXT,
                "new_date": _TEXT,
                "changes": _list(
                    _object(
                        {
                            "table": _TEXT,
                            "change": {"enum": ["added", "removed", "changed"]},
                            "key": _TEXT,
                            "title": _TEXT,
                            "fields": _list(_object({"name": _TEXT, "old": {}, "new": {}})),
                        }
                    )
                ),
            },
        ),
        (
            "update",
            {
                "changed": _FLAG,
                "message": _TEXT,
                "date": _TEXT,
                "origin": _TEXT,
                "previous_date": _TEXT,
                "previous_origin": _TEXT,
                "rows": _TEXT,
                "releases": _TEXT,
                "note": _TEXT,
            },
        ),
    )


def _row() -> Dict[str, Any]:
    return _object(
        {
            "id": _TEXT,
            "code": _TEXT,
            "title": _TEXT,
            "effect": {"enum": list(EFFECTS)},
            "trust": {"enum": list(TRUSTS)},
            "component": _TEXT,
            "kind": _TEXT,
            "when": {**_list(_TEXT), "description": "All hold at once."},
            "unless": _list(_TEXT),
            "symptom": _TEXT,
            "fix": _TEXT,
            "pins": _list(_TEXT),
            "overrides": _list(_TEXT),
            "sources": _list(_object({"address": _TEXT, "quote": _TEXT})),
            "established_by": _TEXT,
            "date": _TEXT,
            "origin": _TEXT,
        }
    )


def _code() -> Dict[str, Any]:
    fields = {
        "package": _TEXT,
        "effect": _TEXT,
        "releases_read": _COUNT,
        "releases_with_code": _COUNT,
        "first": _MAYBE,
        "last": _MAYBE,
        "newest_read": _MAYBE,
    }
    return _object(fields)


def _capability() -> Dict[str, Any]:
    return {
        "name": _TEXT,
        "architecture": _TEXT,
        "first_cuda": _TEXT,
        "last_cuda": _MAYBE,
        "first_driver": _MAYBE,
        "last_driver": _MAYBE,
        "date": _MAYBE,
        "trust": _TEXT,
        "source": _TEXT,
    }


def _build() -> Dict[str, Any]:
    return _object(
        {
            "index": _TEXT,
            "variant": _MAYBE,
            "architecture": _TEXT,
            "cuda": _MAYBE,
            "sm": _list(_TEXT),
            "ptx": {"type": ["array", "null"], "items": _TEXT, "description": "null: not read."},
            "ptx_cuda": _MAYBE,
            "cxx11abi": {"type": ["boolean", "null"]},
            "glibc": _MAYBE,
            "torch": _MAYBE,
            "needed": _list(_TEXT),
            "trust": _TEXT,
            "source": _TEXT,
        }
    )


def _object(properties: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Dict[str, Any]) -> Dict[str, Any]:
    return {"type": "array", "items": items}
