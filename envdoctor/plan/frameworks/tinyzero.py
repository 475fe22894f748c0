"""TinyZero: a fork of verl of January 2025, before 0.2."""

from __future__ import annotations

from ...model.layout import Layout
from .verl import VerlFamily

__all__ = ["ADAPTER"]

ADAPTER = VerlFamily(
    "tinyzero",
    Layout(
        files=("verl/trainer/main_ppo.py", "verl/utils/reward_score/countdown.py"),
        absent=("verl/trainer/main.py",),
    ),
    forked=True,
)
