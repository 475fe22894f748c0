"""Optimizers of transformers' Trainer, by what their state takes (training_args.py, OptimizerNames;
trainer.py, get_optimizer_cls_and_kwargs), and those that keep it at a rank of the gradients.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from ...model.evidence import Evidence, Fact, Known, Unknown
from .configuration import Configuration, boolean, integer, text_of

__all__ = ["optimizer_fields"]

_ADAMW = (
    "adamw_torch adamw_torch_fused adamw_apex_fused adamw_torch_xla adamw_torch_npu_fused "
    "schedule_free_adamw schedule_free_radam"
)
#: Names of the trainer by ours, which the field ``optimizer`` of a workload explains.
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(_ADAMW.split(), "adamw"),
    **dict.fromkeys(("adamw_8bit", "adamw_bnb_8bit", "adamw_torch_8bit"), "adamw_8bit"),
    "adamw_torch_4bit": "adamw_4bit",
    **dict.fromkeys(("paged_adamw", "paged_adamw_32bit"), "paged_adamw_fp32"),
    "paged_adamw_8bit": "paged_adamw_8bit",
    **dict.fromkeys(("adafactor", "adalomo"), "adafactor"),
    **dict.fromkeys(("sgd", "lomo"), "none"),
    **dict.fromkeys(("adagrad", "rmsprop"), "one_moment"),
    **dict.fromkeys(("lion_32bit", "rmsprop_bnb", "rmsprop_bnb_32bit"), "one_moment_fp32"),
    **dict.fromkeys(("lion_8bit", "rmsprop_bnb_8bit"), "one_moment_8bit"),
    **dict.fromkeys(("paged_lion_32bit", "paged_lion"), "paged_one_moment_fp32"),
    "paged_lion_8bit": "paged_one_moment_8bit",
    "grokadamw": "three_moments",
    "ademamix": "three_moments_fp32",
    "ademamix_8bit": "three_moments_8bit",
    "paged_ademamix_32bit": "paged_three_moments_fp32",
    "paged_ademamix_8bit": "paged_three_moments_8bit",
}
_STEPS_INSIDE = frozenset(["lomo", "adalomo"])
#: galore_adamw, galore_adamw_8bit_layerwise, apollo_adamw …
_PROJECTED = re.compile(r"(galore|apollo)_(adamw(?:_8bit)?|adafactor)(_layerwise)?")
_RANKS = {"galore": 128, "apollo": 1}
_RANK = re.compile(r"(?:^|,)\s*rank\s*=\s*(\d+)\s*(?:,|$)")


class _Switch(NamedTuple):
    """Settings by which a framework of its own turns a projection on."""

    on: str
    rank: str
    targets: Tuple[str, ...]
    layerwise: Tuple[str, ...]


#: LLaMA-Factory (hparams/finetuning_args.py) and ms-swift (trainers/arguments.py).
_SWITCHES = (
    _Switch(
        "use_galore",
        "galore_rank",
        ("galore_target", "galore_target_modules"),
        ("galore_layerwise", "galore_optim_per_parameter"),
    ),
    _Switch("use_apollo", "apollo_rank", ("apollo_target",), ("apollo_layerwise",)),
)


def optimizer_fields(configuration: Configuration) -> Dict[str, Fact[Any]]:
    """Return, as fields of a workload, what the state of the optimizer is, where that is known."""
    # default_optim: adamw_torch or its fused form.
    fact = configuration.get("optim", convert=text_of, unset="adamw_torch")
    for switch in _SWITCHES:
        if switch.on in configuration.given:
            asked = configuration.get(switch.on, convert=boolean)
            if isinstance(asked, Known) and asked.value:
                return _by_switch(configuration, switch, asked.evidence)
    if not isinstance(fact, Known):
        return {"actor.optimizer": fact}
    projected = _PROJECTED.fullmatch(fact.value)
    if projected is not None:
        return _by_name(configuration, fact, *projected.groups())
    kind = _KINDS.get(fact.value)
    why = Unknown(f"{fact.value} has other state than AdamW")
    fields: Dict[str, Fact[Any]] = {
        "actor.optimizer": Known(kind, fact.evidence) if kind else why,
    }
    if fact.value in _STEPS_INSIDE:
        fields["actor.fused_backward"] = Known(True, fact.evidence)
    return fields


def _by_name(
    configuration: Configuration, fact: Known[str], method: str, base: str, layerwise: Optional[str]
) -> Dict[str, Fact[Any]]:
    """Return what an optimizer is whose name says that it projects."""
    options = configuration.get("optim_args", convert=text_of)
    text = options.value if isinstance(options, Known) else ""
    stated = _RANK.search(text)
    rank = int(stated.group(1)) if stated else _RANKS[method]
    targets = configuration.get("optim_target_modules", convert=text_of)
    fields = _projected(base, rank, fact.evidence, isinstance(targets, Known) and targets.value)
    if layerwise:
        fields["actor.fused_backward"] = Known(True, fact.evidence)
    return fields


def _by_switch(
    configuration: Configuration, switch: _Switch, place: Evidence
) -> Dict[str, Fact[Any]]:
    rank = configuration.get(switch.rank, convert=integer)
    targets = configuration.get(*switch.targets, convert=text_of)
    all_linear = not any(one in configuration.given for one in switch.targets)
    named = targets.value if isinstance(targets, Known) else "all" if all_linear else ""
    number = rank.value if isinstance(rank, Known) else None
    fields = _projected("adamw", number, place, named)
    # Hooks step inside of the backward pass, where no gradients are summed over several.
    inside = configuration.get(*switch.layerwise, convert=boolean)
    if isinstance(inside, Known) and inside.value:
        fields["actor.fused_backward"] = Unknown(f"{inside.evidence}: gradients may go by layers")
    return fields


def _projected(
    base: str, rank: Optional[int], place: Evidence, targets: Any
) -> Dict[str, Fact[Any]]:
    """Return what a projected optimizer is; of one that projects some modules alone the rest is
    kept whole.
    """
    whole = targets not in ("all", "all-linear")
    if whole or rank is None or base == "adafactor":
        return {"actor.optimizer": Unknown(f"{place}: which modules it projects is not known")}
    kind = "adamw_8bit" if base.endswith("8bit") else "adamw"
    return {
        "actor.optimizer": Known(kind, place),
        "actor.optimizer_rank": Known(rank, place),
    }
