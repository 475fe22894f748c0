"""``envdoctor watch``."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from typing import Optional, Tuple

from ..errors import InputError
from .command import Command
from .output import view, write_error, write_file
from .shared_options import TEXT_FORMATS, add_format, add_general

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, TextIO

    from ..watch.recording import Outlook, Recording

__all__ = ["COMMAND"]

_HEADER = "elapsed_s,kind,pid,name,bytes\n"


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "envdoctor watch [PID | --container] [OPTION ...] [-- CMD ...]"
    group = parser.add_argument_group("what is watched")
    group.add_argument(
        "pid",
        metavar="PID",
        nargs="?",
        type=int,
        help="a running process, with everything that descends from it",
    )
    group.add_argument(
        "--container",
        action="store_true",
        help="every process of the control group that limits this one",
    )
    group.add_argument(
        "--duration",
        metavar="S",
        type=float,
        help="stop watching after this many seconds; a command goes on",
    )
    group = parser.add_argument_group("what is reported, on standard error")
    group.add_argument(
        "--interval",
        metavar="S",
        type=float,
        default=1.0,
        help="seconds between samples (default: 1)",
    )
    group.add_argument(
        "--every",
        metavar="S",
        type=float,
        default=60.0,
        help="seconds between lines (default: 60)",
    )
    group.add_argument("--csv", metavar="FILE", help="write every sample to this file at once")
    group.add_argument("--svg", metavar="FILE", help="draw the run in this file when it has ended")
    add_format(group, {**TEXT_FORMATS, "json": "the last report (schemas/watch.schema.json)"})
    group.add_argument(
        "--output",
        "-o",
        dest="last_report",
        metavar="FILE",
        help="write the last report to this file",
    )
    add_general(parser)


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from ..app import watch

    _check(options)
    _check_file("--svg", options.svg)
    _check_file("--output", options.last_report)
    csv = _open(options.csv)
    try:
        recording = watch(
            command=options.command_line,
            pid=options.pid,
            container=options.container,
            interval=options.interval,
            duration=options.duration,
            csv=csv,
            report=_say_nothing if options.quiet else _say,
            report_every=options.every,
        )
    finally:
        if csv is not None:
            with suppress(OSError):  # a full disk, which the summary tells
                csv.close()
    try:
        report = _tell(recording, options)
    except Exception as error:  # noqa: BLE001 - the run is over: its exit code is what counts
        report = ""
        write_error(
            f"envdoctor watch: a fault of envdoctor itself: {type(error).__name__}: {error}"
        )
    return report, recording.exit_code or 0


def _tell(recording: Recording, options: argparse.Namespace) -> str:
    """Say and write what is known at the end; return what standard output gets of it."""
    from ..report.watch_json import dump_recording
    from ..report.watch_text import summary_lines

    report = ""
    lines = summary_lines(recording)[: 1 if options.quiet else None]
    if options.format == "json":
        report = dump_recording(recording)
    elif options.format == "html":
        report = _page(recording, lines, options)
    elif options.last_report:
        report = "".join(f"{line}\n" for line in lines)
    else:  # the run's own output has standard output; what is said of it goes beside it
        for line in lines:
            write_error(f"envdoctor watch: {line}")
    if options.svg:
        from ..report.chart import chart_svg

        _write_last(options.svg, chart_svg(recording))
    if options.last_report:
        _write_last(options.last_report, report)
        report = ""
    return report


def _page(recording: Recording, lines: List[str], options: argparse.Namespace) -> str:
    from ..report.blocks import Block
    from ..report.chart import chart_svg
    from ..report.console import draw
    from ..report.figures import Drawing

    blocks = [Block(line, style="" if number else "title") for number, line in enumerate(lines)]
    title = "Memory in use against the limit"
    return draw(blocks, view(options), lambda: [Drawing(title, chart_svg(recording))])


def _write_last(path: str, text: str) -> None:
    """Write what is known at the end; where that fails the exit code of the run still counts."""
    try:
        write_file(path, text)
    except InputError as error:
        write_error(f"envdoctor watch: {error}")


def _check(options: argparse.Namespace) -> None:
    if options.pid is None and not options.container and not options.command_line:
        raise InputError("expected a process number, --container, or a command after '--'")
    if options.pid is not None and (options.container or options.command_line):
        raise InputError("a process number, and --container or a command: give one of them")
    if options.format in ("json", "html") and options.command_line and options.last_report is None:
        raise InputError(
            f"--format {options.format}: standard output is the command's; name a file with -o"
        )
    if not 0.05 <= options.interval <= 3600:
        raise InputError(f"--interval: expected 0.05 to 3600 seconds, found {options.interval:g}")
    if not options.every > 0 or (options.duration is not None and not options.duration > 0):
        raise InputError("--every and --duration: expected more than 0 seconds")


def _check_file(option: str, path: Optional[str]) -> None:
    """Raise :class:`InputError` before the run for what would only be found out after it."""
    if path is None:
        return
    folder = os.path.dirname(path) or "."
    if not path or os.path.isdir(path) or not os.path.isdir(folder):
        place = "a folder" if os.path.isdir(path) else f"no folder {folder}" if path else "no name"
        raise InputError(f"{option} {path}: expected a file that can be written, found {place}")


def _open(path: Optional[str]) -> Optional[TextIO]:
    if path is None:
        return None
    from ..file_replacement import open_growing

    try:
        file = open_growing(path)
        file.write(_HEADER)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--csv {path}: cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from error
    return file


def _say(outlook: Outlook) -> None:
    from ..report.watch_text import outlook_line

    write_error(f"envdoctor watch: {outlook_line(outlook)}")


def _say_nothing(_outlook: Outlook) -> None:
    return


COMMAND = Command(_configure, _execute, takes_command=True)
