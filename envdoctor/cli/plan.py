"""``envdoctor plan``."""

from __future__ import annotations

import argparse
from typing import Tuple

from ..app import Sources, gather, plan
from ..errors import InputError
from .command import Command, put_first
from .output import choose_format, view

__all__ = ["COMMAND"]

_FORMATS = ("console", "plain", "json")


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "envdoctor plan [OPTION ...] (CONFIG ... | -- CMD ...)"
    parser.add_argument(
        "run",
        metavar="CONFIG",
        nargs="*",
        help="a launch script or configuration files; or after '--' the command itself",
    )
    group = parser.add_argument_group("what it is for (default: this machine)")
    group.add_argument(
        "--target", metavar="FILE", help="facts of the target, written by 'envdoctor probe --json'"
    )
    group.add_argument(
        "--report", metavar="FILE", help="a pasted report of the target ('-' is standard input)"
    )
    group.add_argument(
        "--assume",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="set one fact: memory=500GiB, gpu=A100-SXM4-80GB:8",
    )
    group.add_argument(
        "--framework",
        metavar="NAME[==V]",
        help="the framework, where the run does not tell it: verl==0.4.1",
    )
    group = parser.add_argument_group("what is asked")
    group.add_argument(
        "--what-if",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change one setting and show before and after",
    )
    group.add_argument(
        "--format",
        choices=_FORMATS,
        help="console (the default on a terminal), plain (elsewhere), json",
    )
    group.add_argument(
        "--matrix",
        metavar="DIR",
        action="append",
        default=[],
        help="add a site's own rows (also $ENVDOCTOR_MATRIX)",
    )
    group.add_argument(
        "--verbose", "-v", action="store_true", help="all terms with formulas, inputs and sources"
    )
    group.add_argument("--no-color", action="store_true", help="no colour (also $NO_COLOR)")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from importlib import import_module

    from ..matrix.loader import load_matrix

    if options.target is not None and options.report is not None:
        raise InputError("--target and --report both name the target; give one of them")
    if bool(options.run) == bool(options.command_line):
        hint = put_first("CONFIG") if options.assume and not options.run else ""
        raise InputError(
            "expected a launch script or configuration files, or a command after '--'; one of the "
            f"two{hint}"
        )
    facts = gather(
        Sources(
            facts=[options.target] if options.target else [],
            report=options.report,
            assume=options.assume,
        )
    )[0]
    result, code = plan(
        options.run or options.command_line,
        facts,
        load_matrix(options.matrix),
        framework=options.framework,
        changes=options.what_if,
    )
    chosen = choose_format(options.format)
    surface = view(options.verbose, options.no_color or chosen == "plain")
    text: str = import_module(
        f"..report.{'plan_json' if chosen == 'json' else 'plan_text'}", __package__
    ).render(result, surface)
    return text, code


COMMAND = Command(_configure, _execute, takes_command=True)
