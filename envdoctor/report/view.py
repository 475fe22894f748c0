"""How much is shown, and on what."""

from __future__ import annotations

from ..model.record import NamedTuple

__all__ = ["View"]


class View(NamedTuple):
    """The surface a report is written on."""

    width: int = 80
    verbose: bool = False
    color: bool = False
