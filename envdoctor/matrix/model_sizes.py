"""How large a model is: from its own files, from the matrix, or roughly from its name, and which of
them it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Mapping, Optional

from ..model.record import NamedTuple

if TYPE_CHECKING:
    from .loader import Matrix

__all__ = ["ModelSize", "size_of"]

_NAMED = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,2})?)\s?([bm])(?![a-z])", re.IGNORECASE)
#: Of these a name may tell the active parameters only: "17B-16E", "8x7B", "MoE-A2.7B". "30B-A3B"
#: tells both.
_EXPERTS = re.compile(r"(?<![a-z\d])\d+e(?![a-z])|\d+x\d|moe", re.IGNORECASE)
_DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}


class ModelSize(NamedTuple):
    """Parameters (low..high, equal where they are known) and dimensions (0: not known).

    cache_values: values in the KV cache for one token, over all layers; windowed: that is an upper
    bound, for some layers look at a window only. rough: from the name alone. source: which of the
    ways it was.
    """

    name: str
    low: int
    high: int
    source: str
    rough: bool = False
    layers: int = 0
    hidden: int = 0
    intermediate: int = 0
    vocabulary: int = 0
    kv_heads: int = 0
    cache_values: int = 0
    tied: Optional[bool] = None
    windowed: bool = False

    @property
    def parameters(self) -> int:
        """The middle of the bounds."""
        return (self.low + self.high) // 2

    @property
    def root(self) -> int:
        """Parameters outside of the layers: embedding, and the head where it is one of its own."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)


def size_of(
    name: str,
    matrix: Optional[Matrix] = None,
    config: Optional[Mapping[str, Any]] = None,
    index: Optional[Mapping[str, Any]] = None,
) -> Optional[ModelSize]:
    """Return the size of a model, or None where nothing tells it.

    Args:
        name: Hub id or path, as the configuration has it.
        matrix: What is known of models.
        config: The model's ``config.json``, where it is at hand.
        index: Its ``model.safetensors.index.json``.
    """
    if config is not None:
        found = _from_config(name, config, index)
        if found is not None:
            return found
    model = matrix.model(name) if matrix is not None else None
    if model is not None:
        return ModelSize(
            model.name,
            model.parameters,
            model.parameters,
            f"matrix: {model.source}",
            False,
            model.layers,
            model.hidden,
            model.intermediate
            or (model.expert_intermediate * model.experts_per_token + model.shared_intermediate),
            model.vocabulary,
            model.kv_heads,
            model.cache_values,
            model.tied,
            model.windowed,
        )
    last = name.rpartition("/")[2]
    stated = _NAMED.findall(last)
    if not stated or _EXPERTS.search(last):
        return None
    # What a name rounds: "7B" stands for 6.7 (Llama 2) to 8.5 billion (Gemma), "2b" for up to 2.61
    # (Gemma 2), "3B" for up to 3.75 (Qwen2.5-VL).
    number = max(float(figure) * (10**9 if unit in "bB" else 10**6) for figure, unit in stated)
    return ModelSize(
        name, int(number * 0.93), int(number * 1.31), f"only the name says so ({name})", True
    )


def _from_config(
    name: str, config: Mapping[str, Any], index: Optional[Mapping[str, Any]]
) -> Optional[ModelSize]:
    nested = config.get("text_config")
    text: Mapping[str, Any] = nested if isinstance(nested, dict) else config
    layers, hidden, vocabulary = (
        _integer(text, key) for key in ("num_hidden_layers", "hidden_size", "vocab_size")
    )
    heads = _integer(text, "num_attention_heads")
    if not (layers and hidden and vocabulary and heads):
        return None
    kv_heads = _integer(text, "num_key_value_heads") or heads
    head_dim = _integer(text, "head_dim") or hidden // heads
    experts = (
        _integer(text, "num_experts")
        or _integer(text, "num_local_experts")
        or _integer(text, "n_routed_experts")
    )
    width = (
        _integer(text, "moe_intermediate_size") or _integer(text, "intermediate_size")
        if experts
        else _integer(text, "intermediate_size")
    )
    tied = bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", False)))
    attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
    counted = vocabulary * hidden * (1 if tied else 2) + layers * (
        attention + 3 * hidden * width * max(experts, 1) + hidden * (experts + 2)
    )
    low, high, source = int(counted * 0.95), int(counted * 1.05), "its config.json"
    total = (index or {}).get("metadata", {}).get("total_size")
    itemsize = _DTYPE_BYTES.get(
        str(text.get("torch_dtype") or text.get("dtype") or config.get("torch_dtype"))
    )
    if isinstance(total, int) and itemsize:
        low = high = total // itemsize
        source = "its safetensors index"
    windowed = (
        bool(_integer(text, "sliding_window")) and text.get("use_sliding_window") is not False
    )
    latent = _integer(text, "kv_lora_rank")
    cached = layers * (
        latent + _integer(text, "qk_rope_head_dim") if latent else 2 * kv_heads * head_dim
    )
    active = width * max(_integer(text, "num_experts_per_tok"), 1) if experts else width
    return ModelSize(
        name,
        low,
        high,
        source,
        False,
        layers,
        hidden,
        active,
        vocabulary,
        kv_heads,
        cached,
        tied,
        windowed,
    )


def _integer(table: Any, key: str) -> int:
    value = table.get(key)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9
        else 0
    )
