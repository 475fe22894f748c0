"""What a page shows of a lock beside its text: the packages as a table."""

from __future__ import annotations

from .figures import Cell, Grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Sequence

    from ..model.resolution import Pin, Resolution

__all__ = ["grids_of"]


def grids_of(resolution: Resolution) -> List[Grid]:
    """Return the pins with their reasons, and what closes them."""
    pins = [
        _row(str(pin.version), pin.index_name, _reasons(pin), odd=pin.yanked or pin.from_source)
        for pin in resolution.pins
    ]
    grids = [_grid("Core pins", ["why"], [pin.name for pin in resolution.pins], pins)]
    chosen = {pin.name: True for pin in resolution.pins}
    rest = [line for line in resolution.closure.lines if line.name not in chosen]
    if rest:
        rows = [_row(line.version, line.source, ", ".join(line.via)) for line in rest]
        grids.append(_grid("What they need besides", ["for"], [line.name for line in rest], rows))
    return grids


def _reasons(pin: Pin) -> str:
    said: Dict[str, None] = dict.fromkeys(str(reason.text) for reason in pin.reasons)
    marks = ["yanked"] * pin.yanked + ["from source"] * pin.from_source
    return "; ".join([*marks, *said])


def _row(version: str, index: str, why: str, odd: bool = False) -> Sequence[Cell]:
    return [Cell(version), Cell(index), Cell(why, odd)]


def _grid(
    title: str, last: Sequence[str], names: Sequence[str], rows: Sequence[Sequence[Cell]]
) -> Grid:
    columns = ["package", "version", "index", *last]
    return Grid(title, columns, rows, [(name, at) for at, name in enumerate(names)], "package")
