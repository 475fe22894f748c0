"""Programs that ask whoever sits at a terminal, and run where nobody does: under nohup, in the
background, as a job of a scheduler, in a container without ``-i``.
"""

from __future__ import annotations

from ..model.log import Raised
from ..model.pattern import pattern

__all__ = ["of_terminal_input", "remedy_of_terminal_input"]

#: What reads a line that somebody types, and what asks by it: Python's input() and getpass, click,
#: questionary, prompt_toolkit.
_ASKS = pattern(r"(?<![\w.])(?:raw_)?input\(|\bgetpass\(|\bstdin\.read(?:line)?\(|\bprompt\(")
_IS_GONE = pattern(
    r"EOF when reading a line|\[Errno 9\] Bad file descriptor|\[Errno 5\] Input/output error"
    r"|\[Errno 25\] Inappropriate ioctl for device|Input is not a terminal"
)
_KINDS = ("EOFError", "OSError", "error", "UnsupportedOperation")
_INNERMOST = 6  # frames


def of_terminal_input(raised: Raised) -> str:
    """Say that a program asked for input where it has none; "" of what asks for none."""
    if not _asks(raised):
        return ""
    return (
        "The program waits there for somebody to type a line, and its standard input is closed or "
        "at its end: so it is under nohup, in the background, as a job of a scheduler, and in a "
        "container that was started without -i."
    )


def remedy_of_terminal_input(raised: Raised) -> str:
    """Return how to start what asks for input; "" for what asks for none."""
    if not _asks(raised):
        return ""
    return (
        "Start it in a terminal that stays (tmux, screen, srun --pty, docker run -it), or give it "
        "what it asks for: an option that answers, a pipe, a file behind <"
    )


def _asks(raised: Raised) -> bool:
    if raised.kind.rpartition(".")[2] not in _KINDS or not _IS_GONE.search(raised.message):
        return False
    return any(_ASKS.search(frame.code) for frame in raised.frames[-_INNERMOST:])
