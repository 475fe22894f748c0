"""How much is shown, and on what."""

from __future__ import annotations

from ..model.record import NamedTuple

__all__ = ["View"]


class View(NamedTuple):
    """The surface a report is written on.

    ``width`` is that of paragraphs; ``columns`` is how wide a verdict may be, which stays on one
    line where that, or ``width``, is enough. ``quiet``: the verdict only.
    """

    width: int = 80
    verbose: bool = False
    color: bool = False
    columns: int = 0
    quiet: bool = False
    markup: str = ""  # blocks become "markdown", to be pasted into an issue, or an "html" page
