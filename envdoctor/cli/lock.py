"""``envdoctor lock``."""

from __future__ import annotations

import argparse
import os
from typing import Dict, Tuple

from ..app import Sources, gather, lock
from ..errors import InputError, NoResolution
from ..model.resolution import Explanation
from .command import Command

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("requirements", metavar="REQ", nargs="*", help="what is wanted, the most important first: 'vllm>=0.8' 'verl[vllm]'")
    parser.add_argument(
        "--profile",
        metavar="NAME[:REQUEST]",
        help="what a framework needs: verl (the newest of its requests that fits), verl:0.7-vllm; 'envdoctor matrix list profiles'",
    )
    group = parser.add_argument_group("what it is for (default: this machine)")
    group.add_argument(
        "--target", metavar="FILE", nargs="+", action="extend", default=[], help="facts written by 'envdoctor probe --json'; all targets at once"
    )
    group.add_argument("--report", metavar="FILE", help="a pasted report of the target: collect_env, nvidia-smi ... ('-' is standard input)")
    group.add_argument(
        "--assume", metavar="KEY=VALUE", nargs="+", action="extend", default=[], help="set one fact: nvidia-driver=535.129.03, gpu=H20:8"
    )
    group.add_argument("--python-version", metavar="X.Y", help="the Python of the lock")
    group = parser.add_argument_group("what may be chosen")
    group.add_argument("--as-of", metavar="DATE", help="only releases of this day or before")
    group.add_argument(
        "--allow-index", metavar="NAME", action="append", default=[], help="also builds of this index: pytorch (+cu126), github (flash-attn's wheels)"
    )
    group.add_argument("--matrix", metavar="DIR", action="append", default=[], help="add a site's own rows (also $ENVDOCTOR_MATRIX)")
    group = parser.add_argument_group("what is written")
    group.add_argument("--output", "-o", metavar="DIR", help="write all files there (default: requirements.txt to standard output)")
    group.add_argument("--dry-run", action="store_true", help="only say what would be chosen")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from .. import __version__
    from ..emit import explanation_text, render, summary_text
    from ..matrix.loader import load_matrix

    if options.output is not None and os.path.exists(options.output) and not os.path.isdir(options.output):
        raise InputError(f"--output {options.output}: expected a directory, found a file")
    facts = gather(Sources(facts=options.target, report=options.report, assume=options.assume, python_version=options.python_version))
    found = lock(
        options.requirements,
        facts,
        load_matrix(options.matrix),
        python=options.python_version,
        as_of=options.as_of,
        allow_index=options.allow_index,
        profile=options.profile,
    )
    if isinstance(found, Explanation):
        raise NoResolution(explanation_text(found))
    if options.dry_run:
        return summary_text(found), 0
    files = render(found, __version__)
    if options.output is None:
        return files["requirements.txt"], 0
    _write_all(options.output, files)
    return summary_text(found) + f"written to {options.output}: {', '.join(files)}\n", 0


def _write_all(folder: str, files: Dict[str, str]) -> None:
    """Write all files whole, or leave those that are there as they are."""
    written: Dict[str, str] = {}
    try:
        os.makedirs(folder, exist_ok=True)
        for name, text in files.items():
            path = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
            written[path] = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        for target in written.values():
            if os.path.isdir(target):
                raise InputError(f"{target}: expected a file, found a directory")
        for path, target in written.items():
            os.replace(path, target)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: cannot be written: {getattr(error, 'strerror', None) or error}") from error
    finally:
        for path in written:
            if os.path.exists(path):
                os.unlink(path)


COMMAND = Command(_configure, _execute)
