"""SGLang: ``python -m sglang.launch_server`` and ``sglang serve``."""

from __future__ import annotations

from .configuration import boolean, decimal, integer, text_of
from .serving import Engine, ServingAdapter, gib, length_of

__all__ = ["ADAPTER"]

ADAPTER = ServingAdapter(
    Engine(
        "sglang",
        r"sglang\.launch_server",
        ("serve",),
        {
            "actor.model": (("model_path", "model"), text_of),
            "rollout.tensor_parallel": (("tensor_parallel_size", "tp_size", "tp"), integer),
            "rollout.pipeline_parallel": (("pipeline_parallel_size", "pp_size", "pp"), integer),
            "rollout.data_parallel": (("data_parallel_size", "dp_size", "dp"), integer),
            "rollout.gpu_memory_utilization": (("mem_fraction_static",), decimal),
            "rollout.max_model_len": (("context_length",), length_of),
            "rollout.max_num_seqs": (("max_running_requests",), integer),
            "rollout.max_num_batched_tokens": (("chunked_prefill_size",), integer),
            "nodes": (("nnodes",), integer),
            "port": (("port",), integer),
            "rollout.enforce_eager": (("disable_cuda_graph",), boolean),
            "rollout.dtype": (("dtype",), text_of),
            "rollout.kv_dtype": (("kv_cache_dtype",), text_of),
            "rollout.offload_weights": (("cpu_offload_gb",), gib),
        },
        {},
        # Without a rank it takes that of what it loads: 64, an allowance.
        (("max_loras_per_batch", 8), ("max_lora_rank", 64)),
    )
)
