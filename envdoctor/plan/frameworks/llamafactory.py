"""LLaMA-Factory: ``llamafactory-cli train FILE.yaml key=value``, its options on a command line, or
the YAML file alone. Defaults are those of src/llamafactory/hparams and of TrainingArguments.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Tuple

from ...model.evidence import Absent, Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from .adapter import CERTAIN, Run, RunReading
from .configuration import Configuration, Fields, boolean, integer, text_of
from .hf_trainer import (
    derive_batches,
    derive_processes,
    entry_source,
    file_settings,
    imports,
    optimizer_of,
    sharding,
)
from .key_tables import own_table
from .problems import value_problems
from .settings import Setting, flags, overrides
from .unread import unread_settings

__all__ = ["ADAPTER"]

_PROGRAMS = ("llamafactory-cli", "lmf")
_LAUNCHED = re.compile(r"llamafactory\.(?:launcher|cli)|(?:.*/)?llamafactory/launcher\.py")
_CONFIGS = (".yaml", ".yml", ".json")
#: The stages as this model of memory knows them: chosen and rejected texts of kto go through
#: together as those of dpo do (train/kto/trainer.py, the KL completions).
_ALGORITHMS = {"pt": "sft", "sft": "sft", "dpo": "dpo", "kto": "dpo", "rm": "rm", "ppo": "ppo"}
_FIELDS: Fields = {
    "actor.model": (("model_name_or_path",), text_of),
    "actor.micro_batch": (("per_device_train_batch_size",), integer),
    "data.max_prompt_length": (("cutoff_len",), integer),
    "data.dataloader_workers": (("dataloader_num_workers",), integer),
    "checkpoint.save_freq": (("save_steps",), integer),
    "checkpoint.limit": (("save_total_limit",), integer),
    "checkpoint.model_only": (("save_only_model",), boolean),
}
_DEFAULTS: Mapping[str, Any] = {
    "stage": "sft",
    "finetuning_type": "lora",
    "lora_rank": 8,
    "cutoff_len": 2048,
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "dataloader_num_workers": 0,
    "save_steps": 500,
    "save_total_limit": None,
    "save_only_model": False,
    "optim": "adamw_torch",
    "deepspeed": None,
    "pure_bf16": False,
    "disable_gradient_checkpointing": False,
    "pref_loss": "sigmoid",
    "ref_model": None,
}


class _LlamaFactory:
    name = "llamafactory"
    layout = Layout(files=("src/llamafactory/launcher.py",))

    def claims(self, run: Run) -> int:
        """By its program, by a script that imports it, or by keys that no other trainer has."""
        if self._is_program(run) or imports(entry_source(run), "llamafactory"):
            return CERTAIN
        keys = {setting.key for setting in run.files}
        own = "finetuning_type" in keys and bool(keys & {"cutoff_len", "template", "stage"})
        return CERTAIN if own and not run.entry else 0

    def read(self, run: Run) -> RunReading:
        """Read the run."""
        settings, files, absent = self._settings(run)
        table = own_table(self.name, ("",), _DEFAULTS, "LLaMA-Factory")
        configuration = Configuration(table, ("",), settings, files, run.environ, absent=absent)
        facts, names = configuration.read(_FIELDS, {})
        fields: Dict[str, Fact[Any]] = {
            "framework": Known(self.name, Evidence(run.name, run.entry)),
            **facts,
        }
        keys = {**names}
        self._derive(run, configuration, fields, keys)
        unread = unread_settings(configuration, [*files, *settings])
        return RunReading(
            fields,
            keys,
            value_problems(fields, keys),
            Unknown("nothing tells the version"),
            unread,
        )

    @staticmethod
    def _is_program(run: Run) -> bool:
        if run.entry.rpartition("/")[2] in _PROGRAMS:
            return bool(run.arguments) and run.arguments[0].text == "train"
        return _LAUNCHED.fullmatch(run.entry) is not None

    def _settings(self, run: Run) -> Tuple[List[Setting], List[Setting], str]:
        """Return what a command sets, what its file does, and the file that is not at hand."""
        options, words = flags(run.arguments, run.name)
        named = next((word for word in words if word.text.endswith(_CONFIGS)), None)
        files = [*run.files, *(file_settings(run, named.text) if named is not None else [])]
        absent = named.text if named is not None and not files else ""
        return [*options, *overrides(tuple(words), run.name)], files, absent

    def _derive(
        self,
        run: Run,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
    ) -> None:
        code = Evidence("code of LLaMA-Factory", "src/llamafactory/model/adapter.py, launcher.py")
        fields["actor.present"] = Known(True, code)
        fields["critic.present"] = fields["reward.present"] = Known(False, code)
        fields["colocated"] = Known(True, code)
        stage = configuration.get("stage", convert=text_of)
        if isinstance(stage, Known):
            known = stage.value in _ALGORITHMS
            fields["algorithm"] = (
                Known(_ALGORITHMS[stage.value], stage.evidence)
                if known
                else Unknown(f"{stage.evidence}: {stage.value!r} is no stage")
            )
        if run.launcher:
            derive_processes(run, fields, keys)
        else:
            _derive_devices(run, fields, keys)
        state = sharding(run, configuration)
        fields.update(state.fields)
        keys.update(state.keys)
        if isinstance(fields["actor.strategy"], Unknown) and not run.launcher:
            deepspeed = configuration.get("deepspeed")
            if isinstance(deepspeed, Known) and deepspeed.value is None:
                fields["actor.strategy"] = Known("ddp", deepspeed.evidence)
        fields["actor.optimizer"], keys["actor.optimizer"] = optimizer_of(configuration), "optim"
        _derive_tuning(configuration, fields, keys)
        _derive_reference(configuration, fields, stage)
        derive_batches(configuration, fields, keys)
        if isinstance(fields["checkpoint.limit"], Absent):
            fields["checkpoint.limit"] = Known(0, fields["checkpoint.limit"].evidence)


def _derive_devices(run: Run, fields: Dict[str, Fact[Any]], keys: Dict[str, str]) -> None:
    """The launcher takes NNODES and NPROC_PER_NODE, and without these every GPU that it sees."""
    fields["nodes"] = _variable(run, "NNODES") or Known(1, Evidence("NNODES is not set"))
    each = _variable(run, "NPROC_PER_NODE")
    visible = run.variables.get("CUDA_VISIBLE_DEVICES")
    if each is None and visible is not None and visible.known and visible.text:
        place = Evidence(f"{run.name}:{visible.line}", f"CUDA_VISIBLE_DEVICES={visible.text}")
        each = Known(visible.text.count(",") + 1, place)
    fields["gpus_per_node"] = each or Unknown("all GPUs that are visible")
    keys["nodes"], keys["gpus_per_node"] = "NNODES", "NPROC_PER_NODE"
    for role in ("actor", "ref"):
        fields[f"{role}.nodes"] = fields["nodes"]
        fields[f"{role}.gpus_per_node"] = fields["gpus_per_node"]


def _variable(run: Run, name: str) -> Any:
    word = run.variables.get(name)
    if word is None:
        return None
    number = integer(word.text) if word.known else None
    place = Evidence(f"{run.name}:{word.line}", f"{name}={word.readable}")
    return Known(number, place) if number else Unknown(word.why or f"{place}: no number")


def _derive_tuning(
    configuration: Configuration, fields: Dict[str, Fact[Any]], keys: Dict[str, str]
) -> None:
    """What is trained, and in which type: all that is trained is cast to fp32 unless ZeRO-3, FSDP
    or pure_bf16 keeps it (model/adapter.py, init_adapter).
    """
    kind = configuration.get("finetuning_type", convert=text_of)
    rank = configuration.get("lora_rank", convert=integer)
    pure = configuration.get("pure_bf16", convert=boolean)
    keys["actor.lora_rank"] = "lora_rank"
    place = kind.evidence if isinstance(kind, Known) else Evidence("LLaMA-Factory")
    tuned = kind.value if isinstance(kind, Known) else None
    if tuned == "full":
        fields["actor.lora_rank"] = Known(0, place)
    else:
        fields["actor.lora_rank"] = (
            rank if tuned == "lora" else Unknown(f"{place}: {tuned} trains part of the model")
        )
    half = tuned == "lora" or (isinstance(pure, Known) and pure.value)
    if isinstance(pure, Known) and tuned in ("lora", "full"):
        fields["actor.param_dtype"] = Known("bf16" if half else "fp32", place)
    without = configuration.get("disable_gradient_checkpointing", convert=boolean)
    keys["actor.gradient_checkpointing"] = "disable_gradient_checkpointing"
    if isinstance(without, Known):
        fields["actor.gradient_checkpointing"] = Known(not without.value, without.evidence)
    # Either way it is decided above whether layers are recomputed.
    configuration.asked.add("gradient_checkpointing")


def _derive_reference(
    configuration: Configuration, fields: Dict[str, Fact[Any]], stage: Fact[Any]
) -> None:
    """A reference of its own is loaded for preferences with a full update; adapters are switched
    off instead (train/trainer_utils.py, create_ref_model).
    """
    loss = configuration.get("pref_loss", convert=text_of)
    named = configuration.get("ref_model", convert=text_of)
    lora = fields["actor.lora_rank"]
    fields["ref.optimizer"] = Known("none", Evidence("code of LLaMA-Factory"))
    fields["ref.model"] = named if isinstance(named, Known) else fields["actor.model"]
    if not isinstance(stage, Known) or not isinstance(loss, Known):
        fields["ref.present"] = Unknown("the stage, or its loss, is not known")
    elif stage.value not in ("dpo", "kto", "ppo") or loss.value in ("orpo", "simpo"):
        fields["ref.present"] = Known(False, stage.evidence)
    elif isinstance(named, Known) or not isinstance(lora, Known):
        fields["ref.present"] = (
            Known(True, named.evidence) if isinstance(named, Known) else Unknown("it hangs on LoRA")
        )
    else:
        fields["ref.present"] = Known(lora.value == 0, lora.evidence)


ADAPTER = _LlamaFactory()
