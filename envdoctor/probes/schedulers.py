"""What schedulers say of this process: Slurm's job, a pod's memory, the Ray cluster at hand."""

from __future__ import annotations

import json
import re

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.sizes import parse_size
from .machine import FOLDER_ONLY, Machine, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

__all__ = ["PROBES_HERE", "parse_quantity", "parse_ray_usage", "probe_schedulers", "slurm_memory"]

_MOST_SOCKETS = 8 << 20  # bytes of a table with a line of some 100 for each

# Slurm also hands out user, account and submit host: those stay here.
_SLURM = (
    "SLURM_CLUSTER_NAME",
    "SLURM_CPUS_ON_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_GPUS",
    "SLURM_GPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_TASK",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_GPUS",
    "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_LOCALID",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_NNODES",
    "SLURM_NODEID",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_PROCID",
    "SLURM_STEP_GPUS",
    "SLURM_STEP_ID",
    "SLURM_TASKS_PER_NODE",
    "SLURMD_NODENAME",
)

# The downward API lets the pod's author choose names; these are the ones of the Kubernetes pages
# and of common charts.
_POD_VARIABLES = (
    "MEMORY_LIMIT",
    "MEM_LIMIT",
    "MY_MEM_LIMIT",
    "CONTAINER_MEMORY_LIMIT",
    "K8S_MEMORY_LIMIT",
    "LIMITS_MEMORY",
)
_POD_FILES = ("/etc/podinfo/mem_limit", "/etc/podinfo/memory_limit", "/etc/podinfo/limits.memory")

_SMALLEST = 1 << 24


def parse_quantity(text: str) -> Optional[int]:
    """Return the bytes of a quantity; None below 16 MiB, where Kubernetes divided by ``1Mi``."""
    size = parse_size(text[:64], decimal=True)
    return size if size is not None and _SMALLEST <= size < 1 << 62 else None


def slurm_memory(environment: Mapping[str, str]) -> Optional[Tuple[int, str]]:
    """Return the bytes that a Slurm job may use on this node, and the variables that say so.

    sbatch(1): values are MiB, and 0 asks for the whole node's memory, which is no limit.
    """
    for name, factor_name in (
        ("SLURM_MEM_PER_NODE", ""),
        ("SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"),
        ("SLURM_MEM_PER_GPU", "SLURM_GPUS_ON_NODE"),
    ):
        size = _number(environment.get(name))
        factor = _number(environment.get(factor_name)) if factor_name else 1
        if size and factor:
            return size * factor << 20, f"{name} × {factor_name}" if factor_name else name
    return None


def _number(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 9 else None


def parse_ray_usage(text: str) -> Tuple[Optional[str], Optional[str]]:
    """Return Ray's and Python's version from the ``usage_stats.json`` that the head node writes."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return None, None
    if isinstance(table, dict) and isinstance(table.get("usage_stats"), dict):
        table = table["usage_stats"]
    if not isinstance(table, dict):
        return None, None
    return _short(table.get("ray_version")), _short(table.get("python_version"))


def _short(value: Any) -> Optional[str]:
    return (
        value
        if isinstance(value, str) and re.fullmatch(r"[0-9][\w.+!-]{0,60}", value, re.ASCII)
        else None
    )


def probe_schedulers(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read Slurm's variables, the downward API and the local Ray session."""
    facts: Dict[str, Fact[Any]] = dict(_ray(machine))
    if machine.root and not machine.environment:
        facts.update(dict.fromkeys(("slurm.job", "memory.scheduler_limit"), Unknown(FOLDER_ONLY)))
        return facts
    environment = machine.environment
    job = {name: environment[name][:1024] for name in _SLURM if name in environment}
    source = Evidence("environment", "SLURM_*")
    facts["slurm.job"] = Known(job, source) if "SLURM_JOB_ID" in job else Absent(source)
    facts["memory.scheduler_limit"] = _scheduler_limit(machine, "SLURM_JOB_ID" in job)
    return facts


def _scheduler_limit(machine: Machine, slurm: bool) -> Fact[Any]:
    if slurm:
        granted = slurm_memory(machine.environment)
        if granted is not None:
            return Known(granted[0], Evidence("environment", granted[1]))
        return Unknown("the Slurm job states no memory limit")
    if "KUBERNETES_SERVICE_HOST" not in machine.environment and not machine.exists(
        "/var/run/secrets/kubernetes.io"
    ):
        return Absent(Evidence("environment", "no scheduler's variables"))
    for name in _POD_VARIABLES:
        size = parse_quantity(machine.environment.get(name, ""))
        if size is not None:
            return Known(size, Evidence("environment", name))
    for path in _POD_FILES:
        size = parse_quantity(machine.read_text(path, 256) or "")
        if size is not None:
            return Known(size, Evidence(path))
    return Unknown("the pod's downward API states no memory limit")


def _ray(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    distributions = machine.value("distributions")
    ray = distributions.get("ray") if distributions is not None else None
    place = machine.facts.get("distributions")
    if ray is not None and ray.version and isinstance(place, Known):
        yield "ray.process_version", Known(ray.version, place.evidence)
    elif isinstance(place, Known) and machine.value("distributions.complete"):
        yield "ray.process_version", Absent(place.evidence)
    python = machine.facts.get("python.version")
    if python is not None and ray is not None:
        yield "ray.process_python", python
    yield from _ray_session(machine)


def _ray_session(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    """The cluster on this node, by its session folder: asking it would need the network."""
    if machine.root:
        return
    # 'ray start' writes this file and 'ray stop' removes it: a session folder alone may be years
    # old. What was killed leaves both, but no raylet that listens.
    if not machine.exists("/tmp/ray/ray_current_cluster"):
        return
    session = machine.realpath("/tmp/ray/session_latest").rpartition("/")[2]
    sockets = machine.read_text("/proc/net/unix", _MOST_SOCKETS) or ""
    if f"/{session}/sockets/raylet" not in sockets:
        return
    path = "/tmp/ray/session_latest/usage_stats.json"
    text = machine.read_text(path)
    version, python = parse_ray_usage(text) if text is not None else (None, None)
    if version:
        yield "ray.cluster_version", Known(version, Evidence(path))
    if python:
        yield "ray.cluster_python", Known(python, Evidence(path))


PROBES_HERE: Tuple[Probe, ...] = (
    Probe(
        "schedulers",
        probe_schedulers,
        (
            "slurm.job",
            "memory.scheduler_limit",
            "ray.process_version",
            "ray.process_python",
            "ray.cluster_version",
            "ray.cluster_python",
        ),
        False,
        2.0,
    ),
)
