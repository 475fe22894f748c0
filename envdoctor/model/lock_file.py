"""A lock as it was written: what ``check --lock``, ``fix --lock`` and ``explain --lock`` read."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple

from .resolution import Override, Pin, Requires
from .versions import parse_version, try_version

__all__ = ["Lock", "meets_pin"]


class Lock(NamedTuple):
    """What ``envdoctor.lock.json`` says: what was asked for, what it requires of a machine, the pins, and what they contradict on purpose."""

    roots: Tuple[str, ...]
    pins: Tuple[Pin, ...]
    overrides: Tuple[Override, ...]
    requires: Requires
    settings: Mapping[str, str]
    as_of: Optional[str] = None
    allow_index: Tuple[str, ...] = ()
    matrix_date: str = ""
    path: str = ""
    targets: Tuple[str, ...] = ()  # in words: "8 × H20, driver 535.129.03, glibc 2.35"

    def pin(self, name: str) -> Optional[Pin]:
        """Return the pin of a package, or None."""
        return next((pin for pin in self.pins if pin.name == name), None)


def meets_pin(installed: Optional[str], pinned: str) -> bool:
    """Tell whether a pin is met: one without a local label by any build of that version, as installers see it."""
    mine, its = try_version(installed), try_version(pinned)
    if mine is None or its is None:
        return installed == pinned
    return mine == its or (its.local is None and parse_version(mine.public) == its)
