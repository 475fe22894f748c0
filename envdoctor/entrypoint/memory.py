"""A bound on the memory of the check: where a container is killed as a whole (memory.oom.group, as
kubelets set it on cgroup v2), a check that runs out of memory would take the container with it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..probes.machine import Machine

__all__ = ["PROBE", "bound_memory"]

PROBE = "container"
"""The probe whose facts the bound needs: where it was made, they are read."""

_NEEDED = 20 << 20
"""Bytes that a check may come to need, its interpreter and its matrix included."""

_SPARE = 6 << 20
"""Bytes that are left to those who share the group: the shell, the parent, tables of the kernel."""


def bound_memory(machine: Machine) -> str:
    """Bound this process's data by what its control group has left, as the probe has read it.

    Returns why that is too little for a check, or "".
    """
    limit, used, reclaimable = (
        machine.value(f"memory.{name}", 0) for name in ("limit", "usage", "reclaimable")
    )
    if not limit:
        return ""
    left = limit - max(used - reclaimable, 0)
    if left < _NEEDED:
        from ..model.sizes import size_text

        return f"of a memory limit of {size_text(limit)} {size_text(max(left, 0))} are left"
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = _data_of_this_process() + left - _SPARE
        if hard in (resource.RLIM_INFINITY, -1) or most < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    except (ImportError, OSError, ValueError):  # Debian's python3-minimal has no resource module
        return ""
    return ""


def _data_of_this_process() -> int:
    """Return the bytes that RLIMIT_DATA counts of this process (VmData, proc(5))."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmData:"):
                return int(line.split()[1]) << 10
    raise ValueError("no VmData in /proc/self/status")
