"""A memory plan as JSON: every term with its formula, its inputs and their places."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

from ..model.evidence import Known
from ..model.memory_plan import PHASES, MemoryPlan, PlanResult, Pool
from .json_report import dump_finding
from .text import clean
from .view import View

__all__ = ["PLAN_SCHEMA_VERSION", "dump_plan", "render"]

PLAN_SCHEMA_VERSION = 1


def render(result: PlanResult, view: View) -> str:
    """Return the plan as ASCII JSON."""
    return json.dumps(dump_plan(result), indent=2 if view.verbose else 1) + "\n"


def dump_plan(result: PlanResult) -> Dict[str, Any]:
    """Return the plan as a JSON object; sizes are bytes."""
    from .. import __version__

    workload = {
        name: {
            "value": fact.value,
            "place": clean(str(fact.evidence)),
            "key": result.workload.keys.get(name, ""),
        }
        for name, fact in result.workload
        if isinstance(fact, Known)
    }
    return {
        "schema_version": PLAN_SCHEMA_VERSION,
        "tool": {"name": "envdoctor", "version": __version__},
        "verdict": result.plan.verdict,
        "workload": workload,
        "pools": [_pool(pool) for pool in result.plan.pools],
        "cache": _cache(result.plan),
        "notes": [clean(note) for note in result.plan.notes],
        "findings": [dump_finding(finding) for finding in result.findings],
        "levers": [
            {
                "pool": lever.pool,
                "subject": lever.subject,
                "settings": [clean(text) for text in lever.settings],
                "before": list(lever.before),
                "after": list(lever.after),
                "verdict": lever.verdict,
                "cost": lever.cost,
                "price": lever.price,
            }
            for lever in result.levers
        ],
        "changes": list(result.changes),
        "before": None
        if result.before is None
        else {
            "verdict": result.before.verdict,
            "pools": [_pool(pool) for pool in result.before.pools],
        },
    }


def _pool(pool: Pool) -> Dict[str, Any]:
    limit = pool.limit
    return {
        "name": pool.name,
        "subject": pool.subject,
        "verdict": pool.verdict,
        "low": pool.low,
        "high": pool.high,
        "peak": pool.peak,
        "limit": None
        if limit is None
        else {"size": limit.size, "usable": limit.usable, "reason": clean(limit.reason)},
        "phases": {phase: list(pool.bounds(phase)) for phase in PHASES},
        "missing": [clean(text) for text in pool.missing],
        "doubts": [clean(text) for text in pool.doubts],
        "unstated": _unstated(pool),
        "terms": [
            {
                "name": term.name,
                "role": term.role,
                "low": term.low,
                "high": term.high,
                "formula": clean(term.formula),
                "source": clean(term.source),
                "phases": list(term.phases),
                "inputs": [
                    {"field": entry.field, "value": entry.value, "place": clean(entry.place)}
                    for entry in term.inputs
                ],
                "note": term.note,
            }
            for term in pool.terms
        ],
    }


def _unstated(pool: Pool) -> Optional[Dict[str, Any]]:
    if pool.unstated is None:
        return None
    return {
        "field": pool.unstated.field,
        "ranges": [
            {"setting": clean(text), "low": low, "high": high}
            for text, low, high in pool.unstated.ranges
        ],
    }


def _cache(plan: MemoryPlan) -> Optional[Dict[str, Any]]:
    check = plan.cache
    if check is None:
        return None
    return {
        "verdict": check.verdict,
        "need": check.need,
        "low": check.low,
        "high": check.high,
        "length": check.length,
        "formula": check.formula,
    }
