"""What can go wrong with one file or one project; a run goes on with the others."""

from __future__ import annotations

__all__ = ["Refused", "Unreachable", "UsageFault", "printable"]


class Refused(Exception):
    """A file that is not what its name says, or that no honest publisher makes.

    Nothing of it is taken.
    """


class Unreachable(Exception):
    """The index did not answer, after all retries."""


class UsageFault(Exception):
    """An option, a list or a folder that cannot be used: exit code 2."""


def printable(text: str, limit: int = 200) -> str:
    """Return text from outside so that it cannot steer a terminal: control signs are escaped, the
    length is bounded.
    """
    shown = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in text[: limit + 1]
    )
    return shown if len(text) <= limit else shown[:limit] + "…"
