"""A module of the standard library that is imported at its first use: a start of a healthy machine uses none of these."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Late"]


class Late:
    """Stands for a module; what was asked of it once is an attribute from then on."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(__import__(self._module), name)
        setattr(self, name, found)
        return found
