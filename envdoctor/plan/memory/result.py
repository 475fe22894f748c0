"""From a run and a machine to what ``envdoctor plan`` says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional, Sequence, Tuple

from ...model.facts import Facts
from ...model.memory_plan import MemoryPlan, PlanResult
from ...model.workload import Workload
from ...rules.memory_plan import findings_of, problem_findings
from .estimate import make_plan, sizes_of
from .fit import find_fit, overrides_of
from .levers import find_levers
from .setting_change import change_workload

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["fit_run", "plan_run"]

_NOT_READ = ("unknown-key",)


def plan_run(
    workload: Workload,
    facts: Optional[Facts],
    matrix: Matrix,
    changes: Sequence[str] = (),
    configs: Mapping[str, Mapping[str, object]] = {},
) -> PlanResult:
    """Plan a run, with ``changes`` (``key=value``) applied to it.

    Raises:
        InputError: a change that means nothing.
    """
    changed = workload
    for text in changes:
        changed = change_workload(changed, text)[0]
    sizes = sizes_of(changed, matrix, configs)
    plan = _gated(make_plan(changed, sizes, facts, matrix), workload)
    levers = find_levers(changed, sizes, plan, facts, matrix)
    before = (
        _gated(make_plan(workload, sizes_of(workload, matrix, configs), facts, matrix), workload)
        if changes
        else None
    )
    findings = (*findings_of(changed, plan, levers), *problem_findings(workload.problems))
    return PlanResult(changed, plan, levers, findings, before, tuple(changes))


def fit_run(
    workload: Workload,
    facts: Optional[Facts],
    matrix: Matrix,
    changes: Sequence[str] = (),
    configs: Mapping[str, Mapping[str, object]] = {},
) -> PlanResult:
    """Plan a run with the settings that make it fit, beside ``changes``, and say their price.

    Raises:
        InputError: a change that means nothing.
    """
    changed = workload
    for text in changes:
        changed = change_workload(changed, text)[0]
    levers, _ = find_fit(changed, facts, matrix, configs)
    found = overrides_of(levers)
    result = plan_run(workload, facts, matrix, (*changes, *found), configs)
    prices = "; ".join(dict.fromkeys(lever.price for lever in levers))
    notes: Tuple[str, ...]
    if found:
        notes = (f"To paste: {' '.join(found)}", f"Price: {prices}.")
    elif result.plan.verdict == "fits":
        notes = ("Nothing has to be changed.",)
    else:
        notes = ("No setting was found that helps without shorter texts.",)
    return result._replace(
        plan=result.plan._replace(notes=(*notes, *result.plan.notes)),
    )


def _gated(plan: MemoryPlan, workload: Workload) -> MemoryPlan:
    """Return a plan that is not sure of what does not fit where something of the run was not
    understood: it may make it smaller.
    """
    foreign = (problem.key for problem in workload.problems if problem.kind in _NOT_READ)
    unread = tuple(dict.fromkeys((*foreign, *workload.unread)))
    if not unread:
        return plan
    return plan._replace(
        pools=tuple(pool._replace(unread=unread) for pool in plan.pools),
        cache=None if plan.cache is None else plan.cache._replace(unread=unread),
    )
