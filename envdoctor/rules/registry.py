"""All rules, in the order in which they run. A new family is one name in ``FAMILIES``."""

from __future__ import annotations

from ..model.late import import_module
from .rule import Context, Rule

__all__ = ["FAMILIES", "RULES", "Context", "Rule", "load_rules"]

FAMILIES = (
    "driver",
    "devices",
    "cuda_libraries",
    "cuda_versions",
    "packages",
    "lock",
    "abi",
    "limits",
    "nodes",
    "environment",
    "tool",
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence, Tuple

    RULES: Tuple[Rule, ...]


def __getattr__(name: str) -> Tuple[Rule, ...]:
    """``RULES``: those of all families, loaded when asked for; the start of a baked image needs
    some of them.
    """
    if name != "RULES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = load_rules(FAMILIES)
    return found


def load_rules(families: Sequence[str]) -> Tuple[Rule, ...]:
    """Return the rules of these families."""
    return tuple(
        [
            rule
            for family in families
            for rule in import_module(f"{__package__}.{family}").RULES_HERE
        ]
    )
