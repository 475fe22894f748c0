"""SkyRL: ``python -m skyrl.train.entrypoints.main_base key=value``, its fine-tuning
(``skyrl.train.main_sft``), and scripts of one's own that start its trainers. Keys and defaults are
those of its dataclasses (skyrl/train/config), before them of one YAML
(skyrl_train/config/ppo_base_config.yaml).
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Mapping, Sequence, Tuple

from ...errors import InputError
from ...model.evidence import Absent, Fact, Known, Unknown
from ...model.layout import Layout
from .adapter import Run, read_small
from .configuration import Fields, at_least_zero, boolean, decimal, integer, paths_of, text_of
from .declared import nested_defaults
from .hf_trainer import entry_source
from .hydra import entry_file
from .key_tables import KeyTable, own_table
from .settings import MAX_CONFIG_BYTES, overrides, read_config
from .trainer import Launch, Trainer, TrainerReading
from .verl_engine import quantized_as

__all__ = ["ADAPTER"]

_ENTRY = re.compile(
    r"skyrl(?:_train|\.train)\.(?:entrypoints\.main_base|main_sft)"
    r"|(?:.*/)?skyrl(?:_train|/train)/(?:entrypoints/main_base|main_sft)\.py"
)
#: How a script of one's own takes up the trainers.
_STARTS = re.compile(
    r"^\s*from\s+skyrl(?:_train|\.train)\.(?:entrypoints\.main_base|main_sft|sft_trainer"
    r"|config\.sft_config)\s+import\b",
    re.MULTILINE,
)
#: What such a script does in place of training, or of these trainers.
_REPLACES = re.compile(r"^\s+(?:async\s+)?def\s+(?:run|_setup_trainer)\(", re.MULTILINE)
_TUNES = re.compile(r"^\s*from\s+skyrl\.train\.(?:main_sft|sft_trainer|config\.sft_config)\b", re.M)
_CONFIGURATIONS = (
    ("skyrl.train.config.sft_config", "SFTConfig"),
    ("skyrl.train.config.config", "SkyRLTrainConfig"),
)
_OLD = "skyrl_train/config/ppo_base_config.yaml"
_ENGINE = "generator.inference_engine"


def _engine(name: str, old: str = "") -> Tuple[str, ...]:
    """Return the spellings of a setting of the engine, the second of before there were classes."""
    return (f"{_ENGINE}.{name}", f"generator.{old or name}")


def _passed(name: str) -> Tuple[str, ...]:
    return _engine(f"engine_init_kwargs.{name}")


_PLACED: Fields = {
    f"{role}.{name}": ((f"trainer.placement.{word}_num_{name}",), integer)
    for role, word in (("actor", "policy"), ("critic", "critic"), ("ref", "ref"))
    for name in ("nodes", "gpus_per_node")
}
_FIELDS: Fields = {
    **_PLACED,
    "actor.model": (("trainer.policy.model.path",), text_of),
    "critic.model": (("trainer.critic.model.path",), text_of),
    "colocated": (("trainer.placement.colocate_all",), boolean),
    "actor.gradient_checkpointing": (("trainer.gradient_checkpointing",), boolean),
    "actor.micro_batch": (("trainer.micro_train_batch_size_per_gpu",), integer),
    "actor.scored_batch": (("trainer.micro_forward_batch_size_per_gpu",), integer),
    "actor.mini_batch": (("trainer.policy_mini_batch_size",), integer),
    "critic.mini_batch": (("trainer.critic_mini_batch_size",), integer),
    "actor.padding_free": (
        ("trainer.remove_microbatch_padding", "trainer.use_sample_packing"),
        boolean,
    ),
    "rollout.n": (("generator.n_samples_per_prompt",), integer),
    "rollout.tensor_parallel": (
        _engine("tensor_parallel_size", "inference_engine_tensor_parallel_size"),
        integer,
    ),
    "rollout.pipeline_parallel": (
        _engine("pipeline_parallel_size", "inference_engine_pipeline_parallel_size"),
        integer,
    ),
    "rollout.gpu_memory_utilization": (_engine("gpu_memory_utilization"), decimal),
    "rollout.max_num_seqs": (_engine("max_num_seqs"), integer),
    "rollout.max_num_batched_tokens": (_engine("max_num_batched_tokens"), integer),
    "rollout.enforce_eager": (_engine("enforce_eager"), boolean),
    "rollout.max_model_len": (_passed("max_model_len"), integer),
    "rollout.quantization": (_passed("quantization"), quantized_as),
    "rollout.kv_dtype": (_passed("kv_cache_dtype"), text_of),
    "data.max_response_length": (("generator.sampling_params.max_generate_length",), integer),
    "data.train_batch_size": (("trainer.train_batch_size",), integer),
    "data.files": (("data.train_data",), paths_of),
    "checkpoint.save_freq": (("trainer.ckpt_interval",), integer),
    "checkpoint.limit": (("trainer.max_ckpts_to_keep",), integer),
    "checkpoint.folder": (("trainer.ckpt_path",), text_of),
}
_TUNING: Fields = {
    "nodes": (("placement.num_nodes",), integer),
    "gpus_per_node": (("placement.num_gpus_per_node",), integer),
    "actor.model": (("model.path",), text_of),
    "actor.micro_batch": (("micro_train_batch_size_per_gpu",), integer),
    "actor.mini_batch": (("batch_size",), integer),
    "actor.padding_free": (("remove_microbatch_padding", "use_sample_packing"), boolean),
    "data.max_length": (("max_length",), integer),
    "data.files": (("train_datasets", "dataset_name"), paths_of),
    "data.dataloader_workers": (("dataloader_num_workers",), integer),
    "checkpoint.save_freq": (("ckpt_interval",), integer),
    "checkpoint.limit": (("max_ckpts_to_keep",), integer),
    "checkpoint.folder": (("ckpt_path",), text_of),
}
#: Where neither a checkout nor a command says them, for a section of a trained model
#: (skyrl/train/config/config.py@a9564572).
_OF_MODEL: Mapping[str, Any] = {
    "sequence_parallel_size": 1,
    "fsdp_config.cpu_offload": False,
    "fsdp_config.reshard_after_forward": True,
    "fsdp_config.fsdp_size": -1,
    "fsdp_config.mixed_precision": None,
    "megatron_config.tensor_model_parallel_size": 1,
    "megatron_config.pipeline_model_parallel_size": 1,
    "megatron_config.context_parallel_size": 1,
    "megatron_config.expert_model_parallel_size": 1,
    "megatron_config.expert_tensor_parallel_size": None,
    "megatron_config.mtp_num_layers": None,
    "megatron_config.ddp_config.grad_reduce_in_fp32": True,
    "megatron_config.optimizer_config_kwargs.use_precision_aware_optimizer": False,
    "megatron_config.optimizer_config_kwargs.optimizer_cpu_offload": False,
    "megatron_config.optimizer_config_kwargs.optimizer_offload_fraction": 0.0,
    "megatron_config.transformer_config_kwargs.recompute_granularity": "full",
    "megatron_config.transformer_config_kwargs.recompute_method": "uniform",
    "megatron_config.transformer_config_kwargs.recompute_num_layers": 1,
    "model.lora.rank": 0,
}
#: Of its YAML and its dataclasses alike; what differs between them is not here.
_DEFAULTS: Mapping[str, Any] = {
    **{
        f"trainer.{section}.{key}": value
        for section in ("policy", "critic", "ref")
        for key, value in _OF_MODEL.items()
    },
    **_OF_MODEL,
    "trainer.placement.colocate_policy_ref": True,
    "trainer.critic.model.path": None,
    "trainer.algorithm.use_kl_in_reward": False,
    "trainer.max_tokens_per_microbatch": -1,
    "generator.max_turns": 1,
    "generator.max_input_length": None,
    f"{_ENGINE}.engine_init_kwargs.max_model_len": None,
    f"{_ENGINE}.engine_init_kwargs.quantization": None,
    f"{_ENGINE}.engine_init_kwargs.kv_cache_dtype": "auto",
}
#: Settings of both programs that lower nothing.
_CHANGES_NOTHING = (
    "environment.env_class",
    "trainer.eval_batch_size",
    "trainer.eval_interval",
    "trainer.eval_before_train",
    "trainer.update_epochs_per_batch",
    "trainer.hf_save_interval",
    "trainer.export_path",
    "generator.batched",
    "generator.eval_n_samples_per_prompt",
    *_engine("weight_sync_backend"),
    *_engine("enable_prefix_caching"),
    *_engine("vllm_v1_disable_multiproc"),
    *_engine("enable_http_endpoint"),
    *_engine("http_endpoint_port"),
    *_engine("http_endpoint_host"),
    *_engine("served_model_name"),
    *_engine("distributed_executor_backend"),
    "hf_save_interval",
    "export_path",
    "num_steps",
    "resume_from",
    "messages_key",
    "num_workers",
    "train_dataset_splits",
    "train_on_what",
)


class _SkyRl(Trainer):
    name = "skyrl"
    layout = Layout(files=("skyrl/train/config/config.py",))
    source = "SkyRL"
    defaults = _DEFAULTS

    def owns(self, run: Run) -> bool:
        """By its own programs, or by a script that takes up its trainers."""
        if _ENTRY.fullmatch(run.entry):
            return True
        source = entry_source(run)
        return bool(_STARTS.search(source)) and not _REPLACES.search(source)

    def fields_of(self, run: Run) -> Fields:
        """Return the settings of the program that is started."""
        return _TUNING if _tunes(run) else _FIELDS

    def table(self, run: Run) -> KeyTable:
        """Return what the sources beside the entry declare over what all of them have."""
        declared = _declared(run)
        where = f"{self.source} of this checkout" if declared else self.source
        return own_table(self.name, ("",), {**_DEFAULTS, **declared}, where)

    def launch(self, run: Run) -> Launch:
        """Return the overrides: there are neither options nor files."""
        return Launch(overrides(run.arguments, run.name))

    def derive(self, reading: TrainerReading) -> None:
        """Say what is trained, how it is spread, and what generates."""
        reading.consider(*_CHANGES_NOTHING)
        tunes = _tunes(reading.run)
        top = "" if tunes else "trainer."
        strategy = reading.get(f"{top}strategy", convert=text_of)
        section = "" if tunes else "trainer.policy."
        other = reading.get("trainer.override_entrypoint", convert=text_of)
        if isinstance(other, Known):
            strategy = Unknown(f"{other.value} trains in its place")
        _derive_state(reading, "actor", section, strategy)
        for field in ("save_freq", "limit"):
            name = f"checkpoint.{field}"
            reading.fields[name] = at_least_zero(reading.fields[name])
        reading.put("checkpoint.gather", "sharded")
        if tunes:
            _derive_tuning(reading)
            return
        reading.put("algorithm", "grpo")
        for name in ("nodes", "gpus_per_node"):
            reading.fields[name] = reading.fields[f"actor.{name}"]
            reading.keys[name] = reading.keys[f"actor.{name}"]
        _derive_critic(reading, strategy)
        _derive_reference(reading, strategy)
        _derive_placement(reading)
        _derive_lengths(reading)
        _derive_engine(reading)

    def doubts(self, reading: TrainerReading) -> Sequence[str]:
        """A script of one's own may set anything."""
        own = _ENTRY.fullmatch(reading.run.entry) is None
        return (f"what {reading.run.entry} sets itself",) if own else ()


def _tunes(run: Run) -> bool:
    if _ENTRY.fullmatch(run.entry):
        return "main_sft" in run.entry
    return bool(_TUNES.search(entry_source(run)))


def _declared(run: Run) -> Dict[str, Any]:
    """Return the defaults that the sources beside a run's entry declare."""
    entry = entry_file(run)
    root = entry[1] if entry is not None else ""
    root = run.checkout.folder if run.checkout is not None else root
    if not root:
        return {}
    module, name = _CONFIGURATIONS[0 if _tunes(run) else 1]
    values = nested_defaults(lambda one: _module(root, one), module, name)
    if values:
        return values
    text = read_small(os.path.join(root, _OLD), MAX_CONFIG_BYTES)
    try:
        return {one.key: one.value for one in read_config(text or "", os.path.basename(_OLD))}
    except InputError:
        return {}


def _module(root: str, name: str) -> str:
    path = os.path.join(root, *name.split("."))
    return read_small(f"{path}.py") or read_small(os.path.join(path, "__init__.py")) or ""


def _derive_state(reading: TrainerReading, role: str, section: str, strategy: Fact[Any]) -> None:
    """Fill in how one model is spread."""
    kind = strategy.value if isinstance(strategy, Known) else ""
    fields = reading.fields
    fields[f"{role}.strategy"] = strategy
    if kind == "megatron":
        _derive_megatron(reading, role, f"{section}megatron_config.")
    elif kind in ("fsdp", "fsdp2"):
        _derive_fsdp(reading, role, section)
    elif kind:
        fields[f"{role}.strategy"] = Unknown(f"nothing is known here of the strategy {kind!r}")
    fields[f"{role}.lora_rank"] = reading.get(f"{section}model.lora.rank", convert=integer)
    reading.keys[f"{role}.lora_rank"] = f"{section}model.lora.rank"


def _derive_fsdp(reading: TrainerReading, role: str, section: str) -> None:
    """What is trained is kept in fp32, a reference in bf16 (workers/fsdp/fsdp_worker.py)."""
    fields, prefix = reading.fields, f"{section}fsdp_config."
    fields[f"{role}.cpu_offload"] = reading.get(f"{prefix}cpu_offload", convert=boolean)
    fields[f"{role}.sequence_parallel"] = reading.get(
        f"{section}sequence_parallel_size", convert=integer
    )
    reading.keys[f"{role}.cpu_offload"] = f"{prefix}cpu_offload"
    reading.keys[f"{role}.sequence_parallel"] = f"{section}sequence_parallel_size"
    reading.put(f"{role}.param_dtype", "bf16" if role == "ref" else "fp32")
    if role != "ref":
        reading.put(f"{role}.optimizer", "adamw")
    resharded = reading.get(f"{prefix}reshard_after_forward", convert=boolean)
    if isinstance(resharded, Known):
        reading.put(f"{role}.keeps_gathered", not resharded.value, resharded)
    size = reading.get(f"{prefix}fsdp_size", convert=integer)
    if isinstance(size, Known) and size.value > 0:
        fields[f"{role}.shard_ranks"] = size


def _derive_megatron(reading: TrainerReading, role: str, prefix: str) -> None:
    """What Megatron is told, and what SkyRL switches on with it."""
    fields, keys = reading.fields, reading.keys
    for field, name in (
        ("tensor_parallel", "tensor_model_parallel_size"),
        ("pipeline_parallel", "pipeline_model_parallel_size"),
        ("sequence_parallel", "context_parallel_size"),
    ):
        fields[f"{role}.{field}"] = reading.get(f"{prefix}{name}", convert=integer)
        keys[f"{role}.{field}"] = f"{prefix}{name}"
    tensor = reading.number(f"{role}.tensor_parallel")
    if tensor:
        reading.put(f"{role}.sequence_split", tensor > 1)
        experts = reading.value(f"{prefix}expert_model_parallel_size", convert=integer, default=1)
        each = reading.value(f"{prefix}expert_tensor_parallel_size", convert=integer)
        reading.put(f"{role}.expert_parallel", experts * (each or tensor))
    if role == "ref":
        return
    optimizer = f"{prefix}optimizer_config_kwargs."
    summed = reading.value(f"{prefix}ddp_config.grad_reduce_in_fp32", convert=boolean)
    if summed is not None:
        reading.put(f"{role}.grad_dtype", "fp32" if summed else "bf16")
    if reading.value(f"{optimizer}use_precision_aware_optimizer", convert=boolean) is False:
        reading.put(f"{role}.optimizer", "adamw")
    away = reading.get(f"{optimizer}optimizer_cpu_offload", convert=boolean)
    part = reading.value(f"{optimizer}optimizer_offload_fraction", convert=decimal)
    fields[f"{role}.host_optimizer"] = away
    if isinstance(away, Known) and away.value and part != 1.0:
        fields[f"{role}.host_optimizer"] = Unknown(f"{part} of it is on the host")
    _derive_recomputation(reading, role, f"{prefix}transformer_config_kwargs.")


def _derive_recomputation(reading: TrainerReading, role: str, prefix: str) -> None:
    """All layers are recomputed one by one unless the settings that are handed on say otherwise."""
    granularity = reading.get(f"{prefix}recompute_granularity", convert=text_of)
    method = reading.value(f"{prefix}recompute_method", convert=text_of)
    layers = reading.value(f"{prefix}recompute_num_layers", convert=integer)
    switch = f"{role}.gradient_checkpointing"
    asked = reading.fields.get(switch)
    if isinstance(asked, Known) and not asked.value:
        return
    if isinstance(granularity, Absent):
        reading.put(switch, False, granularity)
    elif isinstance(granularity, Known) and (granularity.value, method, layers) == (
        "full",
        "uniform",
        1,
    ):
        reading.put(switch, True, granularity)
    else:
        reading.fields[switch] = Unknown("part of it is recomputed")


def _derive_tuning(reading: TrainerReading) -> None:
    reading.put("algorithm", "sft")
    for name in ("nodes", "gpus_per_node"):
        reading.fields[f"actor.{name}"] = reading.fields[name]
    if "actor.gradient_checkpointing" not in reading.fields:
        reading.put("actor.gradient_checkpointing", True)
    for name in ("offload_params", "offload_optimizer"):
        reading.put(f"actor.{name}", False)
    if reading.value("use_sequence_packing", convert=boolean):
        # Each bin is one micro batch.
        room = reading.get("max_tokens_per_microbatch", convert=integer)
        length = reading.fields["data.max_length"]
        reading.fields["actor.max_tokens_per_gpu"] = room if isinstance(room, Known) else length
        reading.keys["actor.max_tokens_per_gpu"] = "max_tokens_per_microbatch"


def _derive_critic(reading: TrainerReading, strategy: Fact[Any]) -> None:
    """There is a critic where its model is named (trainer.py)."""
    model = reading.fields["critic.model"]
    reading.fields["critic.present"] = (
        Known(isinstance(model, Known) and bool(model.value), reading.code)
        if not isinstance(model, Unknown)
        else model
    )
    if isinstance(model, Known) and model.value:
        reading.put("algorithm", "ppo")
        _derive_state(reading, "critic", "trainer.critic.", strategy)
        for name in ("gradient_checkpointing", "micro_batch", "padding_free"):
            reading.fields[f"critic.{name}"] = reading.fields[f"actor.{name}"]
            reading.keys[f"critic.{name}"] = reading.keys[f"actor.{name}"]


def _derive_reference(reading: TrainerReading, strategy: Fact[Any]) -> None:
    """There is a reference where a term of the loss or of the reward asks for it."""
    named = reading.get("trainer.ref.model.path", convert=text_of)
    reading.fields["ref.model"] = (
        named if isinstance(named, Known) and named.value else reading.fields["actor.model"]
    )
    _derive_state(reading, "ref", "trainer.ref.", strategy)
    del reading.fields["ref.lora_rank"], reading.keys["ref.lora_rank"]
    terms = [
        reading.get(f"trainer.algorithm.{name}", convert=boolean)
        for name in ("use_kl_loss", "use_kl_in_reward")
    ]
    asked = next((one for one in terms if isinstance(one, Known) and one.value), None)
    unclear = next((one for one in terms if isinstance(one, Unknown)), None)
    if asked is not None:
        reading.put("ref.present", True, asked)
    else:
        reading.fields["ref.present"] = unclear or Known(False, reading.code)


def _derive_placement(reading: TrainerReading) -> None:
    """Whoever shares GPUs leaves them between phases (workers/worker_dispatch.py)."""
    together = reading.number("colocated")
    for role in ("actor", "critic", "ref"):
        kept = reading.number(f"{role}.cpu_offload") is True
        if together is not None:
            reading.put(f"{role}.offload_params", together and not kept)
            reading.put(f"{role}.offload_optimizer", together and not kept)
    beside = reading.get("trainer.placement.colocate_policy_ref", convert=boolean)
    if together is False and isinstance(beside, Known):
        reading.put("ref.beside_actor", beside.value, beside)


def _derive_lengths(reading: TrainerReading) -> None:
    """Of several turns all but the last response are in the prompt; dynamic batches have a budget
    that one text alone may exceed.
    """
    prompt = reading.get("trainer.max_prompt_length", convert=integer)
    reading.keys["data.max_prompt_length"] = "trainer.max_prompt_length"
    turns = reading.value("generator.max_turns", convert=integer, default=1)
    longest = reading.get("generator.max_input_length", convert=integer)
    if turns > 1 and isinstance(longest, Known):
        prompt = longest
        reading.keys["data.max_prompt_length"] = "generator.max_input_length"
    reading.fields["data.max_prompt_length"] = prompt
    budget = reading.get("trainer.max_tokens_per_microbatch", convert=integer)
    if isinstance(budget, Known) and budget.value > 0:
        for name in ("max_tokens_per_gpu", "scored_tokens"):
            reading.fields[f"actor.{name}"] = budget
            reading.keys[f"actor.{name}"] = "trainer.max_tokens_per_microbatch"


def _derive_engine(reading: TrainerReading) -> None:
    """vLLM, which sleeps where it shares GPUs: level 1 with adapters, whose base nobody sends
    again (inference_servers/remote_inference_client.py).
    """
    fields = reading.fields
    fields["rollout.engine"] = reading.get(*_engine("backend"), convert=text_of)
    if "trainer.override_entrypoint" in reading.configuration.given:
        fields["rollout.engine"] = fields["actor.strategy"]
    local = reading.get(*_engine("run_engines_locally"), convert=boolean)
    if isinstance(local, Known) and not local.value:
        fields["rollout.engine"] = Absent(local.evidence)
    reading.put("rollout.utilization_of", "total")
    reading.put("rollout.cpu_weights", False)
    fields["rollout.dtype"] = reading.get(*_engine("model_dtype"), convert=text_of)
    together, rank = reading.number("colocated"), reading.number("actor.lora_rank")
    if together is not None and rank is not None:
        reading.put("rollout.sleep_level", 0 if not together else 1 if rank else 2)
    copies = reading.value(
        *_engine("data_parallel_size", "inference_engine_data_parallel_size"),
        convert=integer,
        default=1,
    )
    engines = reading.get(*_engine("num_engines", "num_inference_engines"), convert=integer)
    fields["rollout.engines"] = (
        Known(engines.value * copies, engines.evidence) if isinstance(engines, Known) else engines
    )
    spread = reading.value(
        *_engine("expert_parallel_size", "inference_engine_expert_parallel_size"),
        convert=integer,
        default=1,
    )
    if spread > 1:
        reading.put("rollout.expert_parallel", spread)
    if rank:
        merged = reading.get(
            "trainer.policy.megatron_config.lora_config.merge_lora", convert=boolean
        )
        if reading.number("actor.strategy") != "megatron":
            reading.put("rollout.adapters", 1)
        elif isinstance(merged, Known):
            reading.put("rollout.adapters", 0 if merged.value else 1, merged)
        fields["rollout.adapter_rank"] = fields["actor.lora_rank"]


ADAPTER = _SkyRl()
