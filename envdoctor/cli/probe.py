"""``envdoctor probe``."""

from __future__ import annotations

import argparse
from typing import Tuple

from ..app import gather
from ..errors import InputError
from .command import Command, add_sources, sources_of
from .output import view, write_file

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    add_sources(parser)
    group = parser.add_argument_group("what is shown")
    group.add_argument("--json", action="store_true", help="the facts file that --facts reads")
    group.add_argument("--output", "-o", metavar="FILE", help="write the facts file there")
    group.add_argument(
        "--verbose", "-v", action="store_true", help="whole lists, and why something is not known"
    )
    group.add_argument("--no-color", action="store_true", help="no colour (also $NO_COLOR)")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    nodes = gather(sources_of(options))
    if len(nodes) > 1:
        raise InputError("probe shows one target; give one file with --facts")
    if options.json or options.output:
        import json

        from ..model.serde import dump_facts

        text = json.dumps(dump_facts(nodes[0]), indent=1) + "\n"
        if options.output and options.output != "-":
            write_file(options.output, text)
            return "", 0
        return text, 0
    from ..report.console import draw
    from ..report.facts_text import lay_out_facts

    return draw(
        lay_out_facts(nodes[0], options.verbose), view(options.verbose, options.no_color)
    ), 0


COMMAND = Command(_configure, _execute)
