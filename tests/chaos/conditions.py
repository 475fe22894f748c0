"""The chaos table: all conditions, from the families in which they are written."""

from __future__ import annotations

from typing import Dict, List

from . import asked, environment, process, system
from .condition import Condition

__all__ = ["CONDITIONS", "FAST"]


def _all() -> List[Condition]:
    rows: Dict[str, Condition] = {"nothing wrong": Condition("nothing wrong")}
    for module in (process, environment, asked, system):
        for family in module.FAMILIES:
            for row in family():
                assert row.name not in rows, row.name
                rows[row.name] = row
    return list(rows.values())


CONDITIONS: List[Condition] = _all()

#: Three cells each in the fast suite; the rest is slow.
FAST = frozenset(
    [
        ("nothing wrong", "baked"),
        ("a lock that is not met", "not baked"),
        ("variable PYTHONHOME", "pyz"),
        ("site-packages hidden", "not baked"),
    ]
)
