"""What attention's scores take where its implementation makes them all: one for each head and each
pair of tokens of a row. Fused ones (flash, sdpa, flex) make pieces of them, and keep none.

* transformers' ``eager_attention_forward`` (modeling_llama.py@v4.48.0) keeps for the backward pass
  the softmax in fp32 and its copy in the type of the model, 4 + 2 bytes for each score (in fp32 one
  of 4 is both); Gemma 2's soft cap keeps its tanh beside them, GPT-2 and OPT what their dropout
  makes. Tensors that the graph of torch 2.13 keeps under transformers 5.24: Llama 6 (fp32: 4),
  Gemma 2 8, GPT-2 6, OPT 8, each mask of a dropout with two bytes where a GPU takes one. Code of a
  model's own may keep its softmax in half precision alone: 2 to 9.
* While a layer is computed the product of queries and keys, its scaled and masked copies and the
  fp32 of the softmax come beside that; in the backward pass their gradients: 2 + 4 + 4 + 2.
* Which one transformers takes where nothing is said: sdpa from 4.36 on, with torch 2.1.1 or newer
  (modeling_utils.py@v4.36.0 ``_autoset_attn_implementation``), eager before; Gemma 2's own class
  takes eager (modeling_gemma2.py@v4.42.0 ``_check_and_enable_sdpa``; with 5.24 it has no sdpa), and
  so does gpt-oss's (modeling_gpt_oss.py@v4.55.0, ``_supports_sdpa = False``). Classes that came
  after 4.36 with an sdpa of their own are those of Qwen2 (4.37), Llama 3.1 (4.43), OLMo 2 (4.47),
  Gemma 3 (4.50), Qwen3 (4.51) and what descends from these.
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from ...model.evidence import Unknown
from ...model.memory_plan import MemoryTerm
from ...model.versions import parse_version, try_version
from .inputs import Inputs, Role

__all__ = ["score_terms"]

#: Bytes that each score keeps for the backward pass: at the least, and at the most.
_KEPT = (2, 9)
#: Bytes that pass beside them in one layer, forwards or backwards.
_PASSING = 12
#: The narrowest heads that are usual, where nothing tells how many there are.
_NARROWEST = 64
_SOURCE = (
    "transformers modeling_llama.py@v4.48.0 eager_attention_forward; measured with saved tensors"
)
_SDPA_SINCE, _ITS_TORCH = parse_version("4.36"), parse_version("2.1.1")
_OWN_DEFAULT = re.compile(r"gemma-?2(?!\d)|gpt-?oss", re.IGNORECASE)
_AFTER_SDPA = re.compile(
    r"(?<![a-z])(?:qwen-?[23](?!\d)|qwq|qvq|llama-?(?:3\.[1-3]|4)(?!\d)|olmo-?[23](?!\d)"
    r"|gemma-?3(?![n\d]))",
    re.IGNORECASE,
)


def _makes_scores(inputs: Inputs, role: Role) -> Optional[bool]:
    """Tell whether all scores are made; None where nothing tells the implementation."""
    fact = inputs.workload.get(f"{role.name}.attention")
    if isinstance(fact, Unknown) and fact != inputs.workload.missing:
        return None
    stated = inputs.get(f"{role.name}.attention")
    if stated is not None:
        return bool(stated == "eager")
    of_library = not inputs.traits.flash and role.strategy != "megatron"
    if of_library and _OWN_DEFAULT.search(role.size.name):
        return None
    return False if inputs.traits.flash or inputs.traits.sdpa or _is_newer(inputs, role) else None


def _is_newer(inputs: Inputs, role: Role) -> bool:
    """Tell whether the releases that are installed are known to take sdpa by themselves; of a
    release that is not known the model's class tells what it is at least.
    """
    library, torch = (
        try_version(inputs.facts.version_of(name) or "") for name in ("transformers", "torch")
    )
    named = _AFTER_SDPA.search(role.size.name) is not None
    is_new = named if library is None else library >= _SDPA_SINCE
    return is_new and (torch is None or torch >= _ITS_TORCH)


def score_terms(
    inputs: Inputs, role: Role, tokens: Tuple[int, int], row: int, scored: int
) -> List[MemoryTerm]:
    """Return what attention's scores take on one GPU.

    Args:
        inputs: The run.
        role: A trained model.
        tokens: Tokens of one pass on the GPU, at the least and at the most.
        row: Tokens that look at each other, at the most.
        scored: Tokens of a pass that asks for probabilities alone.
    """
    makes = _makes_scores(inputs, role)
    size, name = role.size, role.name
    heads = size.heads or size.hidden // _NARROWEST
    if makes is False or not heads or not size.layers:
        return []
    tensor, stages = (
        int(inputs.get(f"{name}.{way}_parallel") or 1) for way in ("tensor", "pipeline")
    )
    recomputes = inputs.get(f"{name}.gradient_checkpointing")
    fewest, most = (1 if recomputes is not False else size.layers // stages), size.layers
    if recomputes is True:
        most = 1
    least = tokens[0] * row * size.heads // tensor * fewest * _KEPT[0]
    each = most * _KEPT[1] + _PASSING
    sure = makes is True and role.present is not None and not size.rough
    cells = max(tokens[1] * each, scored * (_KEPT[1] + _PASSING)) * row * heads // tensor
    asked = "eager attention" if makes else "where attention is eager, which nothing tells"
    return [
        MemoryTerm(
            "attention scores",
            least if sure else 0,
            cells,
            f"{tokens[1]} tokens x {row} x {heads} heads"
            + (f" / {tensor}" if tensor > 1 else "")
            + f" x {each} B ({'one layer' if most == 1 else f'{most} layers'}), {asked}",
            _SOURCE,
            ("update",),
            name,
            inputs.used(f"{name}.attention", f"{name}.gradient_checkpointing"),
            passing=True,
        )
    ]
