"""All rules, in the order in which they run. A new family is one import and one line in ``RULES``."""

from __future__ import annotations

from typing import Tuple

from . import abi, cuda_libraries, devices, driver, environment, limits, lock, nodes, packages, tool
from .rule import Context, Rule

__all__ = ["RULES", "Context", "Rule"]

RULES: Tuple[Rule, ...] = (
    *driver.RULES_HERE,
    *devices.RULES_HERE,
    *cuda_libraries.RULES_HERE,
    *packages.RULES_HERE,
    *lock.RULES_HERE,
    *abi.RULES_HERE,
    *limits.RULES_HERE,
    *nodes.RULES_HERE,
    *environment.RULES_HERE,
    *tool.RULES_HERE,
)
