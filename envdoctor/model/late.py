"""Modules that are imported when they are needed: a start of a healthy machine needs few."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Late", "import_module"]


def import_module(name: str) -> Any:
    """Import a module by its full name and return it, as the function of that name in importlib
    does: that package costs 1 ms.
    """
    __import__(name)
    return sys.modules[name]


class Late:
    """Stands for a module of the standard library; what was asked of it once is an attribute from
    then on.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(__import__(self._module), name)
        setattr(self, name, found)
        return found
