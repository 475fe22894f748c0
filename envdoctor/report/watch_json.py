"""A watched run as JSON; ``schemas/watch.schema.json`` says what is in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, Optional

from .diagnosis_text import dump_diagnosis
from .text import clean

if TYPE_CHECKING:
    from ..model.diagnosis import Diagnosis
    from ..watch.recording import Outlook, Recording
    from ..watch.trend import Arrival, Trend

__all__ = ["WATCH_SCHEMA_VERSION", "dump_recording"]

WATCH_SCHEMA_VERSION = 1


def dump_recording(recording: Recording, diagnosis: Optional[Diagnosis] = None) -> str:
    """Return what a whole run did, and why it failed where that was asked for, as JSON text; sizes
    in bytes, times in seconds.
    """
    group = recording.group
    table = {
        "schema_version": WATCH_SCHEMA_VERSION,
        "limit": {"bytes": group.limit, "source": clean(group.source), "hidden": group.hidden},
        "peak": recording.peak,
        "duration": round(recording.duration, 3),
        "exit_code": recording.exit_code,
        "own": recording.is_own,
        "oom_kills": recording.oom_kills,
        "killed_at": [round(elapsed, 3) for elapsed in recording.killed_at],
        "samples": recording.taken,
        "cpu_seconds": round(recording.cost, 3),
        "outlook": None if recording.outlook is None else _outlook(recording.outlook),
        "failure": clean(recording.failure),
        "diagnosis": None if diagnosis is None else dump_diagnosis(diagnosis),
    }
    return json.dumps(table, indent=1) + "\n"


def _outlook(outlook: Outlook) -> Dict[str, Any]:
    use = outlook.sample.own
    growing = outlook.growing
    return {
        "used": use.used,
        "anonymous": use.anonymous,
        "shared": use.shared,
        "kernel": use.kernel,
        "trend": _trend(outlook.trend),
        "arrival": _arrival(outlook.arrival),
        "growing": None
        if growing is None
        else {"pid": growing[0].pid, "name": clean(growing[0].name), "trend": _trend(growing[1])},
    }


def _trend(trend: Trend) -> Dict[str, Any]:
    return {
        "shape": trend.shape,
        "bytes_per_second": trend.slope,
        "lowest": trend.slope_low,
        "highest": trend.slope_high,
    }


def _arrival(arrival: Optional[Arrival]) -> Optional[Dict[str, Any]]:
    return None if arrival is None else arrival._asdict()
