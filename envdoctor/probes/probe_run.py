"""One probe, run in its time and isolated where it asks for that."""

from __future__ import annotations

import time

from ..errors import EnvdoctorError
from ..model.evidence import Absent, Fact, Known, Unknown
from ..model.facts import Facts
from .alarm import Alarm, TooLong
from .machine import Machine, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping

__all__ = ["fail_probe", "join_facts", "run_probe", "time_of"]

_GRACE = 0.3


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
