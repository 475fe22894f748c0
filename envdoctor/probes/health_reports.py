"""What other tools found of this node's hardware: JSON that ``dcgmi diag -j`` and NVIDIA Health
Validation printed and that gpud serves at ``/v1/states``, in files that a timer or an administrator
leaves in a folder. They are read, never run: a diagnosis takes the GPUs for minutes.
"""

from __future__ import annotations

import json
import time

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import HealthFailure
from ..model.redaction import redact
from .machine import FOLDER_ONLY, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Tuple

    from .machine import Machine

__all__ = ["FOLDER", "PROBES_HERE", "parse_health", "probe_health_reports"]

FOLDER = "/var/lib/envdoctor/health"
"""Where the files are looked for; ``$ENVDOCTOR_HEALTH`` names another folder."""

_MOST_FILES, _MOST_BYTES, _MOST = 16, 4 << 20, 64
_MOST_PART, _MOST_REASON = 100, 200  # characters
_FIELDS = ("health.failures",)
#: dcgm_errors.h: DCGM_ERROR_CONFIG of dcgmErrorSeverity_t.
_CONFIG = 5


def probe_health_reports(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read the failures in all files of the folder."""
    folder = machine.environment.get("ENVDOCTOR_HEALTH") or FOLDER
    if machine.root and not machine.exists(folder):
        return {"health.failures": Unknown(FOLDER_ONLY)}
    names = [name for name in machine.listdir(folder) or () if name.endswith(".json")]
    failures: List[HealthFailure] = []
    read = []
    for name in names[:_MOST_FILES]:
        path = f"{folder}/{name}"
        text = machine.read_text(path, _MOST_BYTES)
        of_file = None if text is None else parse_health(text, name[: -len(".json")])
        if of_file is not None:
            read.append(f"{name}{_written(machine, path)}")
            failures += of_file
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


def parse_health(text: str, report: str) -> Optional[List[HealthFailure]]:
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
                    return list(_of_dcgm(table[key], report))
            affected = list(_affected(table))
            if affected:
                return list(_of_validation(affected, report))
        elif isinstance(table, list) and table and "states" in table[0]:
            return list(_of_gpud(table, report))
    except (AttributeError, KeyError, TypeError):
        return None
    return None


def _of_dcgm(table: Dict[str, Any], report: str) -> Iterator[HealthFailure]:
    """Yield what failed, test by test and device by device: dcgmlib/nvvs, NvvsJsonStrings.h."""
    for category in table.get("test_categories", ()):
        for test in category.get("tests", ()):
            for result in (test or {}).get("results", ()):  # DCGM 3 leaves null between tests
                if str(result.get("status", "")).lower() == "fail":
                    warnings = result.get("warnings") or [""]
                    part = f"{test.get('name')} of {_device(result)}"
                    yield _failure(report, part, _reason(warnings[0]), _is_setting(warnings))


def _device(result: Dict[str, Any]) -> str:
    if "entity_id" in result:
        return f"{result.get('entity_group', 'GPU')} {result['entity_id']}"
    return f"GPU {result.get('gpu_ids', '?')}"


def _reason(warning: Any) -> str:
    return str(warning.get("warning", "") if isinstance(warning, dict) else warning)


def _is_setting(warnings: List[Any]) -> bool:
    severities = [entry.get("error_severity") for entry in warnings if isinstance(entry, dict)]
    return bool(severities) and all(severity == _CONFIG for severity in severities)


def _of_gpud(components: List[Dict[str, Any]], report: str) -> Iterator[HealthFailure]:
    """Yield the components that are not healthy: api/v1/types.go of gpud. "Degraded" does not touch
    a workload.
    """
    for component in components:
        for state in component.get("states") or ():
            if state.get("health") == "Unhealthy":
                reason = str(state.get("reason") or state.get("error") or "")
                yield _failure(report, str(component.get("component")), reason)


#: https://docs.nvidia.com/health-validation/reference/verdict-schema: AffectedComponent, a category
#: with checks that do not pass. A verdict in which all pass has none.
_AFFECTED = frozenset(["category", "check_ids", "entities", "max_severity"])
_DEEPEST = 8


def _affected(value: Any, depth: int = 0) -> Iterator[Dict[str, Any]]:
    """Yield the affected components, wherever in a verdict they stand."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict) and value.keys() >= _AFFECTED:
        yield value
    elif isinstance(value, (dict, list)):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _affected(entry, depth + 1)


def _of_validation(components: List[Dict[str, Any]], report: str) -> Iterator[HealthFailure]:
    """Yield the components that are critical: what has a warning may run."""
    for component in components:
        if str(component["max_severity"]).upper() == "CRITICAL":
            checks, entities = (
                ", ".join(map(str, component[key] or ())) for key in ("check_ids", "entities")
            )
            part = f"{component['category']} ({entities})" if entities else component["category"]
            yield _failure(report, str(part), checks)


def _failure(report: str, part: str, reason: str, setting: bool = False) -> HealthFailure:
    return HealthFailure(
        _line(report, _MOST_PART), _line(part, _MOST_PART), _line(reason, _MOST_REASON), setting
    )


def _line(text: str, most: int) -> str:
    return redact(" ".join(text.split()))[:most]


PROBES_HERE: Tuple[Probe, ...] = (
    Probe("health_reports", probe_health_reports, _FIELDS, False, 2.0),
)
