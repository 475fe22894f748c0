"""The run of ``scripts/measure_surfaces``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import List, Optional, Sequence

from matrix_refresh.errors import Refused, Unreachable, UsageFault
from matrix_refresh.index import default_index
from matrix_refresh.store import default_folder
from matrix_refresh.transport import Transport

from .collect import Wanted, collect, releases_of
from .packages import Packages, load_packages
from .store import Sources

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent.parent


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="measure_surfaces",
        description="Measure what Python packages define, import and demand, from their wheels.",
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these packages")
    parser.add_argument("--collect", action="store_true", help="read, measure later")
    parser.add_argument("--measure", action="store_true", help="measure what was read")
    parser.add_argument(
        "--about",
        nargs="+",
        metavar="NAME",
        default=[],
        help="with --measure: what they say of these packages; the rest stays as it is",
    )
    parser.add_argument(
        "--relations",
        action="store_true",
        help="measure what metadata alone say: exclusions that come later, extras",
    )
    parser.add_argument(
        "--names", action="store_true", help="measure in which releases names exist"
    )
    parser.add_argument(
        "--messages", action="store_true", help="measure what packages raise, and when"
    )
    parser.add_argument(
        "--steps",
        action="store_true",
        help="messages of the last releases of each minor version and quarter only",
    )
    parser.add_argument(
        "--coverage", action="store_true", help="print releases, read and measured, by package"
    )
    parser.add_argument(
        "--recall",
        action="store_true",
        help="print which of the rows written by hand are reproduced by measured ones",
    )
    parser.add_argument(
        "--needless",
        action="store_true",
        help="print which of these may be deleted, and what keeps the others",
    )
    parser.add_argument(
        "--since",
        default="2023-01-01",
        metavar="DAY",
        help="releases from this day on (default 2023-01-01)",
    )
    parser.add_argument(
        "--connections",
        type=int,
        default=4,
        choices=range(1, 9),
        metavar="N",
        help="archives at a time (default 4)",
    )
    parser.add_argument("--index-url", metavar="URL", help="default: the index that pip uses here")
    parser.add_argument(
        "--cache", default=default_folder(), metavar="DIR", help="where is kept what was read"
    )
    parser.add_argument(
        "--matrices", type=Path, default=ROOT / "matrices", metavar="DIR", help="what is written"
    )
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run; return the exit code: 0, 1 where something could not be read, 2 for wrong options."""
    options = _parser().parse_args(arguments)
    try:
        packages = load_packages()
        names = _chosen(packages, options.only)
        sources = Sources(options.cache)
        faults = 0
        only_read = options.measure or options.names or options.messages or options.relations
        if not (only_read or options.coverage or options.recall or options.needless):
            faults = _collect(options, packages, names, sources)
        if options.coverage:
            from .coverage import coverage_lines

            for line in coverage_lines(packages, sources, options.matrices, options.since):
                print(line)
        elif options.relations:
            from .relations import write_relations

            for name in write_relations(options.matrices, names):
                _say(f"{name}: written")
        elif options.names:
            from .names import measure_names

            measure_names(packages, names, sources, options.matrices, _say)
        elif options.messages:
            from .messages import measure_messages

            where = options.matrices
            measure_messages(packages, names, sources, where, _say, options.since, options.steps)
        elif options.recall:
            from envdoctor.matrix.loader import load_folder

            from .recall import recall, recall_lines

            for line in recall_lines(list(recall(load_folder(str(options.matrices))))):
                print(line)
        elif options.needless:
            from envdoctor.matrix.loader import load_folder

            from .needless import needless, needless_lines

            for line in needless_lines(list(needless(load_folder(str(options.matrices))))):
                print(line)
        elif not options.collect:
            from .measure import measure

            about = _chosen(packages, options.about) if options.about else ()
            measure(packages, names, sources, options.matrices, _say, about)
    except UsageFault as error:
        print(f"measure_surfaces: {error}", file=sys.stderr)
        return 2
    return 1 if faults else 0


def _say(line: str) -> None:
    print(line, flush=True)


def _chosen(packages: Packages, only: Optional[List[str]]) -> List[str]:
    unknown = sorted(set(only or ()) - set(packages.names))
    if unknown:
        raise UsageFault(
            f"--only: expected names of surface_scan/packages.toml, found {', '.join(unknown)}"
        )
    return [name for name in packages.names if not only or name in only]


def _collect(
    options: argparse.Namespace, packages: Packages, names: Sequence[str], sources: Sources
) -> int:
    transport = Transport()
    index = (options.index_url or default_index()).rstrip("/")
    faults = 0
    for name in names:
        if name in packages.elsewhere:
            continue
        try:
            wanted = releases_of(transport, index, name, options.since, name in packages.early)
        except (Refused, Unreachable) as error:
            _say(f"{name}: {error}")
            faults += 1
            continue
        new = [item for item in wanted if not sources.has(item.file.sha256)]
        before = transport.bytes_read

        def report(item: Wanted, fault: str) -> None:
            if fault:
                _say(f"{item.file.name}: {fault}")

        faults += collect(new, transport, sources, options.connections, report)
        read = (transport.bytes_read - before) >> 20
        _say(f"{name}: {len(wanted)} releases, {len(new)} new, {read} MB")
    return faults
