"""``envdoctor entrypoint --help``; the command itself is started by ``main`` without a parser."""

from __future__ import annotations

import argparse
import os
from typing import NoReturn

from ..entrypoint.options import FORMATS, OPTIONS, POLICIES
from .command import Command

__all__ = ["COMMAND", "add_start_check"]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "envdoctor entrypoint [OPTION ...] -- CMD [ARGUMENT ...]"
    parser.epilog = (
        "ENVDOCTOR_DISABLE=1 runs CMD unchecked, whatever the options say. Exit codes where CMD "
        "does not start: 64 wrong usage, 69 no verdict (enforce --strict), 78 refused, 126 CMD "
        "cannot be run, 127 CMD not found. Otherwise this process becomes CMD."
    )
    group = add_start_check(parser, "options")
    group.add_argument("--help", "-h", action="help", help="show this help")


def add_start_check(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """Add the options of the check before a command starts, and return their group."""
    group = parser.add_argument_group(title)
    for name, (metavar, summary) in OPTIONS.items():
        if metavar:
            choices = {"--policy": POLICIES, "--format": FORMATS}.get(name)
            group.add_argument(name, metavar=metavar, choices=choices, help=summary)
        else:
            group.add_argument(name, action="store_true", help=summary)
    return group


def _execute(options: argparse.Namespace) -> NoReturn:  # noqa: ARG001 - the signature of a command
    """Not reached from the console script, which hands off before anything is parsed."""
    import sys

    from ..entrypoint.handoff import hand_off

    hand_off(sys.argv[2:] if len(sys.argv) > 2 else [])
    os._exit(70)


COMMAND = Command(_configure, _execute)
