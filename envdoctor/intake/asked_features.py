"""What code, configurations and commands in a text ask of a GPU: FlashAttention 2 and bfloat16,
by the setting that switches them on.
"""

from __future__ import annotations

import re
from typing import Sequence

from ..model.redaction import redact
from .clean_text import Line
from .draft import Draft
from .presence import is_advised

__all__ = ["read_asked_features"]

_SET = r"[\"']?\s{0,2}[=: ]\s{0,2}[\"']?"
#: By feature, the settings of transformers, LLaMA-Factory, axolotl, engines and trainers.
_FEATURES = (
    (
        "FlashAttention 2",
        re.compile(
            rf"\b_?attn_implementation{_SET}flash_attention_2\b"
            rf"|\buse_flash_attention_2{_SET}(?:[Tt]rue|1)\b"
            rf"|\bflash_attn{_SET}fa2\b|\bflash_attention{_SET}[Tt]rue\b"
            rf"|\bVLLM_ATTENTION_BACKEND{_SET}FLASH_ATTN\b"
        ),
    ),
    (
        "bfloat16",
        re.compile(
            rf"\b(?:torch_)?dtype{_SET}(?:torch\.)?(?:bfloat16|bf16)\b|\bbf16{_SET}(?:[Tt]rue|1)\b"
            rf"|\bmixed_precision{_SET}bf16\b|(?<!\S)--bf16(?=$|\s(?!(?:[Ff]alse|0)\b))"
        ),
    ),
)
_MARKS = ("attn_implementation", "flash_att", "FLASH_ATTN", "dtype", "bf16")
_LONGEST = 4000  # characters of a line


def read_asked_features(lines: Sequence[Line], draft: Draft) -> None:
    """Keep the first setting that switches each feature on, where nobody only advises it."""
    for line in lines:
        text = line.text[:_LONGEST]
        if not any(map(text.__contains__, _MARKS)):
            continue
        for name, setting in _FEATURES:
            match = setting.search(text)
            if match is not None and not is_advised(text[: match.start()]):
                draft.keep("report.features", name, redact(match.group().strip()), line)
