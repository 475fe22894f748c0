"""Writing to standard output and error, whatever they are: a terminal, a pipe whose reader left, a
full disk, nothing at all.
"""

from __future__ import annotations

import os
import sys

from ..errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from threading import Event, Thread
    from typing import Callable, Optional, Sequence, TextIO

    from ..model.line import TextLine
    from ..report.figures import Figure
    from ..report.view import View

__all__ = [
    "PROGRESS",
    "Progress",
    "draw_lines",
    "text_width",
    "view",
    "write",
    "write_error",
    "write_file",
]

_WIDTH = 80
_WIDEST = 110
_PAGE = 1000  # columns of a verdict on a page, where the browser folds it


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
    PROGRESS.clear()
    lines = "\n".join(fold(clean(line)) for line in redact(message).split("\n"))
    try:
        sys.stderr.write(_encodable(lines + "\n", sys.stderr.encoding))
        sys.stderr.flush()
    except (OSError, ValueError):  # closed or full: nobody is left to be told
        _silence(sys.stderr)


class Progress:
    """A line on standard error that says what is being done and for how long; it goes before
    anything else is written.

    It is there only on a terminal, and only for what takes longer than a second.
    """

    patience = 1.0  # seconds before it shows
    _tick = 0.5

    def __init__(self) -> None:
        self._words = ""
        self._began = 0.0
        self._shown = 0  # columns that the line takes
        self._thread: Optional[Thread] = None
        self._ended: Optional[Event] = None

    def start(self, words: str) -> None:
        """Show ``words`` from ``patience`` on, until :meth:`stop`."""
        self._words = words
        if self._thread is not None or not words or not _is_terminal(sys.stderr):
            return
        if os.environ.get("TERM") == "dumb":
            return
        from threading import Event, Thread
        from time import monotonic

        self._began = monotonic()
        self._ended = Event()
        self._thread = Thread(target=self._run, args=(self._ended,), daemon=True)
        self._thread.start()

    def say(self, words: str) -> None:
        """Show other words from now on."""
        self._words = words

    def stop(self) -> None:
        """End it; nothing is left of it on the terminal."""
        if self._thread is not None and self._ended is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None
        self.clear()

    def clear(self) -> None:
        """Take the line away, so that something else can be written; it may come back."""
        if self._shown:
            self._write(f"\r{' ' * self._shown}\r")
            self._shown = 0

    def _run(self, ended: Event) -> None:
        from time import monotonic

        pause = self.patience
        while not ended.wait(pause):
            pause = self._tick
            line = f"envdoctor: {self._words} ({monotonic() - self._began:.0f} s)"
            line = line[: _columns(sys.stderr) - 1]
            self._write(f"\r{line.ljust(self._shown)}")
            self._shown = max(self._shown, len(line))

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(_encodable(text, sys.stderr.encoding))
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal went away
            _silence(sys.stderr)


PROGRESS = Progress()


def write_file(path: str, text: str) -> None:
    """Write a file whole or not at all; raises :class:`InputError`.

    Devices and pipes are written to as they are.
    """
    from ..file_replacement import replace_file

    try:
        replace_file(path, text.encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from error


def view(options: Namespace) -> View:
    """Return the surface that a command writes on: standard output, or the file of ``-o``.

    Colour comes as ``--color`` says; else NO_COLOR forbids and FORCE_COLOR demands it
    (no-color.org, force-color.org), and else a terminal that is not "dumb" has it.
    """
    from ..report.view import View

    form = getattr(options, "format", "text")
    return View(
        text_width(),
        getattr(options, "verbose", False) or form == "html",  # what folds may be long
        form != "plain" and _is_colored(options),
        _PAGE if form == "html" else _columns(),
        options.quiet,
        form if form in ("markdown", "html") else "",
    )


def _is_colored(options: Namespace) -> bool:
    environment = os.environ
    if options.color != "auto":
        return bool(options.color == "always")
    if environment.get("NO_COLOR") or getattr(options, "output_file", None) is not None:
        return False
    if environment.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return _is_terminal(sys.stdout) and environment.get("TERM") != "dumb"


def text_width() -> int:
    """Return how wide paragraphs are: as standard output, but not above what the eye can follow."""
    return max(20, min(_columns(), _WIDEST))


def _columns(stream: Optional[TextIO] = None) -> int:
    """Return the width of a stream, by default standard output: COLUMNS, else the terminal's, else
    80.
    """
    stream = stream or sys.stdout
    asked = os.environ.get("COLUMNS", "")
    width = int(asked) if asked.isascii() and asked.isdigit() else 0
    if not width and stream is not None and _is_terminal(stream):
        try:
            width = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):  # a terminal that does not tell its size
            width = 0
    return width or _WIDTH


def draw_lines(
    lines: Sequence[TextLine],
    surface: Optional[View] = None,
    figures: Optional[Callable[[], Sequence[Figure]]] = None,
) -> str:
    """Return lines at the width of the surface; by default without colour, as standard error has
    it. ``figures`` are for a page.
    """
    from ..report.blocks import blocks_of_lines
    from ..report.console import draw
    from ..report.view import View

    return draw(blocks_of_lines(lines), surface or View(text_width()), figures)


def _is_terminal(stream: Optional[TextIO]) -> bool:
    try:
        return stream is not None and stream.isatty()
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
