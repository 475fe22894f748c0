"""Plans of one run with different settings as JSON."""

from __future__ import annotations

import json
from typing import Any, Dict, Sequence

from ..model.memory_plan import Pool, Variant
from .text import clean
from .view import View

__all__ = ["SWEEP_SCHEMA_VERSION", "render"]

SWEEP_SCHEMA_VERSION = 1


def render(variants: Sequence[Variant], view: View) -> str:
    """Return the plans as ASCII JSON; sizes are bytes."""
    from .. import __version__

    table = {
        "schema_version": SWEEP_SCHEMA_VERSION,
        "tool": {"name": "envdoctor", "version": __version__},
        "variants": [_variant(variant) for variant in variants],
    }
    return json.dumps(table, indent=2 if view.verbose else 1) + "\n"


def _variant(variant: Variant) -> Dict[str, Any]:
    cache = variant.plan.cache
    return {
        "settings": [clean(text) for text in variant.settings],
        "verdict": variant.plan.verdict,
        "pools": [_pool(pool) for pool in variant.plan.pools],
        "cache_tokens": None if cache is None else list(cache.tokens),
    }


def _pool(pool: Pool) -> Dict[str, Any]:
    return {
        "name": pool.name,
        "subject": pool.subject,
        "verdict": pool.verdict,
        "low": pool.low,
        "high": pool.high,
        "usable": None if pool.limit is None else pool.limit.usable,
        "share_above": pool.share_above,
        "missing": [clean(text) for text in pool.missing],
    }
