"""``envdoctor bake``."""

from __future__ import annotations

import argparse
import os
from typing import Tuple

from ..errors import InputError
from .command import Command
from .output import view, write_file
from .shared_options import TEXT_FORMATS, add_format, add_general, add_options

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the image is for")
    add_options(
        group,
        "assume",
        "lock",
        lock="the lock that the image was made from; it is compared, and kept for the starts",
    )
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help="the baseline (default: share/envdoctor/baseline.json of the environment)",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="only judge, and say what would be written"
    )
    add_format(group, {**TEXT_FORMATS, "json": "for programs (schemas/bake.schema.json)"})
    add_options(group, "matrix")
    add_general(parser, "show all evidence, sources and open questions")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from ..entrypoint.baking import bake, compile_start
    from ..entrypoint.baseline import default_path
    from ..intake.lock_reader import read_lock
    from ..matrix.loader import load_matrix
    from ..report import render
    from ..report.json_report import render_bake
    from ..sources import Sources, gather, read_assumptions

    facts = gather(Sources())[0]
    baked = bake(
        facts,
        read_assumptions(options.assume),
        load_matrix(options.matrix),
        read_lock(options.lock) if options.lock is not None else None,
        options.assume,
    )
    refused = ""
    if baked.report.exit_code:
        refused = "the image would fail on its target"
    elif baked.report.unread:
        refused = "what could not be read was not judged"
    code = int(bool(refused))
    path = options.output or default_path()
    if not code and not options.dry_run:
        _write(path, baked.baseline)
        compile_start()
    if options.format == "json":
        written = None if code or options.dry_run else path
        return render_bake(baked.report, written, baked.require), code
    text = render(baked.report, options.format, view(options))
    if refused:
        return f"{text}\nNo baseline was written: {refused}.\n", code
    if options.dry_run:
        text += "\nBaseline not written (--dry-run).\n"
    else:
        text += f"\nBaseline written to {path}; remove this file to undo.\n"
    if baked.require:
        text += f'For the Dockerfile:\nENV NVIDIA_REQUIRE_CUDA="{baked.require}"\n'
    return text, 0


def _write(path: str, baseline: str) -> None:
    """Write the baseline, with the folders above it."""
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {path}: its folder cannot be made: {error.strerror}") from error
    write_file(path, baseline)


COMMAND = Command(_configure, _execute, doing="judging this image")
