"""Commands of a report that start an engine or a training run, as they were pasted: ``plan`` reads
them whole.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, Iterator, List, Set

from ..model.redaction import is_secret_name
from .clean_text import Line
from .marked import Marked
from .presence import is_advised

__all__ = ["launched_runs"]

_MOST = 20  # commands of one report
_MOST_NEEDED = 200  # assignments that one of them refers to, and lines of a list
#: What starts a run, behind variables and wrappers: whose it is, its adapter tells.
_COMMAND = Marked(
    """
    vllm, sglang, torchrun, deepspeed, accelerate, ray, llamafactory-cli, lmf, axolotl,
    swift, megatron, trl, tune, python
    """,
    r"(?<![\w./-])(?:[A-Za-z_][A-Za-z0-9_]{0,80}=\S{1,300} +){0,20}(?:"
    r"(?:docker|podman|nerdctl) +run\b(?=.*(?:vllm|sglang))"
    r"|(?:(?:sudo|nohup|srun) +(?:-\S+ +){0,4}){0,2}(?:[\w./-]{0,120}/)?(?:"
    r"(?:vllm|sglang) +serve"
    r"|torchrun|(?:deepspeed|accelerate +launch)(?= +\S+.*[\w/]\.(?:py|ya?ml)\b|.* openrlhf\.)"
    r"|ray +job +submit\b(?=.* -- )"
    r"|(?:llamafactory-cli|lmf|axolotl) +train|(?:swift|megatron) +(?:sft|pt|rlhf)"
    r"|trl +[a-z]+(?= +-)|tune +run"
    r"|python[\d.]{0,6} +(?:-[a-zA-Z] +){0,3}(?:[\w./-]+\.py(?= +.*--)|"
    r"(?:vllm\.entrypoints|sglang\.launch_server|verl|openrlhf|torch\.distributed|axolotl|trl"
    r"|recipe|llamafactory|swift|accelerate\.commands)\b[\w.]*)"
    r")(?=\s)) +\S",
    0,
)
#: Where a sentence or the next command goes on behind a command.
_END = re.compile(
    r" (?:&&|\|\|?|2?>&?1?|;|&) |[;|&]$| (?:and|but|which|then|where|when|with) [a-z]"
)
_PUNCTUATION = re.compile(r"[,;:.!?)]+\Z")
_CODE = re.compile(r"`([^`]{1,4000})`")
_LEFT_OUT = re.compile(r"\.\.\.|…|<[a-z_ -]+>")  # nobody knows what
_ASSIGNMENT = re.compile(
    r"(export +|local +|declare +-\w+ +)?([A-Za-z_]\w{0,80})="
    r"(\"[^\"]*\"|'[^']*'|[^\s;&|(]{0,300}|\([^()]{0,4000}\))"
)
#: Variables that a launcher reads itself.
_READ = re.compile(r"(?:\w+_VISIBLE_DEVICES|NPROC_PER_NODE|NNODES)\Z")
_OPENS = re.compile(r"[A-Za-z_]\w{0,80}=\([^()]*")


def launched_runs(lines: Iterable[Line]) -> Dict[str, str]:
    """Return the commands that start an engine or a training run, by the number of their line, each
    with the assignments above it that it refers to. A command that somebody advises is none.
    """
    commands: Dict[str, str] = {}
    assigned: Dict[str, str] = {}
    exported: Dict[str, str] = {}
    for line in _with_lists(lines):
        assignment = _ASSIGNMENT.fullmatch(line.text) if "=" in line.text else None
        if assignment:
            how, name, value = assignment.groups()
            _assign(name, value, assigned)
            if how and how.startswith("export") and _READ.match(name) and name in assigned:
                exported[name] = f"export {name}; "
            continue
        command = _COMMAND.search(line.text)
        if command is None or is_advised(line.text[: command.start()]):
            continue
        codes = _CODE.findall(line.raw) if "`" in line.raw else []
        code = next((code for code in codes if _COMMAND.match(code)), "")
        text = _whole(code or _within_quotes(line.text, command.start()))
        if text and text not in commands.values() and len(commands) < _MOST:
            before = _needed(f"{text} ${' $'.join(exported)}", assigned)
            commands[str(line.number)] = "".join([*before, *exported.values(), text])
    return commands


def _within_quotes(text: str, start: int) -> str:
    """Return a text from a place on, up to the quote that closes one directly before it."""
    quote = text[start - 1 : start]
    end = text.find(quote, start) if quote in ("'", '"') else -1
    return text[start : end if end >= 0 else None]


def _with_lists(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines; those of ``NAME=(`` up to its bracket as one."""
    opened: List[Line] = []
    for line in lines:
        if opened or ("=(" in line.text and _OPENS.fullmatch(line.text)):
            opened.append(line)
            if ")" not in line.text and len(opened) < _MOST_NEEDED:
                continue
            line = opened[0]._replace(text=" ".join([one.text for one in opened]))
            opened = []
        yield line


def _assign(name: str, value: str, assigned: Dict[str, str]) -> None:
    """Note what a name stands for, nothing where it is a secret; where it stands for several
    things, itself, so that nobody knows what.
    """
    if not is_secret_name(name):
        assigned[name] = value if assigned.get(name, value) == value else f'"${name}"'


def _needed(text: str, assigned: Dict[str, str]) -> Iterator[str]:
    """Yield the assignments that a command refers to, also by way of another one."""
    wanted: Set[str] = set()
    open_texts = [text]
    while open_texts and len(wanted) < _MOST_NEEDED:
        names = set(re.findall(r"\$\{?([A-Za-z_]\w*)", open_texts.pop())) & assigned.keys()
        open_texts += [assigned[name] for name in names - wanted]
        wanted |= names
    return (f"{name}={value}; " for name, value in assigned.items() if name in wanted)


def _whole(text: str) -> str:
    """Return a command without what follows it; "" where part of it was left out."""
    end = _END.search(text)
    text = text[: end.start() if end else None]
    if _LEFT_OUT.search(text):
        return ""
    return " ".join(_without_secrets(_PUNCTUATION.sub("", text).split(" ")))


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
