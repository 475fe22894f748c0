"""What the commands of a report that start an engine or a training run ask of the machine that it
describes.

They are read as ``plan`` reads them, and so is a configuration that stands in the report. A report
may be of another machine than its command, and may name settings that somebody tried before: what
the plan calls an error is a warning here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterator, List, Tuple

from ...model.evidence import Evidence, Known
from ...model.facts import Facts
from ...model.finding import Finding
from ...model.memory_plan import PlanResult
from ...model.workload import Workload
from ...rules.memory_fit import findings_of
from ..frameworks.reading import read_stated, read_stated_file
from .result import plan_run
from .run_facts import with_workload
from .stated_settings import findings_of_settings, is_counted, most_gpus

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["with_stated_runs"]

#: What a run asks of a machine: host memory, GPUs, a cache, swap space, /dev/shm.
_OF_MEMORY = ("ED601", "ED602", "ED603", "ED604", "ED605")
#: What a rule on settings says more plainly than the plan does: no room for weights leaves none for
#: a cache, and heads that a size does not divide are an impossible value.
_PLAINER = {"ED617": ("ED603",), "ED618": ("ED607",)}
#: Of an engine that only serves, weights are what takes the GPU at the least.
_PLAINER_OF_SERVERS = {"ED617": ("ED602", "ED603")}
#: What a plan says of the GPUs that a run takes on each node, rules on settings need not.
_OF_GPUS = "ED619"


def with_stated_runs(facts: Facts, matrix: Matrix) -> Tuple[Facts, List[Finding]]:
    """Return the facts with the settings of the run that a report starts, and what its launch
    settings ask in vain, each fault once.
    """
    started = list(_workloads(facts))
    facts, planned = _with_runs(facts, matrix)
    codes = {finding.code for finding in planned} | ({_OF_GPUS} if started else set())
    stated = [one for one in findings_of_settings(facts, matrix) if one.code not in codes]
    is_server = bool(started) and all(one.value("algorithm") == "serve" for one in started)
    table = {**_PLAINER, **_PLAINER_OF_SERVERS} if is_server else _PLAINER
    plainer = {code for one in stated for code in table.get(one.code, ())}
    return facts, [*(one for one in planned if one.code not in plainer), *stated]


def _with_runs(facts: Facts, matrix: Matrix) -> Tuple[Facts, List[Finding]]:
    """Return the facts with the settings of the run that a report starts, and what it asks in vain.
    Of several commands nobody says which one the report is about: what holds of all is said.
    """
    workloads = list(_workloads(facts))
    if not workloads:
        return facts, []
    by_run: List[Dict[Tuple[str, str], Finding]] = []
    for workload in workloads:
        planned = plan_run(_on_all(workload, facts), facts, matrix)
        sure = [one for one in _findings(planned) if _is_sure(one, planned, facts)]
        by_run.append({(one.code, one.subject): one for one in sure})
    common = [one for what, one in by_run[0].items() if all(what in other for other in by_run)]
    if len(workloads) == 1:
        facts = with_workload(facts, workloads[0])
    return facts, [_as_stated(finding) for finding in common]


def _workloads(facts: Facts) -> Iterator[Workload]:
    """Yield what the commands of a report start; without any, what its configuration describes."""
    documents = facts.value("report.documents") or {}
    is_read = False
    for number, text in (facts.value("report.runs") or {}).items():
        workload = read_stated(text, "report", int(number), facts, documents)
        if workload is not None:
            is_read = True
            yield workload
    for name, text in () if is_read else documents.items():
        workload = read_stated_file(text, name, facts)
        if workload is not None:
            yield workload


def _on_all(workload: Workload, facts: Facts) -> Workload:
    """Return a run on all GPUs of a machine of which nobody says how many it has as one on the most
    that a node has: what does not fit there fits on none.
    """
    if workload.value("gpus_per_node") or workload.value("algorithm") == "serve":
        return workload
    if is_counted(facts):
        return workload
    most = most_gpus(facts)
    return workload.updated({"gpus_per_node": Known(most, Evidence("the most of a node"))})


def _findings(planned: PlanResult) -> List[Finding]:
    """Return the findings of a plan with what cures them: a report is no place to go on trying."""
    cures = [lever for lever in planned.levers if lever.verdict != "does not fit"]
    others = [finding for finding in planned.findings if finding.code not in _OF_MEMORY]
    return [*findings_of(planned.workload, planned.plan, cures), *others]


def _is_sure(finding: Finding, planned: PlanResult, facts: Facts) -> bool:
    """Tell whether a report says enough for a finding of a plan."""
    if finding.code == "ED615":
        asked = planned.workload.value("gpus_per_node") or 0
        return is_counted(facts) or int(asked) > most_gpus(facts)
    if finding.code == "ED602" and finding.severity == "warning":
        return any(
            pool.limit is not None and pool.low > pool.limit.usable
            for pool in planned.plan.pools
            if pool.name == "gpu" and pool.subject == finding.subject
        )
    if finding.code == "ED607":  # a key that is not known may be one of a fork
        return finding.severity == "error" or finding.subject.startswith("impossible-value")
    return finding.severity == "error" and finding.code in _OF_MEMORY


def _as_stated(finding: Finding) -> Finding:
    return finding._replace(
        severity="warning",
        effect="may-block" if finding.effect == "blocks" else finding.effect,
        message=f"{finding.message.rstrip('.')}; as far as the launch settings tell.",
    )
