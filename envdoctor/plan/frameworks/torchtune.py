"""torchtune: ``tune run RECIPE --config NAME key=value``, or the file alone. A model is built by a
function of the checkout that is named in the file (torchtune/models/*/_model_builders.py).
"""

from __future__ import annotations

import ast
import os
import re
from typing import Any, List, Mapping, Optional

from ...errors import InputError
from ...model.evidence import Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from .adapter import Run, read_small
from .configuration import Fields, boolean, integer, is_off, named_types, share_gpus, text_of
from .hf_trainer import derive_processes
from .hydra import entry_file
from .settings import MAX_CONFIG_BYTES, Setting, flags, read_config
from .trainer import Launch, Trainer, TrainerReading, options_and_overrides

__all__ = ["ADAPTER"]

_COMPONENT = re.compile(r"torchtune\.models\.(\w+)\.(q?lora_)?(\w+)")
_RECIPE = re.compile(r"(?:.*/)?(\w+?)(?:\.py)?\Z")
_OPTIMIZERS = {
    "torch.optim.AdamW": "adamw",
    "bitsandbytes.optim.AdamW8bit": "adamw_8bit",
    "bitsandbytes.optim.PagedAdamW8bit": "paged_adamw_8bit",
    "bitsandbytes.optim.PagedAdamW": "paged_adamw_fp32",
}
_FIELDS: Fields = {
    "actor.micro_batch": (("batch_size",), integer),
    "actor.gradient_checkpointing": (("enable_activation_checkpointing",), boolean),
    "actor.activation_offload": (("enable_activation_offloading",), boolean),
    "actor.fused_backward": (("optimizer_in_bwd",), boolean),
    "actor.tensor_parallel": (("tensor_parallel_dim",), integer),
    "actor.cpu_offload": (("fsdp_cpu_offload", "fsdp.cpu_offload"), boolean),
}
_DEFAULTS: Mapping[str, Any] = {
    "enable_activation_checkpointing": False,
    "enable_activation_offloading": False,
    "optimizer_in_bwd": False,
    "tensor_parallel_dim": 1,
    "fsdp_cpu_offload": False,
    "gradient_accumulation_steps": 1,
    "tokenizer.max_seq_len": None,
    "model.lora_rank": 8,
    "dtype": "bf16",
}


class _Torchtune(Trainer):
    name = "torchtune"
    layout = Layout(files=("torchtune/_cli/tune.py",))
    source = "torchtune"
    defaults = _DEFAULTS
    fields = _FIELDS

    def owns(self, run: Run) -> bool:
        """By its program with a recipe, a recipe of the checkout, or components of its models."""
        if run.entry.rpartition("/")[2] == "tune":
            return bool(run.arguments) and run.arguments[0].text == "run"
        if run.entry.endswith(".py"):
            entry = entry_file(run)
            text = read_small(entry[0]) if entry is not None else None
            return bool(text) and "torchtune" in str(text) and "recipe_main" in str(text)
        return not run.entry and any(
            setting.key.endswith("_component_") and str(setting.value).startswith("torchtune.")
            for setting in run.files
        )

    def launch(self, run: Run) -> Launch:
        """Return overrides over the file that ``--config`` names."""
        if not run.entry:
            return Launch((), run.files)
        options, given = options_and_overrides(run)
        named = next((option.value for option in options if option.key == "config"), None)
        files = self._file(run, str(named)) if named else None
        return Launch(given, files or (), "" if files else str(named or "--config"))

    @staticmethod
    def _file(run: Run, name: str) -> Optional[List[Setting]]:
        root = run.checkout.folder if run.checkout is not None else run.base
        names = (name, f"{name}.yaml", os.path.join("recipes", "configs", f"{name}.yaml"))
        for path in (name for name in names if name.endswith((".yaml", ".yml"))):
            text = run.text(path, (run.base, root), MAX_CONFIG_BYTES)
            if text is not None:
                try:
                    return read_config(text, os.path.basename(path))
                except InputError:
                    return None
        return None

    def derive(self, reading: TrainerReading) -> None:
        """Say which model is trained by which recipe."""
        recipe = self._recipe(reading.run)
        single = "single_device" in recipe or "single_device" in reading.run.name
        given = reading.configuration.given
        reward = any(key.startswith("ref_policy_checkpointer.") for key in given)
        prefers = "dpo" in recipe or "rlhf.loss" in str(given.get("loss._component_"))
        if any(key in given for key in ("prompt", "tasks", "max_new_tokens")):
            reading.fields["algorithm"] = Unknown(f"{reading.run.name} trains nothing")
            return
        reading.put("algorithm", "ppo" if reward else "dpo" if prefers else "sft")
        _derive_gpus(reading, single=single)
        _derive_model(reading)
        _derive_optimizer(reading)
        _derive_loss(reading)
        reading.put("ref.present", False)
        teacher = reading.get("teacher_checkpointer.checkpoint_dir", convert=text_of)
        adapters = reading.number("actor.lora_rank")
        if isinstance(teacher, Known):
            reading.put("ref.present", True, teacher)
            reading.fields["ref.model"] = Known(_named(teacher.value), teacher.evidence)
        elif (prefers or reward) and not adapters:
            reading.put("ref.present", True)
            reading.fields["ref.model"] = reading.fields["actor.model"]
        reading.fields["ref.strategy"] = Known("none" if single else "fsdp2", reading.code)

    @staticmethod
    def _recipe(run: Run) -> str:
        if run.entry.rpartition("/")[2] == "tune":
            words = [word.text for word in run.arguments[1:] if not word.text.startswith("-")]
            return next((word for word in words if "_" in word and "=" not in word), "")
        match = _RECIPE.fullmatch(run.entry)
        return match.group(1) if match else ""


def _derive_gpus(reading: TrainerReading, *, single: bool) -> None:
    """A recipe of one device, or FSDP 2 over as many as torchrun starts."""
    run = reading.run
    reading.put("actor.strategy", "ddp" if single else "fsdp2")
    reading.keys["actor.keeps_gathered"] = "fsdp_reshard_after_forward"
    reading.fields.update(
        reading.configuration.stated(
            "actor.keeps_gathered", "fsdp_reshard_after_forward", convert=is_off
        )
    )
    options, _ = flags(run.arguments, run.name)
    each = next((option for option in options if option.key == "nproc_per_node"), None)
    if run.launcher:
        derive_processes(run, reading.fields, reading.keys)
        return
    reading.put("nodes", 1)
    if single:
        reading.put("gpus_per_node", 1)
    elif each is not None and not each.unclear:
        count = each.value[0] if isinstance(each.value, list) else each.value
        reading.fields["gpus_per_node"] = Known(integer(count) or 1, each.place)
        reading.keys["gpus_per_node"] = "--nproc_per_node"
    else:
        reading.fields["gpus_per_node"] = Unknown("no command says --nproc_per_node")
    share_gpus(reading.fields)


def _named(folder: str) -> str:
    return folder.rstrip("/")


def _derive_model(reading: TrainerReading) -> None:
    """The checkpoint's folder names the model; its builder adapters, quantisation, longest text."""
    folder = reading.get("checkpointer.checkpoint_dir", "base_model_path", convert=text_of)
    component = reading.get("model._component_", "policy_model._component_", convert=text_of)
    reading.fields["actor.model"] = (
        Known(_named(folder.value), folder.evidence) if isinstance(folder, Known) else folder
    )
    reading.keys["actor.model"] = "checkpointer.checkpoint_dir"
    text = component.value if isinstance(component, Known) else ""
    match = _COMPONENT.fullmatch(text)
    tuned = match.group(2) or "" if match else ""
    rank = reading.get("model.lora_rank", convert=integer)
    reading.fields.update(
        reading.configuration.stated("actor.dora", "model.use_dora", convert=boolean)
    )
    if match is None:
        reading.fields["actor.lora_rank"] = Unknown("the model's builder is not torchtune's")
    elif tuned:
        reading.fields["actor.lora_rank"] = rank
    else:
        reading.put("actor.lora_rank", 0, component)
    packed = reading.value("model.quantize_base", convert=boolean, default=False)
    if tuned == "qlora_" or packed:
        reading.put("actor.quantization", "int4", component)
    reading.fields["actor.param_dtype"] = named_types(reading.get("dtype", convert=text_of))
    length: Fact[Any] = reading.get("tokenizer.max_seq_len", "dataset.max_seq_len", convert=integer)
    if not isinstance(length, Known):
        length = _longest(reading.run, match)
    reading.fields["data.max_length"] = length
    reading.keys["data.max_length"] = "tokenizer.max_seq_len"
    reading.consider("dataset.packed", "compile")
    reading.accept("device", "cuda")


def _longest(run: Run, match: Optional[re.Match[str]]) -> Fact[Any]:
    """Return the longest text that a model's builder allows: without ``max_seq_len`` texts are not
    cut.
    """
    nothing = Unknown("no tokenizer.max_seq_len: texts are as long as they are")
    if match is None or run.checkout is None:
        return nothing
    path = os.path.join("torchtune", "models", match.group(1), "_model_builders.py")
    text = read_small(os.path.join(run.checkout.folder, path))
    try:
        tree = ast.parse(text or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return nothing
    names = (match.group(3), f"lora_{match.group(3)}")
    builders = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names
    ]
    for part in (part for node in builders for part in ast.walk(node)):
        is_length = isinstance(part, ast.keyword) and part.arg == "max_seq_len"
        value = part.value if is_length else None  # type: ignore[attr-defined]
        if isinstance(value, ast.Constant) and isinstance(value.value, int):
            return Known(value.value, Evidence(f"{path}:{value.lineno}", "max_seq_len"))
    return nothing


def _derive_optimizer(reading: TrainerReading) -> None:
    named = reading.get("optimizer._component_", "optimizer", convert=text_of)
    reading.keys["actor.optimizer"] = "optimizer"
    kind = named.value if isinstance(named, Known) else ""
    known = _OPTIMIZERS.get(kind)
    if known is not None:
        reading.put("actor.optimizer", known, named)
    else:
        reading.fields["actor.optimizer"] = Unknown(f"{kind or 'the optimizer'} is not AdamW's")
    reading.put("checkpoint.save_freq", 0)


def _derive_loss(reading: TrainerReading) -> None:
    """Chunked losses make 8 pieces (torchtune/modules/loss, num_output_chunks)."""
    loss = reading.value("loss._component_", "loss", convert=text_of, default="")
    if "LinearCrossEntropy" in loss or "Chunked" in loss:
        chunks = reading.value("loss.num_output_chunks", convert=integer, default=8)
        reading.put("actor.loss_chunks", chunks)


ADAPTER = _Torchtune()
