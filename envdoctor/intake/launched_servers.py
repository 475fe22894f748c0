"""Commands of a report that start an engine, as they were pasted: ``plan`` reads them whole."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List

from ..model.redaction import is_secret_name
from .clean_text import Line
from .presence import is_advised

__all__ = ["launched_servers"]

_MOST = 20  # commands of one report
_COMMAND = re.compile(
    r"(?:\b[A-Z_][A-Z0-9_]{0,80}=\S{1,200} +){0,20}(?:[\w./-]{0,80}\bpython[\d.]{0,6} +-m +)?"
    r"(?:\b(?:docker|podman|nerdctl) +run\b(?=.*(?:vllm|sglang))"
    r"|\b(?:vllm|sglang) +serve\b|\bvllm\.entrypoints\.[\w.]+|\bsglang\.launch_server\b) +\S"
)
#: Where a sentence or the next command goes on behind a command.
_END = re.compile(
    r" (?:&&|\|\|?|2?>&?1?|;|&) |[;|&]$| (?:and|but|which|then|where|when|with) [a-z]"
)
_PUNCTUATION = re.compile(r"[,;:.!?)]+(?=\s|\Z)")
_LEFT_OUT = re.compile(r"\.\.\.|…|<[a-z_ -]+>")  # nobody knows what
_ASSIGNMENT = re.compile(r"(?:export +)?([A-Za-z_]\w{0,80})=([^\s;&|]{0,300}|\"[^\"]*\"|'[^']*')")


def launched_servers(lines: Iterable[Line]) -> Dict[str, str]:
    """Return the commands that start vllm or SGLang, by the number of their line, each with the
    assignments above it that it refers to. A command that somebody advises is none.
    """
    commands: Dict[str, str] = {}
    assigned: Dict[str, str] = {}
    for line in lines:
        assignment = _ASSIGNMENT.fullmatch(line.text)
        if assignment and not is_secret_name(assignment.group(1)):
            assigned[assignment.group(1)] = assignment.group(2)
        if assignment:
            continue
        command = _COMMAND.search(line.text)
        if command is None or is_advised(line.text[: command.start()]):
            continue
        text = line.text[command.start() :]
        end = _END.search(text)
        text = text[: end.start() if end else None]
        if _LEFT_OUT.search(text):
            continue
        words = [_PUNCTUATION.sub("", word) for word in text.split(" ")]
        text = " ".join(_without_secrets(words))
        if text not in commands.values() and len(commands) < _MOST:
            needed = [name for name in assigned if re.search(rf"\$\{{?{name}\b", text)]
            commands[str(line.number)] = " ".join(
                [*(f"{name}={assigned[name]};" for name in needed), text]
            )
    return commands


def _without_secrets(words: List[str]) -> List[str]:
    """Return the words of a command without the values of what is secret, hidden or not."""
    kept: List[str] = []
    for word, before in zip(words, ["", *words]):
        name, assigns, _ = word.partition("=")
        if assigns and is_secret_name(name.lstrip("-")):
            kept.append(f"{name}=")
        elif before.startswith("-") and "=" not in before and is_secret_name(before.lstrip("-")):
            kept.append("''")
        else:
            kept.append(word)
    return kept
