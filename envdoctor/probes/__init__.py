"""The only code that reads the machine. Probes report facts and never judge.

A probe is a function from a :class:`~envdoctor.probes.machine.Machine` to facts. Each module of
this package lists its probes in ``PROBES_HERE``; :data:`MODULES` is their order, and a later probe
may use what earlier ones found (``machine.value("python.search_path")``).
"""

from __future__ import annotations

import time
from importlib import import_module

from ..errors import EnvdoctorError
from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import Facts, Oddity
from ..mounts import mounts_elsewhere
from .alarm import Alarm, TooLong
from .machine import Machine, Probe

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

_GRACE = 0.3

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
    from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple


def all_probes() -> Tuple[Probe, ...]:
    """Return all probes in order."""
    return load_probes((*MODULES, *NODE_MODULES, *CLUSTER_MODULES))


def load_probes(modules: Sequence[str]) -> Tuple[Probe, ...]:
    """Return the probes of these modules, importing no other: a baked start runs half of them."""
    return tuple(
        [probe for module in modules for probe in import_module(f"{__name__}.{module}").PROBES_HERE]
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
    if not elsewhere or not _run_watched(machine, probes, elsewhere, announce):
        _run_here(machine, probes, announce)
    if machine.unread:
        unread = [
            Oddity("unread", "", path, why) for path, why in list(machine.unread.items())[:_MOST]
        ]
        machine.facts[UNREAD] = Known(tuple(unread), Evidence("probes"))
    return Facts(machine.facts)


def _run_watched(
    machine: Machine,
    probes: Sequence[Probe],
    elsewhere: Sequence[str],
    announce: Optional[Callable[[str], None]],
) -> bool:
    from .watched import run_watched

    return run_watched(machine, probes, elsewhere, announce)


def _run_here(
    machine: Machine, probes: Sequence[Probe], announce: Optional[Callable[[str], None]]
) -> None:
    with Alarm() as alarm:
        for probe in probes:
            if announce is not None:
                announce(probe.name)
            run_probe(probe, machine, alarm)


def run_probe(probe: Probe, machine: Machine, alarm: Alarm) -> None:
    """Run one probe and join its facts to the machine's."""
    left = machine.end - time.monotonic()
    if left <= 0:
        fail_probe(probe, machine, f"not started, {machine.deadline:.3g} s had passed")
    else:
        join_facts(machine.facts, _run(probe, machine, time_of(probe, machine), alarm))


def fail_probe(probe: Probe, machine: Machine, reason: str) -> None:
    """Have what a probe would have read be not known."""
    join_facts(machine.facts, _failed(probe, reason))


def time_of(probe: Probe, machine: Machine) -> float:
    """Return the seconds that a probe has: what reads every file is not held to the time of what
    reads a few.
    """
    left = machine.end - time.monotonic()
    return left if machine.deep else min(probe.deadline, left)


def _run(probe: Probe, machine: Machine, deadline: float, alarm: Alarm) -> Dict[str, Fact[Any]]:
    if probe.isolated:
        return _run_isolated(probe, machine, deadline)
    try:
        # A probe that waits for children ends of itself at the deadline, or shortly after it.
        return _declared(probe, alarm.call(probe.function, (machine,), deadline + _GRACE))
    except TooLong:
        return _failed(probe, f"took longer than {deadline:.2g} s")
    except Exception as error:  # noqa: BLE001 - one broken probe must not cost the report
        return _failed(probe, f"{type(error).__name__}: {error}")


def _run_isolated(probe: Probe, machine: Machine, deadline: float) -> Dict[str, Fact[Any]]:
    import json

    from ..model.serde import dump_facts, load_facts
    from .isolation import run_isolated

    def body() -> bytes:
        return json.dumps(dump_facts(Facts(_declared(probe, probe.function(machine))))).encode(
            "utf-8", "surrogatepass"
        )

    outcome = run_isolated(body, deadline)
    if outcome.reason:
        return _failed(probe, outcome.reason)
    try:
        return dict(load_facts(outcome.text, f"probe {probe.name}"))
    except EnvdoctorError as error:
        return _failed(probe, f"its answer was no list of facts ({error})")


def _declared(probe: Probe, facts: Mapping[str, Fact[Any]]) -> Dict[str, Fact[Any]]:
    for name in facts:
        if name not in probe.fields:
            raise KeyError(f"field {name} is not declared by probe {probe.name}")
    return dict(facts)


def _failed(probe: Probe, reason: str) -> Dict[str, Fact[Any]]:
    from ..model.redaction import redact

    return dict.fromkeys(probe.fields, Unknown(redact(reason)[:500], probe.name))


def _rank(fact: Fact[Any]) -> int:
    if isinstance(fact, Known):
        return 3
    if isinstance(fact, Absent):
        return 2
    return 0 if fact.probe is None else 1


def join_facts(table: Dict[str, Fact[Any]], facts: Mapping[str, Fact[Any]]) -> None:
    """Add facts: known over absent, absent over failed; of two equals the first stands."""
    for name, fact in facts.items():
        present = table.get(name)
        if present is None or _rank(fact) > _rank(present):
            table[name] = fact
