"""What a page shows beside its text: tables, bars, drawings. Any command may have some; ``html``
draws them all.
"""

from __future__ import annotations

from ..model.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence, Tuple, Union

    Figure = Union["Bar", "Box", "Drawing", "Grid"]

__all__ = ["Bar", "Box", "Cell", "Drawing", "Grid", "Segment"]


class Cell(NamedTuple):
    """One cell; ``odd``: not what most have."""

    text: str
    odd: bool = False


class Grid(NamedTuple):
    """A table of many rows that are of few kinds.

    columns: the headings, that of the names first. kinds: cells of all rows of one kind. rows: the
    name of each, and which kind it is. noun: what a row is.
    """

    title: str
    columns: Sequence[str]
    kinds: Sequence[Sequence[Cell]]
    rows: Sequence[Tuple[str, int]]
    noun: str = "row"


class Segment(NamedTuple):
    """A part of a bar: its name, and its size at least and at most."""

    name: str
    low: float
    high: float


class Bar(NamedTuple):
    """What parts take of a whole, all in ``unit``.

    low, high: of all segments together. limit: where it must not go beyond; None: not known. style:
    one of a block: fine, warning, error.
    """

    title: str
    segments: Sequence[Segment]
    low: float
    high: float
    limit: Optional[float]
    unit: str
    verdict: str
    style: str = ""


class Drawing(NamedTuple):
    """An SVG document of our own, and what it shows in words."""

    title: str
    svg: str


class Box(NamedTuple):
    """What is in what: boxes in boxes. style: gpu, network, warning, error, or none."""

    title: str
    parts: Sequence[Box] = ()
    style: str = ""
