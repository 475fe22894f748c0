"""The order in which findings are shown: each root, and behind it what follows from it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Hashable, List, Optional, Sequence, Tuple, TypeVar

    T = TypeVar("T")

__all__ = ["cause_tree"]


def cause_tree(
    entries: Sequence[T],
    name: Callable[[T], Hashable],
    cause: Callable[[T], Optional[Hashable]],
) -> List[Tuple[T, int]]:
    """Return the entries with their depth: each root at 0, what follows from it right behind it.

    A root has no cause, or one that is not among the entries. Roots, and the consequences of one
    entry, keep the order in which they come. In a circle of causes the first is the root.

    Args:
        entries: Findings, or whatever stands for one.
        name: What ``cause`` calls an entry; where several have one name, the nearest before the
            consequence is meant.
        cause: The name of what an entry follows from, or None.
    """
    places: Dict[Hashable, List[int]] = {}
    for place, entry in enumerate(entries):
        places.setdefault(name(entry), []).append(place)
    under: Dict[Optional[int], List[int]] = {}
    for place, entry in enumerate(entries):
        root = cause(entry)
        causes = [] if root is None else [other for other in places.get(root, ()) if other != place]
        before = [other for other in causes if other < place]
        parent = before[-1] if before else causes[0] if causes else None
        under.setdefault(parent, []).append(place)
    ordered: List[Tuple[T, int]] = []
    placed = set()
    for root_place in [*under.get(None, ()), *range(len(entries))]:  # no root leads to a circle
        waiting = [(root_place, 0)]
        while waiting:
            place, depth = waiting.pop()
            if place not in placed:
                placed.add(place)
                ordered.append((entries[place], depth))
                waiting += [(other, depth + 1) for other in reversed(under.get(place, ()))]
    return ordered
