"""Numbers of a run that have to divide those of its model: attention heads among the GPUs that
share a layer, or a sequence.
"""

from __future__ import annotations

from math import isqrt
from typing import Iterator, Tuple

from ...model.evidence import Evidence
from ...model.workload import ROLES, ConfigurationProblem
from .inputs import Inputs

__all__ = ["largest_divisor", "split_problems"]

#: What the heads are split by: the field, the role whose model it is, and who refuses another
#: number (vllm/config/model.py, verify_with_parallel_config; megatron/core/transformer/
#: transformer_config.py; verl/models/transformers/monkey_patch.py, apply_monkey_patch).
_SPLITS: Tuple[Tuple[str, str, str], ...] = (
    ("rollout.tensor_parallel", "actor", "the engine"),
    *(
        (f"{role}.{way}_parallel", role, "the trainer")
        for role in ROLES
        for way in ("tensor", "sequence")
    ),
)

_MOST_TRIED = 10**5  # divisors of one number


def split_problems(inputs: Inputs) -> Iterator[ConfigurationProblem]:
    """Yield the splits that the heads of a model do not allow; sure where its own config.json is
    at hand, since a fine-tune of a family may have other heads.
    """
    for field, role, who in _SPLITS:
        ways, size = inputs.get(field), inputs.sizes.get(role)
        if not ways or size is None or not size.heads or inputs.get(f"{role}.present") is False:
            continue
        if size.heads % int(ways) == 0 or not _is_refused(inputs, field):
            continue
        place = inputs.workload.place(field) or Evidence("")
        certain = size.own and not inputs.workload.unread
        yield ConfigurationProblem(
            "impossible-value",
            place,
            inputs.workload.key_of(field),
            f"{size.heads} attention heads of {size.name} cannot be split over {ways} GPUs, as "
            f"{who} asks",
            f"{inputs.workload.key_of(field)}={largest_divisor(size.shared_heads, int(ways))}",
            certain,
        )


def largest_divisor(number: int, limit: int) -> int:
    """Return the largest divisor of a number that is below a limit, of a number above 10^10 one
    that is found at once: a script may ask for any number of GPUs or sequences.
    """
    small = (one for one in range(1, min(isqrt(number), _MOST_TRIED) + 1) if number % one == 0)
    pairs = (divisor for one in small for divisor in (one, number // one))
    return max((divisor for divisor in pairs if divisor < limit), default=1)


def _is_refused(inputs: Inputs, field: str) -> bool:
    """Tell whether who splits asks for whole heads: vllm, Megatron, and Ulysses with FSDP do."""
    role, _, way = field.partition(".")
    if role == "rollout":
        return bool(inputs.get("rollout.engine") == "vllm")
    strategy = str(inputs.get(f"{role}.strategy", ""))
    return strategy == "megatron" if way == "tensor_parallel" else strategy.startswith("fsdp")
