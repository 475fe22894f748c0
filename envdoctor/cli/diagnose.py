"""``envdoctor diagnose``."""

from __future__ import annotations

import argparse
from typing import Tuple

from ..app import diagnose
from ..errors import InputError
from ..sources import Sources, gather, read_assumptions
from .command import Command
from .output import view
from .shared_options import TEXT_FORMATS, add_format, add_general, add_options

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs",
        metavar="LOG",
        nargs="+",
        help="logs of any size, gzip, bzip2 and xz too; '-' is standard input",
    )
    group = parser.add_argument_group(
        "where they were written (default: what the logs say of that)"
    )
    add_options(group, "facts", "report", "assume", "plan", "framework")
    group = parser.add_argument_group("what is reported")
    add_format(group, {**TEXT_FORMATS, "json": "for programs (schemas/diagnosis.schema.json)"})
    add_options(group, "output", "matrix")
    add_general(parser, "show all lines, sources, and every suspect")


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
    diagnosis = diagnose(
        options.logs,
        facts,
        load_matrix(options.matrix),
        run=options.plan or (),
        framework=options.framework,
        facts_from=given,
    )
    return render_diagnosis(diagnosis, options.format, view(options)), diagnosis.exit_code


COMMAND = Command(_configure, _execute, doing="reading the logs")
