"""Which one setting that a run does not state would narrow its bounds most: each is tried on the
plan itself, with every value that it may have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...matrix.model_sizes import ModelSize
from ...model.evidence import Absent, Evidence, Known
from ...model.facts import Facts
from ...model.memory_plan import MemoryPlan, Pool, Unstated
from ...model.sizes import GIB
from ...model.workload import Workload
from .estimate import make_plan
from .inputs import Inputs
from .setting_change import setting_text

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["with_unstated"]

#: What a setting may be, by its field; of a role by what stands behind the dot. Lengths, batches
#: and ranks have no such list: what they lack is said as a question.
_VALUES: Mapping[str, Tuple[Any, ...]] = {
    "gradient_checkpointing": (True, False),
    "offload_params": (True, False),
    "offload_optimizer": (True, False),
    "cpu_offload": (True, False),
    "param_dtype": ("bf16", "fp32"),
    "grad_dtype": ("bf16", "fp32"),
    "optimizer": ("adamw", "adamw_bf16", "adamw_8bit"),
    "lora_rank": (16, 0),
    "rank0_init": (True, False),
    "padding_free": (True, False),
    "loss_chunks": (8, 1),
    "attention": ("fused", "eager"),
    "sequence_split": (True, False),
    "activation_offload": (True, False),
    "checkpoint.save_freq": (0, 100),
    "checkpoint.gather": ("sharded", "full"),
    "checkpoint.model_only": (True, False),
    "rollout.v1": (True, False),
    "rollout.swap_space": (0, 4 * GIB),
    "rollout.sleep_level": (1, 0),
    "rollout.use_shm": (False, True),
    "data.multimodal": (False, True),
}
#: What a user can say of a run in any framework. The others count where the framework has a word
#: for them: what its code does by itself nobody can state.
_PLAIN = frozenset(
    [
        "gradient_checkpointing",
        "offload_params",
        "offload_optimizer",
        "cpu_offload",
        "param_dtype",
        "optimizer",
        "lora_rank",
        "rollout.v1",
        "data.multimodal",
    ]
)
#: What a share of the width is worth naming.
_LEAST = 0.1


def with_unstated(
    plan: MemoryPlan,
    workload: Workload,
    sizes: Mapping[str, ModelSize],
    facts: Optional[Facts],
    matrix: Matrix,
) -> MemoryPlan:
    """Return a plan whose pools name what would narrow them most, where a limit lies inside of
    their bounds or nothing can be told of them.
    """
    open_pools = [pool for pool in plan.pools if pool.verdict in ("tight", "cannot tell")]
    if not open_pools:
        return plan
    tried = list(_tried(workload, sizes, facts, matrix))
    return plan._replace(
        pools=tuple(
            pool._replace(unstated=_widest(pool, tried)) if pool in open_pools else pool
            for pool in plan.pools
        )
    )


class _Trial:
    """One field, and the plans that its values make."""

    def __init__(self, field: str, plans: Sequence[Tuple[str, MemoryPlan]]) -> None:
        self.field = field
        self.plans = plans

    def ranges(self, pool: Pool) -> List[Tuple[str, int, int]]:
        """Return the bounds of a pool by setting; none where a plan has no such pool."""
        ranges = []
        for text, plan in self.plans:
            same = [
                one for one in plan.pools if one.name == pool.name and one.subject == pool.subject
            ]
            ranges += [(text, one.low, one.high) for one in same]
        return ranges if len(ranges) == len(self.plans) else []


def _tried(
    workload: Workload, sizes: Mapping[str, ModelSize], facts: Optional[Facts], matrix: Matrix
) -> Iterator[_Trial]:
    inputs = Inputs(workload, sizes, facts)
    trained = [role.name for role in inputs.roles() if role.trainable]
    place = Evidence("tried")
    for name, values in _VALUES.items():
        for field in [name] if "." in name else [f"{role}.{name}" for role in trained]:
            fact = workload.get(field)
            is_word = name in _PLAIN or bool(workload.keys.get(field))
            if isinstance(fact, (Known, Absent)) or not is_word:
                continue
            changed = [workload.updated({field: Known(value, place)}) for value in values]
            texts = [setting_text(workload, field, value) for value in values]
            yield _Trial(
                field,
                [(text, make_plan(one, sizes, facts, matrix)) for text, one in zip(texts, changed)],
            )


def _widest(pool: Pool, trials: Sequence[_Trial]) -> Optional[Unstated]:
    """Return the setting after which the bounds of a pool are closest, on the average of its
    values.
    """
    width = pool.high - pool.low
    best: Optional[Unstated] = None
    gain = _LEAST * width
    for trial in trials:
        ranges = trial.ranges(pool)
        left = sum(high - low for _, low, high in ranges) / len(ranges) if ranges else width
        if width - left > gain:
            best, gain = Unstated(trial.field, tuple(ranges)), width - left
    return best
