"""vllm: ``vllm serve``, its servers as modules, and ``LLM(...)`` in a Python script."""

from __future__ import annotations

import ast
from typing import Any, Dict, List, Optional

from ...model.evidence import Evidence
from .adapter import Run, read_small
from .configuration import boolean, decimal, integer, text_of
from .hydra import entry_file
from .serving import Engine, ServingAdapter, gib, length_of
from .settings import Setting

__all__ = ["ADAPTER", "ENGINE"]

ENGINE = Engine(
    "vllm",
    r"vllm\.entrypoints\.(?:openai\.)?api_server",
    ("serve",),
    {
        "actor.model": (("model", "model_tag"), text_of),
        "rollout.tensor_parallel": (("tensor_parallel_size",), integer),
        "rollout.pipeline_parallel": (("pipeline_parallel_size",), integer),
        "rollout.data_parallel": (("data_parallel_size",), integer),
        "rollout.gpu_memory_utilization": (("gpu_memory_utilization",), decimal),
        "rollout.max_model_len": (("max_model_len",), length_of),
        "rollout.max_num_seqs": (("max_num_seqs",), integer),
        "rollout.max_num_batched_tokens": (("max_num_batched_tokens",), length_of),
        "rollout.chunked_prefill": (("enable_chunked_prefill",), boolean),
        "nodes": (("nnodes",), integer),
        "port": (("port",), integer),
        "rollout.enforce_eager": (("enforce_eager",), boolean),
        "rollout.dtype": (("dtype",), text_of),
        "rollout.kv_dtype": (("kv_cache_dtype",), text_of),
        "rollout.swap_space": (("swap_space",), gib),
        "rollout.offload_weights": (("cpu_offload_gb",), gib),
    },
    {
        "-tp": "--tensor-parallel-size",
        "-pp": "--pipeline-parallel-size",
        "-dp": "--data-parallel-size",
        "-q": "--quantization",
    },
    (("max_loras", 1), ("max_lora_rank", 16)),
)


class _Vllm(ServingAdapter):
    def call(self, run: Run) -> List[Setting]:
        """Return the arguments of ``LLM(…)`` in the script that a run starts."""
        entry = entry_file(run) if run.entry.endswith(".py") else None
        text = read_small(entry[0]) if entry is not None else None
        if not text or "vllm" not in text or "LLM(" not in text:
            return []
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        if not any(_imports_vllm(node) for node in ast.walk(tree)):
            return []
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("LLM", "vllm.LLM")
        ]
        return _arguments(calls[0], _constants(tree), run.entry) if calls else []


def _imports_vllm(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] == "vllm"
    return isinstance(node, ast.Import) and any(name.name == "vllm" for name in node.names)


def _constants(tree: ast.Module) -> Dict[str, Any]:
    """Return the names that a module gives one plain value, and never another."""
    values: Dict[str, Any] = {}
    bound = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and bound.count(target.id) == 1:
                    values[target.id] = node.value.value
    return values


def _arguments(call: ast.Call, constants: Dict[str, Any], name: str) -> List[Setting]:
    given = [(keyword.arg, keyword.value) for keyword in call.keywords]
    if call.args:
        given.insert(0, ("model", call.args[0]))
    return [_argument(key, value, constants, name) for key, value in given]


def _argument(key: Optional[str], node: ast.expr, constants: Dict[str, Any], name: str) -> Setting:
    """Return one argument; ``**more`` is a setting of its own that nobody understands."""
    text = ast.unparse(node)[:120]
    place = Evidence(f"{name}:{node.lineno}", f"{key}={text}" if key else f"**{text}")
    if key is None:
        return Setting(f"**{text}", None, place, "", f"{name} makes it as it runs")
    if isinstance(node, ast.Constant):
        return Setting(key, node.value, place)
    if isinstance(node, ast.Name) and node.id in constants:
        return Setting(key, constants[node.id], place)
    return Setting(key, None, place, "", f"{name} computes {text}")


ADAPTER = _Vllm(ENGINE)
