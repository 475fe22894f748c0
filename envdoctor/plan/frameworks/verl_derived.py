"""What follows from several settings of verl: which models there are, how large their batches, what
is recomputed and what checkpoints hold.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from ...model.evidence import Absent, Evidence, Fact, Known, Unknown
from .configuration import Configuration, at_least_zero, boolean, integer, text_of
from .verl_engine import ROLLOUT, adapters_from

__all__ = [
    "ACTOR",
    "REF",
    "derive_batches",
    "derive_checkpoints",
    "derive_experts",
    "derive_recomputation",
    "derive_roles",
    "loss_in_place",
    "share_parallel_state",
]

ACTOR = "actor_rollout_ref.actor"
REF = "actor_rollout_ref.ref"
_TRAINED = ("ppo_max_token_len", "ppo_micro_batch_size", "use_dynamic_bsz")
_SCORED = ("log_prob_max_token_len", "log_prob_micro_batch_size", "log_prob_use_dynamic_bsz")
#: Passes over a model: the fields that say their size, in sequences and in tokens, and their keys.
_PASSES = (
    (("actor.micro_batch", "actor.max_tokens_per_gpu"), ACTOR, *_TRAINED),
    (("critic.micro_batch", "critic.max_tokens_per_gpu"), "critic", *_TRAINED),
    (("actor.scored_batch", "actor.scored_tokens"), ROLLOUT, *_SCORED),
    (("ref.scored_batch", "ref.scored_tokens"), REF, *_SCORED),
    (
        ("reward.scored_batch", "reward.scored_tokens"),
        "reward_model",
        "forward_max_token_len",
        "micro_batch_size",
        "use_dynamic_bsz",
    ),
)


def share_parallel_state(fields: Dict[str, Fact[Any]]) -> None:
    """Give the reference the actor's parallelism: in Megatron's workers both live in one process,
    whose groups are made by the actor's settings (megatron_workers.py, initialize_model_parallel).
    """
    for name in ("tensor_parallel", "pipeline_parallel", "sequence_parallel"):
        fields[f"ref.{name}"] = fields[f"actor.{name}"]


def derive_batches(
    configuration: Configuration, fields: Dict[str, Fact[Any]], keys: Dict[str, str]
) -> None:
    """Add how many sequences and tokens each pass over a model takes."""
    for (sequences, budget), prefix, tokens, micro, switch in _PASSES:
        tokens_key, each_key = f"{prefix}.{tokens}_per_gpu", f"{prefix}.{micro}_per_gpu"
        total_key = f"{prefix}.{micro}"
        keys[sequences] = configuration.key(each_key, total_key)
        keys[budget] = tokens_key
        dynamic = configuration.get(f"{prefix}.{switch}", convert=boolean)
        configuration.asked |= {tokens_key, each_key, total_key}  # which of them counts is decided
        if isinstance(dynamic, Known) and dynamic.value:
            fields[budget] = configuration.get(tokens_key, convert=integer)
            fields[sequences] = Absent(dynamic.evidence)
            continue
        fields[budget] = (
            Absent(dynamic.evidence)
            if isinstance(dynamic, Known)
            else Unknown("whether batches are dynamic is not known")
        )
        each = configuration.get(each_key, convert=integer)
        total = configuration.get(total_key, convert=integer)
        if isinstance(each, Known) or not isinstance(total, Known):
            undecided = isinstance(dynamic, Unknown) and not isinstance(each, Known)
            fields[sequences] = dynamic if undecided else each
        else:
            fields[sequences] = configuration.over_gpus(sequences, total, fields)


def derive_roles(
    configuration: Configuration, fields: Dict[str, Fact[Any]], keys: Dict[str, str], name: str
) -> None:
    """Add which models a run has, and which GPUs each of them."""
    code = Evidence(f"code of {configuration.span}", "verl/trainer/main_ppo.py")
    fields["actor.present"] = Known(True, code)
    estimator = fields["algorithm"]
    enabled = configuration.get("critic.enable", convert=boolean)
    keys["critic.present"] = "algorithm.adv_estimator"
    if isinstance(enabled, Known):
        fields["critic.present"] = enabled
    elif isinstance(estimator, Known):
        fields["critic.present"] = Known(estimator.value == "gae", estimator.evidence)
        if estimator.value == "gae":
            fields["algorithm"] = Known("ppo", estimator.evidence)
    else:
        fields["critic.present"] = Unknown("the estimator is not known")
    _derive_reference(configuration, fields, keys, code, always=name != "verl")
    for role in ("actor", "critic", "ref"):
        fields[f"{role}.nodes"], fields[f"{role}.gpus_per_node"] = (
            fields["nodes"],
            fields["gpus_per_node"],
        )
        keys[f"{role}.nodes"], keys[f"{role}.gpus_per_node"] = keys["nodes"], keys["gpus_per_node"]
    if not isinstance(fields["ref.model"], Known):
        fields["ref.model"] = fields["actor.model"]
        keys["ref.model"] = keys["actor.model"]


def _derive_reference(
    configuration: Configuration,
    fields: Dict[str, Fact[Any]],
    keys: Dict[str, str],
    code: Evidence,
    *,
    always: bool,
) -> None:
    """Before 0.3 a reference model is always loaded; from then on only where a KL term asks for it,
    and not beside LoRA adapters.
    """
    keys["ref.present"] = f"{ACTOR}.use_kl_loss"
    by_terms = configuration.since("0.3.0.post1")
    if always or by_terms is False:
        fields["ref.present"] = Known(True, code)
    else:
        fields["ref.present"] = _asked_reference(
            configuration, fields["actor.lora_rank"], bool(by_terms)
        )


def _asked_reference(
    configuration: Configuration, lora: Fact[Any], by_terms_alone: bool
) -> Fact[Any]:
    """Tell whether a KL term asks for a reference model; ``by_terms_alone``: without, none is."""
    terms = (
        configuration.get(f"{ACTOR}.use_kl_loss", convert=boolean),
        configuration.get("algorithm.use_kl_in_reward", convert=boolean),
    )
    known = [fact for fact in terms if isinstance(fact, Known)]
    asking = [fact for fact in known if fact.value]
    adapters = adapters_from(lora)
    if asking and adapters is not None:
        reason = "the actor without its adapter is the reference"
        return Known(False, Evidence(adapters.source, reason))
    if asking:
        return Known(True, asking[0].evidence)
    if by_terms_alone and len(known) == len(terms):
        return Known(False, known[0].evidence)
    return Unknown(
        "before verl 0.3 always, from then on where use_kl_loss or use_kl_in_reward is set"
    )


def derive_experts(configuration: Configuration, fields: Dict[str, Fact[Any]], role: str) -> None:
    """Megatron cuts experts by their own tensor and expert parallelism."""
    prefix = f"{ACTOR}.megatron" if role == "actor" else f"{role}.megatron"
    experts = configuration.get(f"{prefix}.expert_model_parallel_size", convert=integer)
    own = configuration.get(f"{prefix}.expert_tensor_parallel_size", convert=integer)
    tensor = fields.get(f"{role}.tensor_parallel")
    if isinstance(experts, Known) and experts.value and isinstance(tensor, Known):
        each = own.value if isinstance(own, Known) and own.value else tensor.value
        fields[f"{role}.expert_parallel"] = Known(experts.value * each, experts.evidence)


def derive_recomputation(
    configuration: Configuration, fields: Dict[str, Fact[Any]], keys: Dict[str, str], role: str
) -> None:
    """Megatron recomputes every layer where it is told to do so for each of them (transformer
    config: full, uniform, 1); of anything else part may be kept.
    """
    prefix = f"{ACTOR}.megatron" if role == "actor" else f"{role}.megatron"
    under_it = f"{prefix}.override_transformer_config"
    kind, way = (
        configuration.get(f"{under_it}.recompute_{name}", convert=text_of)
        for name in ("granularity", "method")
    )
    count = configuration.get(f"{under_it}.recompute_num_layers", convert=integer)
    values = tuple(fact.value if isinstance(fact, Known) else None for fact in (kind, way, count))
    if values == ("full", "uniform", 1) and isinstance(kind, Known):
        fields[f"{role}.gradient_checkpointing"] = Known(True, kind.evidence)
        keys[f"{role}.gradient_checkpointing"] = f"{under_it}.recompute_granularity"


def loss_in_place(
    configuration: Configuration, fields: Mapping[str, Fact[Any]]
) -> Dict[str, Fact[Any]]:
    """Return that flash-attn's loss writes the gradient over the logits: from 0.4.0 on with FSDP
    where a step takes no entropy of them (dp_actor.py@v0.4.0:158, :386;
    engine/fsdp/transformer_impl.py@v0.7.0). Other devices than NVIDIA's have another loss.
    """
    strategy = fields.get("actor.strategy")
    entropy = configuration.get(f"{ACTOR}.entropy_coeff")
    none_of = (f"{ACTOR}.calculate_entropy", f"{ACTOR}.calculate_sum_pi_squared")
    others = [configuration.get(key, convert=boolean, missing=False) for key in none_of]
    device = configuration.get("trainer.device", missing="cuda")
    is_sure = (
        configuration.since("0.4.0")
        and isinstance(strategy, Known)
        and strategy.value in ("fsdp", "fsdp2")
        and isinstance(entropy, Known)
        and entropy.value == 0
        and all(isinstance(one, Known) and not one.value for one in others)
        and isinstance(device, Known)
        and device.value == "cuda"
    )
    if is_sure and isinstance(entropy, Known):
        return {"actor.loss_in_place": Known(True, entropy.evidence)}
    return {}


def derive_checkpoints(
    configuration: Configuration,
    fields: Dict[str, Fact[Any]],
    keys: Dict[str, str],
    *,
    full: Optional[bool],
) -> None:
    """Add when checkpoints are written, how many are kept, and what they hold."""
    keys["checkpoint.save_freq"] = "trainer.save_freq"
    fields["checkpoint.save_freq"] = at_least_zero(
        configuration.get("trainer.save_freq", convert=integer)
    )
    limit_names = ("trainer.max_actor_ckpt_to_keep", "trainer.remove_previous_ckpt_in_save")
    limit = configuration.get(limit_names[0], convert=integer)
    keys["checkpoint.limit"] = configuration.key(*limit_names)
    fields["checkpoint.limit"] = Known(0, limit.evidence) if isinstance(limit, Absent) else limit
    mode = configuration.get("trainer.resume_mode", convert=text_of)
    path = configuration.get("trainer.resume_from_path", convert=text_of)
    is_auto = isinstance(mode, Known) and mode.value == "auto"
    keys["checkpoint.resume"] = "trainer.resume_mode" if is_auto else "trainer.resume_from_path"
    fields["checkpoint.resume"] = mode if is_auto else path
    contents = configuration.get(
        f"{ACTOR}.checkpoint.save_contents", f"{ACTOR}.checkpoint.contents"
    )
    keys["checkpoint.model_only"] = configuration.key(
        f"{ACTOR}.checkpoint.save_contents", f"{ACTOR}.checkpoint.contents"
    )
    if isinstance(contents, Known) and isinstance(contents.value, list):
        fields["checkpoint.model_only"] = Known(
            "optimizer" not in contents.value, contents.evidence
        )
    if full is not None:
        code = Evidence(
            f"code of {configuration.span}",
            "verl/utils/checkpoint" if not full else "verl/workers/fsdp_workers.py",
        )
        fields["checkpoint.gather"] = Known("full" if full else "sharded", code)
        if full:
            fields["checkpoint.model_only"] = Known(True, code)
    else:
        fields["checkpoint.gather"] = Unknown(
            "rank 0 gathers before verl 0.3, each rank writes its shard from then on"
        )
