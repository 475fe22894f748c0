"""``envdoctor fix``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Tuple, Union

from ..errors import InputError, NoResolution
from ..intake.lock_reader import read_lock
from ..model.change import GOALS
from ..sources import gather
from .command import Command
from .output import PROGRESS, draw_lines, view, write_error
from .shared_options import (
    TEXT_FORMATS,
    add_format,
    add_general,
    add_options,
    add_sources,
    sources_of,
)

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..model.change import Plan
    from ..model.facts import Facts
    from ..model.resolution import Explanation

__all__ = ["COMMAND"]


def _configure(parser: argparse.ArgumentParser) -> None:
    add_sources(parser, lock="make it like the lock that 'envdoctor lock -o DIR' wrote here")
    group = parser.add_argument_group("what may be chosen")
    group.add_argument(
        "--as-of",
        metavar="DATE",
        help="only releases up to this day; 'latest' (default): of any day",
    )
    group.add_argument(
        "--to",
        dest="goal",
        metavar="GOAL",
        choices=GOALS,
        default="working",
        help="working (default): nothing fails; healthy: no warnings either",
    )
    add_options(group, "allow-index", "matrix")
    group = parser.add_argument_group("what is done (default: nothing; the plan is shown)")
    add_format(
        group,
        {
            **TEXT_FORMATS,
            "script": "a shell script for uv or pip",
            "json": "for programs",
        },
    )
    add_options(group, "output")
    group.add_argument(
        "--apply",
        action="store_true",
        help="make the changes in this environment or that of --python: all of them or none",
    )
    group.add_argument("--yes", "-y", action="store_true", help="do not ask before --apply")
    group.add_argument(
        "--rollback",
        action="store_true",
        help="restore the environment as it was before a change that was cut off",
    )
    add_general(parser)


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from ..matrix.loader import load_matrix

    _check(options)
    if options.rollback:
        return _roll_back(options)
    if options.apply:
        _check_local(options)
    targets = gather(sources_of(options))
    if len(targets) != 1:
        raise InputError(f"one environment is repaired at a time, but {len(targets)} were given")
    facts, matrix = targets[0], load_matrix(options.matrix)
    answer = _plan(options, facts, matrix)
    from ..model.resolution import Explanation

    if isinstance(answer, Explanation):
        raise NoResolution(_explained(answer))
    if options.apply and answer.changes:
        return _apply(answer, options, facts, matrix)
    return _shown(answer, options, facts), 1 if answer.remaining else 0


def _check(options: argparse.Namespace) -> None:
    if options.apply and options.rollback:
        raise InputError("--apply and --rollback cannot be used together")
    if options.yes and not options.apply:
        raise InputError("--yes answers the question that --apply asks; give --apply too")


def _check_local(options: argparse.Namespace) -> None:
    for name in ("facts", "report", "requirements", "root"):
        if getattr(options, name):
            raise InputError(
                f"--apply changes an environment of this machine, but --{name} names another "
                "environment; --format script gives the commands"
            )
    if not options.yes and not (sys.stdin is not None and sys.stdin.isatty()):
        raise InputError(
            "--apply asks before it changes anything, but standard input is not a terminal; "
            "give --yes"
        )


def _plan(options: argparse.Namespace, facts: Facts, matrix: Matrix) -> Union[Plan, Explanation]:
    from ..fix.repair import plan, plan_for_lock
    from ..lock.as_of import check_date

    as_of = None if options.as_of == "latest" else options.as_of
    check_date(as_of)
    if options.lock is not None:
        return plan_for_lock(facts, read_lock(options.lock), matrix)
    return plan(
        facts,
        matrix,
        python=options.python_version,
        as_of=as_of,
        allow_index=options.allow_index,
        goal=options.goal,
    )


def _explained(explanation: Explanation) -> str:
    from ..lock.emit import explanation_lines

    return draw_lines(explanation_lines(explanation))


def _shown(plan: Plan, options: argparse.Namespace, facts: Facts) -> str:
    from .. import __version__
    from ..fix.change_plan import plan_json, plan_lines, script_text

    _warn_of_unfinished(options, facts)
    if options.format == "json":
        return plan_json(plan, __version__)
    if options.format == "script":
        local = not (options.facts or options.report or options.requirements or options.root)
        return script_text(plan, __version__, facts.value("python.executable") if local else None)
    return draw_lines(plan_lines(plan), view(options))


# --------------------------------------------------------------------------------------------------
# applying


def _interpreter(options: argparse.Namespace, facts: Facts) -> str:
    return str(facts.value("python.executable") or options.python or sys.executable)


def _warn_of_unfinished(options: argparse.Namespace, facts: Facts) -> None:
    """Say so where an earlier change of this environment was cut off: the plan is one for half a
    change.
    """
    import os

    from ..fix.environment_snapshot import read_state

    prefix = facts.value("python.prefix")
    if (
        prefix
        and not (options.facts or options.report or options.root)
        and read_state(os.path.realpath(prefix)) is not None
    ):
        write_error(
            f"envdoctor: warning: {prefix}: an earlier change was cut off before its end; "
            "'envdoctor fix --rollback' restores it"
        )


def _apply(
    plan: Plan, options: argparse.Namespace, facts: Facts, matrix: Matrix
) -> Tuple[str, int]:
    from ..fix.change_plan import plan_lines
    from ..fix.environment_change import apply_plan, inspect

    environment = inspect(_interpreter(options, facts))
    write_error(draw_lines(plan_lines(plan)).rstrip())
    if not options.yes and not _agreed(environment.prefix, len(plan.changes)):
        return "nothing was changed\n", 1
    PROGRESS.start("changing the environment")
    apply_plan(plan, environment, _verifier(plan, options, matrix), _notes(plan, facts))
    changes = f"{len(plan.changes)} change{'s' if len(plan.changes) != 1 else ''}"
    made = f"{changes} made in {environment.prefix}"
    count = len(plan.remaining)
    if count:
        remain = "problem remains" if count == 1 else "problems remain"
        return f"{made}; {count} {remain} that packages cannot cure\n", 1
    verdict = "nothing that fails" if plan.goal == "working" else "no problem"
    return f"{made}; check finds {verdict}\n", 0


def _agreed(prefix: str, count: int) -> bool:
    PROGRESS.stop()
    sys.stderr.write(f"make {count} change{'s' if count != 1 else ''} in {prefix}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _verifier(
    plan: Plan, options: argparse.Namespace, matrix: Matrix
) -> Callable[[], Sequence[str]]:
    from ..fix.repair import faults_of
    from ..model.facts import Distribution

    def verify() -> Sequence[str]:
        facts = gather(sources_of(options))[0]
        distributions: Dict[str, Distribution] = facts.value("distributions", {})
        faults: List[str] = []
        for change in plan.changes:
            now = distributions.get(change.name)
            if change.after is None:
                faults += [f"{change.name} is still there"] if now is not None else []
            elif now is None or not change.is_met(now.version):
                faults.append(
                    f"{change.requirement} was to be installed, and "
                    f"{now.version if now is not None else 'nothing'} is there"
                )
        expected = {finding.key for finding in plan.remaining}
        cured = {finding.key for finding in plan.errors} - expected
        return faults + [
            f"{finding.code} {finding.message}"
            for finding in faults_of(facts, matrix, plan.goal)
            if finding.key in cured or (finding.breaks and finding.key not in expected)
        ]

    return verify


def _notes(plan: Plan, facts: Facts) -> Dict[str, Any]:
    """What is kept with the snapshot: what was installed, as an installer would be told it."""
    from ..model.facts import Distribution

    distributions: Dict[str, Distribution] = facts.value("distributions", {})
    freeze = []
    for name, entry in sorted(distributions.items()):
        if entry.editable:
            freeze.append(f"-e {entry.direct_url or entry.location}  # {name}")
        else:
            freeze.append(
                f"{name} @ {entry.direct_url}" if entry.direct_url else f"{name}=={entry.version}"
            )
    changes = [f"{change.name} {change.before} -> {change.after}" for change in plan.changes]
    return {"freeze": freeze, "changes": changes}


def _roll_back(options: argparse.Namespace) -> Tuple[str, int]:
    from ..fix.environment_change import inspect, roll_back
    from ..sources import probe

    python = _interpreter(options, probe(python=options.python))
    return roll_back(inspect(python)) + "\n", 0


COMMAND = Command(_configure, _execute, doing="looking for the smallest change")
