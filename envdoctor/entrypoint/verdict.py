"""What the child of the entrypoint does: read the machine, judge it, word the verdict."""

from __future__ import annotations

import os

from .. import __version__
from .answer import Answer
from .baseline import find_baseline, read_baseline, stale_reason
from .options import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

    from ..matrix.loader import Matrix
    from ..model.evidence import Fact
    from ..model.facts import Facts
    from ..model.report import Report
    from ..probes.machine import Machine

__all__ = ["check_start"]

_MOST = 8  # findings in the log of a container's start
_MARGIN = 0.15
_JUDGING = 0.25  # share of the time that is kept for judging what the probes found


def check_start(
    settings: Settings, announce: Callable[..., None], failed: Dict[str, str], seconds: float
) -> Answer:
    """Read this machine, judge it and return the answer.

    Args:
        settings: What was asked for.
        announce: Is told what is done next, and which probe runs.
        failed: Probes that are left out, with the reason: they ended an earlier check.
        seconds: How long it may take.
    """
    announce("looking at the memory limit")
    from ..probes.machine import Machine
    from .memory import PROBE, bound_memory

    machine = Machine(deadline=_time_of_probes(seconds))
    machine.strict = settings.strict
    machine.brief = True
    _run(machine, announce, failed, (PROBE,), lambda name: name == PROBE)
    reason = bound_memory(machine)
    if reason:
        return Answer("fault", f"envdoctor: no verdict: {reason}")
    from ..errors import InputError
    from ..model.redaction import redact

    announce("reading the lock, the matrix and the baseline")
    try:
        lock, ignores = _read_inputs(settings)
        matrix, remark = _matrix(settings)
        baseline, note = _baseline(settings, matrix.date)
        facts = _read(machine, announce, baseline, matrix, failed).updated(lock)
        announce("judging")
        report = _judge(facts, matrix, ignores, baseline)
    except InputError as error:
        return Answer(
            "usage",
            "envdoctor: an option names what cannot be read, so nothing was judged",
            f"  {redact(str(error))}\n",
        )
    answer = _answer(report, settings)
    answer.details += "".join(f"  {line}\n" for line in (remark, note) if line)
    return answer


def _matrix(settings: Settings) -> Tuple[Matrix, str]:
    """Return the matrix that serves, and where it is from if that is not envdoctor itself; raises
    InputError for one that is not trusted.
    """
    from ..matrix import loader
    from ..mounts import mounts_elsewhere

    site = os.environ.get("ENVDOCTOR_MATRIX", "")
    if settings.trust_matrix == "built-in":
        matrix = loader.load_builtin()
        return matrix, f"ENVDOCTOR_MATRIX={site} is not trusted, and was left out" if site else ""
    silent = ""
    if mounts_elsewhere():
        from ..sources import pass_over_silent_updates

        silent = pass_over_silent_updates()
    matrix = loader.load_matrix()
    if settings.trust_matrix:
        _verify(matrix, settings.trust_matrix, site)
    own = matrix.origin not in ("built-in", loader.builtin_folder())
    places = [matrix.origin] * own + [site] * bool(site)
    if not places:
        return matrix, silent
    named = f"the matrix of {matrix.date} in {' and '.join(places)}"
    return matrix, f"judged by {named}, not by the built-in one"


def _verify(matrix: Matrix, pinned: str, site: str) -> None:
    """Raise InputError where the matrix that serves is not the one that was pinned."""
    from ..errors import InputError
    from .trust import digest_of

    if site:
        raise InputError(
            "ENVDOCTOR_MATRIX adds rows to the matrix, but --trust-matrix pins it: unset one"
        )
    digest = digest_of(matrix.origin) if os.path.isabs(matrix.origin) else "built-in"
    if digest != pinned:
        raise InputError(
            f"the matrix that serves is {matrix.origin} ({digest}), but --trust-matrix expects "
            f"{pinned}"
        )


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
        reason = _other_tool(baseline["tool"], matrix_date) or _stale_reason(baseline)
        if not reason:
            baseline["facts"] = _with_packages(
                read_facts(baseline["facts"], "facts"), baseline["packages"]
            )
            baseline["probes"] = [name for name in MODULES if name in baseline["probes"]]
            baseline["rules"] = [name for name in CHECKS if name in baseline["rules"]]
    except (OSError, ValueError, LookupError, AttributeError, TypeError, InputError) as error:
        why = f"the baseline {path} cannot be read ({getattr(error, 'strerror', None) or error})"
        if settings.baseline is not None and settings.policy == "enforce":
            raise InputError(f"--baseline: {why}") from error
        return {}, f"judged whole: {why}"
    return ({}, f"judged whole, not as baked: {reason}") if reason else (baseline, "")


def _stale_reason(baseline: Dict[str, Any]) -> str:
    """Return what differs from when the image was baked; its folders may never answer."""
    from ..mounts import mounts_elsewhere
    from ..probes import Machine

    elsewhere = mounts_elsewhere()
    if not elsewhere:
        return stale_reason(baseline, Machine())
    from ..probes.watched import ask_watched

    outcome, silent = ask_watched(
        lambda machine: stale_reason(baseline, machine).encode("utf-8", "backslashreplace"),
        elsewhere,
    )
    return f"{silent} {outcome.reason}".strip() if outcome.reason else outcome.text


def _other_tool(then: Dict[str, Any], matrix_date: str) -> str:
    """Return how this envdoctor is another than the one that baked, or "": it may know of more, and
    have probes and rules of the host that the baseline does not name.
    """
    if then["version"] != __version__:
        return f"envdoctor was {then['version']}, is {__version__}"
    if then["matrix_date"] != matrix_date:
        return f"the matrix was of {then['matrix_date']}, is of {matrix_date}"
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


def _time_of_probes(seconds: float) -> float:
    """Return how many of the seconds of a check its probes have."""
    return max(seconds - max(_MARGIN, seconds * _JUDGING), seconds / 2)


def _read(
    machine: Machine,
    announce: Callable[..., None],
    baseline: Dict[str, Any],
    matrix: Matrix,
    failed: Dict[str, str],
) -> Facts:
    """Read the rest of the machine; where a baseline holds, of the host half only.

    Without one, METADATA is read of the distributions of which the matrix speaks or a rule can make
    an error: what the others require can only be a warning, and that is for ``bake`` and ``check``.
    A start has no time for hundreds of files of which none stops the job; that one cannot be read
    may stop it, see :attr:`Machine.strict`.
    """
    from ..probes import MODULES
    from .memory import PROBE

    modules: Sequence[str] = MODULES
    if baseline:
        machine.facts = {**dict(baseline["facts"]), **machine.facts}
        modules = baseline["probes"]
    else:
        from ..rules.packages import WEIGHED

        machine.described = WEIGHED | matrix.spoken_of
    return _run(machine, announce, failed, modules, lambda name: name != PROBE)


def _run(
    machine: Machine,
    announce: Callable[..., None],
    failed: Dict[str, str],
    modules: Sequence[str],
    wanted: Callable[[str], bool],
) -> Facts:
    """Run those probes of some modules that are wanted, but for what ended an earlier check."""
    from .. import probes
    from ..probes.probe_run import fail_probe

    chosen = [probe for probe in probes.load_probes(modules) if wanted(probe.name)]
    for probe in chosen:
        if probe.name in failed:
            fail_probe(probe, machine, failed[probe.name])
    left = [probe for probe in chosen if probe.name not in failed]
    # One that hangs for ever has a name.
    return probes.run_probes(machine, left, lambda name: announce(f"probe {name}", name))


def _read_inputs(settings: Settings) -> Tuple[Dict[str, Fact[Any]], Optional[Sequence[Any]]]:
    """Return the facts of the lock, and the entries of the ignore file (None for no file); raises
    InputError for what cannot be read.
    """
    lock: Dict[str, Fact[Any]] = {}
    if settings.lock is not None:
        from ..intake.lock_reader import lock_facts, read_lock

        lock = lock_facts(read_lock(settings.lock))
    path = os.environ.get("ENVDOCTOR_IGNORE")
    if not path:
        return lock, None
    from ..intake.ignores import parse_ignores
    from ..text_files import read_text

    return lock, parse_ignores(read_text(path, waits=False), path)


def _judge(
    facts: Facts, matrix: Matrix, ignores: Optional[Sequence[Any]], baseline: Dict[str, Any]
) -> Report:
    """Judge by rows and rules; with a baseline that holds, by those rules that read the host
    half.
    """
    from ..model.report import Report
    from ..rules import judge

    findings = judge(facts, matrix, families=baseline.get("rules"))
    if ignores is not None:
        from ..report.selection import Options, report_of, with_current_rows

        options = with_current_rows(Options(ignores=tuple(ignores)), matrix)
        return report_of(findings, (facts,), matrix.date, options)
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
