"""AReaL: its YAML alone, or an example's script with ``--config FILE.yaml key=value``. A backend is
written ``fsdp:d4p1t1``: the engine, then data, pipeline, tensor, context and expert parallelism
(areal/api/alloc_mode.py).
"""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Tuple

from ...model.evidence import Fact, Known, Unknown
from ...model.layout import Layout
from .adapter import Run
from .configuration import Fields, boolean, decimal, integer, named_types, text_of
from .hf_trainer import entry_source, file_settings, imports
from .trainer import Launch, Trainer, TrainerReading, options_and_overrides

__all__ = ["ADAPTER"]

_BACKENDS = {"fsdp": "fsdp2", "archon": "fsdp2", "megatron": "megatron"}
_ALLOCATION = re.compile(r"(?:(\w+):)?((?:[a-z]\d+)+)")
_WAY = re.compile(r"([a-z])(\d+)")
#: Sections that no other framework's file has together.
_OWN = ("cluster.n_gpus_per_node", "train_dataset.path")
_FIELDS: Fields = {
    "actor.model": (("actor.path", "model.path"), text_of),
    "nodes": (("cluster.n_nodes",), integer),
    "gpus_per_node": (("cluster.n_gpus_per_node",), integer),
    "actor.gradient_checkpointing": (
        ("actor.gradient_checkpointing", "model.gradient_checkpointing"),
        boolean,
    ),
    "actor.max_tokens_per_gpu": (
        ("actor.mb_spec.max_tokens_per_mb", "model.mb_spec.max_tokens_per_mb"),
        integer,
    ),
    "data.train_batch_size": (("train_dataset.batch_size",), integer),
    "data.max_prompt_length": (("train_dataset.max_length",), integer),
}
_ROLLOUT: Fields = {
    "rollout.n": (("gconfig.n_samples",), integer),
    "data.max_response_length": (("gconfig.max_new_tokens",), integer),
}
_DEFAULTS: Mapping[str, Any] = {
    "actor.kl_ctl": 0.1,
    "actor.use_lora": False,
    "actor.dtype": "bfloat16",
    "model.dtype": "bfloat16",
    "gconfig.n_samples": 1,
    "sglang.mem_fraction_static": 0.9,
    "vllm.gpu_memory_utilization": 0.9,
    "actor.gradient_checkpointing": False,
    "model.gradient_checkpointing": False,
    "rollout.backend": None,
    "actor.backend": None,
    "model.backend": None,
    "allocation_mode": None,
}


class _Areal(Trainer):
    name = "areal"
    attention = ("actor.attn_impl", "attn_impl")
    layout = Layout(files=("areal/api/cli_args.py",))
    source = "AReaL"
    defaults = _DEFAULTS
    fields = _FIELDS

    def owns(self, run: Run) -> bool:
        """By a script that imports it, or by a file with its sections."""
        if run.entry:
            return run.entry.endswith(".py") and imports(entry_source(run), "areal")
        keys = {setting.key for setting in run.files}
        return all(key in keys for key in _OWN)

    def launch(self, run: Run) -> Launch:
        """Return overrides over the file of ``--config``."""
        if not run.entry:
            return Launch((), run.files)
        options, settings = options_and_overrides(run)
        name = next((str(option.value) for option in options if option.key == "config"), "")
        files = file_settings(run, name) if name else []
        return Launch(settings, files, "" if files else name or "--config")

    def derive(self, reading: TrainerReading) -> None:
        """Say which GPUs train and which generate."""
        generates = any(key.startswith("gconfig.") for key in reading.configuration.given)
        prefers = isinstance(reading.get("beta"), Known) or "dpo" in reading.run.name
        kind = "grpo" if generates else "dpo" if prefers else "sft"
        reading.put("algorithm", kind)
        if reading.number("gpus_per_node") == 0:
            why = "it runs without a GPU (n_gpus_per_node: 0)"
            reading.fields["gpus_per_node"] = Unknown(why)
        trainer, engine = _backends(reading)
        ways = _ways(trainer[1])
        strategy = _BACKENDS.get(trainer[0] or "fsdp", "") if trainer[1] else ""
        _derive_cuts(reading, strategy, ways)
        section = "actor" if generates or "actor.path" in reading.configuration.given else "model"
        _derive_types(reading, section, strategy)
        if generates:
            _derive_rollout(reading, engine, ways)
        _derive_reference(reading, generates=generates)
        _derive_critic(reading)


def _derive_cuts(reading: TrainerReading, strategy: str, ways: Mapping[str, int]) -> None:
    reading.fields["actor.strategy"] = (
        Known(strategy, reading.code) if strategy else Unknown("no backend is given for the actor")
    )
    for letter, field in (("t", "tensor"), ("p", "pipeline"), ("c", "sequence")):
        reading.put(f"actor.{field}_parallel", ways.get(letter, 1))
    if ways.get("e", 1) > 1:
        reading.put("actor.expert_parallel", ways["e"])


def _derive_reference(reading: TrainerReading, *, generates: bool) -> None:
    """A reference is held where one is named and, in reinforcement, where a KL term asks for it."""
    reference = reading.get("ref.path", convert=text_of)
    named = isinstance(reference, Known)
    fields = reading.fields
    fields["ref.model"] = reference if named else fields["actor.model"]
    fields["ref.strategy"] = fields["actor.strategy"]
    penalty = reading.value("actor.kl_ctl", convert=decimal)
    reading.put("ref.present", named and (not generates or penalty != 0))


def _derive_critic(reading: TrainerReading) -> None:
    if not any(key.startswith("critic.") for key in reading.configuration.given):
        return
    reading.put("critic.present", True)
    reading.fields["critic.model"] = reading.get("critic.path", convert=text_of)
    for name in ("strategy", "max_tokens_per_gpu", "gradient_checkpointing"):
        reading.fields[f"critic.{name}"] = reading.fields[f"actor.{name}"]


def _backends(reading: TrainerReading) -> Tuple[Tuple[str, str], Tuple[str, str]]:
    """Return backend and ways of the trainer, and of the engine."""
    own = reading.get("actor.backend", "model.backend", convert=text_of)
    engine = reading.get("rollout.backend", convert=text_of)
    texts = [fact.value if isinstance(fact, Known) else "" for fact in (own, engine)]
    whole = reading.get("allocation_mode", convert=text_of)
    if isinstance(whole, Known) and not texts[0]:
        first, _, second = whole.value.partition("+")
        texts = [second or first, first if second else ""]
    parsed = [_ALLOCATION.match(text) for text in texts]
    (trainer, server) = ((m.group(1) or "", m.group(2)) if m else ("", "") for m in parsed)
    return trainer, server


def _ways(text: str) -> Dict[str, int]:
    return {letter: int(count) for letter, count in _WAY.findall(text)}


def _derive_types(reading: TrainerReading, section: str, strategy: str) -> None:
    dtype = reading.get(f"{section}.dtype", convert=text_of)
    if strategy != "megatron":
        # FSDP keeps fp32 weights or those in dtype, by the engine's version.
        bounds: Fact[Any] = Unknown("fp32 or dtype, by the version of the engine")
        reading.fields["actor.param_dtype"] = (
            named_types(dtype)
            if reading.value(f"{section}.optimizer.type") == "adam_bf16"
            else bounds
        )
    if reading.value(f"{section}.optimizer.type") == "adam":
        reading.put("actor.optimizer", "adamw")
    reading.consider(f"{section}.dtype")
    for name in ("offload_params", "offload_optimizer"):
        reading.put(f"actor.{name}", False)
    lora = reading.value(f"{section}.use_lora", convert=boolean, default=False)
    rank = reading.get(f"{section}.lora_rank", convert=integer)
    reading.fields["actor.lora_rank"] = rank if lora else Known(0, reading.code)


def _derive_rollout(
    reading: TrainerReading, engine: Tuple[str, str], trainer: Mapping[str, int]
) -> None:
    fields, keys = reading.configuration.read(_ROLLOUT, {})
    reading.fields.update(fields)
    reading.keys.update(keys)
    name, text = engine
    ways = _ways(text)
    if name not in ("sglang", "vllm"):
        reading.fields["rollout.engine"] = Unknown("no backend is given for the rollout")
        return
    reading.put("rollout.engine", name)
    share = "sglang.mem_fraction_static" if name == "sglang" else "vllm.gpu_memory_utilization"
    length = "sglang.context_length" if name == "sglang" else "vllm.max_model_len"
    reading.fields["rollout.gpu_memory_utilization"] = reading.get(share, convert=decimal)
    reading.fields["rollout.max_model_len"] = reading.get(length, convert=integer)
    reading.keys["rollout.gpu_memory_utilization"] = share
    reading.put("rollout.tensor_parallel", ways.get("t", 1))
    reading.put("rollout.pipeline_parallel", ways.get("p", 1))
    reading.put("rollout.utilization_of", "total")
    reading.put("rollout.cpu_weights", False)
    reading.put("rollout.sleep_level", 0)
    # Each has GPUs of its own, one behind the other.
    reading.put("colocated", False)
    reading.put("rollout.engines", ways.get("d", 1))
    each, total = reading.number("gpus_per_node"), 1
    for letter in "dpct":
        total *= trainer.get(letter, 1)
    if each:
        nodes = max(1, -(-total // each))
        for role in ("actor", "ref", "critic"):
            reading.put(f"{role}.nodes", nodes)
            reading.put(f"{role}.gpus_per_node", min(total, each))


ADAPTER = _Areal()
