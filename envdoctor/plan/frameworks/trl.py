"""TRL: dataclass options of the trainers, from YAML or the command line; processes by accelerate or
torchrun, sharding by DeepSpeed or FSDP.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, Tuple

from ...model.evidence import Absent, Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from .adapter import CERTAIN, Run, RunReading, read_small
from .configuration import Configuration, Fields, boolean, decimal, integer, text_of
from .key_tables import load_table
from .problems import key_problems, possible_versions, unknown_keys, value_problems
from .settings import Setting, flags, read_config
from .unread import unread_settings

__all__ = ["ADAPTER"]

_METHODS = ("grpo", "sft", "dpo", "rloo", "reward", "kto", "ppo", "online_dpo")
_ENTRY = re.compile(
    r"trl|trl\.scripts\.(\w+)|open_r1\.(\w+)|(?:.*/)?(?:run_)?(grpo|sft|dpo|rloo|reward_modeling|kto|ppo|online_dpo)[\w-]*\.py"
)
_PACKAGE = re.compile(r"trl|trl\.scripts\.\w+|open_r1\.\w+|(?:.*/)?open_r1/\w+\.py")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+trl\b", re.MULTILINE)
#: Options that no other trainer on top of transformers has. Those of ``TrainingArguments``
#: (``per_device_train_batch_size`` and the like) are of LLaMA-Factory, ms-swift and many more.
_OWN = frozenset(["num_generations", "max_completion_length", "use_vllm", "vllm_mode"])

_FIELDS: Fields = {
    "actor.model": (("model_name_or_path",), text_of),
    "actor.gradient_checkpointing": (("gradient_checkpointing",), boolean),
    "actor.micro_batch": (("per_device_train_batch_size",), integer),
    "rollout.tensor_parallel": (("vllm_tensor_parallel_size",), integer),
    "rollout.gpu_memory_utilization": (("vllm_gpu_memory_utilization",), decimal),
    "rollout.n": (("num_generations",), integer),
    "data.max_prompt_length": (("max_prompt_length",), integer),
    "data.max_response_length": (
        ("max_completion_length", "max_new_tokens", "response_length"),
        integer,
    ),
    "data.dataloader_workers": (("dataloader_num_workers",), integer),
    "checkpoint.limit": (("save_total_limit",), integer),
    "checkpoint.model_only": (("save_only_model",), boolean),
}


class _Trl:
    name = "trl"
    layout = Layout(files=("trl/trainer/grpo_trainer.py",))

    def claims(self, run: Run) -> int:
        """By ``trl`` itself, by a script that imports it, or where the script is not at hand by
        options that are TRL's alone.
        """
        if run.entry and not run.entry.endswith(".py") and not _PACKAGE.fullmatch(run.entry):
            return 0
        method = self._method(run)
        settings = [*_settings(run), *run.files]
        ours = sum(setting.key in _OWN for setting in [*settings, *self._config(run)])
        if not self._is_trl(run, ours):
            return 0
        return max(CERTAIN - unknown_keys(load_table(self.name, method), settings), 1)

    def _is_trl(self, run: Run, ours: int) -> bool:
        if run.entry == "trl":
            return bool(ours or self._subcommand(run))
        if _PACKAGE.fullmatch(run.entry):
            return True
        if not run.entry:
            return ours > 1
        if not run.entry.endswith(".py"):
            return False
        script = read_small(os.path.join(run.base, run.entry))
        if script is not None:
            return _IMPORT.search(script) is not None
        return ours > (0 if _ENTRY.fullmatch(run.entry) else 1)

    def _is_positive(self, run: Run) -> bool:
        """Tell whether the run is TRL's by more than names of options."""
        if run.entry == "trl" or _PACKAGE.fullmatch(run.entry):
            return True
        script = read_small(os.path.join(run.base, run.entry)) if run.entry else None
        return script is not None and _IMPORT.search(script) is not None

    def read(self, run: Run) -> RunReading:
        """Read the run."""
        method = self._method(run)
        files = [*run.files, *self._config(run)]
        settings = [
            setting for setting in _settings(run) if setting.key not in ("config", "config_file")
        ]
        table = load_table(self.name, method)
        trained = table.versions_of("per_device_train_batch_size")
        versions, version = possible_versions(table, run, [*files, *settings], trained)
        configuration = Configuration(table, versions, settings, files, run.environ)
        facts, keys = configuration.read(_FIELDS, {})
        place = Evidence(run.name, run.entry)
        fields = {"framework": Known(self.name, place), "algorithm": Known(method, place), **facts}
        self._derive(run, configuration, fields, keys, method)
        own = run.entry.endswith(".py")  # a script may add options
        problems = key_problems(
            configuration, [*files, *settings], exact=isinstance(version, Known) and not own
        )
        problems += value_problems(fields, keys)
        unread = unread_settings(configuration, [*files, *settings])
        if not self._is_positive(run):
            unread = (*unread, f"the program {run.entry or run.name}")
        return RunReading(fields, keys, problems, version, unread)

    def _subcommand(self, run: Run) -> str:
        word = run.arguments[0].text if run.arguments else ""
        return word if run.entry == "trl" and word in _METHODS else ""

    def _method(self, run: Run) -> str:
        entry = _ENTRY.fullmatch(run.entry)
        named = self._subcommand(run) or (next(filter(None, entry.groups()), "") if entry else "")
        named = "reward" if named == "reward_modeling" else named
        return named if named in _METHODS else "grpo"

    def _config(self, run: Run) -> List[Setting]:
        """The file of ``--config``, where it is at hand."""
        for setting in _settings(run):
            if setting.key == "config" and isinstance(setting.value, str):
                return _file(run, setting.value)
        return []

    def _derive(
        self,
        run: Run,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        method: str,
    ) -> None:
        code = Evidence(f"code of {configuration.span}", f"trl/trainer/{method}_trainer.py")
        fields["actor.present"] = Known(True, code)
        fields["critic.present"] = Known(method == "ppo", code)
        _derive_processes(run, fields, keys)
        sharding = _sharding(run, configuration)
        fields.update(sharding.fields)
        keys.update(sharding.keys)
        fields["actor.optimizer"] = _optimizer(configuration)
        keys["actor.optimizer"] = "optim"
        peft = configuration.get("use_peft", convert=boolean)
        rank = configuration.get("lora_r", convert=integer)
        keys["actor.lora_rank"] = "lora_r"
        if isinstance(peft, Known):
            fields["actor.lora_rank"] = rank if peft.value else Known(0, peft.evidence)
        reference = configuration.get("beta", convert=decimal)
        keys["ref.present"] = "beta"
        if method in ("sft", "reward"):
            fields["ref.present"] = Known(False, code)
        elif isinstance(reference, Known):
            adapters = fields.get("actor.lora_rank")
            beside = isinstance(adapters, Known) and adapters.value > 0
            fields["ref.present"] = Known(reference.value != 0 and not beside, reference.evidence)
        fields["ref.model"], fields["ref.optimizer"] = fields["actor.model"], Known("none", code)
        _derive_rollout(configuration, fields, keys, method, code)
        _derive_batches(configuration, fields, keys)
        strategy = configuration.get("save_strategy", convert=text_of)
        frequency = configuration.get("save_steps", convert=integer)
        keys["checkpoint.save_freq"] = "save_steps"
        never = isinstance(strategy, Known) and strategy.value == "no"
        fields["checkpoint.save_freq"] = Known(0, strategy.evidence) if never else frequency  # type: ignore[union-attr]
        if isinstance(fields["checkpoint.limit"], Absent):
            fields["checkpoint.limit"] = Known(0, fields["checkpoint.limit"].evidence)


def _settings(run: Run) -> List[Setting]:
    return flags(run.arguments, run.name)[0]


_OFFLOAD_DEVICES = {
    "actor.offload_optimizer": (
        "zero_optimization.offload_optimizer.device",
        "deepspeed_config.offload_optimizer_device",
    ),
    "actor.offload_params": (
        "zero_optimization.offload_param.device",
        "deepspeed_config.offload_param_device",
    ),
}


class _Sharding:
    """What DeepSpeed, FSDP or neither make of the trainer's state."""

    def __init__(self) -> None:
        self.fields: Dict[str, Fact[Any]] = {}
        self.keys: Dict[str, str] = {}

    def deepspeed(self, settings: Mapping[str, Setting]) -> None:
        """Read a DeepSpeed JSON, or what accelerate's file says in its place."""
        stage = settings.get("zero_optimization.stage") or settings.get(
            "deepspeed_config.zero_stage"
        )
        if stage is not None and integer(stage.value) is not None:
            number = integer(stage.value)
            self.fields["actor.strategy"] = Known(f"zero{number}" if number else "ddp", stage.place)
            self.keys["actor.strategy"] = stage.key
        types = settings.get("data_types.grad_accum_dtype")
        if types is not None and isinstance(types.value, str):
            self.fields["actor.grad_dtype"] = Known(types.value, types.place)
        unset = stage.place if stage is not None else Evidence("DeepSpeed's configuration")
        self._offload(settings, unset)

    def _offload(self, settings: Mapping[str, Setting], unset: Evidence) -> None:
        for field, names in _OFFLOAD_DEVICES.items():
            device = next((settings[name] for name in names if name in settings), None)
            self.keys[field] = device.key if device is not None else names[0]
            self.fields[field] = (
                Known(device.value == "cpu", device.place)
                if device is not None
                else Known(False, unset)
            )

    def fsdp(self, settings: Mapping[str, Setting]) -> None:
        """Read accelerate's ``fsdp_config``."""
        version = settings.get("fsdp_config.fsdp_version")
        kind = settings.get("distributed_type")
        place = (version or kind or next(iter(settings.values()))).place
        self.fields["actor.strategy"] = Known(
            "fsdp2" if version is not None and integer(version.value) == 2 else "fsdp", place
        )
        offload = settings.get("fsdp_config.fsdp_offload_params")
        if offload is not None and boolean(offload.value) is not None:
            self.fields["actor.cpu_offload"] = Known(boolean(offload.value), offload.place)
        self.keys["actor.cpu_offload"] = "fsdp_config.fsdp_offload_params"


def _sharding(run: Run, configuration: Configuration) -> _Sharding:
    """Return how accelerate, or DeepSpeed through it, spreads the state."""
    result = _Sharding()
    settings = {setting.key: setting for setting in _launcher_file(run)}
    deepspeed = configuration.get("deepspeed", convert=text_of)
    if isinstance(deepspeed, Known):
        settings.update(_settings_of(run, deepspeed.value))
    named = settings.get("deepspeed_config.deepspeed_config_file")
    if named is not None:
        settings.update(_settings_of(run, named.value))
    kind = settings.get("distributed_type")
    method = None if kind is None else kind.value
    if isinstance(deepspeed, Known) or method == "DEEPSPEED":
        result.deepspeed(settings)
        result.fields.setdefault(
            "actor.strategy", Unknown("DeepSpeed's configuration is not at hand")
        )
    elif method == "FSDP":
        result.fsdp(settings)
    else:
        result.fields["actor.strategy"] = _undeclared(run, bool(settings), kind is not None)
    result.keys.setdefault("actor.strategy", "deepspeed")
    return result


def _settings_of(run: Run, path: Any) -> Dict[str, Setting]:
    settings = _file(run, path) if isinstance(path, str) else []
    return {setting.key: setting for setting in settings}


def _undeclared(run: Run, has_settings: bool, has_kind: bool) -> Fact[Any]:
    """Return the strategy of a run whose settings name neither DeepSpeed nor FSDP."""
    if not has_kind and not run.launcher and run.entry:
        return Unknown("accelerate's own configuration on the machine may set it")
    flagged = bool({"use_deepspeed", "use_fsdp"} & set(run.launcher))
    unread = "config_file" in run.launcher and not has_settings
    if flagged or unread or not run.entry:
        return Unknown("the configuration of accelerate is not at hand")
    return Known("ddp", Evidence(run.name, "no DeepSpeed and no FSDP is named"))


def _launcher_file(run: Run) -> List[Setting]:
    named = run.launcher.get("config_file")
    return _file(run, named.text) if named is not None and named.known else []


def _file(run: Run, path: str) -> List[Setting]:
    """The settings of a file that a run names; none where it is not at hand."""
    if path in run.documents:
        return read_config(run.documents[path], path)
    if not path.endswith((".yaml", ".yml", ".json")):
        return []
    folders = [
        run.base,
        os.path.join(run.base, os.pardir),
        *([run.checkout.folder] if run.checkout is not None else []),
    ]
    for folder in folders:
        text = read_small(path if os.path.isabs(path) else os.path.join(folder, path))
        if text is not None:
            return read_config(text, path)
    return []


def _derive_processes(run: Run, fields: Dict[str, Fact[Any]], keys: Dict[str, str]) -> None:
    launcher = run.launcher
    settings = {setting.key: setting for setting in _launcher_file(run)}
    nodes = _nodes(run, settings)
    each = _launched(run, launcher, settings, ("nproc_per_node", "num_gpus"))
    total = _launched(run, launcher, settings, ("num_processes",))
    by_torchrun = "nproc_per_node" in launcher
    keys["gpus_per_node"] = "--nproc_per_node" if by_torchrun else "--num_processes"
    keys["nodes"] = "--nnodes" if "nnodes" in launcher else "--num_machines"
    fields["nodes"] = nodes
    if isinstance(total, Known) and isinstance(nodes, Known) and nodes.value:
        each = Known(total.value // nodes.value, total.evidence)
    fields["gpus_per_node"] = each
    for role in ("actor", "ref"):
        fields[f"{role}.nodes"], fields[f"{role}.gpus_per_node"] = nodes, each


def _nodes(run: Run, settings: Mapping[str, Setting]) -> Fact[Any]:
    names = ("nnodes", "num_machines")
    nodes = _launched(run, run.launcher, settings, names)
    if isinstance(nodes, Unknown) and run.launcher and not set(names) & set(run.launcher):
        return Known(1, Evidence("default of the launcher"))
    return nodes


def _launched(
    run: Run, launcher: Mapping[str, Any], settings: Mapping[str, Setting], names: Tuple[str, ...]
) -> Fact[Any]:
    for name in names:
        element = launcher.get(name)
        if element is not None:
            if not element.known:
                return Unknown(element.why)
            number = integer(element.text)
            return (
                Known(number, Evidence(f"{run.name}:{element.line}", f"--{name} {element.text}"))
                if number
                else Unknown(f"--{name} {element.text}")
            )
        if name in settings and integer(settings[name].value) is not None:
            return Known(integer(settings[name].value), settings[name].place)
    return Unknown(f"no launcher says {names[0]}")


def _optimizer(configuration: Configuration) -> Fact[Any]:
    # default_optim: adamw_torch or its fused form.
    fact = configuration.get("optim", convert=text_of, unset="adamw_torch")
    if not isinstance(fact, Known):
        return fact
    return (
        Known("adamw", fact.evidence)
        if fact.value.startswith("adamw_torch") or fact.value == "adamw_apex_fused"
        else Unknown(f"{fact.value} has other state than AdamW")
    )


def _derive_rollout(
    configuration: Configuration,
    fields: Dict[str, Fact[Any]],
    keys: Dict[str, str],
    method: str,
    code: Evidence,
) -> None:
    keys["rollout.engine"], keys["colocated"], keys["rollout.sleep_level"] = (
        "use_vllm",
        "vllm_mode",
        "vllm_enable_sleep_mode",
    )
    if method in ("sft", "dpo", "reward", "kto"):
        for field in [name for name in fields if name.startswith("rollout.")]:
            del fields[field]
        fields["colocated"] = Known(False, code)
        return
    _derive_engine(configuration, fields)
    asleep = configuration.get("vllm_enable_sleep_mode", convert=boolean, missing=False)
    fields["rollout.sleep_level"] = (
        Known(2 if asleep.value else 0, asleep.evidence) if isinstance(asleep, Known) else asleep
    )
    fields["rollout.utilization_of"] = Known("total", Evidence("vllm as it is released"))
    fields["rollout.cpu_weights"] = Known(False, code)
    length = configuration.get("vllm_max_model_length", "vllm_max_model_len", convert=integer)
    keys["rollout.max_model_len"] = configuration.key("vllm_max_model_length", "vllm_max_model_len")
    prompt, response = fields["data.max_prompt_length"], fields["data.max_response_length"]
    if isinstance(length, Known):
        fields["rollout.max_model_len"] = length
    elif isinstance(prompt, Known) and isinstance(response, Known):
        fields["rollout.max_model_len"] = Known(
            prompt.value + response.value,
            Evidence(prompt.evidence.source, "max_prompt_length + max_completion_length"),
        )


def _derive_engine(configuration: Configuration, fields: Dict[str, Fact[Any]]) -> None:
    """Tell which engine generates, and whether it shares the trainer's GPUs."""
    uses_vllm = configuration.get("use_vllm", convert=boolean)
    # before 0.18 there was the server alone
    mode = configuration.get("vllm_mode", convert=text_of, missing="server")
    if not isinstance(uses_vllm, Known):
        fields["rollout.engine"] = uses_vllm
    else:
        fields["rollout.engine"] = Known("vllm" if uses_vllm.value else "hf", uses_vllm.evidence)
    if isinstance(uses_vllm, Known) and not uses_vllm.value:
        fields["colocated"] = Known(True, uses_vllm.evidence)
    elif isinstance(mode, Known):
        fields["colocated"] = Known(mode.value == "colocate", mode.evidence)


def _derive_batches(
    configuration: Configuration, fields: Dict[str, Fact[Any]], keys: Dict[str, str]
) -> None:
    """Sequences per step are devices × per_device × accumulation; the workload counts prompts."""
    accumulation = configuration.get("gradient_accumulation_steps", convert=integer)
    parts = [accumulation, fields["actor.micro_batch"], fields["nodes"], fields["gpus_per_node"]]
    keys["actor.mini_batch"] = "gradient_accumulation_steps"
    samples = fields.get("rollout.n")
    if all(isinstance(part, Known) for part in parts):
        total = 1
        for part in parts:
            total *= part.value if isinstance(part, Known) else 1
        each = samples.value if isinstance(samples, Known) and samples.value else 1
        fields["actor.mini_batch"] = Known(
            max(total // each, 1),
            Evidence("devices × per_device_train_batch_size × gradient_accumulation_steps"),
        )
    fields["actor.max_tokens_per_gpu"] = Absent(
        Evidence(f"code of {configuration.span}", "batches are not dynamic")
    )


ADAPTER = _Trl()
