"""Commands of a report that start an engine or a training run, as they were pasted: where one
stands in a line and where it ends, its flags as settings, and its whole text for ``plan``.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Set

from ..model.redaction import is_secret_name
from .clean_text import Line
from .draft import Draft
from .marked import Marked
from .presence import is_advised
from .word_lists import words

__all__ = [
    "LaunchReader",
    "beside_command",
    "launched_runs",
    "note_engine",
    "read_launch",
    "split_command",
]

_MOST = 20  # commands of one report
_MOST_NEEDED = 200  # assignments that one of them refers to, and lines of a list
#: What starts a run, behind variables and wrappers: whose it is, its adapter tells.
_COMMAND = Marked(
    """
    vllm, sglang, torchrun, deepspeed, accelerate, ray, llamafactory-cli, lmf, axolotl,
    swift, megatron, trl, tune, python, openrlhf
    """,
    r"(?<![\w./-])(?:[A-Za-z_][A-Za-z0-9_]{0,80}=\S{1,300} +){0,20}(?:"
    r"(?:docker|podman|nerdctl) +run\b(?=.*(?:vllm|sglang))"
    r"|(?:(?:sudo|nohup|srun) +(?:-\S+ +){0,4}){0,2}(?:[\w./-]{0,120}/)?(?:"
    r"(?:vllm|sglang) +serve"
    r"|torchrun|(?:deepspeed|accelerate +launch)(?= +\S+.*[\w/]\.(?:py|ya?ml)\b|.* openrlhf\.| +-)"
    r"|ray +job +submit\b(?=.* -- )|ray +start(?= +-)"
    r"|(?:llamafactory-cli|lmf|axolotl) +train|(?:swift|megatron) +(?:sft|pt|rlhf|deploy)"
    r"|trl +[a-z]+(?= +-)|tune +run"
    r"|python[\d.]{0,6} +(?:-[a-zA-Z] +){0,3}(?:"
    r"(?:vllm\.entrypoints|sglang\.launch_server|verl|openrlhf|torch\.distributed|axolotl|trl"
    r"|recipe|llamafactory|swift|accelerate\.commands)\b[\w.]*|(?!-)[\w./-]+(?= +.*(?:--|=)))"
    r")(?=\s)) +\S",
    0,
)
#: The engine itself, whatever stands around it, and an image of it.
_SERVED = re.compile(r"\b(?:vllm|sglang) serve ([A-Za-z0-9./~][^\s=]*/?[^\s=]*)")
_SERVED_ALONE = re.compile(r"(?:vllm|sglang) serve [\w.~-]*/[\w./-]+")
_SETTINGS = re.compile(r"--| -tp|=")
_IMAGE = re.compile(r"[\w./-]*(?:vllm|sglang)[\w./-]*(?::[\w.-]+)?")
#: Commands and images of engines that no plan reads, by what an engine is called; a model that
#: stands behind one by its place.
_OTHER_ENGINES = Marked(
    "lmdeploy, text-generation, fastchat",
    r"(?P<lmdeploy>(?<![\w./-])lmdeploy +serve +(?:api_server|gradio)\b)"
    r"|(?P<tgi>(?<![\w./-])text-generation-launcher(?= +-)"
    r"|(?:docker|podman|nerdctl) +run\b.*/text-generation-inference(?::[\w.-]+)?(?= +-))"
    r"|(?P<fastchat>-m +fastchat\.serve\.(?:cli|model_worker)\b)",
    0,
)
_MODEL_BEHIND = re.compile(r" +(?!-)([A-Za-z0-9~./][\w./~-]*)(?=\s|[`'\"]|$)")
_MODEL_FLAG = re.compile(r"--model(?:[-_](?:id|path))?[ =][\"']?([A-Za-z0-9~./][\w./~-]*)")
#: Where a sentence or the next command goes on behind a command.
_END = re.compile(
    r" (?:&&|\|\|?|2?>&?1?|;|&) |[;|&]$| (?:and|but|which|then|where|when|with) [a-z]"
    r"| on (?:an?|the|my|our|one|two|four|eight|\d{1,3} ?[x×*]?) ?(?=[A-Za-z])"
)
_PUNCTUATION = re.compile(r"(?:[,;:!?)]|(?<!\.)\.(?!\.))+\Z")
_CODE = re.compile(r"`([^`]{1,4000})`")
_LEFT_OUT = re.compile(r"\.\.\.|…|<[a-z_ -]+>")  # nobody knows what
_ASSIGNMENT = re.compile(
    r"(export +|local +|declare +-\w+ +)?([A-Za-z_]\w{0,80})="
    r"(\"[^\"]*\"|'[^']*'|[^\s;&|(]{0,300}|\([^()]{0,4000}\))"
)
#: Variables that a launcher reads itself.
_READ = re.compile(r"(?:\w+_VISIBLE_DEVICES|NPROC_PER_NODE|NNODES)\Z")
_OPENS = re.compile(r"[A-Za-z_]\w{0,80}=\([^()]*")
_SHORT = {
    "-tp": "tensor_parallel_size", "--tp": "tensor_parallel_size",
    "--tp-size": "tensor_parallel_size", "-pp": "pipeline_parallel_size",
    "--pp-size": "pipeline_parallel_size", "--pp": "pipeline_parallel_size",
    "-dp": "data_parallel_size",
    "--dp": "data_parallel_size", "--dp-size": "data_parallel_size",
}  # fmt: skip
#: Flags that say over how many GPUs an engine spreads a model, or that its weights are packed.
_SIZE_FLAG = re.compile(
    r"(--(?:tp|num-shard|num-gpus|quantize|model-format|load-8bit|cpu-offloading))\b[ =]?"
    r"((?!-)[\w.${}-]+|)"
)
_NAMES = words(
    """
    tensor_parallel_size pipeline_parallel_size data_parallel_size gpu_memory_utilization
    max_model_len max_num_seqs max_num_batched_tokens
    kv_cache_dtype attention_backend distributed_executor_backend enforce_eager
    enable_prefix_caching
    swap_space cpu_offload_gb quantization
    dtype mem_fraction_static zero_stage enable_sleep_mode disable_custom_all_reduce
    block_size load_format speculative_config nnodes
    n_gpus_per_node num_gpus object_store_memory
    """
)
_PAIR = re.compile(r"(?:--)?([A-Za-z][A-Za-z_-]{2,40})\s*[:=]\s*([\w.\"'/+-]{1,80})\s*,?$")
_HYDRA = re.compile(r"[+~]{0,2}([a-z]\w*(?:\.\w+){1,8})=(\S{1,300})")
_ENGINE = Marked(
    "vllm, engine",
    r"\bvllm\b.{0,20}?\b[Vv]([01])\b(?!\.)|\b[Vv]([01])\s+engine\b|\bengine\s*[:=]?\s*[Vv]([01])\b",
)
#: What ends a sentence behind a number.
_ENDS = re.compile(r"(?<=\d)[.,;:)`]+$")


def beside_command(line: Line) -> str:
    """Return what stands before and behind the command of a line: "" for nothing."""
    match = _COMMAND.search(line.text)
    if match is None:
        return ""
    end = _END.search(line.text, match.start())
    behind = line.text[end.start() :] if end else ""
    return f"{line.text[: match.start()]} {behind}".strip()


def _command_of(line: Line) -> Optional[str]:
    """Return the command of a line, without what goes on behind it; None where there is none, or
    one that somebody advises.
    """
    match = _COMMAND.search(line.text)
    if match is None or is_advised(line.text[: match.start()]):
        return None
    codes = _CODE.findall(line.raw) if "`" in line.raw else []
    code = next((code for code in codes if _COMMAND.match(code)), "")
    text = code or _within_quotes(line.text, match.start())
    end = _END.search(text)
    return _PUNCTUATION.sub("", text[: end.start() if end else None])


def _within_quotes(text: str, start: int) -> str:
    """Return a text from a place on, up to the quote that closes one directly before it."""
    quote = text[start - 1 : start]
    end = text.find(quote, start) if quote in ("'", '"') else -1
    return text[start : end if end >= 0 else None]


# --------------------------------------------------------------------------------------------------
# flags, as settings


def split_command(text: str) -> List[str]:
    """Split a command line; quotes that do not match make it a plain split."""
    import shlex

    try:
        return shlex.split(text, comments=False)[:2000]
    except ValueError:
        return text.split()[:2000]


def read_launch(arguments: Sequence[str], line: Line, draft: Draft) -> None:
    """Keep the flags of a launcher; an image of an engine takes the engine's flags."""
    if not _COMMAND.search(" ".join(arguments)) and not (
        arguments and _IMAGE.fullmatch(arguments[0])
    ):
        return
    served = _SERVED.search(" ".join(arguments[:12]))
    if served:
        draft.request("model", served.group(1), line)
    position = 0
    while position < len(arguments):
        word = arguments[position]
        position += 1
        following = arguments[position] if position < len(arguments) else ""
        if word.startswith("--") or word in _SHORT:
            name, joined, value = word.partition("=")
            if not joined:
                has_value = following != "" and not (
                    following.startswith("-") and not re.fullmatch(r"-\d[\d.]*", following)
                )
                value = following if has_value else "true"
                position += has_value
            if name in ("--version", "--help"):
                continue
            if re.fullmatch(r"-{1,2}[A-Za-z][\w.-]{0,60}", name):
                draft.request(_SHORT.get(name, name), _ENDS.sub("", value), line)
        else:
            setting = _HYDRA.fullmatch(word)
            if setting:
                draft.request(setting.group(1), setting.group(2), line)


class LaunchReader:
    """Reads launch commands, and single settings such as ``gpu_memory_utilization=0.9``."""

    def read(self, line: Line, draft: Draft) -> bool:
        """Take one line; False leaves it to the others."""
        text = line.text
        pair = _PAIR.fullmatch(text)
        if pair and pair.group(1).lower().replace("-", "_") in _NAMES:
            draft.request(pair.group(1).lower(), pair.group(2).strip("\"'"), line)
            return True
        command = _command_of(line)
        if command is not None and (_SETTINGS.search(command) or _SERVED_ALONE.fullmatch(command)):
            arguments = split_command(command)
            while arguments and re.fullmatch(r"[A-Z_][A-Z0-9_]*=\S*", arguments[0]):
                name, _, value = arguments.pop(0).partition("=")
                draft.variable(name, value, line)
            read_launch(arguments, line, draft)
            return True
        engine = _ENGINE.search(text)
        if engine and len(text) < 200:
            draft.request("engine", "V" + next(filter(None, engine.groups())), line)
        return False


def note_engine(line: Line, draft: Draft) -> None:
    """Note which engine a command starts that no plan reads, its model and the size by which it
    spreads the weights.
    """
    match = _OTHER_ENGINES.search(line.text)
    if match is None or is_advised(line.text[: match.start()]):
        return
    draft.request("served_by", str(match.lastgroup), line)
    command = line.text[match.end() :]
    model = _MODEL_BEHIND.match(command) if match.group("lmdeploy") else None
    model = model or _MODEL_FLAG.search(command)
    if model:
        draft.request("model", model.group(1), line)
    for name, value in _SIZE_FLAG.findall(command):
        draft.request(_SHORT.get(name, name), value, line)


# --------------------------------------------------------------------------------------------------
# whole commands, for the plan


def launched_runs(lines: Iterable[Line]) -> Dict[str, str]:
    """Return the commands that start an engine or a training run, by the number of their line, each
    with the assignments above it that it refers to.
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
        command = _command_of(line)
        text = "" if command is None or _LEFT_OUT.search(command) else command
        text = " ".join(_without_secrets(text.split(" ")))
        if text and text not in commands.values() and len(commands) < _MOST:
            before = _needed(f"{text} ${' $'.join(exported)}", assigned)
            commands[str(line.number)] = "".join([*before, *exported.values(), text])
    return commands


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
