"""The Python side of the script ``envdoctor-entrypoint``.

Started with ``-I -S``, so that nothing of the environment runs before the verdict: the script puts
envdoctor behind the standard library on ``sys.path``, and what site would do is read, not executed.
"""

from __future__ import annotations

import os
import sys

from .answer import words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterator, List, NoReturn

__all__ = ["TASKS"]

_SAID = 70  # EX_SOFTWARE: that there is no verdict was said
_OUT_OF_MEMORY = b"envdoctor: no verdict: the memory limit leaves too little for this check\n"
_START = 80  # the command may start; not 0, with which anything called python3 may end


def _check(arguments: List[str]) -> NoReturn:
    """Check, and end with 80, or with the exit code that keeps the command from starting."""
    import gc

    # Nothing that is built here is garbage before the end.
    gc.set_threshold(100_000)
    if sys.stderr is None:  # closed: no file that is opened later is to be taken for it
        os.open(os.devnull, os.O_RDWR)
    _enter_environment()
    try:
        from .handoff import decide_start

        decide_start(arguments)
    except MemoryError:  # nothing is left for importing what words another error
        os.write(2, _OUT_OF_MEMORY)
        os._exit(_SAID)
    except Exception as error:  # noqa: BLE001 - a traceback helps nobody; the script goes on
        line = f"envdoctor: no verdict: {words_of(error)}"
        os.write(2, f"{line[:300]}\n".encode("utf-8", "backslashreplace"))
        os._exit(_SAID)
    os._exit(_START)


def _enter_environment() -> None:
    """Set the prefix of a virtual environment, as site does."""
    folder = os.path.dirname(os.path.abspath(sys.executable))
    for prefix in (folder, os.path.dirname(folder)):
        if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):
            sys.prefix = sys.exec_prefix = os.path.dirname(folder)
            return


def _become(arguments: List[str]) -> NoReturn:
    """Become a command in an environment with entries that a shell does not pass on.

    The script hands over all entries of its first environment in one variable, and the signals that
    were ignored as a sum of bits.
    """
    from .handoff import execute

    kept = os.environb.pop(b"envdoctor_kept", b"")
    execute(arguments[1:], list(_entries(kept)), int(arguments[0]))


def _entries(kept: bytes) -> Iterator[bytes]:
    r"""Yield the entries; a newline is \xff among them, where the shell's own copy tells nothing
    else.
    """
    for line in kept.strip(b"\n").split(b"\n"):
        name = line.partition(b"=")[0]
        passed = name + b"=" + os.environb.get(name, b"")
        yield passed if passed.replace(b"\n", b"\xff") == line else line.replace(b"\xff", b"\n")


TASKS: Dict[str, Callable[[List[str]], NoReturn]] = {"check": _check, "become": _become}
