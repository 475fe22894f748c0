"""NeMo-RL: ``examples/run_grpo.py --config FILE.yaml key=value`` and its siblings, or the file
alone. A file names the one that it is laid over under ``defaults`` (nemo_rl/utils/config.py).
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ...errors import InputError
from ...model.evidence import Fact, Known, Unknown
from ...model.layout import Layout
from ...model.sizes import GIB
from .adapter import Run, read_small
from .configuration import Fields, boolean, decimal, integer, text_of
from .hf_trainer import entry_source, imports
from .hydra import entry_file
from .settings import MAX_CONFIG_BYTES, Setting, read_config
from .trainer import Launch, Trainer, TrainerReading, options_and_overrides

__all__ = ["ADAPTER"]

#: Sections of a configuration by what is trained; the first that is there counts.
_ALGORITHMS = {"grpo": "grpo", "ppo": "ppo", "dpo": "dpo", "rm": "rm", "sft": "sft"}
_ENTRY = re.compile(r"(?:.*/)?run_(grpo|ppo|dpo|rm|sft|distillation|vlm_grpo|vlm_sft)\w*\.py")
#: The configuration of an entry that names none (examples/run_*.py).
_UNNAMED = {
    "grpo": "grpo_math_1B.yaml",
    "ppo": "ppo_math_1B.yaml",
    "dpo": "dpo.yaml",
    "rm": "rm.yaml",
    "sft": "sft.yaml",
    "distillation": "distillation_math.yaml",
    "vlm_grpo": "vlm_grpo_3B.yaml",
    "vlm_sft": "sft_vlm_3B.yaml",
}
_SUITES, _RECIPES = "tests/test_suites/", "examples/configs/recipes/"
_MOST_FILES = 20
_FIELDS: Fields = {
    "actor.model": (("policy.model_name",), text_of),
    "nodes": (("cluster.num_nodes",), integer),
    "gpus_per_node": (("cluster.gpus_per_node",), integer),
    "actor.micro_batch": (("policy.train_micro_batch_size",), integer),
    "actor.scored_batch": (("policy.logprob_batch_size",), integer),
    "data.max_length": (("policy.max_total_sequence_length",), integer),
    "data.dataloader_workers": (("data.num_workers",), integer),
}
_ROLLOUT: Fields = {
    "data.train_batch_size": (("grpo.num_prompts_per_step", "ppo.num_prompts_per_step"), integer),
    "rollout.n": (("grpo.num_generations_per_prompt", "ppo.num_generations_per_prompt"), integer),
    "rollout.tensor_parallel": (("policy.generation.vllm_cfg.tensor_parallel_size",), integer),
    "rollout.pipeline_parallel": (("policy.generation.vllm_cfg.pipeline_parallel_size",), integer),
    "rollout.gpu_memory_utilization": (
        ("policy.generation.vllm_cfg.gpu_memory_utilization",),
        decimal,
    ),
    "rollout.max_model_len": (("policy.generation.vllm_cfg.max_model_len",), integer),
    "rollout.enforce_eager": (("policy.generation.vllm_cfg.enforce_eager",), boolean),
    "rollout.kv_dtype": (("policy.generation.vllm_cfg.kv_cache_dtype",), text_of),
}


class _NemoRl(Trainer):
    name = "nemo-rl"
    layout = Layout(files=("nemo_rl/algorithms/grpo.py",))
    source = "NeMo-RL"
    fields = _FIELDS

    def owns(self, run: Run) -> bool:
        """By a script that imports it, or by a file with a policy of its backends."""
        if run.entry:
            return run.entry.endswith(".py") and imports(entry_source(run), "nemo_rl")
        keys = {setting.key for setting in self._inherited(list(run.files), _folder(run))[0]}
        backends = ("policy.dtensor_cfg.", "policy.megatron_cfg.")
        return "policy.model_name" in keys and any(key.startswith(backends) for key in keys)

    def launch(self, run: Run) -> Launch:
        """Return overrides and the files that the run is laid over."""
        if not run.entry:
            files, missing = self._inherited(list(run.files), _folder(run))
            return Launch((), files, missing)
        options, pairs = options_and_overrides(run)
        named = next((option for option in options if option.key == "config"), None)
        path = self._path(run, named)
        given = [setting for setting in options if setting.key != "config"]
        settings = [*given, *pairs]
        if path is None:
            name = "--config" if named is None else named.unclear or str(named.value)
            return Launch(settings, (), name)
        files, missing = self._of_file(path)
        return Launch(settings, files, missing)

    def _path(self, run: Run, named: Optional[Setting]) -> Optional[str]:
        """Return the file of ``--config``; without one the entry's own, and for a suite of tests
        the recipe of its name, as tests/test_suites/*/common.env has it.
        """
        entry = entry_file(run)
        if named is None:
            match = _ENTRY.fullmatch(run.entry)
            own = _UNNAMED.get(match.group(1)) if match else None
            folder = os.path.dirname(entry[0]) if entry is not None else ""
            return os.path.join(folder, "configs", own) if own and folder else None
        if not run.at_hand:
            return None
        if named.unclear:
            return self._recipe(run)
        roots = [run.base, *([entry[1]] if entry is not None else [])]
        roots += [run.checkout.folder] if run.checkout is not None else []
        paths = (os.path.join(root, str(named.value)) for root in roots)
        return next((path for path in paths if os.path.isfile(path)), None)

    @staticmethod
    def _recipe(run: Run) -> Optional[str]:
        stem = os.path.splitext(os.path.join(os.path.abspath(run.base), run.name))[0]
        before, suites, after = stem.rpartition(_SUITES)
        path = f"{before}{_RECIPES}{after}.yaml"
        return path if suites and os.path.isfile(path) else None

    def _of_file(self, path: str) -> Tuple[List[Setting], str]:
        text = read_small(path, MAX_CONFIG_BYTES)
        if text is None:
            return [], os.path.basename(path)
        try:
            settings = read_config(text, os.path.basename(path))
        except InputError:
            return [], os.path.basename(path)
        return self._inherited(settings, os.path.dirname(path))

    def _inherited(
        self, settings: List[Setting], folder: Optional[str], depth: int = 0
    ) -> Tuple[List[Setting], str]:
        """Return the settings of a file over those of the files under its ``defaults``, and the
        first of these that is not at hand; ``folder`` None: none of them is.
        """
        below = [one.value for one in settings if one.key == "defaults"]
        lists = [value if isinstance(value, list) else [value] for value in below]
        names = [name for values in lists for name in values]
        own = [one for one in settings if one.key != "defaults"]
        collected: List[Setting] = []
        for name in names:
            path = os.path.normpath(os.path.join(folder or "", str(name)))
            is_read = folder is not None and depth < _MOST_FILES
            text = read_small(path, MAX_CONFIG_BYTES) if is_read else None
            try:
                read = read_config(text, os.path.basename(path)) if text is not None else None
            except InputError:
                read = None
            if read is None:
                return own, str(name)
            parents, missing = self._inherited(read, os.path.dirname(path), depth + 1)
            if missing:
                return own, missing
            collected += parents
        return [*collected, *own], ""

    def derive(self, reading: TrainerReading) -> None:
        """Say what is trained, how it is spread, and what generates."""
        given = reading.configuration.given
        algorithm = next(
            (name for name in _ALGORITHMS if any(key.startswith(f"{name}.") for key in given)), ""
        )
        distils = any(key.startswith("distillation.") for key in given)
        kind = "grpo" if distils else _ALGORITHMS.get(algorithm, "")
        if kind:
            reading.put("algorithm", kind)
        generates = kind in ("grpo", "ppo")
        if generates:
            self._derive_rollout(reading, "distillation" if distils else algorithm)
        _derive_policy(reading, "actor", "policy", offloads=generates)
        _derive_tokens(reading)
        self._derive_others(reading, kind, distils=distils)
        period = reading.get("checkpointing.save_period", convert=integer)
        enabled = reading.value("checkpointing.enabled", convert=boolean)
        reading.fields["checkpoint.save_freq"] = period
        if enabled is False:
            reading.put("checkpoint.save_freq", 0)
        reading.fields["checkpoint.limit"] = reading.get(
            "checkpointing.keep_top_k", convert=integer
        )
        if reading.value("checkpointing.save_optimizer", convert=boolean) is False:
            reading.put("checkpoint.model_only", True)

    @staticmethod
    def _derive_rollout(reading: TrainerReading, section: str) -> None:
        fields, keys = reading.configuration.read(
            {
                field: (
                    (f"{section}.{names[0].partition('.')[2]}",)
                    if names[0].startswith("grpo.")
                    else names,
                    convert,
                )
                for field, (names, convert) in _ROLLOUT.items()
            },
            {},
        )
        reading.fields.update(fields)
        reading.keys.update(keys)
        backend = reading.get("policy.generation.backend", convert=text_of)
        together = reading.get("policy.generation.colocated.enabled", convert=boolean)
        engine: Fact[Any] = backend
        if isinstance(backend, Known) and backend.value not in ("vllm", "sglang"):
            engine = _own_engine(reading, backend)
        reading.fields["rollout.engine"] = engine
        reading.fields["colocated"] = together
        reading.put("rollout.utilization_of", "total")
        reading.put("rollout.cpu_weights", False)
        if isinstance(together, Known):
            reading.put("rollout.sleep_level", 1 if together.value else 0, together)
            if not together.value:
                _derive_apart(reading)

    @staticmethod
    def _derive_others(reading: TrainerReading, kind: str, *, distils: bool) -> None:
        """The reference's weights lie on the host and are exchanged with the policy's; a teacher
        and a value model are workers of their own (nemo_rl/models/policy/workers).
        """
        penalty = reading.get("loss_fn.reference_policy_kl_penalty", convert=decimal)
        reading.fields["ref.model"] = reading.fields["actor.model"]
        reading.fields["ref.strategy"] = reading.fields["actor.strategy"]
        present: Fact[Any] = Known(False, reading.code)
        if distils:
            reading.fields["ref.model"] = reading.get("teacher.model_name", convert=text_of)
            present = Known(True, reading.code)
            _derive_policy(reading, "ref", "teacher", offloads=True)
        elif kind == "dpo":
            present = Known(True, reading.code)
        elif kind in ("grpo", "ppo"):
            present = (
                Known(penalty.value > 0, penalty.evidence)
                if isinstance(penalty, Known)
                else penalty
            )
        reading.fields["ref.present"] = present
        reading.put("ref.param_dtype", "bf16")
        if not distils:
            reading.put("ref.cpu_offload", True)
        if kind == "ppo":
            reading.put("critic.present", True)
            reading.fields["critic.model"] = reading.get("value.model_name", convert=text_of)
            reading.fields["critic.micro_batch"] = reading.get(
                "value.train_micro_batch_size", convert=integer
            )
            _derive_policy(reading, "critic", "value", offloads=True)

    def doubts(self, reading: TrainerReading) -> List[str]:
        """Return plans of parallelism and modules that change what lies where."""
        names = ("policy.dtensor_cfg.custom_parallel_plan", "policy.draft.enabled")
        return [name for name in names if reading.value(name)]


def _own_engine(reading: TrainerReading, backend: Known[Any]) -> Fact[Any]:
    """Megatron generates with the trainer's weights, or with a copy that is cut for it, and a cache
    of a stated size (nemo_rl/models/generation/megatron/megatron_worker.py); of others, and where
    it has GPUs of its own, nothing is known.
    """
    section = "policy.generation.mcore_generation_config."
    size = reading.get(f"{section}buffer_size_gb", convert=decimal)
    reading.keys["rollout.cache_size"] = f"{section}buffer_size_gb"
    together = reading.value("policy.generation.colocated.enabled", convert=boolean)
    if backend.value != "megatron" or together is not True or not isinstance(size, Known):
        return Unknown(f"{backend.evidence}: the memory of {backend.value} is not known")
    reading.fields["rollout.cache_size"] = Known(int(size.value * GIB), size.evidence)
    reading.fields["rollout.max_num_batched_tokens"] = reading.get(
        f"{section}max_tokens", convert=integer
    )
    persists = reading.value(f"{section}kv_cache_management_mode", convert=text_of)
    if persists is not None:
        reading.put("rollout.free_cache_engine", persists != "persist")
    reading.consider(*(f"{section}{name}" for name in _OF_ENGINE))
    _pass_over(reading, "policy.generation.vllm_cfg.")
    return backend


def _pass_over(reading: TrainerReading, section: str) -> None:
    """Note settings of what is switched off: they change nothing."""
    reading.consider(*(key for key in reading.configuration.given if key.startswith(section)))


#: Settings of that engine that lower nothing that is counted.
_OF_ENGINE = (
    "max_model_len",
    "cuda_graph_impl",
    "inference_cuda_graph_scope",
    "num_cuda_graphs",
    "block_size_tokens",
    "use_cuda_graphs_for_non_decode_steps",
    "enable_chunked_prefill",
    "enable_prefix_caching",
    "materialize_only_last_token_logits",
    "num_speculative_tokens",
    "refit_backend",
    "parsers",
    "expose_http_server",
)


def _derive_policy(reading: TrainerReading, role: str, section: str, *, offloads: bool) -> None:
    """Fill in how one model is spread: by DTensor's FSDP, or by Megatron."""
    dtensor = reading.get(f"{section}.dtensor_cfg.enabled", convert=boolean)
    megatron = reading.get(f"{section}.megatron_cfg.enabled", convert=boolean)
    is_megatron = isinstance(megatron, Known) and bool(megatron.value)
    prefix = f"{section}.megatron_cfg." if is_megatron else f"{section}.dtensor_cfg."
    strategy: Fact[Any] = Unknown("neither dtensor_cfg nor megatron_cfg is enabled")
    if is_megatron:
        strategy = Known("megatron", megatron.evidence)  # type: ignore[union-attr]
    elif isinstance(dtensor, Known) and dtensor.value:
        strategy = Known("fsdp2", dtensor.evidence)
    reading.fields[f"{role}.strategy"] = strategy
    for name, is_on in (("dtensor_cfg", not is_megatron), ("megatron_cfg", is_megatron)):
        if not is_on:
            _pass_over(reading, f"{section}.{name}.")
    _derive_cuts(reading, role, prefix, megatron=is_megatron)
    lora = f"{prefix}peft." if is_megatron else f"{prefix}lora_cfg."
    enabled = reading.value(f"{lora}enabled", convert=boolean, default=False)
    rank = reading.get(f"{lora}dim", convert=integer)
    reading.fields[f"{role}.lora_rank"] = rank if enabled else Known(0, reading.code)
    reading.keys[f"{role}.lora_rank"] = f"{lora}dim"
    recomputed = reading.get(f"{prefix}activation_checkpointing", convert=boolean)
    partly = is_megatron and reading.value(f"{prefix}recompute_granularity") == "selective"
    reading.keys[f"{role}.gradient_checkpointing"] = f"{prefix}activation_checkpointing"
    reading.fields[f"{role}.gradient_checkpointing"] = (
        Unknown("some modules are recomputed") if partly else recomputed
    )
    if offloads:
        # Before a generation optimizer and weights go to the host (prepare_for_generation).
        together = reading.fields.get("colocated")
        if isinstance(together, Known) and together.value:
            reading.put(f"{role}.offload_params", True)
            reading.put(f"{role}.offload_optimizer", True)
    _derive_optimizer(reading, role, prefix, section, megatron=is_megatron)


def _derive_cuts(reading: TrainerReading, role: str, prefix: str, *, megatron: bool) -> None:
    tensor = "tensor_model_parallel_size" if megatron else "tensor_parallel_size"
    table: Dict[str, Tuple[str, Any]] = {
        "tensor_parallel": (tensor, integer),
        "sequence_parallel": ("context_parallel_size", integer),
        "sequence_split": ("sequence_parallel", boolean),
    }
    if megatron:
        table["pipeline_parallel"] = ("pipeline_model_parallel_size", integer)
    else:
        table["cpu_offload"] = ("cpu_offload", boolean)
    for field, (name, convert) in table.items():
        reading.fields[f"{role}.{field}"] = reading.get(f"{prefix}{name}", convert=convert)
        reading.keys[f"{role}.{field}"] = f"{prefix}{name}"
    if megatron:
        experts = reading.value(f"{prefix}expert_model_parallel_size", convert=integer)
        each = reading.value(f"{prefix}expert_tensor_parallel_size", convert=integer, default=1)
        if experts:
            reading.put(f"{role}.expert_parallel", experts * each)


def _derive_optimizer(
    reading: TrainerReading, role: str, prefix: str, section: str, *, megatron: bool
) -> None:
    """DTensor keeps weights in fp32 (automodel/setup.py); Megatron's precision-aware optimizer may
    keep less than AdamW.
    """
    if not megatron:
        reading.put(f"{role}.param_dtype", "fp32")
        name = reading.value(f"{section}.optimizer.name", convert=text_of, default="")
        reading.consider(f"{section}.optimizer.kwargs")
        if name.endswith("torch.optim.AdamW"):
            reading.put(f"{role}.optimizer", "adamw")
        return
    fp32 = reading.value(
        f"{prefix}distributed_data_parallel_config.grad_reduce_in_fp32", convert=boolean
    )
    if fp32 is not None:
        reading.put(f"{role}.grad_dtype", "fp32" if fp32 else "bf16")
    precise = reading.value(f"{prefix}optimizer.use_precision_aware_optimizer", convert=boolean)
    named = reading.value(f"{prefix}optimizer.optimizer", convert=text_of)
    away = reading.get(f"{prefix}optimizer.optimizer_cpu_offload", convert=boolean)
    if precise is False and named == "adam":
        reading.put(f"{role}.optimizer", "adamw")
    if isinstance(away, Known) and away.value:
        reading.put(f"{role}.host_optimizer", True, away)


def _derive_tokens(reading: TrainerReading) -> None:
    """Batches that are packed or filled dynamically have a budget of tokens."""
    for name in ("sequence_packing", "dynamic_batching"):
        budget = reading.get(f"policy.{name}.train_mb_tokens", convert=integer)
        if reading.value(f"policy.{name}.enabled", convert=boolean):
            reading.fields["actor.max_tokens_per_gpu"] = budget
            reading.keys["actor.max_tokens_per_gpu"] = f"policy.{name}.train_mb_tokens"
            reading.fields["actor.scored_tokens"] = reading.get(
                f"policy.{name}.logprob_mb_tokens", convert=integer
            )
            return
    total = reading.value("policy.train_global_batch_size", convert=integer)
    samples = reading.number("rollout.n")
    if total:
        reading.put("actor.mini_batch", max(total // (samples or 1), 1))


def _derive_apart(reading: TrainerReading) -> None:
    """Generation on GPUs of its own: whole nodes of the cluster, or some of a single one's."""
    resources = "policy.generation.colocated.resources."
    nodes, each = reading.number("nodes"), reading.number("gpus_per_node")
    own_nodes = reading.value(f"{resources}num_nodes", convert=integer)
    own_gpus = reading.value(f"{resources}gpus_per_node", convert=integer)
    tensor = reading.number("rollout.tensor_parallel")
    stages = reading.number("rollout.pipeline_parallel") or 1
    if not nodes or not each:
        return
    if nodes == 1 and own_gpus:
        left: Mapping[str, int] = {"nodes": 1, "gpus_per_node": each - own_gpus}
        engines = own_gpus
    elif own_nodes:
        left = {"nodes": nodes - own_nodes, "gpus_per_node": each}
        engines = own_nodes * (own_gpus or each)
    else:
        return
    for name, number in left.items():
        if number > 0:
            reading.put(f"actor.{name}", number)
            reading.put(f"ref.{name}", number)
    if tensor:
        reading.put("rollout.engines", max(engines // (tensor * stages), 1))


def _folder(run: Run) -> Optional[str]:
    return run.base if run.at_hand else None


ADAPTER = _NemoRl()
