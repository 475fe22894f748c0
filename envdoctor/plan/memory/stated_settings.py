"""What the launch settings of a report ask for: the part of the plan that a few flags decide.

A report is no configuration: what it does not say may be anything. So only what cannot fit whatever
the rest is becomes a finding, and a model of which only flags are known is never more than a
warning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional

from ...model.evidence import Evidence, Known
from ...model.facts import Facts
from ...model.finding import Finding, Remedy
from ...model.row import Source
from ...model.sizes import GIB, gib_text
from ...model.workload import Workload
from ...rules.memory_plan import check_utilization, findings_of
from .estimate import make_plan, sizes_of
from .inputs import Inputs
from .levers import find_levers
from .model_sizes import size_of

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["findings_of_request"]

_SWAP = Source(
    "https://github.com/vllm-project/vllm/blob/v0.6.3/vllm/config.py",
    "verify_with_parallel_config: above 70 % of the CPU memory, Too large swap space",
)
_LENGTH = Source(
    "https://github.com/vllm-project/vllm/issues/10517",
    "max seq len (29000) is larger than the maximum number of tokens that can be stored in KV "
    "cache (23648)",
)
_STATIC = Source(
    "https://github.com/sgl-project/sglang/issues/322",
    "Not enough memory. Please try to increase --mem-fraction-static.",
)
#: Weights of fewer than two bytes for each parameter, by what a name or a flag says.
_PACKED = re.compile(
    r"awq|gptq|gguf|fp8|int4|int8|4bit|8bit|bnb|w4a16|w8a8|nvfp4|mxfp4|gpt-oss|deepseek-(?:v3|r1)(?!-distill)|kimi",
    re.IGNORECASE,
)
_TRUE = frozenset(["true", "1", "yes", "on"])


def findings_of_request(facts: Facts, matrix: Matrix) -> List[Finding]:
    """Return what cannot work among the launch settings of a report."""
    request: Mapping[str, str] = facts.value("request") or {}
    evidence = facts.evidence("request") or Evidence("launch settings")
    found = [
        *check_utilization(_number(request.get("gpu_memory_utilization")), facts, evidence),
        *_check_tokens(request, evidence),
        *_check_swap(request, facts, evidence),
    ]
    found += _check_static(request, facts, matrix, evidence)
    workload = _workload(request, facts, evidence)
    if workload is None:
        return found
    sizes = sizes_of(workload, matrix)
    size = sizes.get("actor")
    if size is None:
        return found
    plan = make_plan(workload, sizes, facts, matrix)
    serves = workload.value("algorithm") == "serve"
    known = {finding.kind for finding in found}
    pools = () if serves else tuple(pool for pool in plan.pools if pool.name == "gpu")
    cache = plan.cache if serves and "kv-cache-too-small" not in known and not size.rough else None
    narrowed = plan._replace(pools=pools, cache=cache)
    levers = find_levers(workload, sizes, narrowed, facts, matrix)
    # "Tight" of a plan that knows a handful of flags says nothing; and what flags alone say stays a
    # warning.
    return found + [
        finding._replace(
            severity="warning",
            message=f"{finding.message[:-1]}; as far as the launch settings tell.",
        )
        for finding in findings_of(workload, narrowed, levers)
        if finding.severity == "error"
    ]


def _check_tokens(request: Mapping[str, str], evidence: Evidence) -> Iterator[Finding]:
    """What an engine said of its own cache decides without a model."""
    tokens, length = _number(request.get("kv_tokens")), _number(request.get("max_model_len"))
    if tokens and length and tokens < length:
        yield Finding(
            "ED603",
            "gpu-memory",
            "kv-cache-too-small",
            "error",
            f"max_model_len is {length:.0f}, and the engine's KV cache holds {tokens:.0f} tokens.",
            evidence=(evidence,),
            sources=(_LENGTH,),
            remedies=(
                Remedy(
                    f"Set max_model_len<={tokens:.0f}, or raise gpu_memory_utilization.",
                    (f"--max-model-len {int(tokens) // 256 * 256}",),
                    "safe",
                ),
                Remedy("Or spread the engine over more GPUs (--tensor-parallel-size).", (), "safe"),
            ),
        )


def _check_swap(request: Mapping[str, str], facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Vllm's own arithmetic: swap space times GPUs above 70 % of the CPU memory is refused."""
    swap, total = _number(request.get("swap_space")), facts.value("memory.total")
    if not swap or not total:
        return
    wanted = swap * GIB * (_number(request.get("tensor_parallel_size")) or 1)
    if wanted > 0.7 * total:
        yield Finding(
            "ED604",
            "swap-space",
            "swap-space-too-large",
            "error",
            f"Swap space of {gib_text(wanted)} GiB is more than 70 % of {gib_text(total)} GiB of "
            "memory, and vllm refuses to start.",
            evidence=(evidence, *filter(None, (facts.evidence("memory.total"),))),
            sources=(_SWAP,),
            remedies=(
                Remedy(
                    "Lower swap_space; 4 GiB for each GPU is the default, and 0 works.",
                    ("--swap-space 4",),
                    "safe",
                ),
            ),
        )


def _check_static(
    request: Mapping[str, str], facts: Facts, matrix: Matrix, evidence: Evidence
) -> Iterator[Finding]:
    """Sglang's own arithmetic: mem_fraction_static holds weights and cache, and a start with
    nothing left for the cache is refused.

    How much its steps take beside that share (chunked_prefill_size, max_running_requests) no
    document gives, so nothing is said of it.
    """
    share, model = (
        _number(request.get("mem_fraction_static")),
        request.get("model_path") or request.get("model"),
    )
    totals = [
        device.memory_total
        for device in facts.value("gpus") or ()
        if device.memory_total and device.visible is not False
    ]
    if share is None or not 0 < share < 1 or model is None or not totals or _packed(request, model):
        return
    size = size_of(model, matrix)
    split = (_number(request.get("tensor_parallel_size")) or 1) * (
        _number(request.get("pipeline_parallel_size")) or 1
    )
    total = min(totals)
    if size is None or size.rough or split < 1 or 2 * size.low / split < share * total:
        return
    weights = 2 * size.low / split
    enough = (
        f"Raise it above {weights / total:.2f} and leave some of the GPU to activations, or"
        if weights < 0.9 * total
        else "Weights of this size need"
    )
    yield Finding(
        "ED603",
        "gpu-memory",
        "kv-cache-too-small",
        "warning",
        f"mem_fraction_static {share:g} of {gib_text(total)} GiB is {gib_text(share * total)} GiB "
        "for weights and KV cache, and the weights alone "
        f"take {gib_text(weights)} GiB of each GPU; as far as the launch settings tell.",
        evidence=(evidence, *filter(None, (facts.evidence("gpus"),))),
        sources=(_STATIC,),
        remedies=(
            Remedy(
                f"{enough} more GPUs (--tp-size); a lower mem_fraction_static makes it worse.",
                (),
                "safe",
            ),
        ),
    )


def _packed(request: Mapping[str, str], model: str) -> bool:
    """Tell whether weights may take less than two bytes for each parameter, or lie elsewhere."""
    return bool(
        _PACKED.search(model) or request.get("quantization") or request.get("cpu_offload_gb")
    )


def _workload(request: Mapping[str, str], facts: Facts, evidence: Evidence) -> Optional[Workload]:
    """Return the workload that a few settings are, or None where they do not tell enough."""
    model = next(
        (
            request[key]
            for key in ("model", "pretrain", "model_name_or_path", "model_path")
            if request.get(key)
        ),
        None,
    )
    if model is None or _packed(request, model):
        return None
    values: Dict[str, Any] = {"actor.model": model, "nodes": 1}
    stage = _number(request.get("zero_stage"))
    gpus = Inputs(Workload(), {}, facts).gpus
    if stage is not None and gpus and _number(request.get("nnodes")) in (None, 1):
        if any(
            request.get(key, "").lower() in _TRUE
            for key in ("adam_offload", "optimizer_offload", "offload", "load_in_4bit")
        ) or _number(request.get("lora_rank")):
            return None
        if request.get("precision", request.get("dtype", "bf16")).lower() not in (
            "bf16",
            "fp16",
            "bfloat16",
            "float16",
            "true",
        ):
            return None
        adapters = any("lora" in key.lower() for key in request)
        values.update(
            {
                "algorithm": "sft",
                "framework": "deepspeed",
                "gpus_per_node": gpus,
                "actor.strategy": f"zero{int(stage)}" if stage else "ddp",
                "actor.param_dtype": "bf16",
                # A report that names a stage and no offload: the finding says that it goes by what
                # is told.
                "actor.offload_optimizer": False,
                "actor.offload_params": False,
            }
        )
        if adapters:
            return None
    elif request.get("max_model_len") or request.get("gpu_memory_utilization"):
        if (_number(request.get("pipeline_parallel_size")) or 1) > 1 or request.get(
            "kv_cache_dtype", "auto"
        ) not in ("auto", "bfloat16", "float16"):
            return None
        values.update({"algorithm": "serve", "rollout.engine": "vllm", "gpus_per_node": gpus or 1})
        numbers = {
            "rollout.max_model_len": "max_model_len",
            "rollout.tensor_parallel": "tensor_parallel_size",
            "rollout.max_num_seqs": "max_num_seqs",
        }
        numbers["rollout.max_num_batched_tokens"] = "max_num_batched_tokens"
        for field, key in numbers.items():
            number = _number(request.get(key))
            if number is not None:
                values[field] = int(number)
        share = _number(request.get("gpu_memory_utilization"))
        # Of a share that nobody names, the largest that any version takes by itself.
        values["rollout.gpu_memory_utilization"] = share if share is not None else 0.92
        values["rollout.utilization_of"] = "total"
        values["rollout.v1"] = request.get("engine") != "V0"
    else:
        return None
    return Workload({field: Known(value, evidence) for field, value in values.items()})


def _number(text: Optional[str]) -> Optional[float]:
    try:
        return float(text) if text else None
    except ValueError:
        return None
