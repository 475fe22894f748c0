"""``envdoctor diagnose``."""

from __future__ import annotations

import argparse
from typing import Optional, Tuple

from ..app import diagnose
from ..errors import InputError, NothingRecognised
from ..model.facts import Facts
from ..sources import Sources, gather, read_assumptions
from .command import Command
from .output import PROGRESS, view, write_error
from .shared_options import TEXT_FORMATS, add_format, add_general, add_options

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs",
        metavar="LOG",
        nargs="*",
        help="logs of any size, gzip, bzip2 and xz too; '-' is standard input; without one, this "
        "machine is read",
    )
    group = parser.add_argument_group(
        "the machine that wrote them (default: what the logs say of it)"
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
            facts = _gathered(options)
        else:
            from ..intake.assumptions import with_assumptions

            facts = (with_assumptions(Facts(), read_assumptions(options.assume)),)
    elif not options.logs:
        facts = gather(Sources())
    given = ", ".join(options.facts) or options.report or _other_source(options)
    diagnosis = diagnose(
        options.logs,
        facts,
        load_matrix(options.matrix),
        run=options.plan or (),
        framework=options.framework,
        facts_from=given,
        progress=PROGRESS.say,
    )
    return render_diagnosis(diagnosis, options.format, view(options)), diagnosis.exit_code


def _gathered(options: argparse.Namespace) -> Optional[Tuple[Facts, ...]]:
    """Read what was given beside the logs; a report that says nothing is as good as none."""
    try:
        return gather(Sources(facts=options.facts, report=options.report, assume=options.assume))
    except NothingRecognised as error:
        if not options.logs:
            raise
        write_error(f"envdoctor: note: {options.report}: {error.fault}")
        return None


def _other_source(options: argparse.Namespace) -> str:
    return "--assume" if options.assume else "" if options.logs else "this machine"


COMMAND = Command(_configure, _execute, doing="reading the logs")
