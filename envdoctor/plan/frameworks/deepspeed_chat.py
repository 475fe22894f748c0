"""DeepSpeed-Chat: ``main.py`` of one of its three steps, whose options are read from it."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, Tuple

from ...model.evidence import Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from .adapter import Run
from .configuration import Fields, boolean, integer, text_of
from .hf_trainer import derive_processes, entry_source, imports
from .parser_options import option_defaults
from .trainer import Trainer, TrainerReading

__all__ = ["ADAPTER"]

_FIELDS: Fields = {
    "actor.model": (("actor_model_name_or_path", "model_name_or_path"), text_of),
    "actor.micro_batch": (
        ("per_device_training_batch_size", "per_device_train_batch_size"),
        integer,
    ),
    "actor.gradient_checkpointing": (
        ("actor_gradient_checkpointing", "gradient_checkpointing"),
        boolean,
    ),
    "data.max_prompt_length": (("max_prompt_seq_len", "max_seq_len"), integer),
}
_SWITCHES = (
    "deepspeed",
    "offload",
    "gradient_checkpointing",
    "actor_gradient_checkpointing",
    "critic_gradient_checkpointing",
    "only_optimize_lora",
    "offload_reference_model",
    "enable_hybrid_engine",
    "enable_ema",
    "enable_mixed_precision_lora",
    "enable_tensorboard",
    "print_loss",
)


class _DeepSpeedChat(Trainer):
    name = "deepspeed-chat"
    attention = ("attn_implementation",)
    layout = Layout(files=("applications/DeepSpeed-Chat/dschat/utils/ds_utils.py",))
    source = "DeepSpeed-Chat"
    option = "--"
    fields = _FIELDS
    switches = _SWITCHES

    def owns(self, run: Run) -> bool:
        """By a script that imports its package, or makes its data with the modules from before
        they were one (training/utils, up to August 2023).
        """
        source = entry_source(run) if run.entry.endswith("main.py") else ""
        modules = imports(source, "utils.ds_utils") and "create_prompt_dataset" in source
        return modules or imports(source, "dschat")

    def defaults_of(self, run: Run) -> Mapping[str, Any]:
        """Return the defaults that the step's own parser gives."""
        return option_defaults(entry_source(run))

    def derive(self, reading: TrainerReading) -> None:
        """Say which step it is, and what each of its models is told."""
        known = reading.configuration.table
        ppo = "actor_zero_stage" in known
        pairs = "dpo" in str(entry_source(reading.run)[:20_000]).lower()
        kind = "ppo" if ppo else "dpo" if pairs else "sft"
        source = entry_source(reading.run)
        if not ppo and "create_critic_model" in source:
            kind = "rm"
        reading.put("algorithm", kind)
        derive_processes(reading.run, reading.fields, reading.keys)
        if isinstance(reading.fields["gpus_per_node"], Unknown):
            reading.fields["gpus_per_node"] = Unknown("deepspeed takes every GPU that it sees")
        _derive_state(reading, "actor", "actor_" if ppo else "")
        if kind == "dpo":
            reading.put("ref.present", True)
        if ppo:
            _derive_ppo(reading)
        reading.fields["ref.model"] = reading.fields["actor.model"]
        reading.fields["ref.strategy"] = reading.fields["actor.strategy"]
        reading.put("checkpoint.save_freq", 0)  # it is written once, at the end
        reading.fields.setdefault("ref.present", Known(False, reading.code))

    def doubts(self, reading: TrainerReading) -> Sequence[str]:
        """Return what keeps weights of its own beside the trainer's."""
        names: Tuple[str, ...] = ("enable_hybrid_engine", "enable_ema")
        return [f"--{name}" for name in names if reading.value(name, convert=boolean)]


def _derive_state(reading: TrainerReading, role: str, prefix: str) -> None:
    stage = reading.get(f"{prefix}zero_stage", "zero_stage", convert=integer)
    away = reading.get("offload", convert=boolean)
    strategy: Fact[Any] = stage
    if isinstance(stage, Known):
        strategy = Known(f"zero{stage.value}" if stage.value else "ddp", stage.evidence)
    reading.fields[f"{role}.strategy"] = strategy
    reading.keys[f"{role}.strategy"] = f"{prefix}zero_stage"
    reading.fields[f"{role}.offload_optimizer"] = away
    reading.keys[f"{role}.offload_optimizer"] = "offload"
    third = isinstance(stage, Known) and stage.value == 3
    reading.keys[f"{role}.offload_params"] = "offload"
    reading.fields[f"{role}.offload_params"] = away if third else Known(False, reading.code)
    reading.put(f"{role}.param_dtype", "fp16")
    reading.put(f"{role}.optimizer", "adamw")
    rank = reading.get(f"{prefix}lora_dim", "lora_dim", convert=integer)
    alone = reading.value("only_optimize_lora", convert=boolean, default=False)
    if isinstance(rank, Known) and rank.value and not alone:
        rank = Unknown("beside adapters all that is no linear layer is trained")
    reading.fields[f"{role}.lora_rank"] = rank
    reading.keys[f"{role}.lora_rank"] = f"{prefix}lora_dim"


def _derive_ppo(reading: TrainerReading) -> None:
    """Step 3: actor and critic are trained, reference and reward are asked; the actor generates by
    itself.
    """
    fields = reading.fields
    for role in ("critic", "reward", "ref"):
        reading.put(f"{role}.present", True)
    fields["critic.model"] = reading.get("critic_model_name_or_path", convert=text_of)
    fields["reward.model"] = fields["critic.model"]
    _derive_state(reading, "critic", "critic_")
    fields["critic.micro_batch"] = fields["actor.micro_batch"]
    fields["critic.gradient_checkpointing"] = reading.get(
        "critic_gradient_checkpointing", convert=boolean
    )
    fields["reward.strategy"] = fields["critic.strategy"]
    fields["data.max_response_length"] = reading.get("max_answer_seq_len", convert=integer)
    reading.keys["data.max_response_length"] = "max_answer_seq_len"
    fields["rollout.engine"] = Known("hf", Evidence("code of DeepSpeed-Chat", "dschat/rlhf"))
    fields["rollout.micro_batch"] = reading.get("per_device_generation_batch_size", convert=integer)
    reading.put("rollout.n", 1)
    for role in ("critic", "reward"):
        for name in ("nodes", "gpus_per_node"):
            fields[f"{role}.{name}"] = fields[name]
    reference = reading.get("offload_reference_model", convert=boolean)
    fields["ref.cpu_offload"] = reference


ADAPTER = _DeepSpeedChat()
