"""ROLL: ``python examples/start_rlvr_pipeline.py --config_path FOLDER --config_name FILE``, a YAML
that Hydra composes. Each role has a strategy (FSDP 2, Megatron, vLLM, SGLang) and a list of devices
(roll/configs/base_config.py, roll/configs/worker_config.py).
"""

from __future__ import annotations

import ast
import os
import re
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ...model.evidence import Absent, Known, Unknown
from ...model.layout import Layout
from .adapter import Run
from .configuration import Fields, boolean, decimal, integer, named_types, text_of
from .hf_trainer import entry_source
from .hydra import compose_named, entry_file
from .settings import flags
from .trainer import Launch, Trainer, TrainerReading

__all__ = ["ADAPTER"]

_ENTRY = re.compile(r"(?:.*/)?start_(?!\w*rollout)\w+_pipeline\.py")
_IMPORTS = re.compile(r"^\s*from\s+roll\.pipeline\.(\w+)", re.MULTILINE)
#: What is trained, by the package of a pipeline, and the section of what is.
_KINDS: Mapping[str, Tuple[str, str]] = {
    "rlvr": ("grpo", "actor_train"),
    "agentic": ("grpo", "actor_train"),
    "dpo": ("dpo", "actor_train"),
    "sft": ("sft", "sft_train"),
    "distill": ("sft", "student"),
}
_FIELDS: Fields = {
    "data.max_prompt_length": (("prompt_length",), integer),
    "data.max_response_length": (("response_length",), integer),
    "data.train_batch_size": (("rollout_batch_size",), integer),
    "checkpoint.save_freq": (("save_steps",), integer),
    "checkpoint.limit": (("max_ckpt_to_keep",), integer),
    "steps": (("max_steps",), integer),
}
_DEFAULTS: Mapping[str, Any] = {
    "adv_estimator": "gae",
    "num_gpus_per_node": 8,
    "max_ckpt_to_keep": 0,
    "sequence_length": None,
    "prompt_length": 1024,
    "response_length": None,
    "use_kl_loss": False,
    "init_kl_coef": 0.0,
    "enable_reference": False,
    "is_offload_states": False,
    "is_offload_optimizer_states_in_train_step": False,
    "num_return_sequences_in_group": 1,
    **{
        f"{section}.{name}": value
        for section in ("actor_train", "actor_infer", "critic", "reference", "sft_train", "student")
        for name, value in {
            "num_gpus_per_worker": 1,
            "infer_batch_size": 16,
            "model_args.dtype": "bf16",
            "model_args.lora_rank": None,
            "model_args.lora_target": None,
            "model_args.model_name_or_path": None,
            "model_args.adapter_name_or_path": None,
            "model_args.disable_gradient_checkpointing": False,
            "model_args.ulysses_size": 1,
            "training_args.per_device_train_batch_size": 8,
            "use_dynamic_batching_in_train": False,
            "use_dynamic_batching_in_infer": False,
            "use_sequence_packing": False,
            "strategy_args.strategy_config.param_dtype": None,
            "strategy_args.strategy_config.offload_policy": False,
            "strategy_args.strategy_config.reshard_after_forward": True,
            "strategy_args.strategy_config.fsdp_size": 1,
            "strategy_args.strategy_config.ep_size": 1,
            "strategy_args.strategy_config.tensor_model_parallel_size": 1,
            "strategy_args.strategy_config.pipeline_model_parallel_size": 1,
            "strategy_args.strategy_config.context_parallel_size": 1,
            "strategy_args.strategy_config.expert_model_parallel_size": 1,
            "strategy_args.strategy_config.expert_tensor_parallel_size": None,
            "strategy_args.strategy_config.sequence_parallel": False,
            "strategy_args.strategy_config.recompute_granularity": None,
            "strategy_args.strategy_config.use_distributed_optimizer": False,
            "strategy_args.strategy_config.optimizer": "adam",
            "strategy_args.strategy_config.optimizer_cpu_offload": False,
            "strategy_args.strategy_config.max_model_len": None,
            "strategy_args.strategy_config.enforce_eager": False,
            "strategy_args.strategy_config.sleep_level": 1,
        }.items()
    },
}
#: Settings below which nothing that is counted can be lowered: data, sampling, rewards that are
#: rules, logs.
_CHANGES_NOTHING = re.compile(
    r"hydra\.|system_envs\.|tracker_kwargs\.|checkpoint_config\.|validation\.|custom_envs\."
    r"|(?:train|val)_env_manager\.|reward_normalization\.|.*\.(?:generating_args|data_args)\."
    r"|.*\.training_args\.(?:learning_rate|weight_decay|warmup_\w+|num_train_epochs"
    r"|gradient_accumulation_steps|lr_scheduler_type)\Z"
    r"|.*\.model_args\.(?:attn_implementation|model_type|lora_alpha)\Z"
    r"|(?:exp_name|logging_dir|output_dir|track_with|eval_steps|ppo_epochs|adv_estimator"
    r"|async_generation_ratio|rpc_timeout|render_save_dir|num_gpus_per_node"
    r"|(?:value|reward|advantage)_clip|\w*_mask|\w*_threshold|\w*_(?:loss_weight|error_clip)"
    r"|dual_clip_loss|norm_\w+_type|whiten_\w+|add_token_level_kl|error_max_len_clip"
    r"|\w+_key|custom_env\w*|env_manager\w*|max_tokens_per_step|max_actions_per_traj)\Z"
)


class _Roll(Trainer):
    name = "roll"
    layout = Layout(files=("roll/configs/worker_config.py",))
    source = "ROLL"
    defaults = _DEFAULTS
    fields = _FIELDS

    def owns(self, run: Run) -> bool:
        """By a starter of its pipelines, told by what it imports."""
        if _ENTRY.fullmatch(run.entry) is None:
            return False
        return _pipeline(run) in _KINDS

    def launch(self, run: Run) -> Launch:
        """Return the settings of the composed configuration, a path beside the starter."""
        given = {one.key: one for one in flags(run.arguments, run.name)[0]}
        entry = entry_file(run)
        path, name = (given.get(f"config_{what}") for what in ("path", "name"))
        clear = [one for one in (path, name) if one is not None and not one.unclear]
        if entry is None or len(clear) < 2 or path is None or name is None:
            return Launch((), (), "its configuration")
        folder = os.path.normpath(os.path.join(os.path.dirname(entry[0]), str(path.value)))
        composed = compose_named(folder, str(name.value), entry[1], run.base)
        if composed is None:
            return Launch((), (), f"{path.value}/{name.value}.yaml")
        settings = [one for key, one in composed.keys.items() if not key.startswith("hydra.")]
        return Launch((), settings, next(iter(composed.missing), ""))

    def derive(self, reading: TrainerReading) -> None:
        """Say which roles there are, where each lies, and how it is spread."""
        given = reading.configuration.given
        reading.consider(*filter(_CHANGES_NOTHING.match, given))
        algorithm, section = _KINDS[_pipeline(reading.run)]
        reading.put("algorithm", algorithm)
        generates = algorithm == "grpo"
        _derive_state(reading, "actor", section)
        _derive_model(reading, section)
        _derive_batches(reading, section)
        _derive_lengths(reading, generates=generates)
        reading.put("checkpoint.gather", "sharded")
        devices = {"actor": _devices(reading, section)}
        if generates:
            _derive_engine(reading)
            devices["rollout"] = _devices(reading, "actor_infer")
            _derive_critic(reading, devices)
        _derive_reference(reading, devices, algorithm)
        _derive_placement(reading, devices, generates=generates)
        _derive_other_models(reading)


def _pipeline(run: Run) -> str:
    match = _IMPORTS.search(entry_source(run))
    return match.group(1) if match else ""


def _devices(reading: TrainerReading, section: str) -> Optional[FrozenSet[int]]:
    """Return the GPUs of a role, over all nodes; None where they are not known."""
    fact = reading.get(f"{section}.device_mapping")
    value = fact.value if isinstance(fact, Known) else None
    if isinstance(value, list):
        return frozenset(value) if all(isinstance(one, int) for one in value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return frozenset([value])
    if not isinstance(value, str):
        return None
    try:
        return frozenset(_listed(ast.parse(value, mode="eval").body))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


_MOST_GPUS = 1 << 16


def _listed(node: ast.expr) -> Sequence[int]:
    """Return what ``list(range(0, 8))``, ``[0, 1]`` and sums of such stand for; raises ValueError
    for anything else.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_listed(node.left), *_listed(node.right)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id == "list" and len(node.args) == 1:
            return _listed(node.args[0])
        if node.func.id == "range" and 1 <= len(node.args) <= 3:
            numbers = [ast.literal_eval(one) for one in node.args]
            span = range(*numbers)
            if len(span) <= _MOST_GPUS:
                return span
    if isinstance(node, (ast.List, ast.Tuple)):
        values = ast.literal_eval(node)
        if all(isinstance(one, int) for one in values):
            return list(values)
    raise ValueError("no list of devices")


def _derive_state(reading: TrainerReading, role: str, section: str) -> None:
    """Fill in how one model is spread, by the name of its strategy."""
    strategy = reading.get(f"{section}.strategy_args.strategy_name", convert=text_of)
    prefix = f"{section}.strategy_args.strategy_config."
    kind = strategy.value if isinstance(strategy, Known) else ""
    reading.keys[f"{role}.strategy"] = f"{section}.strategy_args.strategy_name"
    if kind.startswith("fsdp2"):
        reading.put(f"{role}.strategy", "fsdp2", strategy)
        _derive_fsdp(reading, role, section, prefix)
    elif kind.startswith("megatron"):
        reading.put(f"{role}.strategy", "megatron", strategy)
        _derive_megatron(reading, role, section, prefix)
    elif kind == "hf_infer":
        reading.put(f"{role}.strategy", "none", strategy)
    else:
        reading.fields[f"{role}.strategy"] = Unknown(
            f"nothing is known here of the strategy {kind!r}" if kind else "it names no strategy"
        )


def _derive_fsdp(reading: TrainerReading, role: str, section: str, prefix: str) -> None:
    """Weights are kept in param_dtype, in fp32 where what is trained names none
    (roll/distributed/strategy/fsdp2_strategy.py).
    """
    fields = reading.fields
    kept = reading.get(f"{prefix}param_dtype", convert=text_of)
    fields[f"{role}.param_dtype"] = named_types(kept)
    if isinstance(kept, Absent):
        reading.put(f"{role}.param_dtype", "fp32" if role in ("actor", "critic") else "bf16", kept)
    fields[f"{role}.cpu_offload"] = reading.get(f"{prefix}offload_policy", convert=boolean)
    reading.keys[f"{role}.cpu_offload"] = f"{prefix}offload_policy"
    fields[f"{role}.sequence_parallel"] = reading.get(
        f"{section}.model_args.ulysses_size", convert=integer
    )
    resharded = reading.get(f"{prefix}reshard_after_forward", convert=boolean)
    if isinstance(resharded, Known):
        reading.put(f"{role}.keeps_gathered", not resharded.value, resharded)
    spread = reading.get(f"{prefix}fsdp_size", convert=integer)
    if isinstance(spread, Known) and spread.value > 1:
        fields[f"{role}.shard_ranks"] = spread
    experts = reading.value(f"{prefix}ep_size", convert=integer, default=1)
    if experts > 1:
        fields[f"{role}.shard_ranks"] = Unknown("experts are spread apart from the rest")
    if role in ("actor", "critic"):
        reading.put(f"{role}.optimizer", "adamw")
        off = reading.get(f"{section}.model_args.disable_gradient_checkpointing", convert=boolean)
        if isinstance(off, Known):
            reading.put(f"{role}.gradient_checkpointing", not off.value, off)


def _derive_megatron(reading: TrainerReading, role: str, section: str, prefix: str) -> None:
    """The options of mcore_adapter (mcore_adapter/training_args.py)."""
    fields, keys = reading.fields, reading.keys
    for field, name, convert in (
        ("tensor_parallel", "tensor_model_parallel_size", integer),
        ("pipeline_parallel", "pipeline_model_parallel_size", integer),
        ("sequence_parallel", "context_parallel_size", integer),
        ("sequence_split", "sequence_parallel", boolean),
    ):
        fields[f"{role}.{field}"] = reading.get(f"{prefix}{name}", convert=convert)
        keys[f"{role}.{field}"] = f"{prefix}{name}"
    tensor = reading.number(f"{role}.tensor_parallel")
    experts = reading.value(f"{prefix}expert_model_parallel_size", convert=integer)
    each = reading.value(f"{prefix}expert_tensor_parallel_size", convert=integer)
    if experts and tensor and (each or tensor == 1):
        reading.put(f"{role}.expert_parallel", experts * (each or 1))
    elif experts and experts > 1:
        fields[f"{role}.expert_parallel"] = Unknown("how experts are cut is not said")
    if role in ("actor", "critic"):
        _derive_megatron_training(reading, role, section, prefix)


def _derive_megatron_training(
    reading: TrainerReading, role: str, section: str, prefix: str
) -> None:
    """What only a model that is trained has: gradients, an optimizer, what is recomputed."""
    fields = reading.fields
    granularity = reading.get(f"{prefix}recompute_granularity", convert=text_of)
    partly = isinstance(granularity, Known) and granularity.value != "full"
    numbered = f"{prefix}recompute_num_layers" in reading.configuration.given
    if partly or numbered:
        fields[f"{role}.gradient_checkpointing"] = Unknown("part of it is recomputed")
    elif isinstance(granularity, (Known, Absent)):
        on = isinstance(granularity, Known)
        reading.put(f"{role}.gradient_checkpointing", on, granularity)
    if reading.value(f"{section}.model_args.dtype", convert=text_of) == "bf16":
        reading.put(f"{role}.grad_dtype", "fp32")
    fields[f"{role}.host_optimizer"] = reading.get(
        f"{prefix}optimizer_cpu_offload", convert=boolean
    )
    if reading.value(f"{prefix}optimizer", convert=text_of) == "adam":
        reading.put(f"{role}.optimizer", "adamw")
    if reading.value(f"{prefix}use_distributed_optimizer", convert=boolean) is False:
        tensor = reading.number(f"{role}.tensor_parallel")
        pipeline = reading.number(f"{role}.pipeline_parallel")
        if tensor and pipeline:
            reading.put(f"{role}.shard_ranks", tensor * pipeline)


def _derive_model(reading: TrainerReading, section: str) -> None:
    """A section without a model takes that of the whole configuration."""
    own = reading.get(f"{section}.model_args.model_name_or_path", convert=text_of)
    whole = "student_pretrain" if section == "student" else "pretrain"
    shared = reading.get(whole, convert=text_of)
    reading.fields["actor.model"] = own if isinstance(own, Known) else shared
    reading.keys["actor.model"] = whole
    rank = reading.get(f"{section}.model_args.lora_rank", convert=integer)
    target = reading.get(f"{section}.model_args.lora_target", convert=text_of)
    if isinstance(target, Known):
        reading.fields["actor.lora_rank"] = (
            rank if isinstance(rank, Known) else Known(8, reading.code)
        )
    elif isinstance(target, Absent):
        reading.put("actor.lora_rank", 0)


def _derive_batches(reading: TrainerReading, section: str) -> None:
    fields, keys = reading.fields, reading.keys
    for field, name in (
        ("micro_batch", "training_args.per_device_train_batch_size"),
        ("scored_batch", "infer_batch_size"),
    ):
        fields[f"actor.{field}"] = reading.get(f"{section}.{name}", convert=integer)
        keys[f"actor.{field}"] = f"{section}.{name}"
    for field, name in (("max_tokens_per_gpu", "train"), ("scored_tokens", "infer")):
        budget = reading.get(f"{section}.max_tokens_per_microbatch_in_{name}", convert=integer)
        if reading.value(f"{section}.use_dynamic_batching_in_{name}", convert=boolean):
            fields[f"actor.{field}"] = budget
            keys[f"actor.{field}"] = f"{section}.max_tokens_per_microbatch_in_{name}"
    packed = reading.get(f"{section}.use_sequence_packing", convert=boolean)
    if isinstance(packed, Known):
        fields["actor.padding_free"] = packed


def _derive_lengths(reading: TrainerReading, *, generates: bool) -> None:
    """Whole texts have one bound where it is stated, else that of prompt and response."""
    whole = reading.get("sequence_length", convert=integer)
    if isinstance(whole, Known):
        reading.fields["data.max_length"] = whole
        reading.keys["data.max_length"] = "sequence_length"
    if not generates or isinstance(whole, Known):
        for name in ("prompt", "response"):
            del reading.fields[f"data.max_{name}_length"]


def _derive_engine(reading: TrainerReading) -> None:
    fields, prefix = reading.fields, "actor_infer.strategy_args.strategy_config."
    engine = reading.get("actor_infer.strategy_args.strategy_name", convert=text_of)
    is_known = isinstance(engine, Known) and engine.value in ("vllm", "sglang")
    fields["rollout.engine"] = engine if is_known else Unknown("what generates is not known here")
    sglang = isinstance(engine, Known) and engine.value == "sglang"
    share, length = (
        ("mem_fraction_static", "context_length")
        if sglang
        else ("gpu_memory_utilization", "max_model_len")
    )
    fields["rollout.gpu_memory_utilization"] = reading.get(f"{prefix}{share}", convert=decimal)
    fields["rollout.max_model_len"] = reading.get(f"{prefix}{length}", convert=integer)
    reading.keys["rollout.gpu_memory_utilization"] = f"{prefix}{share}"
    reading.keys["rollout.max_model_len"] = f"{prefix}{length}"
    tensor = reading.get(f"{prefix}tensor_parallel_size", f"{prefix}tp_size", convert=integer)
    workers = reading.get("actor_infer.num_gpus_per_worker", convert=integer)
    fields["rollout.tensor_parallel"] = tensor if isinstance(tensor, Known) else workers
    fields["rollout.enforce_eager"] = reading.get(f"{prefix}enforce_eager", convert=boolean)
    fields["rollout.n"] = reading.get("num_return_sequences_in_group", convert=integer)
    if _pipeline(reading.run) == "agentic":
        fields["rollout.n"] = reading.get("train_env_manager.group_size", convert=integer)
    reading.consider(f"{prefix}block_size", f"{prefix}load_format", f"{prefix}disable_log_stats")
    reading.put("rollout.utilization_of", "total")
    reading.put("rollout.cpu_weights", False)
    fields["rollout.sleep_level"] = reading.get(f"{prefix}sleep_level", convert=integer)


def _derive_critic(reading: TrainerReading, devices: Dict[str, Optional[FrozenSet[int]]]) -> None:
    """Advantages of GAE have a critic of its own."""
    estimator = reading.get("adv_estimator", convert=text_of)
    if not isinstance(estimator, Known):
        reading.fields["critic.present"] = Unknown("the estimator of advantages is not known")
        return
    reading.put("critic.present", estimator.value == "gae", estimator)
    if estimator.value != "gae":
        reading.consider(*(key for key in reading.configuration.given if key.startswith("critic.")))
        return
    reading.put("algorithm", "ppo")
    _derive_state(reading, "critic", "critic")
    own = reading.get("critic.model_args.model_name_or_path", convert=text_of)
    shared = reading.get("reward_pretrain", convert=text_of)
    reading.fields["critic.model"] = own if isinstance(own, Known) else shared
    reading.fields["critic.micro_batch"] = reading.get(
        "critic.training_args.per_device_train_batch_size", convert=integer
    )
    devices["critic"] = _devices(reading, "critic")


def _derive_reference(
    reading: TrainerReading, devices: Dict[str, Optional[FrozenSet[int]]], algorithm: str
) -> None:
    """A reference where preferences are compared with it, or a KL term asks for one; with adapters
    the trained model without them is the reference.
    """
    section = "reference"
    given = reading.configuration.given
    if not any(key.startswith("reference.") for key in given) or algorithm == "sft":
        reading.put("ref.present", False)
        return
    asked: Known[bool] = Known(algorithm == "dpo", reading.code)
    if algorithm != "dpo":
        weight = reading.get("init_kl_coef", convert=decimal)
        switches = [
            reading.get(name, convert=boolean) for name in ("use_kl_loss", "enable_reference")
        ]
        is_on = [one for one in switches if isinstance(one, Known) and one.value]
        has_weight = isinstance(weight, Known) and weight.value > 0
        asked = is_on[0] if is_on else Known(has_weight, reading.code)
    rank = reading.number("actor.lora_rank")
    reading.put("ref.present", bool(asked.value) and not rank, asked)
    _derive_state(reading, "ref", section)
    own = reading.get(f"{section}.model_args.model_name_or_path", convert=text_of)
    reading.fields["ref.model"] = own if isinstance(own, Known) else reading.fields["actor.model"]
    if reading.number("ref.present"):
        devices["ref"] = _devices(reading, section)
        return
    reading.consider(*(key for key in given if key.startswith("reference.")))


def _derive_placement(
    reading: TrainerReading, devices: Mapping[str, Optional[FrozenSet[int]]], *, generates: bool
) -> None:
    """Roles whose lists of GPUs meet share them and take turns, others have GPUs of their own; the
    roles of one run are in one list or apart, other cases are not known.
    """
    each = reading.get("num_gpus_per_node", convert=integer)
    reading.keys["gpus_per_node"] = "actor_train.device_mapping"
    if not isinstance(each, Known) or any(not one for one in devices.values()):
        reading.fields["gpus_per_node"] = Unknown("which GPUs its roles take is not known")
        return
    held = {role: one for role, one in devices.items() if one}
    together = not generates or bool(held["actor"] & held["rollout"])
    reading.put("colocated", together)
    for role, numbers in held.items():
        nodes = {number // each.value for number in numbers}
        if role != "rollout":
            reading.put(f"{role}.nodes", len(nodes), each)
            reading.put(f"{role}.gpus_per_node", -(-len(numbers) // len(nodes)), each)
    every = frozenset().union(*held.values())
    reading.put("nodes", max(every) // each.value + 1, each)
    reading.put("gpus_per_node", min(each.value, len(every)), each)
    offloads = generates and together
    for role in ("actor", "critic", "ref"):
        for name in ("offload_params", "offload_optimizer"):
            reading.put(f"{role}.{name}", offloads)
    if generates and not together:
        _derive_apart(reading, held)


def _derive_apart(reading: TrainerReading, held: Mapping[str, FrozenSet[int]]) -> None:
    """An engine with GPUs of its own is awake; who shares the trained model's counts there."""
    reading.put("rollout.sleep_level", 0)
    tensor = reading.number("rollout.tensor_parallel")
    if tensor:
        reading.put("rollout.engines", max(len(held["rollout"]) // tensor, 1))
    for role in ("critic", "ref"):
        if role in held and held[role] == held["actor"]:
            reading.put(f"{role}.beside_actor", True)
        elif role in held and any(held[role] & one for name, one in held.items() if name != role):
            reading.put("others", f"{role} beside other roles")


def _derive_other_models(reading: TrainerReading) -> None:
    """Rewards with GPUs of their own hold a model, and so do teachers."""
    given = reading.configuration.given
    holders: List[str] = [
        key.rpartition(".")[0]
        for key in given
        if key.endswith(".device_mapping")
        and key.startswith(("reward", "teacher", "student_"))
        and given[key].value
    ]
    if holders:
        reading.put("others", ", ".join(holders))
    idle = [
        key
        for key in given
        if key.startswith("reward") and not any(key.startswith(f"{one}.") for one in holders)
    ]
    reading.consider(*idle)


ADAPTER = _Roll()
