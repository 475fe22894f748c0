"""Errors that reach a user: one line that says what was expected, what was found, where, and what
to do.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Sequence

__all__ = [
    "EnvdoctorError",
    "InputError",
    "InternalFault",
    "MatrixError",
    "NoResolution",
    "NothingRecognised",
    "bounded",
    "suggest",
]

#: Faults that one message tells; a person mends the first ones first.
_MOST_FAULTS = 50


class EnvdoctorError(Exception):
    """The root of all errors that the command line prints without a traceback; ``exit_code`` is its
    exit code.
    """

    exit_code = 4


class InputError(EnvdoctorError):
    """A file, an option or a report that cannot be read or does not mean anything."""

    exit_code = 2


class NothingRecognised(InputError):
    """A text in which nothing about an environment was found.

    ``fault`` is that alone; the message goes on with what is read instead.
    """

    def __init__(self, fault: str, instead: str) -> None:
        super().__init__(f"{fault}; {instead}")
        self.fault = fault


def bounded(faults: Sequence[str]) -> List[str]:
    """Return what a message says of many faults: the first ones, and how many more there are."""
    more = len(faults) - _MOST_FAULTS
    return [*faults[:_MOST_FAULTS], *([f"and {more} more faults"] if more > 0 else [])]


class MatrixError(InputError):
    """Rows that do not load. Faults are reported together, each with file and key."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        count = f"{len(faults)} fault{'s' if len(faults) != 1 else ''} in the matrix"
        super().__init__(count + ":\n" + "\n".join(f"  {fault}" for fault in bounded(faults)))


class NoResolution(EnvdoctorError):
    """The request has no solution; the message is the explanation."""

    exit_code = 3


class InternalFault(EnvdoctorError):
    """A fault of envdoctor itself."""


def suggest(word: str, known: Iterable[str], least: float = 0.6, most: int = 3) -> str:
    """Return " (did you mean …?)" with the ``most`` nearest of ``known``, or nothing; ``least`` is
    how alike they have to be, 0..1.
    """
    from difflib import get_close_matches

    spelled = {entry.lower(): entry for entry in known}
    alike = get_close_matches(word.lower(), sorted(spelled), most, least)
    near = [spelled[entry] for entry in alike]
    return f" (did you mean {' or '.join(near)}?)" if near else ""
