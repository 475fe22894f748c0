"""oat: ``python -m oat.experiment.run_math_rl --option value`` and its siblings, and scripts of
one's own that put its learner and actors together. Options are the fields of dataclasses that tyro
reads (oat/args.py), so that ``--no-x`` switches x off.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, Sequence

from ...model.evidence import Absent, Known, Unknown
from ...model.layout import Layout
from .adapter import Run, read_small
from .configuration import Fields, at_least_zero, boolean, decimal, integer, named_types, text_of
from .declared import nested_defaults
from .hf_trainer import derive_processes, entry_source, imports
from .hydra import entry_file
from .key_tables import KeyTable, own_table
from .settings import Setting, flags
from .trainer import Launch, Trainer, TrainerReading

__all__ = ["ADAPTER"]

_ENTRY = re.compile(
    r"oat\.experiment\.(main|run_math_rl|run_ppo|run_offline)"
    r"|(?:.*/)?oat/experiment/(main|run_math_rl|run_ppo|run_offline)\.py"
)
_ARGUMENTS = {
    "main": ("oat.args", "OATArgs"),
    "run_ppo": ("oat.algorithms.ppo", "PPOArgs"),
    "run_math_rl": ("oat.experiment.run_math_rl", "ZeroMathArgs"),
    "run_offline": ("oat.experiment.run_offline", "OfflineArgs"),
}
_FIELDS: Fields = {
    "actor.model": (("pretrain",), text_of),
    "actor.micro_batch": (("train_batch_size_per_device", "micro_train_batch_size"), integer),
    "actor.gradient_checkpointing": (("gradient_checkpointing",), boolean),
    "actor.lora_rank": (("lora_rank",), integer),
    "actor.offload_optimizer": (("adam_offload",), boolean),
    "actor.offload_params": (("model_offload",), boolean),
    "ref.offload_params": (("ref_offload",), boolean),
    "colocated": (("collocate",), boolean),
    "data.max_prompt_length": (("prompt_max_length",), integer),
    "data.max_response_length": (("generate_max_length",), integer),
    "data.train_batch_size": (("rollout_batch_size",), integer),
    "rollout.n": (("num_samples",), integer),
    "rollout.tensor_parallel": (("num_gpus_per_actor",), integer),
    "rollout.gpu_memory_utilization": (("vllm_gpu_ratio",), decimal),
    "rollout.max_model_len": (("max_model_len",), integer),
    "checkpoint.save_freq": (("save_steps",), integer),
    "checkpoint.limit": (("max_save_num",), integer),
    "checkpoint.folder": (("save_path",), text_of),
}
#: oat/args.py@c1a074c3
_DEFAULTS: Mapping[str, Any] = {
    "algo": "DPO",
    "gpus": 8,
    "num_groups": 1,
    "num_gpus_per_actor": 1,
    "vllm_gpu_ratio": 0.25,
    "max_model_len": None,
    "collocate": False,
    "vllm_sleep": False,
    "ref_pretrain": None,
    "critic_pretrain": None,
    "critic_type": "drgrpo",
    "beta": 0.1,
    "kl_penalty_coef": 0.0,
    "learn_rm": False,
    "num_samples": 2,
    "generate_max_length": 512,
    "prompt_max_length": 1024,
    "rollout_batch_size": 128,
    "train_batch_size_per_device": 1,
    "gradient_checkpointing": False,
    "zero_stage": 2,
    "zpg": 1,
    "bf16": True,
    "fp16": False,
    "ref_offload": False,
    "model_offload": False,
    "adam_offload": False,
    "flash_attn": True,
    "grad_accum_dtype": None,
    "load_in_4bit": False,
    "lora_rank": 0,
    "lora_sync_only": False,
    "use_fused_lm_head": True,
    "activation_offloading": False,
    "save_steps": -1,
    "save_path": "./oat-output",
    "max_save_num": 5,
}
#: Switches of its programs and of scripts on top of them that are off until they are given.
_SWITCHES = (
    "enable_prefix_caching",
    "asynchronous",
    "apply_chat_template",
    "debug",
    "rnd_seed",
    "use_wb",
    "ignore_no_eos",
    "save_ckpt",
    "dump_all_buffer",
    "online_evaluation",
    "best_of_n_eval",
    "exp_rnd_sample",
    "exp_allow_second_best",
    "model_rollout",
    "whiten_adv",
    "disable_fast_tokenizer",
    "extract_content",
)
#: Settings that lower nothing.
_CHANGES_NOTHING = (
    *_SWITCHES,
    "oracle",
    "oracle_type",
    "preference_oracle",
    "remote_rm_url",
    "remote_rm_client_workers",
    "sync_params_every",
    "max_train",
    "max_queries",
    "train_batch_size",
    "rollout_batch_size_per_device",
    "pi_buffer_maxlen_per_device",
    "num_prompt_epoch",
    "num_ppo_epochs",
    "prompt_template",
    "prompt_data",
    "preference_data",
    "chat_data",
    "msg_key",
    "test_split",
    "verifier_version",
    "non_stop_penalty",
    "wb_run_name",
    "wb_project",
    "learning_rate",
    "critic_learning_rate",
    "max_eval",
    "logging_steps",
    "template",
)
_LOSS_PIECE = 512  # oat/utils/lm_head.py, FusedLinear: tokens of one piece


class _Oat(Trainer):
    name = "oat"
    layout = Layout(files=("oat/args.py", "oat/interface.py"))
    source = "oat"
    option = "--"
    defaults = _DEFAULTS
    fields = _FIELDS

    def owns(self, run: Run) -> bool:
        """By its own programs, or by a script that puts a program of its nodes together."""
        if _ENTRY.fullmatch(run.entry):
            return True
        source = entry_source(run)
        return imports(source, "oat.interface") and "get_program" in source

    def table(self, run: Run) -> KeyTable:
        """Return what the sources beside the entry declare over the release that was read."""
        declared = _declared(run)
        where = f"{self.source} of this checkout" if declared else self.source
        return own_table(self.name, ("",), {**_DEFAULTS, **declared}, where)

    def launch(self, run: Run) -> Launch:
        """Return the options; a switch may be turned off by its name with "no"."""
        values = {**_DEFAULTS, **_declared(run)}
        on = [key for key, value in values.items() if isinstance(value, bool)]
        names = [*on, *_SWITCHES]
        settings = flags(run.arguments, run.name, [*names, *(f"no_{name}" for name in names)])[0]
        return Launch([_switched(setting) for setting in settings])

    def derive(self, reading: TrainerReading) -> None:
        """Say what is trained and on which GPUs, and what generates."""
        reading.consider(*_CHANGES_NOTHING)
        kind = _program(reading.run)
        method = reading.get("algo", "dap_algo", convert=text_of)
        name = method.value if isinstance(method, Known) else ""
        offline = kind == "run_offline"
        reinforces = kind in ("run_ppo", "run_math_rl", "")
        if offline:
            reading.put("algorithm", "sft" if name == "SFT" else "dpo", method)
        else:
            reading.put("algorithm", "grpo" if reinforces else "online_dpo")
        _derive_state(reading)
        _derive_others(reading, name, reinforces=reinforces)
        _derive_lengths(reading, tuned=offline and name == "SFT")
        if not reinforces and not offline:
            _double(reading)
        if offline:
            reading.put("colocated", True)
            derive_processes(reading.run, reading.fields, reading.keys)
        else:
            _derive_gpus(reading)
            _derive_engine(reading)
        frequency = reading.fields["checkpoint.save_freq"]
        reading.fields["checkpoint.save_freq"] = at_least_zero(frequency)
        reading.put("checkpoint.gather", "full_bf16")
        reading.put("checkpoint.model_only", True)

    def doubts(self, reading: TrainerReading) -> Sequence[str]:
        """A script of one's own may set anything."""
        own = _ENTRY.fullmatch(reading.run.entry) is None
        return (f"what {reading.run.entry} sets itself",) if own else ()


def _program(run: Run) -> str:
    """Return the program of oat's that a run starts; "" of a script of one's own."""
    match = _ENTRY.fullmatch(run.entry)
    return (match.group(1) or match.group(2)) if match else ""


def _declared(run: Run) -> Dict[str, Any]:
    entry = entry_file(run)
    root = run.checkout.folder if run.checkout is not None else entry[1] if entry else ""
    module, name = _ARGUMENTS[_program(run) or "run_ppo"]

    def text(one: str) -> str:
        path = os.path.join(root, *one.split("."))
        return read_small(f"{path}.py") or read_small(os.path.join(path, "__init__.py")) or ""

    return nested_defaults(text, module, name) if root else {}


def _switched(setting: Setting) -> Setting:
    off = setting.key.startswith("no_") and setting.value is True
    return setting._replace(key=setting.key[3:], value=False) if off else setting


def _derive_state(reading: TrainerReading) -> None:
    """DeepSpeed spreads what is trained, as OpenRLHF has it do (oat/utils/deepspeed.py)."""
    fields = reading.fields
    stage = reading.get("zero_stage", convert=integer)
    reading.keys["actor.strategy"] = "zero_stage"
    fields["actor.strategy"] = (
        Known(f"zero{stage.value}" if stage.value else "ddp", stage.evidence)
        if isinstance(stage, Known)
        else stage
    )
    half = [reading.value(name, convert=boolean) for name in ("bf16", "fp16")]
    if None not in half:
        reading.put("actor.param_dtype", "bf16" if half[0] else "fp16" if half[1] else "fp32")
    summed = reading.get("grad_accum_dtype", convert=text_of)
    fields["actor.grad_dtype"] = named_types(summed)
    if isinstance(summed, Absent) and half[0]:
        reading.put("actor.grad_dtype", "bf16")
    reading.put("actor.optimizer", "adamw")
    flash = reading.get("flash_attn", convert=boolean)
    if isinstance(flash, Known):
        reading.put("actor.attention", "fused" if flash.value else "eager", flash)
    packed = reading.get("load_in_4bit", convert=boolean)
    if isinstance(packed, Known):
        reading.put("actor.quantization", "int4" if packed.value else "none", packed)
    fused = reading.get("use_fused_lm_head", convert=boolean)
    if isinstance(fused, Known) and fused.value and reading.number("algorithm") in ("grpo", "sft"):
        reading.put("actor.loss_piece", _LOSS_PIECE, fused)


def _derive_others(reading: TrainerReading, method: str, *, reinforces: bool) -> None:
    """A reference where a KL term or the method compares with one, and a critic for PPO's own
    advantages (learners/rl.py, learners/dap.py); both lie on the learner's GPUs.
    """
    fields = reading.fields
    named = reading.get("ref_pretrain", convert=text_of)
    fields["ref.model"] = named if isinstance(named, Known) else fields["actor.model"]
    stage = reading.number("actor.strategy")
    if stage is not None:
        reading.put("ref.strategy", "zero3" if stage == "zero3" else "none")
    fields["ref.cpu_offload"] = fields["ref.offload_params"]
    reading.put("ref.param_dtype", "bf16")
    if reinforces:
        weights = [reading.value(name, convert=decimal) for name in ("beta", "kl_penalty_coef")]
        fields["ref.present"] = (
            Known(any(weight > 0 for weight in weights), reading.code)
            if None not in weights
            else Unknown("the weight of the KL term is not known")
        )
    elif method:
        reading.put("ref.present", method not in ("SimPO", "SFT"))
    if reinforces and reading.value("critic_type", convert=text_of) == "ppo":
        reading.put("algorithm", "ppo")
        reading.put("critic.present", True)
        critic = reading.get("critic_pretrain", convert=text_of)
        fields["critic.model"] = critic if isinstance(critic, Known) else fields["actor.model"]
        for name in (
            "strategy",
            "param_dtype",
            "grad_dtype",
            "optimizer",
            "micro_batch",
            "gradient_checkpointing",
            "offload_optimizer",
            "offload_params",
        ):
            fields[f"critic.{name}"] = fields[f"actor.{name}"]
    for role in ("ref", "critic"):
        reading.put(f"{role}.beside_actor", True)
    judges: List[str] = []
    if reading.value("learn_rm", convert=boolean):
        judges.append("learn_rm")
    oracle = reading.run.entry and str(reading.value("oracle", "preference_oracle") or "")
    if _program(reading.run) in ("main", "run_ppo") and not re.search(
        "remote|gpt", oracle, re.IGNORECASE
    ):
        judges.append(f"oracle {oracle}".strip())
    if judges:
        reading.put("others", ", ".join(judges))


def _derive_lengths(reading: TrainerReading, *, tuned: bool) -> None:
    if not tuned:
        return
    length = reading.get("max_model_len", convert=integer)
    reading.fields["data.max_length"] = (
        length if isinstance(length, Known) else Unknown("max_model_len bounds no text")
    )
    reading.keys["data.max_length"] = "max_model_len"
    for name in ("prompt", "response"):
        del reading.fields[f"data.max_{name}_length"]


def _double(reading: TrainerReading) -> None:
    """Of two answers that are compared each is a sequence of the pass."""
    micro = reading.fields["actor.micro_batch"]
    if isinstance(micro, Known):
        reading.put("actor.micro_batch", 2 * micro.value, micro)
        reading.configuration.totals["actor.micro_batch"] = 1


def _derive_gpus(reading: TrainerReading) -> None:
    """Apart from each other actors take one half of a group's GPUs, the learner the other
    (oat/interface.py get_program).
    """
    fields = reading.fields
    each = reading.get("gpus", convert=integer)
    groups = reading.get("num_groups", convert=integer)
    fields["gpus_per_node"], fields["nodes"] = each, groups
    reading.keys["gpus_per_node"], reading.keys["nodes"] = "gpus", "num_groups"
    together = reading.number("colocated")
    if not isinstance(each, Known) or not isinstance(groups, Known) or together is None:
        return
    if groups.value > 1 and each.value < 8:
        fields["nodes"] = Unknown("several groups may share a node")
        return
    half = each.value if together else each.value - each.value // 2
    for role in ("actor", "ref", "critic"):
        reading.put(f"{role}.nodes", groups.value, groups)
        reading.put(f"{role}.gpus_per_node", half, each)
    tensor = reading.number("rollout.tensor_parallel")
    if not together and tensor:
        engines = max((each.value // 2 + each.value % 2) * groups.value // tensor, 1)
        reading.put("rollout.engines", engines, each)


def _derive_engine(reading: TrainerReading) -> None:
    reading.put("rollout.engine", "vllm")
    reading.put("rollout.utilization_of", "total")
    reading.put("rollout.cpu_weights", False)
    reading.fields["rollout.dtype"] = reading.fields.get(
        "actor.param_dtype", Unknown("neither bf16 nor fp16 is known")
    )
    asleep = reading.get("vllm_sleep", convert=boolean)
    if isinstance(asleep, Known):
        reading.put("rollout.sleep_level", 1 if asleep.value else 0, asleep)
    rank = reading.number("actor.lora_rank")
    alone = reading.get("lora_sync_only", convert=boolean)
    if rank and isinstance(alone, Known):
        reading.put("rollout.adapters", 1 if alone.value else 0, alone)
        reading.fields["rollout.adapter_rank"] = reading.fields["actor.lora_rank"]


ADAPTER = _Oat()
