"""``envdoctor run``: check, watch and diagnose in one."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from functools import partial
from typing import NoReturn, Sequence, Tuple

from ..entrypoint.handoff import decide_start, execute
from ..entrypoint.options import FORMATS, OPTIONS, POLICIES, parse_settings
from ..errors import InputError
from .command import Command
from .output import write_error
from .watch import (
    add_samples,
    check_samples,
    draw_samples,
    guarded,
    open_samples,
    say_lines,
    say_outlook,
    say_why,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..watch.recording import Outlook, Recording

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "envdoctor run [OPTION ...] -- CMD [ARGUMENT ...]"
    parser.epilog = (
        "The exit code is CMD's own, 128 + n where signal n ended it. Where CMD does not start: 2 "
        "wrong usage, 64 and 78 refused under --policy enforce, 69 no verdict (enforce --strict), "
        "126 CMD cannot be run, 127 CMD not found. ENVDOCTOR_DISABLE=1 becomes CMD at once."
    )
    group = parser.add_argument_group("the check before it starts, as in 'envdoctor entrypoint'")
    for name, (metavar, summary) in OPTIONS.items():
        if metavar:
            choices = {"--policy": POLICIES, "--format": FORMATS}.get(name)
            group.add_argument(name, metavar=metavar, choices=choices, help=summary)
        else:
            group.add_argument(name, action="store_true", help=summary)
    add_samples(parser)
    group = parser.add_argument_group("options")
    group.add_argument("--help", "-h", action="help", help="show this help")
    group.add_argument(
        "--quiet",
        "-q",
        action="store_true",
        help="leave out the memory report; say only why the command failed",
    )


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    command = list(options.command_line)
    if not command:
        raise InputError("expected a command: envdoctor run [OPTION ...] -- CMD [ARGUMENT ...]")
    check_samples(options)
    own = [*_words(options), "--", *command]
    if parse_settings(own, os.environ).disabled:
        execute(command)
    csv = open_samples(options.csv)
    decide_start(own)
    from ..app import watch

    try:
        recording = watch(
            command=command,
            become=execute,
            keep_output=True,
            interval=options.interval,
            csv=csv,
            report=_say_nothing if options.quiet else say_outlook,
            report_every=options.every,
        )
    except InputError as error:  # there is nothing to watch, which is no reason not to start
        _run_unwatched(command, error)
    if csv is not None:
        with suppress(OSError):  # a full disk, which the summary tells
            csv.close()
    guarded(partial(_tell, recording, options))
    return "", recording.exit_code or 0


def _words(options: argparse.Namespace) -> Sequence[str]:
    """Return the options of the check as the entrypoint takes them."""
    words = []
    for name, (metavar, _) in OPTIONS.items():
        value = getattr(options, name[2:].replace("-", "_"))
        if value:
            words += [name, value] if metavar else [name]
    return words


def _run_unwatched(command: Sequence[str], error: InputError) -> NoReturn:
    write_error(f"envdoctor run: not watched: {error}")
    execute(list(command))


def _tell(recording: Recording, options: argparse.Namespace) -> None:
    from ..report.watch_text import summary_lines

    if not options.quiet:
        say_lines(summary_lines(recording))
    draw_samples(recording, options.svg)
    say_why(recording)


def _say_nothing(_outlook: Outlook) -> None:
    return


COMMAND = Command(_configure, _execute, takes_command=True)
