"""How the source or an installed tree of one framework is told from others that share its name."""

from __future__ import annotations

from typing import Callable, Tuple

from .record import NamedTuple

__all__ = ["Layout"]


class Layout(NamedTuple):
    """Files by which a tree is known: all of ``files`` and ``contains`` (pairs of file and text),
    none of ``absent``.

    Paths are relative to the folder of the checkout, or to the one that holds the top package.
    direct_url: repositories ("hiyouga/EasyR1") that PEP 610's record may name.
    """

    files: Tuple[str, ...] = ()
    absent: Tuple[str, ...] = ()
    contains: Tuple[Tuple[str, str], ...] = ()
    direct_url: Tuple[str, ...] = ()

    def fits(self, exists: Callable[[str], bool], contains: Callable[[str, str], bool]) -> bool:
        """Tell whether a tree is this framework's; a layout that names no file fits nothing.

        Args:
            exists: Whether a path is there.
            contains: Whether that file holds a text.
        """
        return (
            bool(self.files)
            and all(map(exists, self.files))
            and not any(map(exists, self.absent))
            and all(contains(path, text) for path, text in self.contains)
        )
