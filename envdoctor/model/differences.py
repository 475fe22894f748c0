"""What differs between two states of what is compared: most nodes and an odd one, then and now."""

from __future__ import annotations

from .finding import Finding
from .record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

__all__ = ["Changed", "NodeDifference", "Since"]


class NodeDifference(NamedTuple):
    """One thing that is compared, in words; None: nothing.

    other: what most nodes have, or what this one had.
    """

    name: str
    value: Optional[str]
    other: Optional[str]

    def text(self, word: str) -> str:
        """Return both values; ``word`` says whose the other one is: "others", "was"."""
        return f"{self.name} {self.value or 'none'} ({word} {self.other or 'none'})"


class Changed(NamedTuple):
    """Nodes that changed alike: in what, each with what was there before."""

    names: Tuple[str, ...]
    differences: Tuple[NodeDifference, ...]


class Since(NamedTuple):
    """What changed since a file of answers or facts was written.

    where: the file. changed: the most nodes first. same: how many nodes are as they were. added,
    gone: names of nodes that only one of the two has. appeared, cured: findings that only one of
    the two has, both judged with the matrix of today. silent: nodes that answered then, and now
    gave no answer.
    """

    where: str
    changed: Tuple[Changed, ...] = ()
    same: int = 0
    added: Tuple[str, ...] = ()
    gone: Tuple[str, ...] = ()
    appeared: Tuple[Finding, ...] = ()
    cured: Tuple[Finding, ...] = ()
    silent: Tuple[str, ...] = ()

    @property
    def has_changes(self) -> bool:
        """Whether a node differs from what it was, came, went or fell silent."""
        return bool(self.changed or self.added or self.gone or self.silent)
