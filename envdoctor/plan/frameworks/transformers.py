"""A script of one's own that trains with transformers' Trainer: ``TrainingArguments`` on its
command line, the rest in its code. It is told by its imports; what else the code does is not known,
so that nothing is said not to fit for certain.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ...model.evidence import Absent, Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from .adapter import CERTAIN, Run, RunReading
from .configuration import Configuration, Fields, boolean, integer, text_of
from .hf_trainer import (
    derive_batches,
    derive_processes,
    entry_source,
    imports,
    optimizer_of,
    sharding,
)
from .key_tables import own_table
from .problems import value_problems
from .settings import flags
from .unread import unread_settings

__all__ = ["ADAPTER"]

_FIELDS: Fields = {
    "actor.model": (("model_name_or_path", "model_name", "model_path"), text_of),
    "actor.micro_batch": (("per_device_train_batch_size",), integer),
    "actor.gradient_checkpointing": (("gradient_checkpointing",), boolean),
    "data.max_prompt_length": (
        ("model_max_length", "max_seq_length", "max_length", "block_size", "cutoff_len"),
        integer,
    ),
    "data.dataloader_workers": (("dataloader_num_workers",), integer),
    "checkpoint.save_freq": (("save_steps",), integer),
    "checkpoint.limit": (("save_total_limit",), integer),
    "checkpoint.model_only": (("save_only_model",), boolean),
}
#: transformers/training_args.py; gradient_checkpointing is off in all releases.
_DEFAULTS: Mapping[str, Any] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "gradient_checkpointing": False,
    "dataloader_num_workers": 0,
    "save_steps": 500,
    "save_total_limit": None,
    "save_only_model": False,
    "optim": "adamw_torch",
    "deepspeed": None,
}
_OTHERS = ("trl", "llamafactory", "swift", "openrlhf", "axolotl", "verl")


class _Transformers:
    name = "transformers"
    layout = Layout()

    def claims(self, run: Run) -> int:
        """By a script that imports transformers and names TrainingArguments; frameworks on top of
        it come first.
        """
        source = entry_source(run) if run.entry.endswith(".py") else ""
        trains = "TrainingArguments" in source and imports(source, "transformers")
        if not trains or any(imports(source, name) for name in _OTHERS):
            return 0
        return CERTAIN // 4

    def read(self, run: Run) -> RunReading:
        """Read the run."""
        settings = flags(run.arguments, run.name)[0]
        table = own_table(self.name, ("",), _DEFAULTS, "TrainingArguments")
        configuration = Configuration(table, ("",), settings, run.files, run.environ)
        facts, names = configuration.read(_FIELDS, {})
        place = Evidence(run.name, run.entry)
        fields: Dict[str, Fact[Any]] = {
            "framework": Known(self.name, place),
            "algorithm": Known("sft", place),
            "actor.present": Known(True, place),
            "critic.present": Known(False, place),
            "reward.present": Known(False, place),
            "colocated": Known(True, place),
            "actor.lora_rank": Unknown(f"{run.entry} may train adapters"),
            **facts,
        }
        keys = {field: f"--{name}" for field, name in names.items() if name}
        derive_processes(run, fields, keys)
        state = sharding(run, configuration)
        fields.update(state.fields)
        fields["actor.optimizer"] = optimizer_of(configuration)
        derive_batches(configuration, fields, keys)
        if isinstance(fields["checkpoint.limit"], Absent):
            fields["checkpoint.limit"] = Known(0, fields["checkpoint.limit"].evidence)
        options = (f"--{name}" for name in unread_settings(configuration, settings))
        return RunReading(
            fields,
            keys,
            value_problems(fields, keys),
            Unknown("nothing tells the version"),
            (f"the code of {run.entry}", *options),
        )


ADAPTER = _Transformers()
