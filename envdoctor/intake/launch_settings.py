"""Launch settings: the flags of ``vllm serve`` and its kin, and the settings that people write
line by line.
"""

from __future__ import annotations

import re
from typing import List, Sequence

from .clean_text import Line
from .draft import Draft
from .marked import Marked
from .presence import is_advised
from .word_lists import words

__all__ = ["LaunchReader", "read_launch", "split_command"]

_LAUNCHER = re.compile(
    r"\b(?:vllm\s+serve|vllm\.entrypoints|sglang\.launch_server|sglang\s+serve|torchrun|"
    r"deepspeed\s+-|accelerate\s+launch|llamafactory-cli\s+train|swift\s+(?:rlhf|sft|pt|deploy)|"
    r"ray\s+start|"
    r"python\d?(?:\.\d+)?\s+(?:-\w\s+){0,3}(?:-m\s+)?[\w./-]+|openrlhf\.cli)"
)
_SERVED = re.compile(r"\b(?:vllm|sglang) serve ([A-Za-z0-9./~][^\s=]*/?[^\s=]*)")
_SERVED_ALONE = re.compile(r"(?:vllm|sglang) serve [\w.~-]*/[\w./-]+")
_IMAGE = re.compile(r"[\w./-]*(?:vllm|sglang)[\w./-]*(?::[\w.-]+)?")
_SHORT = {
    "-tp": "tensor_parallel_size", "--tp": "tensor_parallel_size",
    "--tp-size": "tensor_parallel_size", "-pp": "pipeline_parallel_size",
    "--pp-size": "pipeline_parallel_size", "--pp": "pipeline_parallel_size",
    "-dp": "data_parallel_size",
    "--dp": "data_parallel_size", "--dp-size": "data_parallel_size",
}  # fmt: skip
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


def split_command(text: str) -> List[str]:
    """Split a command line; quotes that do not match make it a plain split."""
    import shlex

    try:
        return shlex.split(text, comments=False)[:2000]
    except ValueError:
        return text.split()[:2000]


def read_launch(arguments: Sequence[str], line: Line, draft: Draft) -> None:
    """Keep the flags of a launcher; an image of an engine takes the engine's flags."""
    text = " ".join(arguments[:8])
    if not _LAUNCHER.search(text) and not (arguments and _IMAGE.fullmatch(arguments[0])):
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
        has_settings = "--" in text or " -tp" in text or ("python" in text and "=" in text)
        if (has_settings or _SERVED_ALONE.fullmatch(text)) and (launcher := _LAUNCHER.search(text)):
            if is_advised(text[: launcher.start()]):
                return True
            arguments = split_command(text)
            while arguments and re.fullmatch(r"[A-Z_][A-Z0-9_]*=\S*", arguments[0]):
                name, _, value = arguments.pop(0).partition("=")
                draft.variable(name, value, line)
            read_launch(arguments, line, draft)
            return True
        engine = _ENGINE.search(text)
        if engine and len(text) < 200:
            draft.request("engine", "V" + next(filter(None, engine.groups())), line)
        return False
