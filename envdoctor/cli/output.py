"""Writing to standard output and error, whatever they are: a terminal, a pipe whose reader left, a
full disk, nothing at all.
"""

from __future__ import annotations

import os
import sys

from ..errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..report.view import View

__all__ = ["choose_format", "text_width", "view", "wrapped", "write", "write_error", "write_file"]

_WIDTH = 80
_WIDEST = 110


def write(text: str, code: int) -> int:
    """Write data to standard output and return ``code``; raises :class:`InputError` where it cannot
    be written.

    A reader that closed the pipe has seen enough: the verdict stands.
    """
    if not text:
        return code
    if sys.stdout is None:
        raise InputError("standard output is closed, so the report has nowhere to go")
    try:
        sys.stdout.write(_encodable(text, sys.stdout.encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
    except (OSError, ValueError) as error:
        _silence(sys.stdout)
        raise InputError(
            f"cannot write to standard output: {getattr(error, 'strerror', None) or error}"
        ) from error
    return code


def write_error(message: str) -> None:
    """Write lines to standard error, escaped and without secrets; where that is impossible, the
    exit code has to speak.
    """
    from ..model.redaction import redact
    from ..report.text import clean, fold

    if sys.stderr is None:
        return
    lines = "\n".join(fold(clean(line)) for line in redact(message).split("\n"))
    try:
        sys.stderr.write(_encodable(lines + "\n", sys.stderr.encoding))
        sys.stderr.flush()
    except (OSError, ValueError):  # closed or full: nobody is left to be told
        _silence(sys.stderr)


def write_file(path: str, text: str) -> None:
    """Write a file whole or not at all; raises :class:`InputError`.

    Devices and pipes are written to as they are.
    """
    special = os.path.exists(path) and not os.path.isfile(path)
    target = path if special else f"{path}.{os.getpid()}.tmp"
    try:
        with open(target, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        if not special:
            os.replace(target, path)
    except (OSError, ValueError) as error:
        if not special and os.path.exists(target):
            os.unlink(target)
        raise InputError(
            f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from error


def choose_format(wanted: str) -> str:
    """Return the format: what was asked for, else console on a terminal and plain elsewhere."""
    return wanted or ("console" if _is_terminal() else "plain")


def view(verbose: bool, no_color: bool) -> View:
    """Return the surface that standard output is.

    Elsewhere than on a terminal the width is 80, or COLUMNS.
    """
    from ..report.view import View

    environment = os.environ
    colored = (
        _is_terminal()
        and not no_color
        and not environment.get("NO_COLOR")
        and environment.get("TERM") != "dumb"
    )
    return View(text_width(), verbose, colored)


def text_width() -> int:
    """Return the width of standard output: COLUMNS, else the terminal's, else 80; not above what
    the eye can follow.
    """
    asked = os.environ.get("COLUMNS", "")
    width = int(asked) if asked.isascii() and asked.isdigit() else 0
    if not width and _is_terminal():
        try:
            width = os.get_terminal_size(sys.stdout.fileno()).columns
        except (OSError, ValueError):  # a terminal that does not tell its size
            width = 0
    return max(20, min(width or _WIDTH, _WIDEST))


def wrapped(text: str) -> str:
    """Return text at the width of standard output, each line going on under its own beginning; what
    is copied ("then: pip …") stays whole.
    """
    from ..report.text import wrap

    width = text_width()
    lines = []
    for line in text.split("\n"):
        margin = " " * (len(line) - len(line.lstrip()))
        lines += [line] if line.startswith("then: ") else wrap(line, width, margin, margin + "  ")
    return "\n".join(lines)


def _is_terminal() -> bool:
    try:
        return sys.stdout is not None and sys.stdout.isatty()
    except ValueError:  # closed
        return False


def _encodable(text: str, encoding: str) -> str:
    """Return the text with what this encoding lacks escaped."""
    if text.isascii():
        return text
    return text.encode(encoding or "ascii", "backslashreplace").decode(
        encoding or "ascii", "replace"
    )


def _silence(stream: object) -> None:
    """Point the stream's descriptor at /dev/null, so that nothing is raised when its buffer is
    flushed at exit.
    """
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, stream.fileno())  # type: ignore[attr-defined]
        os.close(descriptor)
    except (OSError, ValueError):  # no /dev, or closed already
        return
