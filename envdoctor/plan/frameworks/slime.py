"""slime: ``train.py`` and ``train_async.py``, Megatron's options beside those of its rollout, which
SGLang serves (slime/utils/arguments.py).
"""

from __future__ import annotations

import re
from typing import Any, Mapping

from ...model.evidence import Known, Unknown
from ...model.layout import Layout
from .adapter import Run
from .configuration import Fields, boolean, decimal, integer, text_of
from .hf_trainer import entry_source, imports
from .megatron_options import CUT_DEFAULTS, derive_megatron
from .settings import flags
from .trainer import Trainer, TrainerReading

__all__ = ["ADAPTER"]

_ENTRY = re.compile(r"(?:.*/)?train(?:_async)?\.py")
#: Options that no other trainer has.
_OWN = frozenset(["rollout_num_gpus_per_engine", "rollout_batch_size", "hf_checkpoint"])
_SWITCHES = (
    "colocate",
    "use_dynamic_batch_size",
    "sequence_parallel",
    "optimizer_cpu_offload",
    "use_precision_aware_optimizer",
    "use_distributed_optimizer",
    "accumulate_allreduce_grads_in_fp32",
    "use_kl_loss",
    "offload",
    "debug_rollout_only",
    "debug_train_only",
)
_FIELDS: Fields = {
    "actor.model": (("hf_checkpoint",), text_of),
    "actor.nodes": (("actor_num_nodes",), integer),
    "actor.gpus_per_node": (("actor_num_gpus_per_node",), integer),
    "rollout.tensor_parallel": (("rollout_num_gpus_per_engine",), integer),
    "rollout.gpu_memory_utilization": (("sglang_mem_fraction_static",), decimal),
    "rollout.max_model_len": (
        ("sglang_context_length", "rollout_max_context_len"),
        integer,
    ),
    "rollout.n": (("n_samples_per_prompt",), integer),
    "data.train_batch_size": (("rollout_batch_size",), integer),
    "data.max_prompt_length": (("rollout_max_prompt_len",), integer),
    "data.max_response_length": (("rollout_max_response_len",), integer),
    "checkpoint.save_freq": (("save_interval",), integer),
}
_DEFAULTS: Mapping[str, Any] = {
    **CUT_DEFAULTS,
    "use_distributed_optimizer": True,
    "actor_num_nodes": 1,
    "actor_num_gpus_per_node": 8,
    "num_gpus_per_node": 8,
    "rollout_num_gpus_per_engine": 1,
    "rollout_num_gpus": None,
    "n_samples_per_prompt": 1,
    "colocate": False,
    "use_dynamic_batch_size": False,
    "debug_train_only": False,
    "use_kl_loss": False,
    "kl_coef": 0.0,
    "kl_loss_coef": 0.0,
    "ref_load": None,
    "train_backend": "megatron",
    "advantage_estimator": "grpo",
}


class _Slime(Trainer):
    name = "slime"
    attention = ("attention_backend",)
    layout = Layout(files=("slime/ray/placement_group.py", "slime/utils/arguments.py"))
    source = "slime"
    option = "--"
    defaults = _DEFAULTS
    fields = _FIELDS
    switches = _SWITCHES

    def owns(self, run: Run) -> bool:
        """By a script that imports it; where that is not at hand, by options that it alone has."""
        if _ENTRY.fullmatch(run.entry) is None:
            return False
        if imports(entry_source(run), "slime"):
            return True
        return len(_OWN & {setting.key for setting in flags(run.arguments, run.name)[0]}) > 1

    def derive(self, reading: TrainerReading) -> None:
        """Say how trainer and engines share the GPUs, and what is offloaded between phases."""
        reading.put("algorithm", "grpo")
        fields = reading.fields
        if reading.value("advantage_estimator", convert=text_of) == "ppo":
            reading.put("algorithm", "ppo")
            reading.put("critic.present", True)
            fields["critic.model"] = fields["actor.model"]
        derive_megatron(reading)
        backend = reading.get("train_backend", convert=text_of)
        if isinstance(backend, Known) and backend.value == "fsdp":
            reading.put("actor.strategy", "fsdp2", backend)
        for name in ("nodes", "gpus_per_node"):
            fields[name] = fields[f"actor.{name}"]
            fields[f"ref.{name}"] = fields[f"critic.{name}"] = fields[f"actor.{name}"]
        summed = reading.value("accumulate_allreduce_grads_in_fp32", convert=boolean, default=False)
        reading.put("actor.grad_dtype", "fp32" if summed else "bf16")
        if reading.value("use_dynamic_batch_size", convert=boolean):
            fields["actor.max_tokens_per_gpu"] = reading.get("max_tokens_per_gpu", convert=integer)
            reading.keys["actor.max_tokens_per_gpu"] = "max_tokens_per_gpu"
        together = reading.value("colocate", convert=boolean, default=False)
        reading.put("colocated", together)
        for name in ("offload_params", "offload_optimizer"):
            reading.put(f"actor.{name}", bool(together))
        if reading.value("debug_train_only", convert=boolean):
            # ray/placement_group.py: all GPUs are the trainer's, and no engine is started.
            reading.put("algorithm", "sft")
            reading.put("colocated", True)
        else:
            _derive_engine(reading, together=bool(together))
        # The reference's weights lie on the host and are exchanged with the actor's.
        fields["ref.model"], fields["ref.strategy"] = (
            fields["actor.model"],
            fields["actor.strategy"],
        )
        loaded = reading.get("ref_load", convert=text_of)
        asked = reading.value("use_kl_loss", convert=boolean) or reading.value("kl_coef")
        reading.put("ref.present", bool(asked) and isinstance(loaded, Known))
        reading.put("ref.cpu_offload", True)
        parallel = ("tensor_parallel", "pipeline_parallel", "expert_parallel")
        batch = ("strategy", "max_tokens_per_gpu", "micro_batch", "gradient_checkpointing")
        for role, names in (("ref", parallel), ("critic", (*parallel, *batch))):
            for name in names:
                if f"actor.{name}" in fields:
                    fields[f"{role}.{name}"] = fields[f"actor.{name}"]


def _derive_engine(reading: TrainerReading, *, together: bool) -> None:
    reading.put("rollout.engine", "sglang")
    reading.put("rollout.utilization_of", "total")
    reading.put("rollout.cpu_weights", False)
    reading.put("rollout.sleep_level", 1 if together else 0)
    asked = reading.get("rollout_num_gpus", convert=integer)
    tensor = reading.number("rollout.tensor_parallel")
    if not together and isinstance(asked, Known) and tensor:
        reading.put("rollout.engines", max(asked.value // tensor, 1), asked)
    elif not together:
        reading.fields["rollout.engines"] = Unknown("--rollout-num-gpus is not given")


ADAPTER = _Slime()
