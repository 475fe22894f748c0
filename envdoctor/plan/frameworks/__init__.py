"""Launch scripts and configurations of training frameworks, turned into a Workload.

Adapters report and never judge memory.
"""

from __future__ import annotations

from .reading import ADAPTERS, read_workload

__all__ = ["ADAPTERS", "read_workload"]
