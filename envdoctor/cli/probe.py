"""``envdoctor probe``."""

from __future__ import annotations

import argparse
from typing import Tuple

from ..errors import InputError
from ..sources import gather
from .command import Command
from .output import view
from .shared_options import (
    TEXT_FORMATS,
    add_format,
    add_general,
    add_options,
    add_sources,
    sources_of,
)

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    add_sources(parser)
    group = parser.add_argument_group("what is shown")
    add_format(
        group, {**TEXT_FORMATS, "json": "the facts file that --facts reads"}, json_alias=True
    )
    add_options(group, "output", output="write the facts to this file, as JSON")
    add_general(parser, "show whole lists, and why a fact is not known")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    nodes = gather(sources_of(options))
    if len(nodes) > 1:
        raise InputError("probe shows one target; give one file with --facts")
    if options.format == "json" or options.output_file:
        import json

        from ..model.serde import dump_facts

        return json.dumps(dump_facts(nodes[0]), indent=1) + "\n", 0
    from ..report.console import draw
    from ..report.facts_text import lay_out_facts

    return draw(lay_out_facts(nodes[0], options.verbose), view(options)), 0


COMMAND = Command(_configure, _execute, doing="reading this machine")
