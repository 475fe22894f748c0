"""``envdoctor check``."""

from __future__ import annotations

import argparse
import os

from ..app import check
from ..errors import InputError, NothingRecognised
from ..model.calls import OwnCall
from ..model.facts import Facts
from ..model.report import Ignore, Report
from ..report.selection import FAIL_ON, Options
from ..sources import check_answers, gather
from ..text_files import begins_with, name_of, read_text
from .command import Command
from .output import view
from .shared_options import (
    add_format,
    add_general,
    add_options,
    add_sources,
    sources_of,
    split_codes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Tuple

    from ..model.node_answers import Snapshot

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    from ..report import REPORTERS

    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="anything that describes an environment: a report, an issue with its log, "
        "requirements, a lock, facts, a launch script ('-' is standard input); its content tells "
        "which",
    )
    add_sources(parser)
    add_options(parser.add_argument_group("the run that will start there"), "plan", "framework")
    group = parser.add_argument_group("what is reported")
    add_format(group, {name: reporter.summary for name, reporter in REPORTERS.items()})
    add_options(group, "output", "since")
    group.add_argument(
        "--only",
        metavar="CODE",
        nargs="+",
        action="extend",
        help="report only these codes, bands (ED3) or rows",
    )
    group.add_argument(
        "--skip", metavar="CODE", nargs="+", action="extend", help="report everything but these"
    )
    group.add_argument(
        "--ignore-file",
        metavar="FILE",
        help="accepted findings, each with a reason and an expiry date (default: "
        "$ENVDOCTOR_IGNORE)",
    )
    group.add_argument(
        "--fail-on",
        metavar="LEVEL",
        choices=FAIL_ON,
        default="error",
        help=f"exit with 1 from this level on: {', '.join(FAIL_ON)} (default: error)",
    )
    group.add_argument(
        "--exit-style",
        metavar="STYLE",
        choices=("default", "nagios", "nhc", "npd"),
        default="default",
        help="output and exit codes for a monitoring system; nagios: 0 OK, 1 warning, 2 error, "
        "3 unknown; nhc: silent and 0, or one line and 1 for errors; npd: one line, 0 or 1 for "
        "errors, 2 unknown",
    )
    add_options(group, "matrix")
    add_general(parser, "show all evidence, sources, open questions and ignored findings")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from ..report import render

    if options.exit_style == "default":
        report = _judge(options)
        return render(report, options.format, view(options)), report.exit_code
    # Where there is no verdict, main says so in the same style: the code of an error would be taken
    # for one.
    from ..report.monitoring import render_status

    return render_status(_judge(options), options.exit_style)


def _judge(options: argparse.Namespace) -> Report:
    from ..matrix.loader import load_matrix

    ignores = _ignores(options.ignore_file)
    if options.file is not None:
        _take(options.file, options)
    matrix = load_matrix(options.matrix)
    wanted = Options(split_codes(options.only), split_codes(options.skip), ignores, options.fail_on)
    run, framework = options.plan or (), options.framework
    logs = [options.report] if options.report else ()
    since = _since(options.since)
    try:
        facts = gather(sources_of(options))
    except NothingRecognised:
        # A log alone may decide; the facts that it states are those of its report.
        facts = (Facts(),)
        report = check(facts, matrix, wanted, run=run, framework=framework, logs=logs)
        if not report.findings and not report.undetermined:
            raise
    else:
        report = check(facts, matrix, wanted, run=run, framework=framework, logs=logs, since=since)
    for_people = options.format in ("text", "plain", "html")
    if for_people and report.examined is not None and (options.verbose or not report.findings):
        from ..report.selection import unknown_releases

        unknown = unknown_releases(report.nodes, matrix)
        report = report._replace(examined=report.examined._replace(unknown_releases=unknown))
    return report._replace(fix_command=_fix_command(options, facts) if for_people else None)


def _take(path: str, options: argparse.Namespace) -> None:
    """Take a file as what its content says it is, as if it were given with that option."""
    given = (options.facts, options.report, options.requirements, options.root, options.lock)
    if any(given):
        raise InputError(
            f"{path}: expected one thing to judge; give it without an option, or with the one that "
            "says what it is"
        )
    if os.path.isdir(path):
        options.lock = path
        return
    from ..intake.text_kind import PACKED, kind_of

    try:
        packed = begins_with(path, *PACKED)
        kind = "report" if packed else kind_of(read_text(path, lenient=True), name_of(path))
    except NothingRecognised:  # so large that only a log can be meant
        kind = "report"
    if kind == "facts":
        options.facts = [path]
    elif kind == "requirements":
        options.requirements = path
    elif kind == "run":
        options.plan = [*(options.plan or ()), path]
    else:
        options.report = path


def _fix_command(options: argparse.Namespace, nodes: Sequence[Facts]) -> Optional[OwnCall]:
    """Return the call of ``fix`` for what was judged, or nothing where it cannot be named again:
    several nodes, or standard input.
    """
    from ..rules.addressing import judged_interpreter

    python = options.python or judged_interpreter(nodes[0])
    if options.facts or options.report or options.requirements or options.root:
        python = options.python
    source_options = {
        "--facts": options.facts,
        "--report": [options.report],
        "--requirements": [options.requirements],
        "--root": [options.root],
        "--assume": options.assume,
        "--python-version": [options.python_version],
    }
    if len(nodes) > 1 or any("-" in values for values in source_options.values()):
        return None
    words: List[str] = []
    for option, values in source_options.items():
        stated = [value for value in values if value]
        words += [option, *stated] if stated else []
    words += ["--deep"] if options.deep else []
    for folder in options.matrix:
        words += ["--matrix", folder]
    return OwnCall("fix", tuple(words), python)


def _since(path: Optional[str]) -> Optional[Snapshot]:
    if path is None:
        return None
    from ..sources import read_snapshot

    return read_snapshot(path)


def _ignores(path: Optional[str]) -> Tuple[Ignore, ...]:
    chosen = path or os.environ.get("ENVDOCTOR_IGNORE")
    if not chosen:
        return ()
    from ..intake.ignores import parse_ignores

    check_answers({"--ignore-file" if path else "ENVDOCTOR_IGNORE": [chosen]})
    return parse_ignores(read_text(chosen), chosen)


COMMAND = Command(_configure, _execute, doing="checking")
