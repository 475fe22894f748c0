"""All codes of the memory plan, for ``envdoctor explain`` and for the formats that list what a code
is.
"""

from __future__ import annotations

from typing import Tuple

from .findings import RULES_HERE, PlanRule
from .stated_settings import check_utilization

__all__ = ["RULES"]

RULES: Tuple[PlanRule, ...] = (
    *RULES_HERE,
    PlanRule(
        "ED606",
        "utilization-plan",
        "too-large",
        "The engine asks for more of the GPU than is free",
        check_utilization,
    ),
)
