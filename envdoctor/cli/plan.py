"""``envdoctor plan``."""

from __future__ import annotations

import argparse
from typing import Tuple

from ..app import plan, plan_sweep
from ..errors import InputError
from ..model.facts import Facts
from ..sources import Sources, gather
from .command import Command, put_first
from .output import view
from .shared_options import TEXT_FORMATS, add_format, add_general, add_options

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "envdoctor plan [OPTION ...] (CONFIG ... | -- CMD ...)"
    parser.add_argument(
        "run",
        metavar="CONFIG",
        nargs="*",
        help="a launch script or configuration files; or after '--' the command itself",
    )
    group = parser.add_argument_group("the machine it is for (default: this one)")
    add_options(group, "facts", "report", "assume")
    group = parser.add_argument_group("what is asked")
    add_options(group, "framework")
    group.add_argument(
        "--what-if",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change one setting, and show memory before and after",
    )
    group.add_argument(
        "--fit",
        action="store_true",
        help="find settings with which it fits, without shortening the texts, and plan with them",
    )
    group.add_argument(
        "--sweep",
        metavar="KEY=VALUE,VALUE",
        action="append",
        default=[],
        help="a table of plans, one for each value; several make every combination",
    )
    group = parser.add_argument_group("what is reported")
    add_format(
        group,
        {
            **TEXT_FORMATS,
            "json": "for programs (schemas/plan.schema.json; of --sweep sweep.schema.json)",
        },
    )
    add_options(group, "output", "matrix")
    add_general(parser, "show all terms with their formulas, inputs and sources")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from importlib import import_module

    from ..matrix.loader import load_matrix

    if len(options.facts) > 1:
        raise InputError(f"a run is planned for one machine, but {len(options.facts)} were given")
    if bool(options.run) == bool(options.command_line):
        hint = put_first("CONFIG") if options.assume and not options.run else ""
        raise InputError(
            "expected a launch script or configuration files, or a command after '--'; one of the "
            f"two{hint}"
        )
    here = not (options.facts or options.report)
    (facts,) = gather(
        Sources(facts=options.facts, report=options.report, assume=options.assume, elsewhere=here)
    )
    if options.sweep:
        return _swept(options, facts)
    result, code = plan(
        options.run or options.command_line,
        facts,
        load_matrix(options.matrix),
        framework=options.framework,
        changes=options.what_if,
        fit=options.fit,
        here=here and not options.assume,
    )
    text: str = import_module(
        f"..report.{'plan_json' if options.format == 'json' else 'plan_text'}", __package__
    ).render(result, view(options))
    return text, code


def _swept(options: argparse.Namespace, facts: Facts) -> Tuple[str, int]:
    from importlib import import_module

    from ..matrix.loader import load_matrix

    if options.fit:
        raise InputError("--sweep prints a table of plans; it does not go with --fit")
    variants, code = plan_sweep(
        options.run or options.command_line,
        facts,
        load_matrix(options.matrix),
        sweeps=options.sweep,
        framework=options.framework,
        changes=options.what_if,
    )
    text: str = import_module(
        f"..report.{'sweep_json' if options.format == 'json' else 'sweep_text'}", __package__
    ).render(variants, view(options))
    return text, code


COMMAND = Command(_configure, _execute, takes_command=True, doing="planning")
