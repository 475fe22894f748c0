"""``plan --fit``: settings with which a run fits, each found by trying the levers on the plan.

One lever after the other is taken, the cheapest that solves most first, until nothing is short or
nothing helps. Texts are not made shorter: that changes what is trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence, Set, Tuple

from ...errors import InputError
from ...model.facts import Facts
from ...model.memory_plan import VERDICTS, Lever, MemoryPlan
from ...model.workload import Workload
from .estimate import make_plan, sizes_of
from .levers import find_levers
from .setting_change import changed_by

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["find_fit", "overrides_of"]

_MOST_STEPS = 12
_LENGTHS = frozenset(
    ["data.max_prompt_length", "data.max_response_length", "rollout.max_model_len"]
)


def find_fit(
    workload: Workload,
    facts: Optional[Facts],
    matrix: Matrix,
    configs: Mapping[str, Mapping[str, object]] = {},
) -> Tuple[Tuple[Lever, ...], MemoryPlan]:
    """Return the levers that were taken, and the plan with all of them."""
    taken: List[Lever] = []
    sizes = sizes_of(workload, matrix, configs)
    plan = make_plan(workload, sizes, facts, matrix)
    refused: Set[Tuple[str, ...]] = set()
    for _ in range(_MOST_STEPS):
        if plan.verdict == "fits":
            break
        step = _best(find_levers(workload, sizes, plan, facts, matrix), refused)
        if step is None:
            break
        refused.add(step.settings)
        try:
            changed = changed_by(workload, step.settings)
        except InputError:
            continue  # a switch that is there or is not has no form with a value
        after = make_plan(changed, sizes, facts, matrix)
        if after.verdict == "cannot tell" != plan.verdict:
            continue
        workload, plan = changed, after
        taken.append(step)
    return tuple(taken), plan


def overrides_of(levers: Sequence[Lever]) -> Tuple[str, ...]:
    """Return the settings of levers to paste; of a key that was set twice the last."""
    settings = (setting for lever in levers for setting in lever.settings)
    return tuple({setting.partition("=")[0]: setting for setting in settings}.values())


def _best(levers: Sequence[Lever], refused: Set[Tuple[str, ...]]) -> Optional[Lever]:
    """Return the next lever: none that was tried in the same form, none that shortens texts."""
    open_to = [
        lever
        for lever in levers
        if not _LENGTHS.intersection(lever.fields) and lever.settings not in refused
    ]
    return min(
        open_to,
        key=lambda lever: (VERDICTS.index(lever.verdict), lever.cost, lever.after[1]),
        default=None,
    )
