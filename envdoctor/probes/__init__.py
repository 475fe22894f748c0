"""The only code that reads the machine. Probes report facts and never judge.

A probe is a function from a :class:`~envdoctor.probes.machine.Machine` to facts. Each module of
this package lists its probes in ``PROBES_HERE``; :data:`MODULES` is their order, and a later probe
may use what earlier ones found (``machine.value("python.search_path")``).
"""

from __future__ import annotations

import time

from ..model.evidence import Evidence, Known
from ..model.facts import Facts, Oddity
from ..mounts import mounts_elsewhere
from .alarm import Alarm
from .machine import Machine, Probe
from .probe_run import run_probe

__all__ = [
    "DEADLINE",
    "Machine",
    "Probe",
    "all_probes",
    "load_probes",
    "probe_machine",
    "run_probes",
]

DEADLINE = 5.0
"""Seconds that all probes may take together: the usual limit of node health checks."""

DEEP_DEADLINE = 60.0
"""The same where every file of the environment is read."""

_MOST = 200  # places of which a report says that they could not be read

UNREAD = "files.unread"
"""The field of what no probe could read: each of them adds to it."""

MODULES = (
    "system",
    "variables",
    "interpreter",
    "distributions",
    "torch_build",
    "nvidia",
    "toolkits",
    "native",
    "modules",
    "container",
    "process_limits",
    "schedulers",
)
"""The modules with probes, in the order of their probes: each may use what those before it found.
"""

NODE_MODULES = ("interconnect", "kernel_state", "health_reports")
"""The modules with probes of what tells the nodes of a cluster apart: no start of a container runs
them.
"""

CLUSTER_MODULES = ("distribution_files",)
"""The modules with probes of what takes too long for a check: only the nodes of a cluster that are
asked run them.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping, Optional, Sequence, Tuple


def all_probes() -> Tuple[Probe, ...]:
    """Return all probes in order."""
    return load_probes((*MODULES, *NODE_MODULES, *CLUSTER_MODULES))


def load_probes(modules: Sequence[str]) -> Tuple[Probe, ...]:
    """Return the probes of these modules, importing no other: a baked start runs half of them."""
    names = [f"{__name__}.{module}" for module in modules]
    return tuple(
        [
            probe
            for name in names
            for probe in __import__(name, fromlist=["PROBES_HERE"]).PROBES_HERE
        ]
    )


def probe_machine(
    *,
    python: Optional[str] = None,
    root: Optional[str] = None,
    deep: bool = False,
    deadline: Optional[float] = None,
    environment: Optional[Mapping[str, str]] = None,
    in_cluster: bool = False,
) -> Facts:
    """Read everything that can be read of one target. Creates no file and opens no connection.

    Args:
        python: Interpreter of another environment on this machine.
        root: Folder with an unpacked image, judged instead of this machine.
        deep: Run the slow probes too.
        deadline: Seconds for all probes together, by default 5, and 60 with ``deep``; what is not
            read by then is Unknown.
        environment: Environment variables of the target, where they are not this process's.
        in_cluster: It will be compared with others: run the probes of CLUSTER_MODULES, too.
    """
    if deadline is None:
        deadline = DEEP_DEADLINE if deep else DEADLINE
    probes = all_probes() if in_cluster else load_probes((*MODULES, *NODE_MODULES))
    return run_probes(Machine(root or "", environment, python, deep, deadline), probes)


def run_probes(
    machine: Machine, probes: Sequence[Probe], announce: Optional[Callable[[str], None]] = None
) -> Facts:
    """Run probes in order and join their facts. A probe that fails costs its own fields only.

    Where a file system is mounted that may never answer, they run in a child (``watched``).

    Args:
        machine: What is looked at.
        probes: What is run.
        announce: Is told the name of each probe before it runs.
    """
    machine.end = time.monotonic() + machine.deadline
    elsewhere = mounts_elsewhere()
    watched = False
    if elsewhere:
        from .watched import run_watched

        watched = run_watched(machine, probes, elsewhere, announce)
    if not watched:
        _run_here(machine, probes, announce)
    if machine.unread:
        unread = [
            Oddity("unread", "", path, why) for path, why in list(machine.unread.items())[:_MOST]
        ]
        machine.facts[UNREAD] = Known(tuple(unread), Evidence("probes"))
    return Facts(machine.facts)


def _run_here(
    machine: Machine, probes: Sequence[Probe], announce: Optional[Callable[[str], None]]
) -> None:
    with Alarm() as alarm:
        for probe in probes:
            if announce is not None:
                announce(probe.name)
            run_probe(probe, machine, alarm)
