"""What the commands of a report that start an engine ask of the machine that it describes.

They are read as ``plan`` reads them. A report may be of another machine than its command, and may
name settings that somebody tried before: what the plan calls an error is a warning here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Tuple

from ...model.evidence import NAMED
from ...model.facts import Facts
from ...model.finding import Finding
from ...model.workload import Workload
from ..frameworks.reading import read_server
from .result import plan_run
from .run_facts import with_workload
from .stated_settings import findings_of_settings

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["with_stated_launch"]

#: Of a machine that nobody stated only its GPUs are known to limit a run.
_OF_GPUS = ("ED602", "ED603")
#: What a rule on settings says more plainly than the plan does: no room for weights leaves none for
#: a cache, and heads that a size does not divide are an impossible value.
_PLAINER = {"ED617": "ED603", "ED618": "ED607"}


def with_stated_launch(facts: Facts, matrix: Matrix) -> Tuple[Facts, List[Finding]]:
    """Return the facts with the settings of the engine that a report starts, and what its launch
    settings ask in vain, each fault once.
    """
    facts, planned = _with_servers(facts, matrix)
    codes = {finding.code for finding in planned}
    stated = [one for one in findings_of_settings(facts, matrix) if one.code not in codes]
    plainer = {_PLAINER.get(one.code) for one in stated}
    return facts, [*(one for one in planned if one.code not in plainer), *stated]


def _with_servers(facts: Facts, matrix: Matrix) -> Tuple[Facts, List[Finding]]:
    """Return the facts with the settings of the engine that a report starts, and what it asks in
    vain. Of several commands nobody says which one the report is about: what holds of all is said.
    """
    commands = facts.value("report.servers") or {}
    workloads: List[Workload] = []
    for number, text in commands.items():
        workload = read_server(text, "report", int(number), facts)
        if workload is not None:
            workloads.append(workload)
    if not workloads:
        return facts, []
    said: List[Dict[str, Finding]] = []
    for workload in workloads:
        planned = plan_run(workload, facts, matrix)
        said.append({one.code: one for one in planned.findings if _is_sure(one, facts)})
    common = [finding for code, finding in said[0].items() if all(code in other for other in said)]
    if len(workloads) == 1:
        facts = with_workload(facts, workloads[0])
    return facts, [_as_stated(finding) for finding in common]


def _is_sure(finding: Finding, facts: Facts) -> bool:
    if finding.code == "ED615":  # a sentence names a kind, and nobody counts it
        evidence = facts.evidence("gpus")
        return evidence is not None and evidence.detail != NAMED
    return finding.code == "ED607" or (finding.severity == "error" and finding.code in _OF_GPUS)


def _as_stated(finding: Finding) -> Finding:
    return finding._replace(
        severity="warning",
        effect="may-block" if finding.effect == "blocks" else finding.effect,
        message=f"{finding.message.rstrip('.')}; as far as the launch settings tell.",
    )
