"""What a number of a message and what is known of the run are to each other."""

from __future__ import annotations

from ..model.record import NamedTuple

__all__ = ["Relation"]


class Relation(NamedTuple):
    """What they are to each other in words, what is to be done then, and whether that decides."""

    words: str
    remedy: str = ""
    decides: bool = True
