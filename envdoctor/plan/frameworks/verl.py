"""verl, and what its forks TinyZero and simpleRL-reason share with it: Hydra overrides over
``ppo_trainer.yaml``.
"""

from __future__ import annotations

import ast
import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...model.evidence import Absent, Evidence, Fact, Known, Unknown
from ...model.layout import Layout
from ...model.workload import PIECE, ConfigurationProblem, attention_kind
from .adapter import CERTAIN, Run, RunReading, read_small
from .configuration import (
    Configuration,
    Fields,
    boolean,
    decimal,
    integer,
    is_off,
    named_types,
    paths_of,
    text_of,
)
from .declared import syntax_tree
from .hydra import compose_run, composed_table, named_configuration
from .key_tables import KeyTable, load_table
from .problems import (
    key_problems,
    possible_versions,
    unknown_keys,
    value_problems,
)
from .settings import Setting, overrides
from .unread import other_models, unread_settings
from .verl_derived import (
    ACTOR,
    REF,
    derive_batches,
    derive_checkpoints,
    derive_experts,
    derive_recomputation,
    derive_roles,
    loss_in_place,
    share_parallel_state,
)
from .verl_engine import (
    ROLLOUT,
    EngineReader,
    quantized_as,
    switched_off,
    under,
)

__all__ = ["ADAPTER", "VerlFamily"]

_MODEL = "actor_rollout_ref.model"

#: Workload field → the spellings of its key (newest first where both may be given), and what makes
#: a value of it.
_FIELDS: Fields = {
    "algorithm": (("algorithm.adv_estimator",), text_of),
    "nodes": (("trainer.nnodes",), integer),
    "gpus_per_node": (("trainer.n_gpus_per_node",), integer),
    "colocated": (("actor_rollout_ref.hybrid_engine",), boolean),
    "actor.model": (under(_MODEL, "path"), text_of),
    "actor.offload_params": (
        under(ACTOR, "fsdp_config.param_offload", "megatron.param_offload"),
        boolean,
    ),
    "actor.offload_optimizer": (
        under(ACTOR, "fsdp_config.optimizer_offload", "megatron.optimizer_offload"),
        boolean,
    ),
    "actor.offload_gradients": (
        under(ACTOR, "fsdp_config.grad_offload", "megatron.grad_offload"),
        boolean,
    ),
    "actor.gradient_checkpointing": (under(_MODEL, "enable_gradient_checkpointing"), boolean),
    "actor.activation_offload": (under(_MODEL, "enable_activation_offload"), boolean),
    "actor.frozen_vision": (under(ACTOR, "freeze_vision_tower"), boolean),
    "critic.activation_offload": (("critic.model.enable_activation_offload",), boolean),
    "actor.attention": (under(_MODEL, "override_config.attn_implementation"), attention_kind),
    "actor.lora_rank": (under(_MODEL, "lora_rank"), integer),
    "actor.mini_batch": (under(ACTOR, "ppo_mini_batch_size"), integer),
    "actor.padding_free": (under(_MODEL, "use_remove_padding"), boolean),
    "actor.sequence_parallel": (
        under(ACTOR, "ulysses_sequence_parallel_size", "megatron.context_parallel_size"),
        integer,
    ),
    "actor.tensor_parallel": (under(ACTOR, "megatron.tensor_model_parallel_size"), integer),
    # models/mcore/config_converter.py: wherever there is tensor parallelism
    "actor.sequence_split": (under(ACTOR, "megatron.sequence_parallel"), boolean),
    "critic.sequence_split": (("critic.megatron.sequence_parallel",), boolean),
    "actor.pipeline_parallel": (under(ACTOR, "megatron.pipeline_model_parallel_size"), integer),
    "critic.model": (("critic.model.path",), text_of),
    "critic.offload_params": (
        (
            "critic.fsdp.param_offload",
            "critic.model.fsdp_config.param_offload",
            "critic.megatron.param_offload",
        ),
        boolean,
    ),
    "critic.offload_optimizer": (
        (
            "critic.fsdp.optimizer_offload",
            "critic.model.fsdp_config.optimizer_offload",
            "critic.megatron.optimizer_offload",
        ),
        boolean,
    ),
    "critic.offload_gradients": (
        ("critic.model.fsdp_config.grad_offload", "critic.megatron.grad_offload"),
        boolean,
    ),
    "critic.gradient_checkpointing": (("critic.model.enable_gradient_checkpointing",), boolean),
    "critic.attention": (("critic.model.override_config.attn_implementation",), attention_kind),
    "critic.lora_rank": (("critic.model.lora_rank",), integer),
    "critic.mini_batch": (("critic.ppo_mini_batch_size",), integer),
    "critic.padding_free": (("critic.model.use_remove_padding",), boolean),
    "critic.sequence_parallel": (
        ("critic.ulysses_sequence_parallel_size", "critic.megatron.context_parallel_size"),
        integer,
    ),
    "critic.tensor_parallel": (("critic.megatron.tensor_model_parallel_size",), integer),
    "critic.pipeline_parallel": (("critic.megatron.pipeline_model_parallel_size",), integer),
    "ref.model": (under(REF, "model.path", "model_path"), text_of),
    "ref.offload_params": (
        under(REF, "fsdp_config.param_offload", "megatron.param_offload"),
        boolean,
    ),
    "ref.sequence_parallel": (
        under(REF, "ulysses_sequence_parallel_size", "megatron.context_parallel_size"),
        integer,
    ),
    "ref.tensor_parallel": (under(REF, "megatron.tensor_model_parallel_size"), integer),
    "ref.pipeline_parallel": (under(REF, "megatron.pipeline_model_parallel_size"), integer),
    "reward.present": (("reward.reward_model.enable", "reward_model.enable"), boolean),
    "reward.model": (("reward.reward_model.model_path", "reward_model.model.path"), text_of),
    "reward.offload_params": (("reward_model.model.fsdp_config.param_offload",), boolean),
    "rollout.engine": (under(ROLLOUT, "name"), text_of),
    "rollout.tensor_parallel": (under(ROLLOUT, "tensor_model_parallel_size"), integer),
    "rollout.gpu_memory_utilization": (under(ROLLOUT, "gpu_memory_utilization"), decimal),
    "rollout.n": (under(ROLLOUT, "n"), integer),
    "rollout.max_num_seqs": (under(ROLLOUT, "max_num_seqs"), integer),
    "rollout.max_num_batched_tokens": (under(ROLLOUT, "max_num_batched_tokens"), integer),
    "rollout.chunked_prefill": (under(ROLLOUT, "enable_chunked_prefill"), boolean),
    "rollout.enforce_eager": (under(ROLLOUT, "enforce_eager"), boolean),
    "rollout.free_cache_engine": (under(ROLLOUT, "free_cache_engine"), boolean),
    "rollout.load_format": (under(ROLLOUT, "load_format"), text_of),
    "rollout.quantization": (under(ROLLOUT, "quantization"), quantized_as),
    "rollout.use_shm": (under(_MODEL, "use_shm"), boolean),
    "rollout.micro_batch": (under(ROLLOUT, "micro_rollout_batch_size"), integer),
    "data.max_prompt_length": (("data.max_prompt_length",), integer),
    "data.max_response_length": (("data.max_response_length",), integer),
    "data.train_batch_size": (("data.train_batch_size",), integer),
    "data.val_batch_size": (("data.val_batch_size",), integer),
    "data.files": (("data.train_files",), paths_of),
    "data.val_files": (("data.val_files",), paths_of),
    "data.dataloader_workers": (("data.dataloader_num_workers",), integer),
    "checkpoint.folder": (("trainer.default_local_dir",), text_of),
    "steps": (("trainer.total_training_steps",), integer),
    "ray.num_cpus": (("ray_kwargs.ray_init.num_cpus", "ray_init.num_cpus"), integer),
    "ray.object_store": (
        ("ray_kwargs.ray_init.object_store_memory", "ray_init.object_store_memory"),
        integer,
    ),
}
#: What the code does in versions that have no such key.
_MISSING: Mapping[str, Any] = {
    **{
        f"{role}.{name}": value
        for role in ("actor", "critic")
        for name, value in (
            ("lora_rank", 0),
            ("offload_gradients", False),
            ("padding_free", False),
            ("activation_offload", False),
            ("sequence_split", True),
        )
    },
    "actor.frozen_vision": False,
    # fsdp_workers.py
    "actor.attention": "fused",
    "critic.attention": "fused",
    "actor.sequence_parallel": 1,
    "critic.sequence_parallel": 1,
    "ref.sequence_parallel": 1,
    "rollout.use_shm": False,
    "rollout.n": 1,
    "reward.present": False,
    "data.dataloader_workers": 8,
}
#: Settings that lower what is counted for the upper bound alone: Liger's norms and activations, and
#: pieces of the entropy, beside which the logits are whole.
_LESS_AT_MOST = (
    f"{_MODEL}.use_liger",
    f"{ACTOR}.entropy_from_logits_with_chunking",
    f"{ACTOR}.entropy_checkpointing",
    f"{REF}.entropy_from_logits_with_chunking",
    f"{REF}.entropy_checkpointing",
)
_STRATEGY_KEYS = {
    "actor": f"{ACTOR}.strategy",
    "ref": f"{REF}.strategy",
    "critic": "critic.strategy",
}
_ENTRY = re.compile(
    r"(?:verl\.trainer|(?:verl\.)?recipe\.\w+|verl\.experimental\.\w+)\.main_\w+|(?:.*/)?"
    r"(?:verl/trainer|recipe/\w+)/main_\w+\.py|(?:\./)?main_ppo\w*\.py"
)
_PLAIN = re.compile(
    r"|verl\.trainer\.main_ppo|(?:.*/)?verl/trainer/main_ppo\.py|(?:\./)?main_ppo\.py"
)
#: They sample and score, with a configuration of their own.
_OTHER = re.compile(r".*main_(?:generation|eval)\w*(?:\.py)?")
_DAPO = "recipe.dapo.main_dapo"
_STANDARD_CONFIGS = ("ppo_trainer", "ppo_megatron_trainer")
_STANDARD_FILES = tuple(f"{name}.yaml" for name in _STANDARD_CONFIGS)


def _loads_released(run: Run) -> bool:
    """Tell whether an entry loads a configuration of verl itself, which lies beside it once it is
    mounted into a checkout.
    """
    folder, name = named_configuration(run)
    return folder.endswith("verl/trainer/config") and name in _STANDARD_CONFIGS


class VerlFamily:
    """verl or a fork of it.

    ``forked``: its code is of verl before 0.3, with the third-party vllm.
    """

    def __init__(self, name: str, layout: Layout, *, forked: bool) -> None:
        self.name = name
        self.layout = layout
        self.forked = forked

    def claims(self, run: Run) -> int:
        """By the entry, or by ``actor_rollout_ref`` in the settings; the fewer keys are foreign,
        the more.
        """
        settings = [*self._settings(run), *run.files]
        if _OTHER.fullmatch(run.entry):
            return 0
        if not _ENTRY.fullmatch(run.entry) and not any(
            setting.key.startswith("actor_rollout_ref.") for setting in settings
        ):
            return 0
        if self.forked and not re.fullmatch(
            r"verl\.trainer\.main_ppo|(?:.*/)?main_ppo\.py|", run.entry
        ):
            return 0
        table, _ = self._table(_option(run, "config-name", "config_name"), settings)
        return max(CERTAIN - unknown_keys(table, settings), 1)

    def read(self, run: Run) -> RunReading:
        """Read the run against the table of the framework's versions."""
        settings = self._settings(run)
        config = _option(run, "config-name", "config_name")
        composition = compose_run(run)
        named = config if composition is None else composition.source
        released, megatron = self._table(named, [*run.files, *settings])
        versions, version = self._versions(released, run, settings)
        table, absent, is_known = released, "", isinstance(version, Known) or self.forked
        if composition is not None:
            table = composed_table(composition, released, versions)
            others = [name for name in composition.missing if name not in _STANDARD_FILES]
            absent = others[0] if others else ""
            is_known = not composition.missing
        elif _loads_released(run):
            is_known = False  # verl's own beside the recipe, of a version that is not told
        elif self._is_own(run, config):
            # What a configuration of its own sets is not known, so no default can be relied on;
            # DAPO's changes none of those read here.
            absent = f"the configuration of {run.entry}" if run.entry != _DAPO else ""
            absent += f" ({config})" if absent and config else ""
            is_known = False
        configuration = Configuration(
            table, versions, settings, run.files, run.environ, absent=absent
        )
        facts, keys = configuration.read(_FIELDS, _MISSING)
        fields = {"framework": Known(self.name, Evidence(run.name, run.entry)), **facts}
        self._derive(
            configuration,
            fields,
            keys,
            megatron,
            run.facts.version_of("vllm") if run.facts is not None else None,
        )
        keys = configuration.named(keys)
        problems = key_problems(configuration, settings, exact=is_known)
        # The trainer of a recipe may allow what verl's own asserts against.
        is_plain = not absent and _PLAIN.fullmatch(run.entry) is not None
        if is_plain and isinstance(version, Known) and not self.forked:
            fields.update(loss_in_place(configuration, fields))
        problems += [
            problem._replace(certain=problem.certain and is_plain)
            for problem in value_problems(fields, keys)
        ]
        problems += self._assertions(fields, keys)
        asserts = configuration.since("0.2")
        if asserts is not False:
            sure = is_plain and bool(asserts) and not self.forked
            problems += _unequal_shares(fields, keys, certain=sure)
        compares = configuration.since("0.3") and not self.forked
        if compares is not False and not _passes_over(run, *_COMPARED):
            problems += _larger_mini_batches(fields, keys, certain=is_plain and bool(compares))
        unread = unread_settings(configuration, [*run.files, *settings])
        fields.update(other_models(configuration, [*run.files, *settings]))
        if not _ENTRY.fullmatch(run.entry) and composition is None:
            unread = (*unread, f"the program {run.entry or run.name}")
        return RunReading(fields, keys, problems, version, unread, configuration.totals)

    @staticmethod
    def _is_own(run: Run, config: str) -> bool:
        """Whether a recipe or a named configuration brings keys of its own."""
        is_standard = not config or config.partition(".")[0] in _STANDARD_CONFIGS
        return not is_standard or not _PLAIN.fullmatch(run.entry)

    def _table(self, config: str, settings: Sequence[Setting]) -> Tuple[KeyTable, bool]:
        """The table of the configuration that a run names, and whether that is Megatron's."""
        megatron = "megatron" in config or any(
            (
                setting.key in (f"{ACTOR}.strategy", "model_engine")
                or setting.key.startswith("actor@")
            )
            and "megatron" in str(setting.value)
            for setting in settings
        )
        return load_table(self.name, "ppo_megatron_trainer" if megatron else None), megatron

    def _settings(self, run: Run) -> List[Setting]:
        return [setting for setting in overrides(run.arguments, run.name) if "/" not in setting.key]

    def _versions(
        self, table: KeyTable, run: Run, settings: Sequence[Setting]
    ) -> Tuple[Tuple[str, ...], Fact[Any]]:
        if self.forked:
            if run.checkout is not None and run.checkout.commit:
                return table.versions, Known(
                    run.checkout.commit, run.checkout.place or Evidence(run.checkout.folder)
                )
            return table.versions, Unknown(f"read against {self.name} {table.versions[-1]}")
        return possible_versions(table, run, settings)

    def _derive(
        self,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        megatron: bool,
        vllm: Optional[str],
    ) -> None:
        """Fields that more than one key decides, or that the code decides."""
        derive_batches(configuration, fields, keys)
        derive_roles(configuration, fields, keys, self.name)
        for role, prefixes in (
            ("actor", under(ACTOR, "fsdp_config")),
            ("ref", under(REF, "fsdp_config")),
            ("critic", ("critic.fsdp", "critic.model.fsdp_config")),
        ):
            self._derive_state(configuration, fields, keys, role, prefixes, megatron)
        fused = configuration.get(f"{_MODEL}.use_fused_kernels", convert=boolean, missing=False)
        if isinstance(fused, Known) and fused.value:
            fields["actor.loss_piece"] = Known(PIECE, fused.evidence)
        knowing = configuration.table.versions_of(f"{_MODEL}.use_fused_kernels")
        # A key that only some of the possible versions have would tell the version when pasted.
        if set(configuration.versions) <= set(knowing):
            keys["actor.loss_piece"] = f"{_MODEL}.use_fused_kernels"
        configuration.asked.update(_LESS_AT_MOST)
        fields["rollout.dtype"] = named_types(
            configuration.get(f"{ROLLOUT}.dtype", convert=text_of)
        )
        keys["rollout.dtype"] = f"{ROLLOUT}.dtype"
        name = f"{ROLLOUT}.max_model_len"
        length = configuration.get(name, convert=integer)
        if not isinstance(length, Known):
            length = _sum(fields, "data.max_prompt_length", "data.max_response_length")
        fields["rollout.max_model_len"] = length
        keys["rollout.max_model_len"] = configuration.key(name)
        old = self._old(configuration)
        EngineReader(configuration, fields, keys, self.forked, old).read(vllm)
        derive_checkpoints(configuration, fields, keys, full=old)

    def _old(self, configuration: Configuration) -> Optional[bool]:
        """Whether the code is of verl before 0.3: rank 0 gathers a checkpoint, vllm is the
        third-party copy. None: not known.
        """
        if self.forked:
            return True
        answers = {version.startswith(("0.1", "0.2")) for version in configuration.versions}
        return answers.pop() if len(answers) == 1 else None

    def _derive_state(
        self,
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        role: str,
        prefixes: Sequence[str],
        megatron: bool,
    ) -> None:
        code = Evidence(f"code of {configuration.span}", "verl/workers")
        strategy = self._derive_strategy(configuration, fields, keys, role, megatron)
        names = [f"{prefix}.model_dtype" for prefix in prefixes]
        # fsdp_workers.py, where model_dtype is not given
        unset = "bf16" if role == "ref" else "fp32"
        fields[f"{role}.param_dtype"] = named_types(
            configuration.get(*names, convert=text_of, missing=unset, unset=unset)
        )
        keys[f"{role}.param_dtype"] = configuration.key(*names)
        size_names = [f"{prefix}.fsdp_size" for prefix in prefixes]
        size = configuration.get(*size_names, convert=integer)
        keys[f"{role}.shard_ranks"] = configuration.key(*size_names)
        fields[f"{role}.shard_ranks"] = (
            size
            if isinstance(size, Known) and size.value > 0
            else Absent(Evidence("all of the role's GPUs"))
        )
        names = [f"{prefix}.reshard_after_forward" for prefix in prefixes]
        fields.update(configuration.stated(f"{role}.keeps_gathered", *names, convert=is_off))
        keys[f"{role}.keeps_gathered"] = configuration.key(*names)
        kept = fields.get(f"{role}.keeps_gathered")
        second = isinstance(strategy, Known) and strategy.value == "fsdp2"
        if isinstance(kept, Known) and kept.value and not second:
            # fsdp_workers.py: of FSDP 1 too, but not in each release that has the key.
            why = "whether FSDP 1 follows reshard_after_forward hangs on the release"
            fields[f"{role}.keeps_gathered"] = Unknown(why)
        if role == "ref":
            fields["ref.cpu_offload"] = self._reference_offload(configuration, strategy, code)
            fields["ref.optimizer"] = Known("none", code)
            if isinstance(strategy, Known) and strategy.value == "megatron":
                share_parallel_state(fields)
            return
        derive_experts(configuration, fields, role)
        if isinstance(strategy, Known) and strategy.value == "megatron":
            derive_recomputation(configuration, fields, keys, role)
        fields[f"{role}.cpu_offload"] = self._offload_policy(
            configuration, strategy, prefixes, code
        )
        keys[f"{role}.cpu_offload"] = configuration.key(
            *(f"{one}.offload_policy" for one in prefixes)
        )
        fields[f"{role}.grad_dtype"] = fields[f"{role}.param_dtype"]
        fields[f"{role}.optimizer"] = Known("adamw", code)
        fields[f"{role}.rank0_init"] = (
            Known(False, code)
            if self._old(configuration)
            else Unknown("since verl 0.3 it depends on the model and the strategy")
        )

    @staticmethod
    def _derive_strategy(
        configuration: Configuration,
        fields: Dict[str, Fact[Any]],
        keys: Dict[str, str],
        role: str,
        megatron: bool,
    ) -> Fact[Any]:
        """The reference model goes by the actor's where nothing is said of its own."""
        key = keys[f"{role}.strategy"] = _STRATEGY_KEYS[role]
        strategy = configuration.get(key, convert=text_of)
        if not isinstance(strategy, Known) and role == "ref":
            strategy = fields["actor.strategy"]
        elif not isinstance(strategy, Known) and role == "actor" and megatron:
            strategy = Known("megatron", Evidence(f"default of {configuration.span}", key))
        fields[f"{role}.strategy"] = strategy
        return strategy

    @staticmethod
    def _offload_policy(
        configuration: Configuration, strategy: Fact[Any], prefixes: Sequence[str], code: Evidence
    ) -> Fact[Any]:
        """FSDP 2's CPUOffloadPolicy, which FSDP 1 does not look at (fsdp_workers.py@v0.4.0)."""
        policy = configuration.get(
            *(f"{prefix}.offload_policy" for prefix in prefixes), convert=boolean, missing=False
        )
        if not isinstance(policy, Known) or not policy.value:
            return policy
        is_second = isinstance(strategy, Known) and strategy.value == "fsdp2"
        return policy if is_second else Known(False, code)

    def _reference_offload(
        self, configuration: Configuration, strategy: Fact[Any], code: Evidence
    ) -> Fact[Any]:
        """FSDP's CPUOffload for the reference model: forced by code since 0.2, for FSDP 1
        (fsdp_workers.py, engine/fsdp/transformer_impl.py).
        """
        if self.name == "tinyzero" or (not self.forked and set(configuration.versions) <= {"0.1"}):
            return Known(False, code)
        if "0.1" in configuration.versions and not self.forked:
            return Unknown(
                "verl 0.1 moves the reference model by itself, later ones use FSDP's CPUOffload"
            )
        if isinstance(strategy, Known) and strategy.value == "megatron":
            return Unknown("Megatron's reference goes by its param_offload alone")
        if isinstance(strategy, Known):
            return Known(strategy.value in ("fsdp", "fsdp2"), code)
        return Unknown("the strategy is not known")

    def _assertions(
        self, fields: Mapping[str, Fact[Any]], keys: Mapping[str, str]
    ) -> List[ConfigurationProblem]:
        """What the third-party rollout of the forks asserts (vllm_rollout.py)."""
        eager, free = fields["rollout.enforce_eager"], fields["rollout.free_cache_engine"]
        uses_graphs = switched_off(eager)
        if not self.forked or uses_graphs is None or not isinstance(free, Known) or not free.value:
            return []
        message = (
            "the rollout asserts that CUDA graphs (enforce_eager=False) and "
            "free_cache_engine=True are not both on"
        )
        return [
            ConfigurationProblem(
                "impossible-value",
                uses_graphs,
                keys["rollout.enforce_eager"],
                message,
                f"{keys['rollout.free_cache_engine']}=False",
            )
        ]


def _unequal_shares(
    fields: Mapping[str, Fact[Any]], keys: Mapping[str, str], *, certain: bool
) -> Iterator[ConfigurationProblem]:
    """Yield a step that the GPUs cannot share equally: the trainer asserts that they can, since 0.2
    (ray_trainer.py, _validate_config; since 0.6 utils/config.py, validate_config).
    """
    names = ("data.train_batch_size", "rollout.n", "nodes", "gpus_per_node", "actor.micro_batch")
    facts = [fields.get(name) for name in names]
    strategy = fields.get("actor.strategy")
    sharded = isinstance(strategy, Known) and strategy.value in ("fsdp", "fsdp2")
    if not sharded or not all(isinstance(fact, Known) and fact.value for fact in facts):
        return
    batch, samples, nodes, each, _ = (int(fact.value) for fact in facts if isinstance(fact, Known))
    gpus = nodes * each
    if batch * samples % gpus == 0:
        return
    place = next(fact.evidence for fact in facts if isinstance(fact, Known))
    yield ConfigurationProblem(
        "impossible-value",
        place,
        keys[names[0]],
        f"{batch} × {samples} sequences of a step cannot be shared equally by {gpus} GPUs",
        f"{keys[names[0]]}={max(batch // gpus, 1) * gpus}",
        certain,
    )


def _larger_mini_batches(
    fields: Mapping[str, Fact[Any]], keys: Mapping[str, str], *, certain: bool
) -> Iterator[ConfigurationProblem]:
    """Yield the mini batches that are larger than a step, which 0.3 and later refuse where batches
    are not dynamic (ray_trainer.py, _validate_config; since 0.6 workers/config/actor.py); before
    and in the forks the step is one smaller mini batch.
    """
    step = fields.get("data.train_batch_size")
    for role in ("actor", "critic"):
        mini, present, tokens = (
            fields.get(f"{role}.{name}") for name in ("mini_batch", "present", "max_tokens_per_gpu")
        )
        is_absent = isinstance(present, Known) and present.value is False
        if is_absent or not isinstance(step, Known) or not isinstance(mini, Known):
            continue
        is_dynamic = isinstance(tokens, Known) and tokens.value is not None
        if not is_dynamic and step.value and mini.value > step.value:
            yield ConfigurationProblem(
                "impossible-value",
                mini.evidence,
                keys.get(f"{role}.mini_batch", ""),
                f"a mini batch of {mini.value} prompts is larger than the step's {step.value}",
                str(step.value),
                certain,
            )


#: Where verl compares the settings of a run with one another.
_COMPARED = ("train_batch_size", "ppo_mini_batch_size")
_COMPARING = ("verl/trainer/ppo/ray_trainer.py", "verl/workers/config/actor.py")


def _passes_over(run: Run, *names: str) -> bool:
    """Tell whether the checkout's own code, which is at hand, compares settings of these names
    nowhere, as forks do that have taken an assertion out.
    """
    folder = run.checkout.folder if run.checkout is not None else ""
    texts = [read_small(os.path.join(folder, path)) for path in _COMPARING] if folder else []
    trees = [syntax_tree(text) for text in texts if text]
    compared = (
        ast.unparse(node)
        for tree in trees
        if tree is not None
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
    )
    is_read = bool(trees) and None not in trees
    return is_read and not any(all(name in text for name in names) for text in compared)


def _option(run: Run, *names: str) -> str:
    for number, word in enumerate(run.arguments):
        for name in names if word.text.startswith("--") else ():
            if word.text.startswith(f"--{name}="):
                return word.text.partition("=")[2].strip("'\"")
            if word.text == f"--{name}" and number + 1 < len(run.arguments):
                return run.arguments[number + 1].text
    return ""


def _sum(fields: Mapping[str, Fact[Any]], *names: str) -> Fact[Any]:
    facts = [fields[name] for name in names]
    known = [fact for fact in facts if isinstance(fact, Known)]
    if len(known) < len(facts):
        return Unknown(f"it is {' + '.join(names)}, and not all of these are known")
    return Known(
        sum(fact.value for fact in known), Evidence(known[0].evidence.source, " + ".join(names))
    )


ADAPTER = VerlFamily(
    "verl",
    Layout(
        files=("verl/trainer/main_ppo.py",),
        absent=(
            "verl/trainer/main.py",
            "verl/utils/reward_score/countdown.py",
            "verl/utils/reward_score/simplelr_math.py",
        ),
    ),
    forked=False,
)
