"""Megatron-Bridge: ``run_recipe.py --recipe NAME key=value``. A recipe is a Python function of the
checkout that returns the configuration (:mod:`.recipe_functions`); without a checkout nothing but
what the command says is known.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ...model.evidence import Absent, Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from ..shell.reader import Word
from .adapter import Run, read_small
from .configuration import boolean, integer, text_of
from .hf_trainer import derive_processes
from .hydra import entry_file
from .megatron_options import CUT_DEFAULTS, derive_megatron
from .recipe_functions import settings_of
from .settings import Setting
from .trainer import Launch, Trainer, TrainerReading, options_and_overrides

__all__ = ["ADAPTER"]

_ENTRY = re.compile(r"(?:.*/)?run_recipe\.py")
_SOURCE = "src"
_RECIPES = ("megatron/bridge/recipes", "megatron/bridge/perf_recipes")
_MOST_FILES = 1000
#: Options of the program by the setting that each is (scripts/training/run_recipe.py).
_OPTIONS: Mapping[str, str] = {
    "max_steps": "train.train_iters",
    "global_batch_size": "train.global_batch_size",
    "micro_batch_size": "train.micro_batch_size",
    "seq_length": "dataset.seq_length",
    "tensor_model_parallel_size": "model.tensor_model_parallel_size",
    "pipeline_model_parallel_size": "model.pipeline_model_parallel_size",
    "context_parallel_size": "model.context_parallel_size",
    "virtual_pipeline_model_parallel_size": "model.virtual_pipeline_model_parallel_size",
    "expert_model_parallel_size": "model.expert_model_parallel_size",
    "expert_tensor_parallel_size": "model.expert_tensor_parallel_size",
    "save_dir": "checkpoint.save",
    "save_interval": "checkpoint.save_interval",
    "pretrained_checkpoint": "checkpoint.pretrained_checkpoint",
    "load_dir": "checkpoint.load",
    "lr": "optimizer.lr",
    "min_lr": "optimizer.min_lr",
    "warmup_iters": "scheduler.lr_warmup_iters",
}
_SHORT = {
    "-ms": "--max_steps",
    "-gb": "--global_batch_size",
    "-mb": "--micro_batch_size",
    "-sl": "--seq_length",
    "-tp": "--tensor_model_parallel_size",
    "-pp": "--pipeline_model_parallel_size",
    "-cp": "--context_parallel_size",
    "-vp": "--virtual_pipeline_model_parallel_size",
    "-ep": "--expert_model_parallel_size",
    "-etp": "--expert_tensor_parallel_size",
}
_TASKS = {"pretrain": "pretrain", "sft": "sft", "lora": "peft", "dora": "peft"}
#: Options of Megatron-LM, which its parts keep, by the part that they stand in.
_MEGATRON: Mapping[str, Tuple[str, ...]] = {
    "model": (
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "context_parallel_size",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
        "sequence_parallel",
        "recompute_granularity",
        "recompute_method",
        "recompute_num_layers",
    ),
    "train": ("micro_batch_size",),
    "optimizer": (
        "optimizer",
        "optimizer_cpu_offload",
        "optimizer_offload_fraction",
        "use_precision_aware_optimizer",
    ),
    "ddp": ("use_distributed_optimizer", "use_megatron_fsdp"),
}
_FULL = {name: f"{part}.{name}" for part, names in _MEGATRON.items() for name in names}
_DEFAULTS: Mapping[str, Any] = {
    **CUT_DEFAULTS,
    # bf16_mixed and distributed_fused_adam_with_cosine_annealing, of every recipe.
    "use_distributed_optimizer": True,
    "optimizer": "adam",
    "mixed_precision.grad_reduce_in_fp32": True,
    "mixed_precision": "bf16_mixed",
    "model.cuda_graph_impl": "none",
    "model.fine_grained_activation_offloading": False,
    "model.offload_modules": None,
    "peft": None,
    "peft.dim": 32,  # peft/lora.py
}
#: Dimensions of a model that has no name, by the key of a config.json.
_DIMENSIONS = {
    "num_hidden_layers": "model.num_layers",
    "hidden_size": "model.hidden_size",
    "num_attention_heads": "model.num_attention_heads",
    "num_key_value_heads": "model.num_query_groups",
    "intermediate_size": "model.ffn_hidden_size",
    "vocab_size": "model.vocab_size",
}
_WITHOUT_MEMORY = re.compile(
    r"(?:train|scheduler|validation|logger|rng|tokenizer|profiling|dist|comm_overlap|env_vars"
    r"|checkpoint|nvrx_straggler|ft|tensor_inspect|straggler|rerun_state_machine)"
    r"(?:\.(?!micro_batch_size|save_interval).*)?\Z"
    r"|dataset\.(?!seq_length).*"
    r"|ddp\.(?:overlap|check|average|align|num_distributed|pad|data_parallel_sharding)\w*"
    r"|(?!mixed_precision)\w+\.made_by"
    r"|optimizer\.(?:use_distributed_optimizer|overlap_\w+|lr|min_lr|adam\w*|weight_decay|clip_grad|main_\w+|exp_avg\w*|params_dtype)"
    r"|model\.(?:load_weights|pipeline_dtype|attention_backend|transformer_impl"
    r"|seq_length|init_method_std|cross_entropy\w*|apply_rope_fusion|moe_(?!shared|router_topk)\w*"
    r"|pipeline_model_parallel_layout|virtual_pipeline_model_parallel_size|gradient_\w+"
    r"|bias_\w+|masked_softmax\w*|offload_modules|recompute_modules|vocab_size|deallocate\w*"
    r"|hidden_dropout|attention_dropout|\w*_fusion|cp_comm_type|account_for\w*"
    r"|cuda_graph_(?!impl)\w*|use_te\w*|use_transformer_engine\w*|mtp_loss_scaling_factor"
    r"|moe_shared_expert_overlap|make_vocab_size_divisible_by|should_pad_vocab|params_dtype|autocast_dtype|bf16|fp16|calculate_per_token_loss)\Z"
    r"|peft\.(?:target_modules|alpha|dropout\w*|lora_\w+|a2a_experimental|exclude_modules)"
)


class _MegatronBridge(Trainer):
    name = "megatron-bridge"
    layout = Layout(files=("src/megatron/bridge/__init__.py", "scripts/training/run_recipe.py"))
    source = "Megatron-Bridge"
    defaults = _DEFAULTS

    def owns(self, run: Run) -> bool:
        """By its program with a recipe."""
        if _ENTRY.fullmatch(run.entry) is None:
            return False
        options = {one.key for one in options_and_overrides(run)[0]}
        return bool(options & {"recipe", "model"})

    def launch(self, run: Run) -> Launch:
        """Return options and overrides over what the recipe sets."""
        words = [_spelled(word) for word in run.arguments]
        options, pairs = options_and_overrides(run._replace(arguments=tuple(words)))
        given = {one.key: one for one in options}
        recipe, why = _recipe_name(given)
        made = [one._replace(key=_OPTIONS[one.key]) for one in options if one.key in _OPTIONS]
        files = _settings_of_recipe(run, recipe) if recipe else None
        known = [one for one in [*made, *pairs] if not _WITHOUT_MEMORY.fullmatch(one.key)]
        own = [one for one in files or () if not _WITHOUT_MEMORY.fullmatch(one.key)]
        absent = "" if files else why or f"the recipe {recipe}"
        return Launch(_as_megatron(known), _as_megatron(own), absent)

    def derive(self, reading: TrainerReading) -> None:
        """Say which model the recipe trains, and how it is cut."""
        reading.put("algorithm", "sft")
        derive_processes(reading.run, reading.fields, reading.keys)
        if not reading.run.launcher:
            reading.fields["nodes"] = reading.fields["gpus_per_node"] = Unknown(
                "no launcher says how many processes there are"
            )
        derive_megatron(reading)
        length = reading.get("dataset.seq_length", convert=integer)
        reading.fields["data.max_length"] = length
        reading.keys["data.max_length"] = "dataset.seq_length"
        for field, name in list(reading.keys.items()):
            reading.keys[field] = _FULL.get(name, name)
        _derive_model(reading)
        _derive_adapters(reading)
        # What the precision says is laid over what the part for the gradients says.
        summed = reading.value("mixed_precision.grad_reduce_in_fp32", convert=boolean)
        reading.consider("ddp.grad_reduce_in_fp32", "grad_reduce_in_fp32")
        if summed is not None:
            reading.put("actor.grad_dtype", "fp32" if summed else "bf16")
        interval = reading.get("checkpoint.save_interval", convert=integer)
        reading.fields["checkpoint.save_freq"] = interval
        reading.consider("mixed_precision", "mixed_precision.made_by")

    def doubts(self, reading: TrainerReading) -> Sequence[str]:
        """Return types of numbers that change what is kept, and towers."""
        named = reading.value("mixed_precision.made_by", "mixed_precision", convert=text_of)
        return () if named == "bf16_mixed" else ("mixed_precision",)


def _spelled(word: Word) -> Word:
    name, equals, value = word.text.partition("=")
    return word._replace(text=_SHORT.get(name, name) + equals + value)


def _recipe_name(options: Mapping[str, Setting]) -> Tuple[str, str]:
    """Return the function that a command chooses, or why that is not known."""
    stated, model, mode = (options.get(name) for name in ("recipe", "model", "mode"))
    if stated is not None:
        return ("", stated.unclear) if stated.unclear else (str(stated.value), "")
    if model is None or mode is None or model.unclear or mode.unclear:
        return "", "--recipe"
    return f"{model.value}_{_TASKS.get(str(mode.value), mode.value)}_config", ""


def _as_megatron(settings: Sequence[Setting]) -> List[Setting]:
    """Return settings of parts under the names that Megatron-LM has for them."""
    names = {full: name for name, full in _FULL.items()}
    return [one._replace(key=names.get(one.key, one.key)) for one in settings]


def _settings_of_recipe(run: Run, name: str) -> Optional[List[Setting]]:
    """Return what a recipe of the checkout sets; None where it is not at hand, or where two of the
    name are.
    """
    root = _root(run)
    if not root or not name.isidentifier():
        return None
    places = [place for part in _RECIPES for place in _definitions(root, part, name)]
    if len(places) != 1:
        return None
    return settings_of(lambda module: _module(root, module), *places[0])


def _root(run: Run) -> str:
    if run.checkout is not None:
        return os.path.join(run.checkout.folder, _SOURCE)
    entry = entry_file(run)
    folder = os.path.dirname(os.path.abspath(entry[0])) if entry is not None else ""
    root = os.path.normpath(os.path.join(folder, "..", "..", _SOURCE)) if folder else ""
    return root if root and os.path.isdir(os.path.join(root, _RECIPES[0])) else ""


def _definitions(root: str, part: str, name: str) -> List[Tuple[str, str]]:
    """Return module and name of a function that files below a folder define or, among the first of
    the folders, import under that name.
    """
    defined = re.compile(rf"^def {name}\(", re.MULTILINE)
    renamed = re.compile(rf"\b(\w+) as {name}\b")
    recipes: List[Tuple[str, str]] = []
    count = 0
    for folder, folders, files in os.walk(os.path.join(root, part)):
        folders.sort()
        for file in sorted(one for one in files if one.endswith(".py")):
            count += 1
            text = read_small(os.path.join(folder, file)) if count < _MOST_FILES else None
            if text is None or name not in text:
                continue
            path = os.path.relpath(os.path.join(folder, file), root)
            module = path[:-3].replace(os.sep, ".")
            if defined.search(text):
                return [(module, name)]
            if part == _RECIPES[0] and renamed.search(text):
                recipes.append((module, name))
    return recipes[:1]


def _module(root: str, module: str) -> Optional[str]:
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    path = os.path.join(root, *parts)
    return read_small(f"{path}.py") or read_small(os.path.join(path, "__init__.py"))


def _derive_model(reading: TrainerReading) -> None:
    """The model that a recipe names, or the dimensions that it states."""
    named = reading.get("model.from_hf", convert=text_of)
    reading.keys["actor.model"] = "model"
    if isinstance(named, Known):
        reading.fields["actor.model"] = named
        return
    config: Dict[str, str] = {}
    for key, name in _DIMENSIONS.items():
        value = reading.get(name, convert=integer)
        if isinstance(value, Known):
            config[key] = str(value.value)
    if not {"num_hidden_layers", "hidden_size"} <= set(config):
        why: Fact[Any] = Unknown("the recipe does not say which model it is of")
        reading.fields["actor.model"] = named if reading.configuration.absent else why
        return
    place = Evidence(reading.run.name, "model.num_layers, model.hidden_size …")
    config.setdefault("vocab_size", "")
    reading.fields["actor.model"] = Known("the model of the recipe", place)
    reading.fields["actor.config"] = Known(config, place)


def _derive_adapters(reading: TrainerReading) -> None:
    given = reading.configuration.given
    made = any(key.startswith("peft.") for key in given)
    stated = reading.get("peft")
    rank = reading.get("peft.dim", convert=integer)
    reading.keys["actor.lora_rank"] = "peft.dim"
    kinds = {str(reading.value("peft.made_by", convert=text_of)).lower()}
    if "dora" in kinds | {word.text for word in reading.run.arguments}:
        reading.put("actor.dora", True)
    if made:
        reading.fields["actor.lora_rank"] = rank
    elif isinstance(stated, Absent) or (isinstance(stated, Known) and not stated.value):
        reading.put("actor.lora_rank", 0, stated)
    else:
        reading.fields["actor.lora_rank"] = stated if isinstance(stated, Unknown) else rank


ADAPTER = _MegatronBridge()
