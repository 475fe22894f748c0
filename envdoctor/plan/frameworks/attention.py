"""How a run computes attention, as its settings say it."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ...model.evidence import Absent, Fact, Known, Unknown
from ...model.workload import attention_kind
from .configuration import Configuration, boolean

__all__ = ["attention_of"]


def attention_of(configuration: Configuration, *names: str) -> Dict[str, Fact[Any]]:
    """Return, as the field of a workload, how attention is computed, where one of these settings
    says it: by the name of an implementation, or as a switch by its own. Nothing where none does
    ("auto" is what is taken without it).
    """
    stated: Dict[str, Fact[Any]] = {}
    for name in names:
        if name not in configuration.given:
            continue
        fact = configuration.get(name)
        kind = _kind(name, fact) if isinstance(fact, Known) else fact
        if kind is not None and not isinstance(kind, Absent):
            stated["actor.attention"] = kind
    return stated


def _kind(name: str, fact: Known[Any]) -> Optional[Fact[Any]]:
    """Return what one setting says; None where it leaves it to another, or to the default."""
    switch = boolean(fact.value)
    if fact.value in (None, "auto") or switch is False:
        return None
    kind = attention_kind(name if switch else fact.value)
    if kind is None:
        return Unknown(f"{fact.evidence}: {fact.value!r} is no implementation known here")
    return Known(kind, fact.evidence)
