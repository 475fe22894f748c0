"""``envdoctor.lock.json``: request, targets, pins, reasons and overrides, for programs."""

from __future__ import annotations

import json
from typing import Any, Dict

from ...model.lock_file import SCHEMA_VERSION
from ...model.resolution import Closure, Reason, Resolution
from ...model.row import Source
from ...model.serde import dump_facts

__all__ = ["lock_json", "render"]


def render(found: Resolution, version: str) -> str:
    """Return the text of ``envdoctor.lock.json``."""
    return json.dumps(lock_json(found, version), indent=2, ensure_ascii=False) + "\n"


def lock_json(found: Resolution, version: str) -> Dict[str, Any]:
    """Return a resolution as the JSON object of ``envdoctor.lock.json``."""
    request = found.request
    return {
        "schema_version": SCHEMA_VERSION,
        "envdoctor": version,
        "matrix": found.matrix_date,
        "closed": {"closed": True, "partial": "partial"}.get(found.closure.state, False),
        "request": {
            "roots": [root.text for root in request.roots],
            "not_judged": [root.text for root in request.others],
            "python": request.python,
            "platform": request.platform,
            "architecture": request.architecture,
            "as_of": request.as_of,
            "allow_index": list(request.allow_index),
            "profile": request.profile,
        },
        "targets": list(found.targets),
        "machines": [dump_facts(entry) for entry in found.machines],
        "requires": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.requires._asdict().items()
        },
        "settings": dict(sorted(found.settings.items())),
        "pins": [
            {
                "name": pin.name,
                "version": pin.version,
                "index": pin.index_name,
                "extras": list(pin.extras),
                "yanked": pin.yanked,
                "from_source": pin.from_source,
                "requires": list(pin.requires),
                "reasons": [_reason_json(reason) for reason in pin.reasons],
            }
            for pin in found.pins
        ],
        "overrides": [
            {
                "requirer": override.requirer,
                "requirer_version": override.requirer_version,
                "name": override.name,
                "specifier": override.specifier,
                "version": override.version,
                "row": override.row,
                "title": override.title,
                "sources": [_source_json(source) for source in override.sources],
            }
            for override in found.overrides
        ],
        "sources": [step._asdict() for step in found.sources],
        "warnings": [_reason_json(reason) for reason in found.warnings],
        "notes": list(found.notes),
        "closure": _closure_json(found.closure),
    }


def _closure_json(closure: Closure) -> Dict[str, Any]:
    """What closing gave; ``lines`` has every package, the core pins too, and is empty where the
    lock is not closed.
    """
    return {
        "state": closure.state,
        "reason": closure.reason,
        "message": closure.message,
        "tool": closure.tool,
        "platform": closure.platform,
        "sources": list(closure.sources),
        "lines": [
            {
                "name": line.name,
                "version": line.version,
                "hashes": list(line.hashes),
                "via": list(line.via),
                "index": line.source,
            }
            for line in closure.lines
        ],
    }


def _reason_json(reason: Reason) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"kind": reason.kind, "text": reason.text}
    for key in ("row", "requirer", "requirement"):
        if getattr(reason, key):
            entry[key] = getattr(reason, key)
    if reason.sources:
        entry["sources"] = [_source_json(source) for source in reason.sources]
    return entry


def _source_json(source: Source) -> Dict[str, str]:
    return (
        {"address": source.address, "quote": source.quote}
        if source.quote
        else {"address": source.address}
    )
