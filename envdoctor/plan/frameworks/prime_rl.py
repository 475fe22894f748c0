"""prime-rl: ``rl @ FILE.toml --key.sub value``, ``sft`` and ``inference``, its trainer below
torchrun, or the TOML alone. Each ``@ FILE`` is laid over those before it, below ``--section`` where
that precedes it (pydantic_config, docs/configs.md).

Keys are those of pydantic models: a checkout's, else those of releases. A section that is None by
default is there once it, or a key below it, is named; ``--no-section`` and "None" take it away.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ...errors import InputError
from ...model.evidence import Absent, Fact, Known, Unknown
from ...model.layout import Layout
from ..shell.reader import Word
from .adapter import Run, read_small
from .configuration import (
    Fields,
    boolean,
    decimal,
    integer,
    is_off,
    named_types,
    share_gpus,
    text_of,
)
from .declared import nested_defaults
from .hf_trainer import derive_processes
from .key_tables import KeyTable, load_table, own_table
from .serving import length_of, packed_as, spread_experts
from .settings import MAX_CONFIG_BYTES, Setting, flags, read_config
from .trainer import Launch, Trainer, TrainerReading
from .vllm import ENGINE

__all__ = ["ADAPTER", "MODELS", "SOURCES"]

#: Folders of the source that hold its packages, and the model of each program's configuration: of
#: releases since 0.5 and before.
SOURCES = ("packages/prime-rl-configs/src", "src")
MODELS: Mapping[str, Tuple[Tuple[str, str], ...]] = {
    "rl": (("prime_rl.configs.rl", "RLConfig"), ("prime_rl.rl", "RLConfig")),
    "sft": (
        ("prime_rl.configs.sft", "SFTConfig"),
        ("prime_rl.trainer.sft.config", "SFTTrainerConfig"),
    ),
    "trainer": (
        ("prime_rl.configs.trainer", "TrainerConfig"),
        ("prime_rl.trainer.rl.config", "RLTrainerConfig"),
    ),
}
#: Its server takes vllm's settings below ``vllm``, and those of releases before 0.5 by names of
#: their own (prime_rl/inference/config.py).
_SERVER: Fields = {
    **{
        field: (tuple(f"vllm.{name}" for name in names), convert)
        for field, (names, convert) in ENGINE.fields.items()
        if field != "nodes"
    },
    "actor.model": (("vllm.model", "model.name"), text_of),
    "rollout.tensor_parallel": (("vllm.tensor_parallel_size", "parallel.tp"), integer),
    "rollout.data_parallel": (("vllm.data_parallel_size", "parallel.dp"), integer),
    "rollout.gpu_memory_utilization": (
        ("vllm.gpu_memory_utilization", "gpu_memory_utilization"),
        decimal,
    ),
    "rollout.max_model_len": (("vllm.max_model_len", "model.max_model_len"), length_of),
    "rollout.enforce_eager": (("vllm.enforce_eager", "model.enforce_eager"), boolean),
    "port": (("server.port",), integer),
}
#: What its server is told where a run says nothing (packages/prime-rl-configs inference.py).
_SERVER_DEFAULTS: Mapping[str, Any] = {
    "vllm.model": "Qwen/Qwen3-0.6B",
    "vllm.tensor_parallel_size": 1,
    "vllm.data_parallel_size": 1,
    "vllm.gpu_memory_utilization": 0.9,
    "vllm.enforce_eager": False,
    "vllm.enable_expert_parallel": False,
    "vllm.dtype": "auto",
    "vllm.kv_cache_dtype": "auto",
    "vllm.quantization": None,
    "deployment.type": "single_node",
}
_SCRIPT = re.compile(
    r"(?:.*[/.])?prime_rl[/.](?:(?:entrypoints[/.])?(rl|sft|inference)|trainer[/.](rl|sft)[/.]train"
    r"|entrypoints[/.](trainer))(?:\.py)?"
)
#: What its file has, and no other trainer's that is written in TOML.
_RL_SECTIONS = ("orchestrator.", "trainer.model.")
_SFT_SECTIONS = ("optim.", "data.", "model.ac", "deployment.")
_MOST_FILES = 20
#: Settings of a run that its parts share (prime_rl/utils/validation.py), by the one that counts.
_SHARED = {
    "model.name": "model.name",
    "model.seq_len": "seq_len",
    "max_steps": "max_steps",
    "ckpt.interval": "ckpt.interval",
    "ckpt.keep_last": "ckpt.keep_last",
}
_ROLLOUT: Fields = {
    "rollout.tensor_parallel": (
        ("inference.vllm.tensor_parallel_size", "inference.parallel.tp"),
        integer,
    ),
    "rollout.gpu_memory_utilization": (
        ("inference.vllm.gpu_memory_utilization", "inference.gpu_memory_utilization"),
        decimal,
    ),
    "rollout.max_model_len": (
        ("inference.vllm.max_model_len", "inference.model.max_model_len"),
        integer,
    ),
    "rollout.enforce_eager": (
        ("inference.vllm.enforce_eager", "inference.model.enforce_eager"),
        boolean,
    ),
    "rollout.max_num_seqs": (("inference.vllm.max_num_seqs",), integer),
    "rollout.max_num_batched_tokens": (("inference.vllm.max_num_batched_tokens",), integer),
    "data.train_batch_size": (("orchestrator.batch_size",), integer),
}


class _PrimeRl(Trainer):
    name = "prime-rl"
    attention = ("model.attn", "trainer.model.attn")
    layout = Layout(files=("src/prime_rl/trainer/model.py",))
    source = "prime-rl"
    option = "--"

    def owns(self, run: Run) -> bool:
        """By its program with a file or a dotted option, by its script, or by sections of a TOML
        file that no other trainer's has.
        """
        if run.entry in (*MODELS, "inference"):
            words = [word.text for word in run.arguments]
            return any(word.startswith("@") or re.match(r"--\w+\.", word) for word in words)
        if run.entry:
            return _SCRIPT.fullmatch(run.entry) is not None
        return bool(_kind(run))

    def table(self, run: Run) -> KeyTable:
        """Return the models of the checkout as they are, else those of the releases that the run
        may be of.
        """
        kind = _kind(run)
        if kind == "inference":
            return own_table(self.name, ("",), _SERVER_DEFAULTS, "")
        folder = run.checkout.folder if run.checkout is not None else ""
        for module, name in MODELS[kind] if folder else ():
            values = nested_defaults(lambda one: _module(folder, one), module, name)
            if values:
                return own_table(self.name, ("",), values, f"{module} of this checkout")
        released = load_table(self.name, kind)
        versions = released.match(run.version) if run.version else ()
        launch = self.launch(run)
        keys = [one.key for one in (*launch.files, *launch.given)]
        return _restricted(released, versions or _knowing(released, keys))

    def launch(self, run: Run) -> Launch:
        """Return options over the files behind ``@``."""
        files = _over_others(run, run.files, os.path.abspath(run.base))
        words: List[Word] = []
        absent = "" if files is not None else "a file that it names under toml_files"
        files = files or []
        rest = list(run.arguments)
        while rest:
            word = rest.pop(0)
            if not word.text.startswith("@"):
                words.append(word)
                continue
            named = word._replace(text=word.text[1:]) if len(word.text) > 1 else None
            path = named or (rest.pop(0) if rest else word)
            is_section = bool(words) and words[-1].text.startswith("--")
            section = words.pop().text[2:].replace("-", "_") + "." if is_section else ""
            settings = _of_file(run, path.text) if path.known else None
            if settings is None:
                absent = absent or path.readable
            else:
                files += [one._replace(key=section + one.key) for one in settings]
        given = [_switched(one) for one in flags(words, run.name)[0]]
        known = {one.key for one in [*files, *given]}
        # "--ckpt" makes a section, and takes nothing from what is set below it.
        made = [
            one
            for one in given
            if not (one.value is True and any(key.startswith(f"{one.key}.") for key in known))
        ]
        return Launch(made, files, absent)

    def derive(self, reading: TrainerReading) -> None:
        """Say what is trained on which GPUs, how it is spread, and what generates."""
        kind = _kind(reading.run)
        if kind == "inference":
            _derive_server(reading)
            return
        prefix = "trainer." if kind == "rl" else ""
        settings = _Settings(reading, prefix)
        reading.put("algorithm", "sft" if kind == "sft" else "grpo")
        reading.put("ref.present", False)
        settings.field("actor.model", "model.name", text_of)
        _derive_gpus(reading, kind)
        _derive_state(settings)
        _derive_activations(settings, kind)
        _derive_checkpoint(settings)
        if kind == "rl":
            _derive_rollout(reading)
        elif kind == "trainer":
            reading.fields["rollout.engine"] = Absent(reading.code)  # it is started elsewhere

    def doubts(self, reading: TrainerReading) -> Sequence[str]:
        """Return what makes another model, or another step, of a run."""
        prefix = "trainer." if _kind(reading.run) == "rl" else ""
        names = ("model.debug.num_layers", "model.quantization", "model.vlm", "model.tp")
        given = reading.configuration.given
        return [
            prefix + name
            for name in names
            if any(key == prefix + name or key.startswith(f"{prefix}{name}.") for key in given)
        ]


class _Settings:
    """Settings of the trainer, wherever a run states them."""

    def __init__(self, reading: TrainerReading, prefix: str) -> None:
        self.reading = reading
        self.prefix = prefix

    def names(self, name: str) -> Tuple[str, ...]:
        """Return the spellings of a setting: the trainer's own, then what all parts share."""
        shared = _SHARED.get(name) if self.prefix else None
        return (self.prefix + name, shared) if shared else (self.prefix + name,)

    def get(self, name: str, convert: Any = None) -> Fact[Any]:
        """Return the fact of a setting."""
        return self.reading.get(*self.names(name), convert=convert)

    def field(self, field: str, name: str, convert: Any) -> Fact[Any]:
        """Fill in a field with a setting."""
        fact = self.reading.fields[field] = self.get(name, convert)
        self.reading.keys[field] = self.reading.configuration.key(*self.names(name))
        return fact

    def has(self, name: str) -> Optional[bool]:
        """Tell whether a section is there; None where that hangs on the version."""
        configuration = self.reading.configuration
        self.reading.consider(*self.names(name))
        for key in self.names(name):
            setting = configuration.given.get(key)
            if setting is not None:
                return None if setting.unclear else setting.value not in (None, False)
            if any(one.startswith(f"{key}.") for one in configuration.given):
                return True
        table, own = configuration.table, self.names(name)[0]
        answers = {_has_section(table, own, version) for version in configuration.versions}
        return answers.pop() if len(answers) == 1 else None


def _has_section(table: KeyTable, key: str, version: str) -> bool:
    """Tell whether a section is there by default: it is None, or has defaults of its own."""
    stated = table.values(key, (version,))
    return bool(stated[0][0]) if stated else version in table.parents.get(key, ())


def _kind(run: Run) -> str:
    """Return the program whose configuration a run has; "" where it is none of prime-rl's."""
    if run.entry in (*MODELS, "inference"):
        return run.entry
    match = _SCRIPT.fullmatch(run.entry)
    if match is not None:
        program, script, other = match.groups()
        return program or other or ("trainer" if script == "rl" else "sft")
    keys = [one.key for one in run.files if one.place.source.endswith(".toml")]
    if run.entry or not keys:
        return ""
    if any(key.startswith(_RL_SECTIONS) for key in keys):
        return "rl"
    if any(key.startswith("vllm.") for key in keys):
        return "inference"
    sections = [name for name in _SFT_SECTIONS if any(key.startswith(name) for key in keys)]
    return "sft" if "model.name" in keys and len(sections) > 1 else ""


def _module(folder: str, module: str) -> Optional[str]:
    """Return the text of a module of a checkout."""
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    paths = (os.path.join(folder, base, *parts) + ".py" for base in SOURCES)
    return next((text for path in paths if (text := read_small(path)) is not None), None)


def _knowing(table: KeyTable, keys: Sequence[str]) -> Sequence[str]:
    """Return the releases that know each of these keys, of those that one of them knows: the others
    refuse to start (``extra="forbid"``). All of them, where none knows all.
    """
    left = set(table.described)
    for key in keys:
        left &= {*table.versions_of(key), *table.parents.get(key, ())} or left
    return [version for version in table.described if version in left] or table.described


def _restricted(table: KeyTable, versions: Sequence[str]) -> KeyTable:
    """Return what a table says of some of its versions."""
    places = {table.versions.index(version): number for number, version in enumerate(versions)}
    rows: Dict[str, List[List[Any]]] = {}
    for key, runs in table.rows.items():
        for first, last, value in runs:
            for place in range(first, last + 1):
                if place in places:
                    rows.setdefault(key, []).append([places[place], places[place], value])
    content = {
        "framework": table.framework,
        "versions": versions,
        "sources": table.sources,
        "configs": {"": rows},
    }
    return KeyTable(content, "")


def _of_file(run: Run, path: str, depth: int = 0) -> Optional[List[Setting]]:
    """Return the settings of a file, over those that it names; None where one is not at hand."""
    roots = [run.base, *([run.checkout.folder] if run.checkout is not None else [])]
    text, where = run.documents.get(path), path
    for root in roots if text is None and run.at_hand else ():
        where = os.path.join(root, path)
        text = read_small(where, MAX_CONFIG_BYTES)
        if text is not None:
            break
    if text is None or depth > _MOST_FILES:
        return None
    try:
        settings = read_config(text, os.path.basename(path))
    except InputError:
        return None
    return _over_others(run, settings, os.path.dirname(os.path.abspath(where)), depth)


def _over_others(
    run: Run, settings: Sequence[Setting], folder: str, depth: int = 0
) -> Optional[List[Setting]]:
    """Return settings of a file over those of the files that it names under ``toml_files``, as
    releases before 0.5 do; None where one is not at hand. "None" is what TOML has no word for.
    """
    collected: List[Setting] = []
    for setting in settings:
        names = setting.value if setting.key == "toml_files" else None
        for name in names if isinstance(names, list) else ():
            inherited = _of_file(run, os.path.join(folder, str(name)), depth + 1)
            if inherited is None:
                return None
            collected += inherited
    own = [one for one in settings if one.key != "toml_files"]
    return [*collected, *(one._replace(value=None) if one.value == "None" else one for one in own)]


def _switched(setting: Setting) -> Setting:
    """Return ``--no-a.b`` as what it does to ``a.b``."""
    if setting.value is True and setting.key.startswith("no_"):
        return setting._replace(key=setting.key[3:], value=None)
    return setting


def _count(reading: TrainerReading, name: str, ids: str) -> Fact[Any]:
    """Return how many GPUs a part of the run has: a number, or before 0.5 a list."""
    listed = reading.get(ids)
    if ids in reading.configuration.given and isinstance(listed, Known):
        value = listed.value
        parts = value if isinstance(value, list) else str(value).strip("[]").split(",")
        return Known(len(parts), listed.evidence)
    return reading.get(name, convert=integer)


def _derive_gpus(reading: TrainerReading, kind: str) -> None:
    """A program starts its processes by itself; below torchrun that says how many."""
    fields, keys = reading.fields, reading.keys
    if reading.run.launcher:
        derive_processes(reading.run, fields, keys)
        return
    if kind == "trainer":
        fields["nodes"] = fields["gpus_per_node"] = Unknown("no launcher says how many GPUs")
        return
    several = reading.value("deployment.type", convert=text_of) == "multi_node"
    train = _count(reading, "deployment.num_train_gpus", "trainer_gpu_ids")
    each = reading.get("deployment.gpus_per_node", convert=integer)
    nodes = reading.get("deployment.num_train_nodes", convert=integer)
    keys["actor.gpus_per_node"] = "deployment.num_train_gpus"
    reading.put("nodes", 1)
    fields["gpus_per_node"] = train
    if several:
        keys["actor.gpus_per_node"] = "deployment.gpus_per_node"
        fields["gpus_per_node"], fields["nodes"] = each, nodes
    share_gpus(fields)
    if kind != "rl":
        return
    served = _count(reading, "deployment.num_infer_gpus", "inference_gpu_ids")
    away = reading.get("deployment.num_infer_nodes", convert=integer)
    copies = reading.value("deployment.num_infer_replicas", convert=integer, default=1)
    if several and isinstance(nodes, Known) and isinstance(away, Known):
        reading.put("nodes", nodes.value + away.value * copies, nodes)
    elif not several and isinstance(train, Known) and isinstance(served, Known):
        reading.put("gpus_per_node", train.value + served.value, train)


def _derive_state(settings: _Settings) -> None:
    """Parameters, gradients and moments in the type of ``optimization_dtype``, sharded by FSDP 2
    (src/prime_rl/trainer/model.py setup_fsdp); moments may lie on the host but for the step.
    """
    reading = settings.reading
    reading.put("actor.strategy", "fsdp2")
    if settings.has("model.full_offload"):
        why = "full_offload keeps weights, moments and gradients apart"
        reading.fields["actor.strategy"] = Unknown(why)
    reading.fields["actor.param_dtype"] = named_types(settings.get("model.optimization_dtype"))
    settings.get("model.reduce_dtype")
    reading.keys["actor.param_dtype"] = settings.names("model.optimization_dtype")[0]
    reading.put("actor.offload_params", False)
    for field, name in (
        ("actor.cpu_offload", "model.fsdp_cpu_offload"),
        ("actor.offload_optimizer", "model.optim_cpu_offload"),
    ):
        fact = settings.field(field, name, boolean)
        if isinstance(fact, Unknown) and not reading.configuration.table.versions_of(
            settings.names(name)[0]
        ):
            reading.put(field, False)  # a release without the key
    settings.field("actor.sequence_parallel", "model.cp", integer)
    settings.field("actor.expert_parallel", "model.ep", integer)
    names = settings.names("model.reshard_after_forward")
    reading.keys["actor.keeps_gathered"] = names[0]
    reading.fields.update(
        reading.configuration.stated("actor.keeps_gathered", *names, convert=is_off)
    )
    copies = settings.get("model.dp_replicate", integer)
    gpus, nodes = reading.number("actor.gpus_per_node"), reading.number("actor.nodes")
    if isinstance(copies, Known) and copies.value > 1 and gpus and nodes:
        reading.put("actor.shard_ranks", max(gpus * nodes // copies.value, 1), copies)
    optimizer = settings.get("optim.type", text_of)
    reading.keys["actor.optimizer"] = settings.names("optim.type")[0]
    if isinstance(optimizer, Known):
        named = optimizer.value == "adamw"
        other: Fact[Any] = Unknown(f"{optimizer.value} is not AdamW")
        reading.fields["actor.optimizer"] = Known("adamw", optimizer.evidence) if named else other
    rank = settings.get("model.lora.rank", integer)
    reading.keys["actor.lora_rank"] = settings.names("model.lora.rank")[0]
    reading.fields["actor.lora_rank"] = rank
    settings.field("actor.adapters", "max_concurrent_runs", integer)
    if settings.has("model.lora") is False:
        reading.put("actor.lora_rank", 0)


def _derive_activations(settings: _Settings, kind: str) -> None:
    """A micro batch is one sequence of ``seq_len`` tokens that texts are packed into."""
    reading = settings.reading
    length = "data.seq_len" if kind == "sft" else "model.seq_len"
    settings.field("data.max_length", length, integer)
    reading.put("actor.micro_batch", 1)
    if kind == "sft":
        settings.field("actor.micro_batch", "data.micro_batch_size", integer)
        settings.field("data.dataloader_workers", "data.num_workers", integer)
    reading.put("actor.padding_free", True)
    invented = settings.get("data.type", text_of)
    fake = isinstance(invented, Known) and invented.value == "fake"
    packed = reading.value("data.pack_function", convert=text_of, default="cat")
    if fake or settings.has("data.fake") or (kind == "sft" and packed == "cat"):
        reading.put("actor.filled", True)
    recomputes, away = settings.has("model.ac"), settings.has("model.ac_offloading")
    reading.keys["actor.gradient_checkpointing"] = settings.names("model.ac")[0]
    settings.reading.consider(settings.names("model.ac.targets")[0])
    part = (
        reading.value(settings.names("model.ac.mode")[0], convert=text_of, default="full") != "full"
        or reading.value(settings.names("model.ac.freq")[0], convert=integer, default=1) != 1
    )
    if part and recomputes:
        reading.fields["actor.gradient_checkpointing"] = Unknown("part of it is recomputed")
    elif away or recomputes is not None:
        reading.put("actor.gradient_checkpointing", bool(away or recomputes))
    if away is not None:
        reading.put("actor.activation_offload", away)
    settings.reading.consider(
        *(f"{settings.names('model.ac_offloading')[0]}.{name}" for name in _OFFLOADING)
    )
    _derive_head(settings, kind)


_OFFLOADING = ("pin_memory", "max_inflight_activations")
_TOKENS = 8192  # of a piece where it says "auto"
_WORDS = 2048  # of a piece, where nothing is said before 0.5
_FEWEST_WORDS = 32_000  # of a tokenizer
_FUSED = ("liger_fused", "quack_fused")


def _derive_head(settings: _Settings, kind: str) -> None:
    """Head and loss are made together by pieces of tokens or, before 0.5, of words, and no pass
    holds all logits; fine-tuning did so only by its ``loss_impl`` before 0.8
    (trainer/models/layers/lm_head.py, trainer/sft/train.py).
    """
    reading = settings.reading
    tokens = settings.get("model.fused_lm_head_token_chunk_size")
    words = settings.get("model.fused_lm_head_chunk_size")
    if kind == "sft" and _impl_decides(reading):
        kind_of_loss = reading.value("loss_impl", convert=text_of)
        pieces = 8 if kind_of_loss in _FUSED else 1 if kind_of_loss == "torch" else None
        if pieces is not None:
            reading.put("actor.loss_chunks", pieces)
        return
    length = reading.number("data.max_length")
    if isinstance(tokens, Known):
        piece = _TOKENS if tokens.value == "auto" else integer(tokens.value)
        pieces = -(-length // piece) if piece and length else 0
    elif isinstance(words, Known) or reading.configuration.key("model.fused_lm_head_chunk_size"):
        piece = integer(words.value) if isinstance(words, Known) else None
        disabled = isinstance(words, Known) and words.value == "disabled"
        pieces = 0 if disabled else _FEWEST_WORDS // max(piece or _WORDS, 1)
    else:
        return
    if pieces > 0:
        reading.put("actor.loss_chunks", pieces)
        reading.put("actor.fused_head", True)


def _impl_decides(reading: TrainerReading) -> bool:
    """Tell whether one of the releases that a run may be of knows ``loss_impl``."""
    reading.consider("loss_impl")
    table = reading.configuration.table
    return bool(table.versions_of("loss_impl")) or "loss_impl" in reading.configuration.given


def _derive_checkpoint(settings: _Settings) -> None:
    reading = settings.reading
    kept = settings.has("ckpt") or (bool(settings.prefix) and _Settings(reading, "").has("ckpt"))
    interval = settings.field("checkpoint.save_freq", "ckpt.interval", integer)
    settings.field("checkpoint.limit", "ckpt.keep_last", integer)
    settings.field("steps", "max_steps", integer)
    reading.put("checkpoint.gather", "sharded")
    if kept is False:
        reading.put("checkpoint.save_freq", 0)
    elif not isinstance(interval, Known):
        reading.fields["checkpoint.save_freq"] = Unknown("at the end of the run")


def _derive_server(reading: TrainerReading) -> None:
    """A server alone: vllm with its settings below a section; of several nodes each has one."""
    fields, keys = reading.configuration.read(_SERVER, {})
    reading.fields.update(fields)
    reading.keys.update(keys)
    reading.put("algorithm", "serve")
    reading.put("nodes", 1)
    for name, value in (("engine", "vllm"), ("utilization_of", "total")):
        reading.put(f"rollout.{name}", value)
    named = f"{reading.value('vllm.quantization') or ''} {reading.number('actor.model')}"
    reading.put("rollout.quantization", packed_as(named))
    spreads = reading.get("vllm.enable_expert_parallel", convert=boolean)
    reading.fields["rollout.expert_parallel"] = spread_experts(reading.fields, spreads)
    if reading.value("deployment.type", convert=text_of) == "disaggregated":
        why = "what prefills and what decodes have nodes of their own"
        reading.fields["rollout.engine"] = Unknown(why)
    total = 1
    for name in ("tensor_parallel", "pipeline_parallel", "data_parallel"):
        total *= reading.number(f"rollout.{name}") or 1
    reading.put("gpus_per_node", total)


def _derive_rollout(reading: TrainerReading) -> None:
    """Vllm on GPUs of its own, unless no server is configured: then one runs elsewhere."""
    fields, keys = reading.configuration.read(_ROLLOUT, {})
    reading.fields.update(fields)
    reading.keys.update(keys)
    served = _Settings(reading, "").has("inference")
    if not served:
        reading.fields["rollout.engine"] = Absent(reading.code)  # the server runs elsewhere
        return
    reading.put("colocated", False)
    samples = reading.get(
        "orchestrator.group_size", "orchestrator.rollouts_per_example", convert=integer
    )
    reading.fields["rollout.n"] = samples
    reading.put("rollout.engine", "vllm")
    reading.put("rollout.utilization_of", "total")
    reading.put("rollout.cpu_weights", False)
    reading.put("rollout.sleep_level", 0)
    total, train = reading.number("gpus_per_node"), reading.number("actor.gpus_per_node")
    nodes, own = reading.number("nodes"), reading.number("actor.nodes")
    tensor = reading.number("rollout.tensor_parallel")
    if total and train and nodes and own and tensor:
        left = total * nodes - train * own
        reading.put("rollout.engines", max(left // tensor, 1))


ADAPTER = _PrimeRl()
