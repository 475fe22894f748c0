"""What other tools found of this node's hardware: JSON that ``dcgmi diag -j`` printed and that gpud
serves at ``/v1/states``, in files that a timer or an administrator leaves in a folder. They are
read, never run: a diagnosis takes the GPUs for minutes.
"""

from __future__ import annotations

import json
import time

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.redaction import redact
from .machine import FOLDER_ONLY, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Tuple

    from .machine import Machine

__all__ = ["FOLDER", "PROBES_HERE", "SETTING", "parse_health", "probe_health_reports"]

FOLDER = "/var/lib/envdoctor/health"
"""Where the files are looked for; ``$ENVDOCTOR_HEALTH`` names another folder."""

SETTING = " (a setting)"
"""Ends what is about how a node is set up, and not about its hardware."""

_MOST_FILES, _MOST_BYTES, _MOST = 16, 4 << 20, 64
_FIELDS = ("health.failures",)
#: dcgm_errors.h: DCGM_ERROR_CONFIG of dcgmErrorSeverity_t.
_CONFIG = 5


def probe_health_reports(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read the failures in all files of the folder."""
    folder = machine.environment.get("ENVDOCTOR_HEALTH") or FOLDER
    if machine.root and not machine.exists(folder):
        return {"health.failures": Unknown(FOLDER_ONLY)}
    names = [name for name in machine.listdir(folder) or () if name.endswith(".json")]
    failures: List[str] = []
    read = []
    for name in names[:_MOST_FILES]:
        path = f"{folder}/{name}"
        text = machine.read_text(path, _MOST_BYTES)
        found = None if text is None else parse_health(text)
        if found is not None:
            read.append(f"{name}{_written(machine, path)}")
            failures += [f"{name[:-5]}: {failure}" for failure in found]
    if not read:
        return {"health.failures": Absent(Evidence(folder, "no report of a tool that is known"))}
    return {"health.failures": Known(tuple(failures[:_MOST]), Evidence(folder, ", ".join(read)))}


def _written(machine: Machine, path: str) -> str:
    import os

    try:
        status = machine.use(os.stat, path)
    except OSError:
        return ""
    return time.strftime(" of %Y-%m-%d", time.gmtime(status.st_mtime))


def parse_health(text: str) -> Optional[List[str]]:
    """Return the failures in the JSON of a tool; None where it is of none that is known."""
    starts = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    if not starts:
        return None
    try:
        # dcgmi may print a warning before it.
        table, _ = json.JSONDecoder().raw_decode(text, min(starts))
    except (ValueError, RecursionError):
        return None
    try:
        if isinstance(table, dict):
            for key in ("DCGM Diagnostic", "DCGM GPU Diagnostic"):  # of DCGM 4, and before
                if key in table:
                    return list(_of_dcgm(table[key]))
        elif isinstance(table, list) and table and "states" in table[0]:
            return list(_of_gpud(table))
    except (AttributeError, KeyError, TypeError):
        return None
    return None


def _of_dcgm(table: Dict[str, Any]) -> Iterator[str]:
    """Yield what failed, test by test and device by device: dcgmlib/nvvs, NvvsJsonStrings.h."""
    for category in table.get("test_categories", ()):
        for test in category.get("tests", ()):
            for result in (test or {}).get("results", ()):  # DCGM 3 leaves null between tests
                if str(result.get("status", "")).lower() == "fail":
                    yield _failure(str(test.get("name")), _device(result), result)


def _device(result: Dict[str, Any]) -> str:
    if "entity_id" in result:
        return f"{result.get('entity_group', 'GPU')} {result['entity_id']}"
    return f"GPU {result.get('gpu_ids', '?')}"


def _failure(test: str, device: str, result: Dict[str, Any]) -> str:
    warnings = result.get("warnings") or [""]
    first = warnings[0]
    words = first.get("warning", "") if isinstance(first, dict) else str(first)
    entries = [entry for entry in warnings if isinstance(entry, dict)]
    setting = bool(entries) and all(entry.get("error_severity") == _CONFIG for entry in entries)
    text = _line(f"{test} of {device} fails: {words}")
    return text + (SETTING if setting else "")


def _of_gpud(components: List[Dict[str, Any]]) -> Iterator[str]:
    """Yield the components that are not healthy: api/v1/types.go of gpud. "Degraded" does not touch
    a workload.
    """
    for component in components:
        for state in component.get("states") or ():
            if state.get("health") == "Unhealthy":
                words = state.get("reason") or state.get("error") or ""
                yield _line(f"{component.get('component')} is unhealthy: {words}")


def _line(text: str) -> str:
    return redact(" ".join(text.split()))[:300]


PROBES_HERE: Tuple[Probe, ...] = (
    Probe("health_reports", probe_health_reports, _FIELDS, False, 2.0),
)
