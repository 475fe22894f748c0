"""What the child of the entrypoint does: read the machine, judge it, word the verdict."""

from __future__ import annotations

import os

from .baseline import SOFTWARE, find_baseline, read_baseline, stale_reason
from .handoff import Answer
from .settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Sequence, Tuple

    from ..model.evidence import Fact
    from ..model.facts import Facts
    from ..model.report import Ignore, Report
    from ..probes import Machine, Probe

__all__ = ["check_start"]

_MARGIN = 0.15
_JUDGING = 0.25  # share of the time that is kept for judging what the probes found


def check_start(settings: Settings, announce: Callable[[str], None]) -> Answer:
    """Read this machine, judge it and return the answer; writes the report where one is asked for."""
    announce("reading the baseline")
    baseline, note = _baseline(settings)
    facts = _read(settings, announce, baseline)
    announce("judging")
    report = _judge(facts, settings, baseline)
    answer = _answer(report, settings)
    if note:
        answer.details += f"  {note}\n"
    if settings.report is not None:
        announce("writing the report")
        trouble = write_report(settings.report, answer.document)
        if trouble:
            answer.details += f"  {trouble}\n"
    return answer


def _baseline(settings: Settings) -> Tuple[Dict[str, Any], str]:
    """Return the baseline that holds, or an empty one and why the whole environment is judged."""
    path = find_baseline(settings.baseline)
    if path is None:
        return {}, ""
    try:
        found = read_baseline(path)
        reason = stale_reason(found)
    except (OSError, ValueError, LookupError, AttributeError) as error:
        return {}, f"judged whole: the baseline {path} cannot be read ({getattr(error, 'strerror', None) or error})"
    return ({}, f"judged whole, not as baked: {reason}") if reason else (found, "")


def _read(settings: Settings, announce: Callable[[str], None], baseline: Dict[str, Any]) -> Facts:
    """Read the machine; of a baseline that holds, only the host half is read."""
    from ..probes import PROBES, Machine, run_probes

    deadline = settings.timeout - max(_MARGIN, settings.timeout * _JUDGING)
    machine = Machine(deadline=max(deadline, settings.timeout / 2))
    probes = [_announced(probe, announce) for probe in PROBES if not baseline or probe.name not in SOFTWARE]
    if baseline:
        from ..model.serde import read_facts

        machine.found.update(read_facts(baseline["facts"], "the baseline"))
    return run_probes(machine, probes)


def _announced(probe: Probe, announce: Callable[[str], None]) -> Probe:
    """Return a probe that says its name before it runs, so that one that hangs for ever has a name."""

    def run(machine: Machine) -> Dict[str, Fact[Any]]:
        announce(f"probe {probe.name}")
        return probe.function(machine)

    return probe._replace(function=run)


def _judge(facts: Facts, settings: Settings, baseline: Dict[str, Any]) -> Report:
    from ..app import Options, check
    from ..matrix.loader import load_matrix

    report = check(facts, load_matrix(), Options(ignores=_ignores()))
    if settings.lock is None and not baseline.get("locked"):
        return report
    from .requirement import find_unmet, read_lock, with_findings

    requires = baseline["locked"] if settings.lock is None else read_lock(settings.lock)["requires"]
    return with_findings(report, find_unmet(requires, facts, settings.lock or "the lock that was baked"))


def _ignores() -> Sequence[Ignore]:
    path = os.environ.get("ENVDOCTOR_IGNORE")
    if not path:
        return ()
    from ..app import read_text
    from ..intake.ignores import parse_ignores

    return parse_ignores(read_text(path), path)


def _answer(report: Report, settings: Settings) -> Answer:
    from ..report.json_report import dump_report
    from ..report.summary import summary_line

    failed = [finding for finding in report.findings if finding.code == "ED901"]
    if report.count_of("error"):
        kind = "errors"
    else:
        kind = "undetermined" if failed or report.undetermined else "ok"
    document = ""
    if settings.format == "json" or settings.report is not None:
        import json

        document = json.dumps(dump_report(report))
    return Answer(kind, summary_line(report), _details(report), document)


def _details(report: Report) -> str:
    """Return errors and warnings, each with its first remedy; nothing where nothing is wrong."""
    from ..report.text import clean, fold

    lines: List[str] = []
    for finding in report.findings:
        if finding.severity == "advice":
            continue
        lines.append(f"  {finding.code} {finding.severity}: {fold(clean(finding.message))}")
        if finding.remedies:
            lines.append(f"    fix: {fold(clean(finding.remedies[0].text))}")
    if lines:
        lines.append("  'envdoctor check' says more")
    return "".join(f"{line}\n" for line in lines)


def write_report(path: str, document: str) -> str:
    """Write the report whole or not at all; return what went wrong, or ""."""
    target = f"{path}.{os.getpid()}.tmp"
    try:
        with open(target, "w", encoding="utf-8") as file:
            file.write(document + "\n")
        os.replace(target, path)
    except (OSError, ValueError) as error:
        if os.path.exists(target):
            os.unlink(target)
        return f"the report cannot be written to {path}: {getattr(error, 'strerror', None) or error}"
    return ""
