"""Options of Megatron-LM as its launchers share them: how a model is cut, what is recomputed, where
the optimizer lies. Source: megatron/training/arguments.py.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ...model.evidence import Known, Unknown
from .configuration import Fields, boolean, integer, text_of
from .trainer import TrainerReading

__all__ = ["CUT_DEFAULTS", "OPTIMIZER_FIELDS", "derive_megatron"]

OPTIMIZER_FIELDS: Fields = {
    "actor.tensor_parallel": (("tensor_model_parallel_size",), integer),
    "actor.pipeline_parallel": (("pipeline_model_parallel_size",), integer),
    "actor.sequence_parallel": (("context_parallel_size",), integer),
    "actor.sequence_split": (("sequence_parallel",), boolean),
    "actor.micro_batch": (("micro_batch_size",), integer),
    "actor.host_optimizer": (("optimizer_cpu_offload",), boolean),
}
CUT_DEFAULTS: Mapping[str, Any] = {
    "micro_batch_size": 1,
    "tensor_model_parallel_size": 1,
    "pipeline_model_parallel_size": 1,
    "context_parallel_size": 1,
    "expert_model_parallel_size": 1,
    "expert_tensor_parallel_size": None,
    "sequence_parallel": False,
    "optimizer_cpu_offload": False,
    "optimizer_offload_fraction": 1.0,
    "use_precision_aware_optimizer": False,
    "recompute_granularity": None,
    "use_megatron_fsdp": False,
}


def derive_megatron(reading: TrainerReading) -> None:
    """Fill in what more than one of the options decides."""
    for field, (names, convert) in OPTIMIZER_FIELDS.items():
        reading.fields[field] = reading.get(*names, convert=convert)
        reading.keys[field] = names[0]
    reading.put("actor.strategy", "megatron")
    for name in ("offload_params", "offload_optimizer"):
        reading.fields.setdefault(f"actor.{name}", Known(False, reading.code))
    sharded = reading.value("use_megatron_fsdp", convert=boolean, default=False)
    if sharded or reading.value("use_torch_fsdp2", convert=boolean, default=False):
        reading.put("actor.strategy", "fsdp2")
    alone = reading.get("no_save_optim", convert=boolean)
    if isinstance(alone, Known):
        reading.fields["checkpoint.model_only"] = alone
        reading.keys["checkpoint.model_only"] = "no_save_optim"
    _derive_experts(reading)
    _derive_recomputation(reading)
    _derive_optimizer(reading)


def _derive_experts(reading: TrainerReading) -> None:
    experts = reading.value("expert_model_parallel_size", convert=integer)
    each = reading.value("expert_tensor_parallel_size", convert=integer)
    tensor = reading.number("actor.tensor_parallel")
    if experts is not None and tensor is not None:
        # Without a size of their own experts are cut as the rest is.
        reading.put("actor.expert_parallel", experts * (each or tensor))


def _derive_recomputation(reading: TrainerReading) -> None:
    granularity = reading.get("recompute_granularity", convert=text_of)
    kind: Optional[str] = granularity.value if isinstance(granularity, Known) else None
    layers = reading.get("recompute_num_layers", convert=integer)
    method = reading.value("recompute_method", convert=text_of)
    whole = method != "block" and (not isinstance(layers, Known) or layers.value == 1)
    if kind == "full" and whole:
        reading.put("actor.gradient_checkpointing", True, granularity)
    elif kind in ("full", "selective"):
        reading.fields["actor.gradient_checkpointing"] = Unknown("part of it is recomputed")
    elif (
        isinstance(granularity, Known) or "recompute_activations" not in reading.configuration.given
    ):
        reading.put("actor.gradient_checkpointing", False, granularity)


def _derive_optimizer(reading: TrainerReading) -> None:
    precise = reading.value("use_precision_aware_optimizer", convert=boolean, default=False)
    named = reading.value("optimizer", convert=text_of, default="adam")
    away = reading.get("optimizer_cpu_offload", convert=boolean)
    part = reading.value("optimizer_offload_fraction", default=1.0)
    if not precise and named == "adam":
        reading.put("actor.optimizer", "adamw")
    if isinstance(away, Known) and away.value and part != 1.0:
        reading.fields["actor.host_optimizer"] = Unknown(f"{part} of it is on the host")
    spread = reading.value("use_distributed_optimizer", convert=boolean)
    cut = (reading.number("actor.tensor_parallel") or 1) * (
        reading.number("actor.pipeline_parallel") or 1
    )
    if spread is False:
        reading.put("actor.shard_ranks", cut)
