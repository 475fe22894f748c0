"""Families of models that a text names, as far as old releases of transformers or an engine do not
know them.
"""

from __future__ import annotations

import re
from typing import Set

__all__ = ["FAMILIES", "named_families"]

#: What rows call a family, and how people and repositories name it; the more specific ones first.
FAMILIES = {
    "llama-3.2-vision": r"llama[-_ ]?3[._]2[-_ ]?\d{2}b[-_ ]?vision",
    "llama-3.1": r"llama[-_ ]?3[._][123](?![\d.])",
    "llama-4": r"llama[-_ ]?4[-_ ](?:scout|maverick)",
    "qwen2.5-omni": r"qwen[-_ ]?2[._]5[-_ ]?omni",
    "qwen2.5-vl": r"qwen[-_ ]?2[._]5[-_ ]?(?:\d{1,2}b[-_ ])?vl",
    "qwen2-audio": r"qwen[-_ ]?2[-_ ]?audio",
    "qwen2-vl": r"qwen[-_ ]?2[-_ ]?(?:\d{1,2}b[-_ ])?vl",
    "qwen3-vl": r"qwen[-_ ]?3[-_ ]?(?:\d{1,3}b[-_ ]?(?:a\d{1,2}b[-_ ])?)?vl",
    "qwen3-next": r"qwen[-_ ]?3[-_ ]?next",
    "qwen3-omni": r"qwen[-_ ]?3[-_ ]?omni",
    "qwen3": r"qwen[-_ ]?3(?![.\d]|[-_ ]?coder[-_ ]?next)",
    "gemma-3n": r"gemma[-_ ]?3n",
    "gemma-3": r"gemma[-_ ]?3(?![.\d])",
    "gemma-2": r"gemma[-_ ]?2(?![.\d]|b)",
    "gpt-oss": r"gpt[-_ ]oss",
    "glm-4.5": r"glm[-_ ]?4[._]5(?!v)",
    "mistral-small-3.1": r"mistral[-_ ]?small[-_ ]?3[._]1",
}
_NAMED = re.compile(
    r"(?<![a-z])(?:"
    + "|".join(f"(?P<f{number}>{form})" for number, form in enumerate(FAMILIES.values()))
    + ")",
    re.IGNORECASE,
)
_BEGINNINGS = ("llama", "qwen", "gemma", "gpt", "glm", "mistral")
_NAMES = tuple(FAMILIES)


def named_families(text: str) -> Set[str]:
    """Return the families that a line names."""
    lowered = text.lower()
    if not any(beginning in lowered for beginning in _BEGINNINGS):
        return set()
    return {_NAMES[int((match.lastgroup or "f0")[1:])] for match in _NAMED.finditer(text[:1000])}
