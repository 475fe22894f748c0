"""Where an updated matrix lives, and which one serves.

::

    $ENVDOCTOR_HOME, else $XDG_DATA_HOME/envdoctor, else ~/.local/share/envdoctor
        matrix/
            current -> 2026-12-01.f1.0f3a9c2b7d11.0     the one symbolic link that decides; replaced
            atomically 2026-12-01.f1.0f3a9c2b7d11.0/               date of the matrix, compiled
            format, digest of the archive, a count
                core.json texts.json packages/ …        the compiled form
                matrices/                               the files of the archive
                origin.json                             where it came from, and the name of the one
                before it

The link's target says date and format, so that a check that finds no link, or one that cannot
serve, has paid one ``readlink``.
"""

from __future__ import annotations

import os

from ..model.pattern import pattern
from ..model.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional, Set

__all__ = ["Generation", "current", "folder", "pass_over"]

_PASSED_OVER: Set[str] = set()
_NAME = pattern(r"(\d{4}-\d{2}-\d{2})\.f(\d+)\.([0-9a-f]{12})\.(\d+)")


class Generation(NamedTuple):
    """One installed update, by the name of its folder."""

    path: str
    name: str
    date: str
    format: int
    digest: str

    @classmethod
    def of(cls, path: str) -> Optional[Generation]:
        """Return the generation that a folder's name says, or None where it is no such name."""
        match = _NAME.fullmatch(os.path.basename(path))
        return (
            cls(path, match.group(), match.group(1), int(match.group(2)), match.group(3))
            if match is not None
            else None
        )


def folder(environment: Mapping[str, str] = os.environ) -> Optional[str]:
    """Return the folder of updates, or None where no variable names an absolute one.

    It need not be there.

    The password database is not asked: a process without HOME is a container or a daemon, whose
    user has no data of their own.
    """
    own = environment.get("ENVDOCTOR_HOME", "")
    if own:
        return os.path.join(own, "matrix") if os.path.isabs(own) else None
    data = environment.get("XDG_DATA_HOME", "")
    if os.path.isabs(data):  # the specification says to ignore a relative one
        return os.path.join(data, "envdoctor", "matrix")
    home = environment.get("HOME", "")
    return (
        os.path.join(home, ".local", "share", "envdoctor", "matrix")
        if os.path.isabs(home)
        else None
    )


def pass_over(where: str) -> None:
    """Have a folder of updates count as none from here on: it does not answer."""
    _PASSED_OVER.add(where)


def current(where: Optional[str] = None) -> Optional[Generation]:
    """Return the update that ``current`` names, or None.

    Costs one ``readlink``; whether its files are whole is not looked at.
    """
    where = folder() if where is None else where
    if where is None or where in _PASSED_OVER:
        return None
    try:
        target = os.readlink(os.path.join(where, "current"))
    except (OSError, ValueError):  # none, or a name with a null byte
        return None
    # Only a name beside the link: a link to elsewhere is not ours.
    return (
        Generation.of(os.path.join(where, target)) if os.path.basename(target) == target else None
    )
