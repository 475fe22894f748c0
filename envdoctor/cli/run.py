"""``envdoctor run``: check, watch and diagnose in one."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from functools import partial
from typing import NoReturn, Sequence, Tuple

from ..entrypoint.handoff import REFUSED, decide_start, execute
from ..entrypoint.options import OPTIONS, parse_settings
from ..errors import InputError
from .command import Command
from .entrypoint import add_start_check
from .output import write_error
from .shared_options import add_options
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
    group = add_start_check(parser, "the check before it starts, as in 'envdoctor entrypoint'")
    group.add_argument(
        "--plan",
        metavar="CONFIG",
        nargs="*",
        help="also say whether its memory will do, of these files or else of CMD itself; what does "
        "not fit is an error",
    )
    add_options(group, "framework")
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
    settings = parse_settings(own, os.environ)
    if settings.disabled:
        execute(command)
    csv = open_samples(options.csv)
    decide_start(own)
    planned = guarded(partial(_plan, options)) or ()
    if planned and planned[0] == "does not fit" and settings.policy == "enforce":
        write_error("envdoctor run: refused: it does not fit under policy enforce (exit code 78)")
        return "", REFUSED
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
    guarded(partial(_tell, recording, options, planned[1:]))
    return "", recording.exit_code or 0


def _plan(options: argparse.Namespace) -> Sequence[str]:
    """Say whether the memory will do; return the verdict and what was read, or nothing."""
    if options.plan is None:
        return ()
    from ..app import plan
    from ..report.plan_text import summary
    from ..sources import Sources, gather

    run = options.plan or options.command_line
    try:
        (facts,) = gather(Sources())
        result, _ = plan(run, facts, framework=options.framework, here=True)
    except InputError as error:  # no run that is known, which is no reason not to start
        write_error(f"envdoctor run: not planned: {error}")
        return ()
    write_error(f"envdoctor run: {summary(result)}")
    return (result.plan.verdict, *run)


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


def _tell(recording: Recording, options: argparse.Namespace, planned: Sequence[str]) -> None:
    from ..report.watch_text import summary_lines

    if not options.quiet:
        say_lines(summary_lines(recording))
    draw_samples(recording, options.svg)
    say_why(recording, planned, options.framework)


def _say_nothing(_outlook: Outlook) -> None:
    return


COMMAND = Command(_configure, _execute, takes_command=True)
