"""simpleRL-reason (branch v1): a fork of verl 0.2 with a swap space of 40 GiB per GPU and rollouts
in micro batches.
"""

from __future__ import annotations

from ...model.layout import Layout
from .verl import VerlFamily

__all__ = ["ADAPTER"]

ADAPTER = VerlFamily(
    "simplerl",
    Layout(
        files=(
            "verl/trainer/main_ppo.py",
            "verl/trainer/config/ppo_trainer.yaml",
            "verl/utils/reward_score/simplelr_math.py",
        ),
        absent=("verl/trainer/main.py",),
        contains=(("verl/trainer/config/ppo_trainer.yaml", "micro_rollout_batch_size"),),
    ),
    forked=True,
)
