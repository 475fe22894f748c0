"""OpenRLHF: options of argparse, flat (``--zero_stage``) up to 0.10.1.post2 and dotted
(``--ds.zero_stage``) from 0.10.2 on.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Sequence

from ...model.evidence import Absent, Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from ...model.versions import parse_version
from ...model.workload import ConfigurationProblem, attention_kind
from .adapter import CERTAIN, Run, RunReading
from .configuration import (
    Configuration,
    Fields,
    at_least_zero,
    boolean,
    decimal,
    integer,
    named_types,
    paths_of,
    text_of,
)
from .hf_trainer import derive_processes
from .key_tables import KeyTable, load_table
from .parser_options import checkout_options
from .problems import key_problems, possible_versions, unknown_keys, value_problems
from .settings import Setting, flags
from .unread import unread_settings

__all__ = ["ADAPTER"]

_ENTRY = re.compile(
    r"openrlhf\.cli\.(train_\w+)|(?:.*/)?openrlhf/cli/(train_\w+)\.py|(?:.*/)?(train_(?:ppo_ray|"
    r"ppo|sft|dpo|rm|kto|prm|kd))\.py"
)
#: A file named train_sft.py is anybody's; with these options it is OpenRLHF's.
_OWN = frozenset(
    ["zero_stage", "micro_train_batch_size", "ds.zero_stage", "train.micro_batch_size"]
)

_FIELDS: Fields = {
    "algorithm": (("algo.advantage.estimator", "advantage_estimator"), text_of),
    **{
        f"{role}.{name}": ((f"{role}.{dotted}", f"{role}_{dotted}"), integer)
        for role in ("actor", "critic", "ref", "reward")
        for name, dotted in (("nodes", "num_nodes"), ("gpus_per_node", "num_gpus_per_node"))
    },
    "colocated": (("train.colocate_all", "colocate_all_models"), boolean),
    "actor.model": (
        ("actor.model_name_or_path", "model.model_name_or_path", "pretrain"),
        text_of,
    ),
    "critic.model": (("critic.model_name_or_path", "critic_pretrain"), text_of),
    "reward.model": (("reward.model_name_or_path", "reward_pretrain"), text_of),
    "ref.offload_params": (("ref.offload", "ref_reward_offload", "ref_offload"), boolean),
    "reward.offload_params": (("reward.offload", "ref_reward_offload"), boolean),
    "actor.gradient_checkpointing": (
        (
            "actor.gradient_checkpointing_enable",
            "model.gradient_checkpointing_enable",
            "gradient_checkpointing",
        ),
        boolean,
    ),
    "actor.lora_rank": (("ds.lora.rank", "lora_rank"), integer),
    "actor.offload_optimizer": (("ds.adam_offload", "adam_offload"), boolean),
    "actor.micro_batch": (("train.micro_batch_size", "micro_train_batch_size"), integer),
    "actor.padding_free": (("ds.packing_samples", "packing_samples"), boolean),
    "actor.sequence_parallel": (("ds.ring_attn_size", "ring_attn_size"), integer),
    "actor.tensor_parallel": (("ds.tensor_parallel_size", "ds_tensor_parallel_size"), integer),
    "rollout.engines": (("vllm.num_engines", "vllm_num_engines"), integer),
    "rollout.tensor_parallel": (
        ("vllm.tensor_parallel_size", "vllm_tensor_parallel_size"),
        integer,
    ),
    "rollout.gpu_memory_utilization": (
        ("vllm.gpu_memory_utilization", "vllm_gpu_memory_utilization"),
        decimal,
    ),
    "rollout.n": (("rollout.n_samples_per_prompt", "n_samples_per_prompt"), integer),
    "rollout.enforce_eager": (("vllm.enforce_eager", "enforce_eager"), boolean),
    "actor.scored_batch": (("rollout.micro_batch_size", "micro_rollout_batch_size"), integer),
    "rollout.micro_batch": (("rollout.micro_batch_size", "micro_rollout_batch_size"), integer),
    "data.max_prompt_length": (("prompt_max_len",), integer),
    "data.max_response_length": (("generate_max_len", "rollout.max_new_tokens"), integer),
    "data.train_batch_size": (("rollout.batch_size", "rollout_batch_size"), integer),
    "checkpoint.save_freq": (("ckpt.save_steps", "save_steps"), integer),
    "checkpoint.folder": (("ckpt.path", "ckpt_path"), text_of),
    "data.files": (("data.prompt_dataset", "prompt_data", "data.dataset", "dataset"), paths_of),
    "checkpoint.limit": (("ckpt.max_num", "max_ckpt_num"), integer),
}
#: Tools that generate nothing, as this model of memory knows them.
_ALGORITHMS = {
    "train_sft": "sft",
    "train_dpo": "dpo",
    "train_kto": "dpo",
    "train_rm": "rm",
    "train_prm": "sft",
}
_TOOLS = frozenset([*_ALGORITHMS, "train_ppo", "train_ppo_ray", "train_kd"])
_MISSING: Mapping[str, Any] = {
    "rollout.n": 1,
    "actor.sequence_parallel": 1,
    "actor.tensor_parallel": 1,
    "actor.lora_rank": 0,
    "actor.padding_free": False,
    "colocated": False,
    "rollout.enforce_eager": False,
    "ref.offload_params": False,
    "reward.offload_params": False,
    "actor.offload_optimizer": False,
    "rollout.engines": 0,
    "checkpoint.limit": 0,
}


class _OpenRlhf:
    name = "openrlhf"
    layout = Layout(files=("openrlhf/cli/train_ppo_ray.py",))

    def claims(self, run: Run) -> int:
        """By the entry; by that alone, since the options' names are anybody's."""
        entry = _ENTRY.fullmatch(run.entry)
        if entry is None:
            return 0
        settings = self._settings(run)
        if entry.group(3) and not any(setting.key in _OWN for setting in settings):
            return 0
        return max(CERTAIN - unknown_keys(self._table(run), settings), 1)

    def read(self, run: Run) -> RunReading:
        """Read the run."""
        released, settings = self._released(run), self._settings(run)
        versions, version = possible_versions(released, run, settings, released.described)
        table = self._table(run, versions)
        configuration = Configuration(table, versions, settings, run.files, run.environ)
        facts, names = configuration.read(_FIELDS, _MISSING, {"rollout.engines": 0})
        fields = {"framework": Known(self.name, Evidence(run.name, run.entry)), **facts}
        keys = {field: self._option(key) for field, key in names.items()}
        self._derive(configuration, fields, keys, ppo=self._tool(run).startswith("train_ppo"))
        kind = _ALGORITHMS.get(self._tool(run))
        if kind is not None:
            fields["algorithm"] = Known(kind, Evidence(run.name, run.entry))
            fields["colocated"] = Known(True, Evidence(run.name, run.entry))
            if run.launcher:
                derive_processes(run, fields, keys)
        # A fork's program that is not at hand (train_sft_dev.py) has options of its own.
        is_released = isinstance(version, Known) and self._tool(run) in _TOOLS
        problems = [
            self._spelled(problem)
            for problem in key_problems(
                configuration, settings, exact=is_released or bool(table.own)
            )
        ]
        problems += value_problems(fields, keys)
        unread = tuple(map(self._option, unread_settings(configuration, [*run.files, *settings])))
        return RunReading(fields, keys, problems, version, unread)

    def _tool(self, run: Run) -> str:
        entry = _ENTRY.fullmatch(run.entry)
        name = next(filter(None, entry.groups()), "") if entry else ""
        return name if name != "train_ppo_ray_box" else "train_ppo_ray"

    def _released(self, run: Run) -> KeyTable:
        return load_table(self.name, self._tool(run) or None)

    def _table(self, run: Run, versions: Sequence[str] = ("",)) -> KeyTable:
        """Return the options of the run's checkout, without one those of the releases."""
        tool = self._tool(run)
        paths = (f"openrlhf/cli/{tool}.py", f"examples/{tool}.py")
        return checkout_options(run, self._released(run), versions, paths)

    def _settings(self, run: Run) -> List[Setting]:
        table = self._table(run)
        settings = flags(run.arguments, run.name, tuple(table.switches))[0]
        return [_in_full(setting, table) for setting in settings] if table.own else settings

    @staticmethod
    def _option(key: str) -> str:
        return f"--{key}" if key else ""

    def _spelled(self, problem: ConfigurationProblem) -> ConfigurationProblem:
        """Keys are options here; the same option in the other spelling is the nearest."""
        return problem._replace(
            key=self._option(problem.key),
            nearest=self._option(self._other_spelling(problem.key) or problem.nearest),
        )

    def _other_spelling(self, key: str) -> str:
        for names, _ in _FIELDS.values():
            if key in names and len(names) > 1:
                return next(name for name in names if name != key)
        return _RENAMED.get(key, "")

    def _derive(
        self,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        *,
        ppo: bool,
    ) -> None:
        code = Evidence(f"code of {configuration.span}", "openrlhf/utils/deepspeed, openrlhf/cli")
        stage = configuration.get("ds.zero_stage", "zero_stage", convert=integer)
        keys["actor.strategy"] = self._option(configuration.key("ds.zero_stage", "zero_stage"))
        strategy: Fact[Any] = stage
        if isinstance(stage, Known):
            strategy = Known(f"zero{stage.value}" if stage.value else "ddp", stage.evidence)
        gradients = configuration.get(
            "ds.grad_accum_dtype",
            "grad_accum_dtype",
            convert=text_of,
            **self._unset_gradients(configuration),
        )
        keys["actor.grad_dtype"] = self._option(
            configuration.key("ds.grad_accum_dtype", "grad_accum_dtype")
        )
        attends = _attention(configuration)
        keys["actor.attention"] = self._option(
            configuration.key("ds.attn_implementation", "attn_implementation", "flash_attn")
        )
        for role in ("actor", "critic"):
            fields[f"{role}.attention"] = attends
            fields[f"{role}.strategy"] = strategy
            fields[f"{role}.grad_dtype"] = named_types(gradients)
            fields[f"{role}.param_dtype"] = Known("bf16", code)
            fields[f"{role}.optimizer"] = Known("adamw", code)
        for field in [name for name in keys if _is_shared(name)]:
            shared = f"critic.{field.partition('.')[2]}"
            keys[shared] = keys[field]
        for field in [name for name in fields if _is_shared(name)]:
            shared = f"critic.{field.partition('.')[2]}"
            fields[shared] = fields[field]
        self._derive_roles(configuration, fields, keys, code, ppo)
        self._derive_batches(configuration, fields, keys)
        self._derive_rollout(configuration, fields, keys, code)
        fields["checkpoint.save_freq"] = at_least_zero(fields["checkpoint.save_freq"])
        fields["checkpoint.gather"] = Known("full_bf16", code)

    @staticmethod
    def _unset_gradients(configuration: Configuration) -> Dict[str, str]:
        """Return what gradients are summed in where nothing is said; empty where the versions
        differ.

        0.1.5 to 0.5.3 tell DeepSpeed fp32; those before and 0.5.4 (47f7cd8f) and newer tell it
        nothing, and with ZeRO it then takes the type of the weights (DeepSpeed engine.py@v0.12.6
        get_data_types).
        """
        tells_fp32 = {
            parse_version("0.1.5") <= parse_version(version) < parse_version("0.5.4")
            for version in configuration.versions
        }
        if len(tells_fp32) != 1:
            return {}
        unset = "fp32" if tells_fp32 == {True} else "bf16"
        return {"missing": unset, "unset": unset}

    def _derive_roles(
        self,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        code: Evidence,
        ppo: bool,
    ) -> None:
        fields["actor.present"] = Known(True, code)
        for name in ("nodes", "gpus_per_node"):
            if isinstance(fields[f"actor.{name}"], Known):
                fields[name], keys[name] = fields[f"actor.{name}"], keys[f"actor.{name}"]
        stage = fields["actor.strategy"]
        # ds_eval_config: 3 or 0.
        inference = (
            Known("zero3" if stage.value == "zero3" else "none", code)
            if isinstance(stage, Known)
            else stage
        )
        for role in ("ref", "reward"):
            fields[f"{role}.strategy"] = inference
            fields[f"{role}.optimizer"] = Known("none", code)
            fields[f"{role}.param_dtype"] = Known("bf16", code)
            fields[f"{role}.cpu_offload"] = fields[f"{role}.offload_params"]
            keys[f"{role}.cpu_offload"] = keys[f"{role}.offload_params"]
        fields["ref.model"], keys["ref.model"] = fields["actor.model"], keys["actor.model"]
        if not ppo:
            for role in ("critic", "reward"):
                fields[f"{role}.present"] = Known(False, code)
            return
        self._derive_critic(configuration, fields, code)
        fields["reward.present"] = self._reward_model(configuration, fields, code)
        coefficient = configuration.get("algo.kl.init_coef", "init_kl_coef", convert=decimal)
        has_kl = not isinstance(coefficient, Known) or coefficient.value > 0
        fields["ref.present"] = (
            Known(True, code) if has_kl else Unknown("without a KL term it depends on the version")
        )

    def _derive_critic(
        self, configuration: Configuration, fields: Dict[str, Fact[Any]], code: Evidence
    ) -> None:
        """PPO has a critic: always, before there were other estimators, else with gae."""
        estimator = fields["algorithm"]
        always = not configuration.absent and not configuration.key(*_FIELDS["algorithm"][0])
        if isinstance(estimator, Known):
            is_gae, place = estimator.value == "gae", estimator.evidence
            fields["critic.present"] = Known(always or is_gae, code if always else place)
            if always or is_gae:
                fields["algorithm"] = Known("ppo", place)
        elif always:
            fields["critic.present"] = Known(True, code)
            fields["algorithm"] = Known("ppo", code)
        else:
            fields["critic.present"] = estimator
        if not isinstance(fields["critic.model"], Known):
            reward = fields["reward.model"]
            fields["critic.model"] = reward if isinstance(reward, Known) else fields["actor.model"]

    def _reward_model(
        self, configuration: Configuration, fields: Mapping[str, Fact[Any]], code: Evidence
    ) -> Fact[Any]:
        """Tell whether the trainer holds the reward model: it may be served, or be a function."""
        remote = configuration.get(
            "reward.remote_url",
            "remote_rm_url",
            "train.agent_func_path",
            "agent_func_path",
            convert=text_of,
        )
        if isinstance(remote, Known):
            return Known(False, remote.evidence)
        return Known(isinstance(fields["reward.model"], Known), code)

    def _derive_batches(
        self, configuration: Configuration, fields: Dict[str, Fact[Any]], keys: Dict[str, str]
    ) -> None:
        """``train_batch_size`` counts samples; the workload counts prompts."""
        total = configuration.get("train.batch_size", "train_batch_size", convert=integer)
        samples = fields["rollout.n"]
        dynamic = configuration.get(
            "train.dynamic_batch_enable", "use_dynamic_batch", convert=boolean, missing=False
        )
        tokens = configuration.get(
            "train.max_tokens_per_gpu", "train_max_tokens_per_gpu", convert=integer
        )
        for role in ("actor", "critic"):
            keys[f"{role}.mini_batch"] = self._option(
                configuration.key("train.batch_size", "train_batch_size")
            )
            keys[f"{role}.max_tokens_per_gpu"] = self._option(
                configuration.key("train.max_tokens_per_gpu", "train_max_tokens_per_gpu")
            )
            if isinstance(total, Known) and isinstance(samples, Known) and samples.value > 0:
                fields[f"{role}.mini_batch"] = Known(
                    max(total.value // samples.value, 1), total.evidence
                )
            else:
                fields[f"{role}.mini_batch"] = (
                    total
                    if isinstance(total, Unknown)
                    else Unknown("the samples per prompt are not known")
                )
            if isinstance(dynamic, Known) and dynamic.value:
                fields[f"{role}.max_tokens_per_gpu"], fields[f"{role}.micro_batch"] = (
                    tokens,
                    Absent(dynamic.evidence),
                )
            elif isinstance(dynamic, Known):
                fields[f"{role}.max_tokens_per_gpu"] = Absent(dynamic.evidence)

    def _derive_rollout(
        self,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        code: Evidence,
    ) -> None:
        engines = fields["rollout.engines"]
        fields["rollout.engine"] = (
            Known("vllm" if engines.value else "hf", engines.evidence)
            if isinstance(engines, Known)
            else engines
        )
        keys["rollout.engine"] = keys["rollout.engines"]
        fields["rollout.utilization_of"] = Known("total", Evidence("vllm as it is released"))
        fields["rollout.cpu_weights"] = Known(False, code)
        asleep = configuration.get(
            "vllm.enable_sleep", "vllm_enable_sleep", convert=boolean, missing=False
        )
        keys["rollout.sleep_level"] = self._option(
            configuration.key("vllm.enable_sleep", "vllm_enable_sleep")
        )
        fields["rollout.sleep_level"] = (
            Known(1 if asleep.value else 0, asleep.evidence)
            if isinstance(asleep, Known)
            else asleep
        )
        fields["rollout.dtype"] = Known("bf16", code)
        length = configuration.get("data.max_len", "max_len", convert=integer)
        prompt, response = fields["data.max_prompt_length"], fields["data.max_response_length"]
        keys["rollout.max_model_len"] = self._option(configuration.key("data.max_len", "max_len"))
        if isinstance(length, Known):
            fields["rollout.max_model_len"] = length
            if not (isinstance(prompt, Known) and isinstance(response, Known)):
                fields["data.max_length"] = length
        elif isinstance(prompt, Known) and isinstance(response, Known):
            fields["rollout.max_model_len"] = Known(
                prompt.value + response.value,
                Evidence(prompt.evidence.source, "prompt_max_len + generate_max_len"),
            )


def _in_full(setting: Setting, table: KeyTable) -> Setting:
    """Return a setting under the option that it abbreviates, as argparse takes it."""
    meant = [key for key in table.rows if key.startswith(setting.key)]
    is_short = setting.key not in table and len(meant) == 1
    return setting._replace(key=meant[0]) if is_short else setting


def _attention(configuration: Configuration) -> Fact[Any]:
    """Return how attention is computed: as it is named, and in releases before that has a name,
    flash by a switch and else eager (openrlhf/models/actor.py@v0.5.0).
    """
    if configuration.key("flash_attn") in configuration.given or not configuration.key(
        "ds.attn_implementation", "attn_implementation"
    ):
        switch = configuration.get("flash_attn", convert=boolean)
        if not isinstance(switch, Known):
            return switch
        return Known("fused" if switch.value else "eager", switch.evidence)
    return configuration.get(
        "ds.attn_implementation", "attn_implementation", convert=attention_kind, missing="eager"
    )


def _is_shared(field: str) -> bool:
    """Whether the critic's field is set by the actor's option."""
    role, _, name = field.partition(".")
    return role == "actor" and name not in ("nodes", "gpus_per_node", "model")


#: Options whose dotted name is not found by their last part (0.10.2, ed62d0e2).
_RENAMED = {
    "zero_stage": "ds.zero_stage",
    "grad_accum_dtype": "ds.grad_accum_dtype",
    "vllm_enable_sleep": "vllm.enable_sleep",
    "bf16": "ds.param_dtype",
    "train_batch_size": "train.batch_size",
    "save_path": "ckpt.output_dir",
    "deepspeed_enable_sleep": "ds.enable_sleep",
    "prompt_data": "data.prompt_dataset",
    "zpg": "ds.zpg",
    "max_len": "data.max_len",
    "init_kl_coef": "algo.kl.init_coef",
}
_RENAMED.update({value: key for key, value in list(_RENAMED.items())})

ADAPTER = _OpenRlhf()
