"""``envdoctor diagnose``."""

from __future__ import annotations

import argparse
from typing import Tuple

from ..app import Sources, diagnose, gather, read_assumptions
from ..errors import InputError
from .command import Command
from .output import choose_format, view

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    from ..report.diagnosis_text import DIAGNOSIS_FORMATS

    parser.add_argument(
        "logs",
        metavar="LOG",
        nargs="+",
        help="logs of any size, gzip, bzip2 and xz too; '-' is standard input",
    )
    group = parser.add_argument_group(
        "where they were written (default: what the logs themselves tell; this machine is not "
        "looked at)"
    )
    group.add_argument(
        "--facts",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="facts written by 'envdoctor probe --json' there, one for each node",
    )
    group.add_argument(
        "--report", metavar="FILE", help="a pasted report: collect_env, pip list, nvidia-smi ..."
    )
    group.add_argument(
        "--assume",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="set one fact: gpu=H20:8, torch==2.4.0",
    )
    group.add_argument(
        "--plan",
        metavar="CONFIG",
        nargs="+",
        help="the launch script or configuration files of the run: what it takes of memory counts",
    )
    group.add_argument(
        "--framework",
        metavar="NAME[==V]",
        help="the framework of --plan, where it does not tell: verl==0.4.1",
    )
    group = parser.add_argument_group("what is reported")
    group.add_argument("--format", choices=DIAGNOSIS_FORMATS, help="text with colour, text, JSON")
    group.add_argument(
        "--matrix",
        metavar="DIR",
        action="append",
        default=[],
        help="add a site's own rows and signatures (also $ENVDOCTOR_MATRIX)",
    )
    group.add_argument(
        "--verbose", "-v", action="store_true", help="all lines, sources, and every suspect"
    )
    group.add_argument("--no-color", action="store_true", help="no colour (also $NO_COLOR)")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from ..matrix.loader import load_matrix
    from ..report.diagnosis_text import render_diagnosis

    if options.logs.count("-") + (options.report == "-") + options.facts.count("-") > 1:
        raise InputError("standard input ('-') can be read once only")
    facts = None
    if options.facts or options.report or options.assume:
        if options.facts or options.report:
            sources = Sources(facts=options.facts, report=options.report, assume=options.assume)
            facts = gather(sources)
        else:
            from ..intake.assumptions import with_assumptions
            from ..model.facts import Facts

            facts = (with_assumptions(Facts(), read_assumptions(options.assume)),)
    given = ", ".join(options.facts) or options.report or ("--assume" if options.assume else "")
    found = diagnose(
        options.logs,
        facts,
        load_matrix(options.matrix),
        run=options.plan or (),
        framework=options.framework,
        facts_from=given,
    )
    return render_diagnosis(
        found, choose_format(options.format), view(options.verbose, options.no_color)
    ), found.exit_code


COMMAND = Command(_configure, _execute)
