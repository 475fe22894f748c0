"""``envdoctor.lock.json``: request, targets, pins, reasons and overrides, for programs."""

from __future__ import annotations

import json
from typing import Any, Dict

from ...model.lock_file import SCHEMA_VERSION
from ...model.resolution import Closure, Reason, Resolution
from ...model.row import Source
from ...model.serde import dump_facts

__all__ = ["lock_json", "render"]


def render(resolution: Resolution, version: str) -> str:
    """Return the text of ``envdoctor.lock.json``."""
    return json.dumps(lock_json(resolution, version), indent=2, ensure_ascii=False) + "\n"


def lock_json(resolution: Resolution, version: str) -> Dict[str, Any]:
    """Return a resolution as the JSON object of ``envdoctor.lock.json``."""
    request = resolution.request
    return {
        "schema_version": SCHEMA_VERSION,
        "envdoctor": version,
        "matrix": resolution.matrix_date,
        "closed": {"closed": True, "partial": "partial"}.get(resolution.closure.state, False),
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
        "targets": list(resolution.targets),
        "machines": [dump_facts(entry) for entry in resolution.machines],
        "requires": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in resolution.requires._asdict().items()
        },
        "settings": dict(sorted(resolution.settings.items())),
        "pins": [
            {
                "name": pin.name,
                "version": str(pin.version),
                "index": pin.index_name,
                "extras": list(pin.extras),
                "yanked": pin.yanked,
                "from_source": pin.from_source,
                "build": None
                if pin.build is None
                else {**pin.build._asdict(), "needs": list(pin.build.needs)},
                "requires": list(pin.requires),
                "reasons": [_reason_json(reason) for reason in pin.reasons],
            }
            for pin in resolution.pins
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
            for override in resolution.overrides
        ],
        "sources": [step._asdict() for step in resolution.sources],
        "warnings": [_reason_json(reason) for reason in resolution.warnings],
        "notes": list(resolution.notes),
        "closure": _closure_json(resolution.closure),
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
        "strategy": closure.strategy,
        "local": list(closure.local),
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
