"""What a report is about, by its own words: a GPU or something else, and which engines its
commands, imports and tracebacks run.
"""

from __future__ import annotations

import re
from typing import FrozenSet

from ..model.redaction import redact

__all__ = ["engines_run", "other_matter"]

_LONGEST = 200_000  # characters that are gone through
_SHOWN = 160  # of a line
#: A line of one's own words or a command, no row of an environment (``Is CUDA available: False``,
#: ``nvidia-cublas-cu12==12.1.3.1``), and the GPU in it.
_OWN_LINE = re.compile(
    r"^(?![\w \t.()/*-]{1,60}:(?:\s|\Z))(?!\s*(?:#|from\s|import\s))"
    r"(?!\W{0,6}[\w.-]+ ?(?:==|  +\d))(?=.*[a-z]).{1,2000}",
    re.MULTILINE,
)
_GPU = re.compile(r"\b(?:gpus?|cuda|nvidia)\b|\bfalls? back\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?:[A-Za-z'’]{1,20}[,;]? ){4}")


def other_matter(text: str) -> str:
    """Return the first sentence of a report that speaks of no GPU in its own words, "" where one
    does, or where the report has no words of its own.
    """
    lines = _OWN_LINE.findall(text[:_LONGEST])
    if any(map(_GPU.search, lines)):
        return ""
    sentence = next((line.strip() for line in lines if _SENTENCE.search(line)), "")
    return redact(sentence)[:_SHOWN]


#: An engine that is started or imported, by its module: not what only installs or names it.
_RUN = re.compile(
    r"\b(vllm|sglang|lmdeploy) (?:serve|chat|complete|bench|run-batch|lite|generate)\b"
    r"|-m[ =](vllm|sglang|lmdeploy|tensorrt_llm|xinference)\."
    r"|^\W{0,8}(?:from|import) (vllm|sglang|lmdeploy|tensorrt_llm)\b"
    r"|/(vllm|sglang|lmdeploy|tensorrt_llm)/[\w/]{1,80}\.py\b",
    re.MULTILINE,
)
_AS_TOOL = ("collect_env", "check_env")


def engines_run(text: str) -> FrozenSet[str]:
    """Return the engines that the commands, imports and tracebacks of a report run."""
    return frozenset(
        [
            next(filter(None, match.groups())).replace("_", "-")
            for match in _RUN.finditer(text[:_LONGEST])
            if not text.startswith(_AS_TOOL, match.end())
        ]
    )
