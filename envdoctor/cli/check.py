"""``envdoctor check``."""

from __future__ import annotations

import argparse
import os

from ..app import FAIL_ON, Options, check, gather, read_text
from ..model.report import Ignore, Report
from .command import Command, add_sources, sources_of, split_codes
from .output import choose_format, view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    from ..report import REPORTERS

    add_sources(parser)
    group = parser.add_argument_group("what is reported")
    formats = "; ".join(f"{name}: {reporter.summary}" for name, reporter in REPORTERS.items())
    group.add_argument("--format", choices=tuple(REPORTERS), help=formats)
    group.add_argument(
        "--only",
        metavar="CODE",
        nargs="+",
        action="extend",
        help="report these codes, bands (ED3) or rows only",
    )
    group.add_argument(
        "--skip", metavar="CODE", nargs="+", action="extend", help="report all but these"
    )
    group.add_argument(
        "--ignore-file",
        metavar="FILE",
        help="accepted findings, each with reason and expiry (default: $ENVDOCTOR_IGNORE)",
    )
    group.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="error",
        help="exit with 1 from this level on (default: error)",
    )
    group.add_argument(
        "--plan",
        metavar="CONFIG",
        nargs="+",
        help="also judge what this run takes of memory: a launch script or configuration files",
    )
    group.add_argument(
        "--framework",
        metavar="NAME[==V]",
        help="the framework of --plan, where it does not tell: verl==0.4.1",
    )
    group.add_argument(
        "--exit-style",
        choices=("default", "nagios", "nhc"),
        default="default",
        help="output and exit codes of a monitoring system: nagios 0 OK, 1 warning, 2 error, 3 "
        "unknown; nhc silent and 0, or a line and 1 for errors",
    )
    group.add_argument(
        "--matrix",
        metavar="DIR",
        action="append",
        default=[],
        help="add a site's own rows (also $ENVDOCTOR_MATRIX)",
    )
    group.add_argument(
        "--verbose",
        "-v",
        action="store_true",
        help="all evidence, sources, open questions and what was ignored",
    )
    group.add_argument("--no-color", action="store_true", help="no colour (also $NO_COLOR)")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from ..report import render

    if options.exit_style == "default":
        report = _judge(options)
        return render(
            report, choose_format(options.format), view(options.verbose, options.no_color)
        ), report.exit_code
    # Where there is no verdict, main says so in the same style: the code of an error would be taken
    # for one.
    from ..report.monitoring import render_status

    return render_status(_judge(options), options.exit_style)


def _judge(options: argparse.Namespace) -> Report:
    from ..matrix.loader import load_matrix

    ignores = _ignores(options.ignore_file)
    facts = gather(sources_of(options))
    matrix = load_matrix(options.matrix)
    wanted = Options(split_codes(options.only), split_codes(options.skip), ignores, options.fail_on)
    return check(facts, matrix, wanted, run=options.plan or (), framework=options.framework)


def _ignores(path: Optional[str]) -> Tuple[Ignore, ...]:
    chosen = path or os.environ.get("ENVDOCTOR_IGNORE")
    if not chosen:
        return ()
    from ..intake.ignores import parse_ignores

    return parse_ignores(read_text(chosen), chosen)


COMMAND = Command(_configure, _execute)
