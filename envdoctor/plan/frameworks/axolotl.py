"""axolotl: ``axolotl train FILE.yaml``, its module with ``accelerate launch``, or the file alone.
Defaults are those of src/axolotl/utils/schemas and of TrainingArguments.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Tuple

from ...model.evidence import Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from .adapter import Run
from .configuration import Fields, boolean, integer, share_gpus, text_of
from .hf_trainer import (
    TRAINING_FIELDS,
    derive_batches,
    derive_processes,
    fsdp_spread,
    named_file,
    packed_by_name,
    sharding,
    upcast_by_fsdp,
)
from .optimizers import optimizer_fields
from .settings import Setting, flags
from .trainer import Launch, Trainer, TrainerReading

__all__ = ["ADAPTER"]

_ENTRY = re.compile(r"axolotl\.cli\.train|(?:.*/)?axolotl/cli/train\.py")
_CONFIGS = (".yaml", ".yml")
#: Classes of transformers that make logits for each token.
_WITH_HEAD = ("ForCausalLM", "ForConditionalGeneration", "AutoModelForImageTextToText")
#: What no other trainer's file has together.
_OWN = ("base_model", "sequence_len", "micro_batch_size")
_ALGORITHMS = {
    **dict.fromkeys(("dpo", "ipo", "kto", "orpo", "simpo"), "dpo"),
    **dict.fromkeys(("grpo", "gdpo"), "grpo"),
}
_FIELDS: Fields = {
    **TRAINING_FIELDS,
    "actor.model": (("base_model",), text_of),
    "actor.micro_batch": (("micro_batch_size",), integer),
    "actor.sequence_parallel": (("context_parallel_size", "sequence_parallel_degree"), integer),
}
_DEFAULTS: Mapping[str, Any] = {
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "gradient_checkpointing": False,
    "activation_offloading": False,
    "sequence_len": 512,
    "context_parallel_size": 1,
    "sequence_parallel_degree": 1,
    "tensor_parallel_size": 1,
    "dataloader_num_workers": 0,
    "save_steps": None,
    "saves_per_epoch": None,
    "save_total_limit": None,
    "save_only_model": False,
    "optimizer": "adamw_torch_fused",
    "deepspeed": None,
    "fsdp": None,
    "fsdp_config": None,
    "adapter": None,
    "load_in_4bit": False,
    "load_in_8bit": False,
    "sample_packing": False,
    "rl": None,
    "trl.use_vllm": False,
    "trl.max_completion_length": None,
    "trl.num_generations": None,
}


class _Axolotl(Trainer):
    name = "axolotl"
    attention = (
        "attn_implementation",
        "flash_attention",
        "sdp_attention",
        "flex_attention",
        "xformers_attention",
        "eager_attention",
    )
    layout = Layout(files=("src/axolotl/cli/train.py",))
    source = "axolotl"
    defaults = _DEFAULTS
    fields = _FIELDS

    def owns(self, run: Run) -> bool:
        """By its program or module; a file by keys that no other trainer has together."""
        if _ENTRY.fullmatch(run.entry):
            return True
        if run.entry.rpartition("/")[2] == "axolotl":
            return bool(run.arguments) and run.arguments[0].text == "train"
        keys = {setting.key for setting in run.files}
        return not run.entry and all(key in keys for key in _OWN)

    def launch(self, run: Run) -> Launch:
        """Return the options of a command over its file."""
        options, words = flags(run.arguments, run.name)
        name, named = named_file(run, words, _CONFIGS)
        files = [*run.files, *named]
        return Launch(options, files, "" if files else name or "the file of axolotl")

    def derive(self, reading: TrainerReading) -> None:
        """Say what is trained, in which type, and how it is spread."""
        kind = reading.get("rl", convert=text_of)
        rl = kind.value if isinstance(kind, Known) else ""
        algorithm = _ALGORITHMS.get(rl, "" if rl else "sft")
        reading.fields["algorithm"] = (
            Known(algorithm, kind.evidence if isinstance(kind, Known) else reading.code)
            if algorithm
            else Unknown(f"rl: {rl} is not known")
        )
        fields, keys = reading.fields, reading.keys
        if reading.run.launcher:
            derive_processes(reading.run, fields, keys)
        else:
            # `axolotl train` starts accelerate on all GPUs of the machine.
            reading.put("nodes", 1)
            fields["gpus_per_node"] = Unknown("all GPUs that are visible")
            share_gpus(fields)
        _derive_tuning(reading)
        fields.update(_sharding(reading))
        upcast_by_fsdp(fields)
        reading.configuration.given.setdefault("optim", _renamed(reading))
        fields.update(optimizer_fields(reading.configuration))
        keys["actor.optimizer"] = "optimizer"
        _derive_activations(reading)
        _derive_lengths(reading, generates=algorithm == "grpo")
        _derive_reference(reading, rl)
        derive_batches(reading.configuration, fields, keys)
        reading.accept("model_type", *_WITH_HEAD)
        saves = reading.get("save_steps", convert=integer)
        reading.consider("saves_per_epoch")
        fields["checkpoint.save_freq"] = saves if isinstance(saves, Known) else Unknown("by epochs")

    def doubts(self, reading: TrainerReading) -> List[str]:
        """Return what trains part of the model, or stores it in another way."""
        names = ("unfrozen_parameters", "qat", "reinit_weights", "quantize_moe_experts", "gptq")
        return [
            name
            for name in names
            if any(key.partition(".")[0] == name for key in reading.configuration.given)
        ]


def _sharding(reading: TrainerReading) -> Mapping[str, Fact[Any]]:
    given = reading.configuration.given
    inside = [key for key in given if key.startswith("fsdp_config.")]
    asked = reading.value("fsdp")
    if inside or asked:
        return _fsdp(reading, next((key for key in given if key in ("fsdp", *inside)), ""))
    if reading.value("deepspeed", convert=text_of):
        state = sharding(reading.run, reading.configuration)
        reading.keys.update(state.keys)
        return state.fields
    return {"actor.strategy": Known("ddp", Evidence(reading.run.name, "no deepspeed, no fsdp"))}


def _fsdp(reading: TrainerReading, first: str) -> Mapping[str, Fact[Any]]:
    """Return what FSDP does. first: the first key that asks for it, "" where a default does."""
    given = reading.configuration.given
    place = given[first].place if first else reading.code
    version = reading.value("fsdp_version", "fsdp_config.fsdp_version", convert=integer)
    away = reading.get(*_by_both_names("offload_params"), convert=boolean)
    if not isinstance(away, Known):
        away = Known("offload" in str(given.get("fsdp")), place)
    recompute = reading.get("fsdp_config.activation_checkpointing", convert=boolean)
    if isinstance(recompute, Known) and recompute.value:
        reading.put("actor.gradient_checkpointing", True, recompute)
    alone = reading.get(*_by_both_names("cpu_ram_efficient_loading"), convert=boolean)
    reading.keys["actor.rank0_init"] = "fsdp_config.cpu_ram_efficient_loading"
    reading.keys["actor.strategy"] = "fsdp_config"
    reading.keys["actor.keeps_gathered"] = "fsdp_config.reshard_after_forward"
    spread: Dict[str, Fact[Any]] = {}
    for name in ("sharding_strategy", "reshard_after_forward"):
        keys = _by_both_names(name)
        reading.consider(*keys)
        for setting in (given[key] for key in keys if key in given):
            spread.update(fsdp_spread(setting, reading.fields["gpus_per_node"]))
    return {
        "actor.strategy": Known("fsdp2" if version == 2 else "fsdp", place),
        "actor.cpu_offload": away,
        "actor.rank0_init": alone,
        **spread,
    }


def _by_both_names(name: str) -> Tuple[str, str]:
    """Return a key of ``fsdp_config`` as axolotl has it, and as accelerate does."""
    return f"fsdp_config.{name}", f"fsdp_config.fsdp_{name}"


def _renamed(reading: TrainerReading) -> Any:
    """Return ``optimizer`` under the name that TrainingArguments has for it."""
    given = reading.configuration.given.get("optimizer")
    reading.consider("optimizer")
    if given is not None:
        value = given.value if isinstance(given.value, str) else "adamw_torch_fused"
        return given._replace(key="optim", value=value)
    return Setting("optim", "adamw_torch_fused", reading.code)


def _derive_tuning(reading: TrainerReading) -> None:
    """Adapters, what lies below them, and the type: bf16 where it is asked for, or supported."""
    adapter = reading.get("adapter", convert=text_of)
    rank = reading.get("lora_r", convert=integer)
    reading.keys["actor.lora_rank"] = "lora_r"
    reading.fields.update(
        reading.configuration.stated("actor.dora", "peft_use_dora", convert=boolean)
    )
    kind = adapter.value if isinstance(adapter, Known) else ""
    if kind in ("lora", "qlora"):
        reading.fields["actor.lora_rank"] = rank if isinstance(rank, Known) else Unknown("lora_r")
    elif kind:
        reading.fields["actor.lora_rank"] = Unknown(f"{kind} trains part of the model")
    else:
        reading.put("actor.lora_rank", 0, adapter)
    packed = packed_by_name(reading.number("actor.model"))
    for kind_of_weights, switch in (("int8", "load_in_8bit"), ("int4", "load_in_4bit")):
        if reading.value(switch, convert=boolean):
            packed = kind_of_weights
    if packed:
        reading.put("actor.quantization", packed)
    saved = str(reading.value("lora_modules_to_save"))
    if "embed" in saved or "lm_head" in saved:
        reading.put("actor.trains_embedding", True)
    half = [_is_half(reading, name) for name in _HALF_PRECISION]  # each of them is understood
    if any(half):
        reading.put("actor.param_dtype", "bf16")


_HALF_PRECISION = ("bf16", "bfloat16", "fp16", "float16", "torch_dtype")


def _is_half(reading: TrainerReading, name: str) -> bool:
    """Tell whether a setting asks for half precision, by a switch or by the name of a type."""
    word = reading.value(name, convert=text_of) or str(reading.value(name))
    return word.lower() in ("true", "auto", "full", "bfloat16", "float16")


def _derive_activations(reading: TrainerReading) -> None:
    """Recomputation, stored activations on the host, and losses that never hold all logits."""
    named = reading.get("gradient_checkpointing")
    reading.keys["actor.gradient_checkpointing"] = "gradient_checkpointing"
    if isinstance(named, Known) and "actor.gradient_checkpointing" not in reading.fields:
        word = str(named.value).lower()
        if named.value is not None:
            reading.put("actor.gradient_checkpointing", word not in ("false",), named)
        if word.startswith("offload"):
            reading.put("actor.activation_offload", True, named)
    away = reading.value("activation_offloading")
    if str(away).lower() in ("true", "legacy", "disk"):
        reading.put("actor.activation_offload", True)
    fused = ("liger_fused_linear_cross_entropy", "cut_cross_entropy")
    plugins = str(reading.value("plugins", default=""))
    if any(reading.value(name, convert=boolean) for name in fused) or "CutCrossEntropy" in plugins:
        reading.put("actor.loss_chunks", 8)
    tensor = reading.get("tensor_parallel_size", convert=integer)
    if isinstance(tensor, Known):
        reading.fields["actor.tensor_parallel"] = tensor


def _derive_lengths(reading: TrainerReading, *, generates: bool) -> None:
    length = reading.get("sequence_len", convert=integer)
    reading.fields["data.max_prompt_length"] = length
    reading.keys["data.max_prompt_length"] = "sequence_len"
    packed = reading.get("sample_packing", convert=boolean)
    if isinstance(packed, Known) and packed.value:
        reading.put("actor.padding_free", True, packed)
        reading.put("actor.packed", True, packed)  # utils/samplers/multipack.py: first fit
    if not generates:
        return
    reading.fields["data.max_response_length"] = reading.get(
        "trl.max_completion_length", convert=integer
    )
    reading.fields["rollout.n"] = reading.get("trl.num_generations", convert=integer)
    uses = reading.get("trl.use_vllm", convert=boolean)
    if isinstance(uses, Known):
        reading.put("rollout.engine", "vllm" if uses.value else "hf", uses)
    mode = reading.get("trl.vllm_mode", convert=text_of)
    if isinstance(mode, Known):
        reading.put("colocated", mode.value == "colocate", mode)


def _derive_reference(reading: TrainerReading, rl: str) -> None:
    lora = reading.fields["actor.lora_rank"]
    reading.fields["ref.model"] = reading.fields["actor.model"]
    for name in ("strategy", "shard_ranks", "keeps_gathered"):
        if f"actor.{name}" in reading.fields:
            reading.fields[f"ref.{name}"] = reading.fields[f"actor.{name}"]
    if rl not in ("dpo", "ipo", "kto", "grpo", "gdpo"):
        reading.put("ref.present", False)
    elif isinstance(lora, Known):
        reading.put("ref.present", lora.value == 0, lora)


ADAPTER = _Axolotl()
