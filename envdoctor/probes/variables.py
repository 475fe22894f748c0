"""Environment variables that steer the stack; ``model.shown_variables`` has the allow-list."""

from __future__ import annotations

from ..model.evidence import Evidence, Fact, Known, Unknown
from ..model.shown_variables import shown_value
from .machine import FOLDER_ONLY, Machine, Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Tuple

__all__ = ["PROBES_HERE", "probe_variables", "select_variables"]


def select_variables(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the listed variables with redacted values."""
    shown = ((name, shown_value(name, value)) for name, value in sorted(environment.items()))
    return {name: value for name, value in shown if value is not None}


def probe_variables(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read the environment variables of the allow-list."""
    if machine.root and not machine.environment:
        return {"variables": Unknown(FOLDER_ONLY)}
    return {"variables": Known(select_variables(machine.environment), Evidence("environment"))}


PROBES_HERE: Tuple[Probe, ...] = (Probe("variables", probe_variables, ("variables",), False, 2.0),)
