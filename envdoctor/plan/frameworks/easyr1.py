"""EasyR1: dataclasses, over them ``config=…yaml``, over that dotted overrides after ``python -m
verl.trainer.main``.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...errors import InputError
from ...model.evidence import Absent, Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from ...model.workload import ConfigurationProblem
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
from .declared import checkout_table
from .key_tables import load_table, overlaid
from .problems import key_problems, possible_versions, unknown_keys, value_problems
from .settings import MAX_CONFIG_BYTES, Setting, overrides, read_config
from .unread import unread_settings

__all__ = ["ADAPTER"]

#: The commits of its tables that are older than its first release.
_EARLY = frozenset(("b3d72a7", "90a634b"))
_EXAMPLES = ("examples/config.yaml", "examples/grpo_example.yaml")


def _parts(prefix: str) -> Tuple[Tuple[str, str, str], ...]:
    """Return the dataclasses below a model's section."""
    names = {"model": "Model", "optim": "Optim", "fsdp": "FSDP", "offload": "Offload"}
    file = "verl/workers/actor/config.py"
    parts = ((file, f"{name}Config", f"{prefix}{key}.") for key, name in names.items())
    return (*parts, (file, "LoraConfig", f"{prefix}model.lora."))


#: Where a checkout declares its settings; nested dataclasses, none of which is run.
_DECLARED = (
    ("verl/trainer/config.py", "DataConfig", "data."),
    ("verl/trainer/config.py", "AlgorithmConfig", "algorithm."),
    ("verl/trainer/config.py", "TrainerConfig", "trainer."),
    ("verl/workers/config.py", "WorkerConfig", "worker."),
    ("verl/workers/actor/config.py", "ActorConfig", "worker.actor."),
    ("verl/workers/actor/config.py", "RefConfig", "worker.ref."),
    ("verl/workers/actor/config.py", "FSDPConfig", "worker.ref.fsdp."),
    ("verl/workers/actor/config.py", "OffloadConfig", "worker.ref.offload."),
    ("verl/workers/critic/config.py", "CriticConfig", "worker.critic."),
    ("verl/workers/rollout/config.py", "RolloutConfig", "worker.rollout."),
    ("verl/workers/reward/config.py", "RewardConfig", "worker.reward."),
    *_parts("worker.actor."),
    *_parts("worker.critic."),
)


def _role(role: str, ours: str) -> Fields:
    return {
        f"{role}.offload_params": (
            (f"worker.{ours}.offload.offload_params", f"worker.{ours}.offload.param_offload"),
            boolean,
        ),
        f"{role}.offload_optimizer": (
            (
                f"worker.{ours}.offload.offload_optimizer",
                f"worker.{ours}.offload.optimizer_offload",
            ),
            boolean,
        ),
        f"{role}.cpu_offload": ((f"worker.{ours}.fsdp.enable_cpu_offload",), boolean),
        f"{role}.rank0_init": ((f"worker.{ours}.fsdp.enable_rank0_init",), boolean),
        f"{role}.gradient_checkpointing": (
            (f"worker.{ours}.model.enable_gradient_checkpointing",),
            boolean,
        ),
        f"{role}.lora_rank": ((f"worker.{ours}.model.lora.rank",), integer),
        f"{role}.mini_batch": ((f"worker.{ours}.global_batch_size",), integer),
        f"{role}.micro_batch": (
            (f"worker.{ours}.micro_batch_size_per_device_for_update",),
            integer,
        ),
        f"{role}.padding_free": ((f"worker.{ours}.padding_free",), boolean),
        f"{role}.sequence_parallel": (
            (f"worker.{ours}.ulysses_size", f"worker.{ours}.ulysses_sequence_parallel_size"),
            integer,
        ),
        f"{role}.optimizer": ((f"worker.{ours}.optim.strategy",), text_of),
    }


_FIELDS: Fields = {
    "algorithm": (("algorithm.adv_estimator",), text_of),
    "nodes": (("trainer.nnodes",), integer),
    "gpus_per_node": (("trainer.n_gpus_per_node",), integer),
    "colocated": (("worker.hybrid_engine",), boolean),
    "actor.model": (("worker.actor.model.model_path",), text_of),
    **_role("actor", "actor"),
    **_role("critic", "critic"),
    "actor.scored_batch": (
        ("worker.actor.micro_batch_size_per_device_for_experience",),
        integer,
    ),
    "critic.model": (("worker.critic.model.model_path",), text_of),
    **{
        field: row
        for field, row in _role("ref", "ref").items()
        if field.rpartition(".")[2] in ("offload_params", "cpu_offload", "rank0_init")
    },
    "rollout.engine": (("worker.rollout.name",), text_of),
    "rollout.tensor_parallel": (("worker.rollout.tensor_parallel_size",), integer),
    "rollout.gpu_memory_utilization": (("worker.rollout.gpu_memory_utilization",), decimal),
    "rollout.n": (("worker.rollout.n",), integer),
    "rollout.max_num_seqs": (("worker.rollout.max_num_seqs",), integer),
    "rollout.max_num_batched_tokens": (("worker.rollout.max_num_batched_tokens",), integer),
    "rollout.chunked_prefill": (("worker.rollout.enable_chunked_prefill",), boolean),
    "rollout.enforce_eager": (("worker.rollout.enforce_eager",), boolean),
    "data.max_prompt_length": (("data.max_prompt_length",), integer),
    "data.max_response_length": (("data.max_response_length",), integer),
    "data.train_batch_size": (("data.rollout_batch_size",), integer),
    "data.rollout_batch_size": (("data.mini_rollout_batch_size",), integer),
    "data.val_batch_size": (("data.val_batch_size",), integer),
    "data.files": (("data.train_files",), paths_of),
    "data.val_files": (("data.val_files",), paths_of),
    "checkpoint.folder": (("trainer.save_checkpoint_path",), text_of),
    "checkpoint.resume": (("trainer.load_checkpoint_path",), text_of),
    "steps": (("trainer.max_steps",), integer),
    "data.max_pixels": (("data.max_pixels",), integer),
    "data.images_per_prompt": (("worker.rollout.limit_images",), integer),
    "checkpoint.save_freq": (("trainer.save_freq",), integer),
    "checkpoint.limit": (("trainer.save_limit",), integer),
    "checkpoint.model_only": (("trainer.save_model_only",), boolean),
}
_MISSING: Mapping[str, Any] = {
    "actor.cpu_offload": False,
    "critic.cpu_offload": False,
    "actor.rank0_init": False,
    "critic.rank0_init": False,
    "ref.rank0_init": False,
    "data.val_batch_size": -1,
    "checkpoint.limit": 0,
    "data.images_per_prompt": 0,
    "actor.lora_rank": 0,
    "critic.lora_rank": 0,
    "checkpoint.model_only": False,
    "actor.optimizer": "adamw",
    "critic.optimizer": "adamw",
}


def _found_config(run: Run, path: str) -> Optional[List[Setting]]:
    """Read the file of ``config=`` from where it would be; None where it is not at hand.

    An example of the repository that cannot be read counts as not at hand: the table knows it.
    """
    checkouts = [run.checkout.folder] if run.checkout is not None else []
    folders = (run.base, *checkouts, os.path.join(run.base, os.pardir))
    text = run.text(path, folders, MAX_CONFIG_BYTES)
    try:
        return read_config(text, path) if text is not None else None
    except InputError:
        if not path.endswith(_EXAMPLES):
            raise
    return None


class _EasyR1:
    name = "easyr1"
    layout = Layout(files=("verl/trainer/main.py",), absent=("verl/trainer/main_ppo.py",))

    def claims(self, run: Run) -> int:
        """By the entry ``verl.trainer.main``, or by ``worker.actor`` in the settings."""
        settings = [*self._settings(run), *run.files]
        if not re.fullmatch(r"verl\.trainer\.main|(?:.*/)?verl/trainer/main\.py", run.entry) and (
            run.entry
            or not any(
                setting.key.startswith(("worker.actor.", "worker.rollout.")) for setting in settings
            )
        ):
            return 0
        return max(CERTAIN - unknown_keys(load_table(self.name), settings), 1)

    def read(self, run: Run) -> RunReading:
        """Read the run."""
        settings = [setting for setting in self._settings(run) if setting.key != "config"]
        files, example, absent = self._config_file(run)
        table = load_table(self.name)
        table = overlaid(self.name, None, _EXAMPLES[0]) if example else table
        commit = run.checkout.commit[:7] if run.checkout is not None else ""
        versions, version = possible_versions(
            table, run._replace(version=run.version or commit), [*files, *settings]
        )
        if not example and not isinstance(version, Known):  # else the table is of that commit
            table = checkout_table(run, table, versions, _DECLARED)
        configuration = Configuration(table, versions, settings, files, run.environ, absent=absent)
        facts, keys = configuration.read(_FIELDS, _MISSING)
        fields = {"framework": Known(self.name, Evidence(run.name, run.entry)), **facts}
        self._derive(configuration, fields, keys)
        keys = configuration.named(keys)
        problems = key_problems(
            configuration, [*files, *settings], exact=isinstance(version, Known)
        )
        problems += value_problems(fields, keys)
        problems += self._refusals(fields, keys)
        problems += _undivided_batches(fields, keys, configuration.versions)
        unread = unread_settings(configuration, [*files, *settings])
        return RunReading(fields, keys, problems, version, unread)

    def _settings(self, run: Run) -> List[Setting]:
        return list(overrides(run.arguments, run.name))

    def _config_file(self, run: Run) -> Tuple[List[Setting], bool, str]:
        """The settings of ``config=FILE``; whether it is the example that the table knows; or the
        file that is not at hand.
        """
        named = next((setting for setting in self._settings(run) if setting.key == "config"), None)
        if named is None:
            return list(run.files), False, ""
        if named.unclear or not isinstance(named.value, str):
            return list(run.files), False, named.unclear or "the file of config="
        path = named.value
        settings = _found_config(run, path)
        if settings is not None:
            return [*settings, *run.files], False, ""
        is_example = path.endswith(_EXAMPLES)
        return list(run.files), is_example, "" if is_example else path

    def _derive(
        self, configuration: Configuration, fields: Dict[str, Fact[Any]], keys: Dict[str, str]
    ) -> None:
        code = Evidence(
            f"code of {configuration.span}",
            "verl/workers/fsdp_workers.py, sharding_manager, rollout",
        )
        estimator = fields["algorithm"]
        fields["actor.present"] = Known(True, code)
        fields["critic.present"] = (
            Known(estimator.value == "gae", estimator.evidence)
            if isinstance(estimator, Known)
            else estimator
        )
        if isinstance(estimator, Known) and estimator.value == "gae":
            fields["algorithm"] = Known("ppo", estimator.evidence)
        without = configuration.get("algorithm.disable_kl", convert=boolean, missing=False)
        fields["ref.present"] = (
            Known(not without.value, without.evidence) if isinstance(without, Known) else without
        )
        keys["ref.present"], keys["critic.present"] = (
            "algorithm.disable_kl",
            "algorithm.adv_estimator",
        )
        fields["ref.model"] = fields["actor.model"]
        fields["ref.optimizer"] = Known("none", code)
        for role in ("actor", "critic", "ref"):
            for name in ("nodes", "gpus_per_node"):
                fields[f"{role}.{name}"], keys[f"{role}.{name}"] = fields[name], keys[name]
            fields[f"{role}.strategy"] = configuration.get(
                f"worker.{role}.strategy", convert=text_of
            )
            keys[f"{role}.strategy"] = f"worker.{role}.strategy"
            self._derive_types(configuration, fields, keys, role)
        for role in ("actor", "critic"):
            self._derive_batches(configuration, fields, keys, role)
        self._derive_rollout(configuration, fields, keys, code)
        fields["checkpoint.gather"] = Known("sharded", code)
        for field in ("checkpoint.save_freq", "checkpoint.limit"):
            fields[field] = at_least_zero(fields[field])

    def _derive_types(
        self,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        role: str,
    ) -> None:
        name = f"worker.{role}.fsdp.torch_dtype"
        unset = "bf16" if role == "ref" else "fp32"  # fsdp_workers.py, _build_model_optimizer
        fields[f"{role}.param_dtype"] = named_types(
            configuration.get(name, convert=text_of, missing=unset, unset=unset)
        )
        fields[f"{role}.grad_dtype"] = fields[f"{role}.param_dtype"]
        keys[f"{role}.param_dtype"] = name
        size = configuration.get(f"worker.{role}.fsdp.fsdp_size", convert=integer, missing=-1)
        keys[f"{role}.shard_ranks"] = f"worker.{role}.fsdp.fsdp_size"
        fields[f"{role}.shard_ranks"] = (
            size
            if isinstance(size, Known) and size.value > 0
            else Absent(Evidence("all of the role's GPUs"))
        )

    def _derive_batches(
        self,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        role: str,
    ) -> None:
        """``dynamic_batching`` fills micro batch × (prompt + response) tokens (dp_actor.py)."""
        dynamic = configuration.get(
            f"worker.{role}.dynamic_batching", convert=boolean, missing=False
        )
        keys[f"{role}.max_tokens_per_gpu"] = keys[f"{role}.micro_batch"]
        parts = [
            fields[name]
            for name in (
                f"{role}.micro_batch",
                "data.max_prompt_length",
                "data.max_response_length",
            )
        ]
        if isinstance(dynamic, Known) and not dynamic.value:
            fields[f"{role}.max_tokens_per_gpu"] = Absent(dynamic.evidence)
        elif isinstance(dynamic, Known) and all(isinstance(part, Known) for part in parts):
            micro, prompt, response = (part.value for part in parts if isinstance(part, Known))
            fields[f"{role}.max_tokens_per_gpu"] = Known(
                micro * (prompt + response),
                Evidence("micro batch × (prompt + response)", str(dynamic.evidence)),
            )
        else:
            fields[f"{role}.max_tokens_per_gpu"] = Unknown(
                "whether batches are dynamic, or their size, is not known"
            )

    def _derive_rollout(
        self,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        code: Evidence,
    ) -> None:
        fields["rollout.sleep_level"] = Known(1, code)
        fields["rollout.free_cache_engine"] = Known(True, code)
        fields["rollout.utilization_of"] = Known("total", code)
        fields["rollout.cpu_weights"] = Known(False, code)
        fields["rollout.dtype"] = named_types(
            configuration.get("worker.rollout.dtype", convert=text_of)
        )
        keys["rollout.dtype"] = "worker.rollout.dtype"
        length = configuration.get("worker.rollout.max_model_len", convert=integer)
        prompt, response = fields["data.max_prompt_length"], fields["data.max_response_length"]
        keys["rollout.max_model_len"] = "worker.rollout.max_model_len"
        if isinstance(length, Known):
            fields["rollout.max_model_len"] = length
        elif isinstance(prompt, Known) and isinstance(response, Known):
            fields["rollout.max_model_len"] = Known(
                prompt.value + response.value,
                Evidence(prompt.evidence.source, "max_prompt_length + max_response_length"),
            )
        early = {version in _EARLY for version in configuration.versions}
        # Those take the entropy of logits (dp_actor.py@90a634b:131); 0.3.0 and newer have
        # flash-attn's loss alone.
        if len(early) == 1:
            fields["actor.loss_in_place"] = Known(early == {False}, code)
        if early == {False}:  # 3b9ae08, 2025-03-25: disable_mm_preprocessor_cache=True
            fields["rollout.mm_cache"] = Known(0, code)
        else:
            fields["rollout.mm_cache"] = Unknown(
                "vllm's own default before EasyR1 0.3.0, off from then on"
            )
        model = fields["actor.model"]
        if isinstance(model, Known) and re.search(
            r"(?:^|[-_/\d])VL(?:$|[-_/\d])|vision|llava", model.value, re.IGNORECASE
        ):
            fields["data.multimodal"] = Known(
                True, Evidence(model.evidence.source, f"by the name of {model.value}")
            )

    def _refusals(
        self, fields: Mapping[str, Fact[Any]], keys: Mapping[str, str]
    ) -> List[ConfigurationProblem]:
        """FSDP's CPU offload together with gradient accumulation raises (fsdp_workers.py)."""
        offload, mini, micro = (
            _known(fields, f"actor.{name}") for name in ("cpu_offload", "mini_batch", "micro_batch")
        )
        nodes, gpus, samples = (
            _known(fields, "nodes"),
            _known(fields, "gpus_per_node"),
            _known(fields, "rollout.n"),
        )
        if (
            not offload
            or None in (mini, micro, nodes, gpus, samples)
            or mini * samples // (nodes * gpus) == micro  # type: ignore[operator]
        ):
            return []
        fact = fields["actor.cpu_offload"]
        message = (
            "FSDP's CPU offload cannot be combined with gradient accumulation; "
            "offload.offload_params and offload_optimizer can"
        )
        place = fact.evidence if isinstance(fact, Known) else Evidence("")
        return [
            ConfigurationProblem(
                "impossible-value",
                place,
                keys["actor.cpu_offload"],
                message,
                f"{keys['actor.cpu_offload']}=false",
            )
        ]


def _undivided_batches(
    fields: Mapping[str, Fact[Any]], keys: Mapping[str, str], versions: Sequence[str]
) -> Iterator[ConfigurationProblem]:
    """Yield the mini batches that do not divide a step, which is refused since March 2025, between
    90a634b and 0.3.0 (ray_trainer.py, RayPPOTrainer.__init__).
    """
    step = _known(fields, "data.train_batch_size")
    for role in ("actor", "critic"):
        mini = fields.get(f"{role}.mini_batch")
        if not step or not isinstance(mini, Known) or not mini.value or step % mini.value == 0:
            continue
        if _known(fields, f"{role}.present") is not False:
            yield ConfigurationProblem(
                "impossible-value",
                mini.evidence,
                keys.get(f"{role}.mini_batch", ""),
                f"mini batches of {mini.value} prompts do not divide the step's {step}",
                str(step),
                _EARLY.isdisjoint(versions),
            )


def _known(fields: Mapping[str, Fact[Any]], name: str) -> Optional[Any]:
    fact = fields.get(name)
    return fact.value if isinstance(fact, Known) else None


ADAPTER = _EasyR1()
