"""The limits that a plan is held against: what the kernel enforces, where Ray's monitor acts, what
a GPU and /dev/shm have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Tuple

from ...model.evidence import Evidence, Known
from ...model.memory_plan import Limit
from ...rules.engine_settings import memory_of_gpu
from .inputs import Inputs

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["gpu_limit", "host_limit", "shm_limit"]

_RAY_THRESHOLD = 0.95  # RAY_memory_usage_threshold, src/ray/common/memory_monitor.cc@01e0cc8d


def _variable(inputs: Inputs, name: str) -> Optional[str]:
    stated = (inputs.get("variables") or {}).get(name)
    if stated is not None:
        return str(stated)
    variable = inputs.facts.variable(name)
    return variable.value if isinstance(variable, Known) else None


def host_limit(inputs: Inputs) -> Optional[Limit]:
    """Return the smallest limit of a node's memory, with Ray's monitor, or None."""
    facts = inputs.facts
    candidates: List[Tuple[int, str, Optional[Evidence]]] = []
    for field, name in (
        ("memory.total", "memory of the machine"),
        ("memory.limit", "memory limit of the control group"),
        ("memory.scheduler_limit", "memory that the scheduler granted"),
    ):
        value = facts.value(field)
        if isinstance(value, int) and value > 0:
            candidates.append((value, name, facts.evidence(field)))
    stated = inputs.get("container.memory")
    if stated:
        candidates.append(
            (
                int(stated),
                "memory limit that the script sets",
                inputs.workload.place("container.memory"),
            )
        )
    if not candidates:
        return None
    size, name, evidence = min(candidates, key=lambda entry: entry[0])
    places = (evidence,) if evidence is not None else ()
    off = _variable(inputs, "RAY_memory_monitor_refresh_ms") == "0"
    if inputs.uses_ray is not False and not off:
        threshold = _fraction(_variable(inputs, "RAY_memory_usage_threshold"))
        return Limit(
            size,
            int(size * threshold),
            f"{name}; Ray's monitor acts at {threshold:g} of it",
            places,
        )
    return Limit(size, size, name, places)


def _fraction(text: Optional[str]) -> float:
    try:
        value = float(text) if text else _RAY_THRESHOLD
    except ValueError:
        return _RAY_THRESHOLD
    return value if 0 < value <= 1 else _RAY_THRESHOLD


def gpu_limit(inputs: Inputs, matrix: Optional[Matrix] = None) -> Optional[Limit]:
    """Return the memory of the smallest visible GPU: as read, else what its model has, which is a
    little more than a program gets.
    """
    devices = [device for device in inputs.facts.value("gpus") or () if device.visible is not False]
    sizes = [memory_of_gpu(device, matrix) for device in devices]
    known = [size for size in sizes if size is not None]
    if not known or len(known) < len(devices):
        return None
    size, reason = min(known)
    evidence = inputs.facts.evidence("gpus")
    return Limit(size, size, reason, (evidence,) if evidence is not None else ())


def shm_limit(inputs: Inputs) -> Optional[Limit]:
    """Return the size of /dev/shm: what the script asks for, else what was read."""
    stated, place = inputs.get("container.shm"), inputs.workload.place("container.shm")
    if stated:
        return Limit(
            int(stated),
            int(stated),
            "/dev/shm that the script asks for",
            (place,) if place is not None else (),
        )
    size, evidence = inputs.facts.value("shm.size"), inputs.facts.evidence("shm.size")
    if not size:
        return None
    return Limit(
        int(size), int(size), "size of /dev/shm", (evidence,) if evidence is not None else ()
    )
