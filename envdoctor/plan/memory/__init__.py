"""Memory as arithmetic: what a run will take before it starts. Opens nothing.

:mod:`.estimate` gives low..high for each pool by phase, each term with its formula and source;
``rules/memory_fit.py`` says what is wrong with that, :mod:`.levers` what would help. Nothing is
imported here: most checks ask for no plan.
"""

from __future__ import annotations

__all__ = ["SETTINGS"]

#: Launch settings of a report that are worth a look at memory and GPUs; without one of them none is
#: taken.
SETTINGS = frozenset(
    [
        "zero_stage",
        "finetuning_type",
        "gpu_memory_utilization",
        "max_model_len",
        "mem_fraction_static",
        "swap_space",
        "kv_tokens",
        "model",
        "model_path",
        "tensor_parallel_size",
        "pipeline_parallel_size",
    ]
)
