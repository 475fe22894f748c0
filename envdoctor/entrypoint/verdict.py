"""What the child of the entrypoint does: read the machine, judge it, word the verdict."""

from __future__ import annotations

import os

from .. import __version__
from .answer import Answer
from .baseline import find_baseline, read_baseline, stale_reason
from .options import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Tuple

    from ..matrix.loader import Matrix
    from ..model.facts import Facts
    from ..model.report import Report

__all__ = ["check_start"]

_MOST = 8  # findings in the log of a container's start
_MARGIN = 0.15
_JUDGING = 0.25  # share of the time that is kept for judging what the probes found


def check_start(settings: Settings, announce: Callable[[str], None]) -> Answer:
    """Read this machine, judge it and return the answer; writes the report where one is asked
    for.
    """
    announce("reading the baseline")
    from ..matrix.loader import load_matrix
    from ..mounts import mounts_elsewhere

    if mounts_elsewhere():
        from ..sources import pass_over_silent_updates

        pass_over_silent_updates()
    matrix = load_matrix()
    baseline, note = _baseline(settings, matrix.date)
    facts = _read(settings, announce, baseline, matrix)
    announce("judging")
    from ..errors import InputError
    from ..model.redaction import redact

    try:
        report = _judge(facts, matrix, settings, baseline)
    except InputError as error:
        return Answer(
            "usage",
            "envdoctor: an option names what cannot be read, so nothing was judged",
            f"  {redact(str(error))}\n",
        )
    answer = _answer(report, settings)
    if note:
        answer.details += f"  {note}\n"
    if settings.report is not None:
        announce("writing the report")
        trouble = write_report(settings.report, answer.document)
        if trouble:
            answer.details += f"  {trouble}\n"
    return answer


def _baseline(settings: Settings, matrix_date: str) -> Tuple[Dict[str, Any], str]:
    """Return the baseline that holds, or an empty one and why the whole environment is judged."""
    path = find_baseline(settings.baseline)
    if path is None:
        return {}, ""
    from ..errors import InputError
    from ..model.serde import read_facts
    from ..probes import MODULES
    from ..rules.registry import CHECKS

    try:
        baseline = read_baseline(path)
        reason = _other_tool(baseline["tool"], matrix_date) or stale_reason(baseline)
        if not reason:
            baseline["facts"] = _with_packages(
                read_facts(baseline["facts"], "facts"), baseline["packages"]
            )
            baseline["probes"] = [name for name in MODULES if name in baseline["probes"]]
            baseline["rules"] = [name for name in CHECKS if name in baseline["rules"]]
    except (OSError, ValueError, LookupError, AttributeError, TypeError, InputError) as error:
        return (
            {},
            (
                f"judged whole: the baseline {path} cannot be read "
                f"({getattr(error, 'strerror', None) or error})"
            ),
        )
    return ({}, f"judged whole, not as baked: {reason}") if reason else (baseline, "")


def _other_tool(then: Dict[str, Any], matrix_date: str) -> str:
    """Return how this envdoctor is another than the one that baked, or "": it may know of more, and
    have probes and rules of the host that the baseline does not name.
    """
    for what, was, now in (
        ("envdoctor was", then["version"], __version__),
        ("the matrix was of", then["matrix_date"], matrix_date),
    ):
        if was != now:
            return f"{what} {was}, is {'of ' if what.endswith('of') else ''}{now}"
    return ""


def _with_packages(facts: Facts, packages: Dict[str, Any]) -> Facts:
    """Return the facts with the distributions of which the baseline tells name and version alone:
    most of them, and no row speaks of them.
    """
    from ..model.evidence import Known
    from ..model.facts import Distribution

    distributions = facts.get("distributions")
    if not isinstance(distributions, Known):
        return facts
    known = distributions.value
    every = {
        name: known[name] if name in known else Distribution(name, version)
        for name, version in packages.items()
    }
    return facts.updated({"distributions": Known(every, distributions.evidence)})


def _read(
    settings: Settings, announce: Callable[[str], None], baseline: Dict[str, Any], matrix: Matrix
) -> Facts:
    """Read the machine; where a baseline holds, the host half only.

    Without one, METADATA is read of the distributions of which the matrix speaks or a rule can make
    an error: what the others require can only be a warning, and that is for ``bake`` and ``check``.
    A start has no time for hundreds of files of which none stops the job.
    """
    from .. import probes

    deadline = settings.timeout - max(_MARGIN, settings.timeout * _JUDGING)
    machine = probes.Machine(deadline=max(deadline, settings.timeout / 2))
    if baseline:
        machine.facts.update(baseline["facts"])
        chosen = probes.load_probes(baseline["probes"])
    else:
        from ..rules.packages import WEIGHED

        machine.described = WEIGHED | matrix.spoken_of
        chosen = probes.all_probes()
    # One that hangs for ever has a name.
    return probes.run_probes(machine, chosen, lambda name: announce(f"probe {name}"))


def _judge(facts: Facts, matrix: Matrix, settings: Settings, baseline: Dict[str, Any]) -> Report:
    """Judge by rows and rules, and by a lock where one is named; with a baseline that holds, by
    those rules that read the host half.
    """
    from ..model.report import Report
    from ..rules import judge

    if settings.lock is not None:
        from ..intake.lock_reader import lock_facts, read_lock

        facts = facts.updated(lock_facts(read_lock(settings.lock)))
    findings = judge(facts, matrix, families=baseline.get("rules"))
    if os.environ.get("ENVDOCTOR_IGNORE"):
        from ..intake.ignores import parse_ignores
        from ..report.selection import Options, report_of
        from ..text_files import read_text

        path = os.environ["ENVDOCTOR_IGNORE"]
        return report_of(
            findings, (facts,), matrix.date, Options(ignores=parse_ignores(read_text(path), path))
        )
    violated = tuple([finding for finding in findings if finding.verdict == "violated"])
    undetermined = tuple([finding for finding in findings if finding.verdict != "violated"])
    return Report(
        violated,
        undetermined,
        (),
        (),
        (facts,),
        matrix.date,
        int(any(finding.severity == "error" for finding in violated)),
    )


def _answer(report: Report, settings: Settings) -> Answer:
    from ..report.headline import summary_line

    if report.count_of("error"):
        kind = "errors"
    else:
        # Neither a failed probe or check nor a driver that a lock requires and that is missing is
        # an error by itself, but --strict wants to be sure.
        unsure = report.undetermined or any(
            finding.kind == "probe-failed" or finding.code == "ED307" for finding in report.findings
        )
        kind = "undetermined" if unsure else "ok"
    document = ""
    if settings.format == "json" or settings.report is not None:
        import json

        from ..report.json_report import dump_report

        document = json.dumps(dump_report(report))
    return Answer(kind, summary_line(report), _details(report), document)


def _details(report: Report) -> str:
    """Return errors and the first warnings, each with its first remedy; nothing where nothing is
    wrong.
    """
    grave = [finding for finding in report.findings if finding.severity != "advice"]
    grave += report.unread
    if not grave:
        return ""
    from ..report.text import clean, fold

    lines: List[str] = []
    # Errors come first, and each is a reason why the job fails.
    shown = max(_MOST, report.count_of("error"))
    for finding in grave[:shown]:
        word = finding.severity if finding.verdict == "violated" else finding.verdict
        lines.append(f"  {finding.code} {word}: {fold(clean(finding.message))}")
        if finding.remedies:
            lines.append(f"    fix: {fold(clean(finding.remedies[0].text))}")
    lines.append(
        f"  {len(grave) - shown} more; 'envdoctor check' says all"
        if len(grave) > shown
        else "  'envdoctor check' says more"
    )
    return "".join(f"{line}\n" for line in lines)


def write_report(path: str, document: str) -> str:
    """Write the report whole or not at all; return what went wrong, or ""."""
    from ..file_replacement import replace_file

    try:
        replace_file(path, (document + "\n").encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:
        return (
            f"the report cannot be written to {path}: {getattr(error, 'strerror', None) or error}"
        )
    return ""
