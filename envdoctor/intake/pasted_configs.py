"""Configurations of a training run that stand in a report, as YAML or JSON, fenced or not."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Optional, Tuple

from ..model.redaction import redact

__all__ = ["UNNAMED", "pasted_configs"]

#: Begins the name of a configuration that stands without one.
UNNAMED = "report."
_MOST = 8  # configurations of one report
_LONGEST = 64 << 10  # characters of one
#: Keys by which a file is one of a trainer, of DeepSpeed or of accelerate. What it is, is told by
#: who reads it.
_DECIDES = re.compile(
    r"^[ \t>{]*\"?(?:model_name_or_path|finetuning_type|base_model|sequence_len|zero_optimization"
    r"|actor_rollout_ref|worker|policy|checkpointer|distributed_type|deepspeed_config|fsdp_config)"
    r"\"?[ \t]*:",
    re.MULTILINE,
)
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_KEY = re.compile(r"[ \t]*\"?[A-Za-z_][\w.]*\"?[ \t]*:(?:[ \t]|\Z)")
_BELOW = re.compile(r"[ \t]*(?:#|- |\Z)")
#: What writes a file of a notebook or a script: its name, and where the text ends.
_WRITES = re.compile(
    r"^(?:%%writefile[ ]+(?:-a[ ]+)?(\S+)|cat[ ]*>[ ]*(\S+)[ ]*<<-?[ ]*['\"]?(\w+)['\"]?)[ ]*\n",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<![\w./-])((?:[\w.-]*/)*[\w.-]+\.(?:ya?ml|json))\b")
_BEFORE = 2  # lines above one that may name it


def pasted_configs(text: str) -> Dict[str, str]:
    """Return the configurations in a report by the names that stand above them; one without a name
    by ``report.yaml``, ``report.2.json`` and so on.
    """
    configs: Dict[str, str] = {}
    if not _DECIDES.search(text):
        return configs
    lines = text.replace("\r\n", "\n").split("\n")
    for start, end in _blocks(lines):
        body = "\n".join(lines[start:end]).strip("\n")
        written = _WRITES.search(body)
        if written is not None:
            body = _written(body[written.end() :], written.group(3))
        if len(configs) >= _MOST or len(body) > _LONGEST or not _DECIDES.search(body):
            continue
        kind = "json" if body.lstrip().startswith("{") else "yaml"
        name = _name(lines, start, kind)
        if written is not None:
            name = written.group(1) or written.group(2)
        if not name or name in configs:
            number = sum(other.startswith(UNNAMED) for other in configs)
            name = f"{UNNAMED}{number + 1}.{kind}" if number else f"{UNNAMED}{kind}"
        configs[name] = redact(body)
    return configs


def _blocks(lines: List[str]) -> Iterator[Tuple[int, int]]:
    """Yield where a fenced block, or a run of keys and values outside of one, begins and ends."""
    opened = start = -1
    for number, line in enumerate((*lines, "```" if _is_open(lines) else ".")):
        if _FENCE.match(line):
            if opened >= 0:
                yield opened, number
            elif start >= 0:
                yield start, number
            opened, start = (-1 if opened >= 0 else number + 1), -1
        elif opened < 0:
            if _KEY.match(line):
                start = number if start < 0 else start
            elif start >= 0 and not _BELOW.match(line):
                yield start, number
                start = -1


def _written(text: str, end: Optional[str]) -> str:
    """Return what a here-document holds up to its last line; all of it where it has none."""
    last = re.search(rf"^\s*{end}\s*$", text, re.MULTILINE) if end else None
    return text[: last.start()].rstrip("\n") if last else text


def _is_open(lines: List[str]) -> bool:
    return sum(_FENCE.match(line) is not None for line in lines) % 2 == 1


def _name(lines: List[str], start: int, kind: str) -> str:
    """Return the one file of a kind that the lines above a block name, or its first comment."""
    above = [line for line in lines[max(0, start - 6) : start] if line.strip(" `~\t")][-_BEFORE:]
    first = [line for line in lines[start : start + 1] if line.lstrip().startswith("#")]
    endings = (".json",) if kind == "json" else (".yaml", ".yml")
    names = {
        name for line in (*above, *first) for name in _NAME.findall(line) if name.endswith(endings)
    }
    return names.pop() if len(names) == 1 else ""
