"""Pinned memory: PyTorch's allocator rounds every block up to a power of two and keeps it.

Source: ``c10::llvm::PowerOf2Ceil`` in aten/src/ATen/core/CachingHostAllocator.h@04456333; kept
until the cache is emptied explicitly (pytorch#134051). Since torch 1.11 (pytorch#95823).
``tensor.to("cpu", non_blocking=True)`` allocates pinned
(aten/src/ATen/native/TensorConversions.cpp@00faeaed), which is how verl and EasyR1 offload.
"""

from __future__ import annotations

import math

from ...matrix.model_sizes import ModelSize

__all__ = ["SOURCE", "rounded", "rounded_shards", "rounded_weights"]

SOURCE = "pytorch CachingHostAllocator.h@04456333 (PowerOf2Ceil); pytorch#95823, #150517"


def rounded(size: int) -> int:
    """Return what the allocator takes for one block of ``size`` bytes."""
    return 1 << (size - 1).bit_length() if size > 0 else 0


def rounded_shards(size: ModelSize, ranks: int, width: float) -> int:
    """Return bytes on all ranks together for one flat shard of each layer and of the root,
    ``width`` bytes for each parameter.

    FSDP keeps one flat parameter for each wrapped layer, and one for what is left (embedding,
    head). Without dimensions it is the worst that rounding can do, a factor of two.
    """
    if not size.layers or size.rough:
        return int(2 * size.high * width)
    layer = max(size.high - size.root, 0) // size.layers
    return ranks * (
        size.layers * rounded(math.ceil(layer * width / ranks))
        + rounded(math.ceil(size.root * width / ranks))
    )


def rounded_weights(size: ModelSize, tensor_parallel: int, width: int) -> int:
    """Return bytes on one rank of an engine whose tensors are copied to pinned memory one by one.

    Merged as vllm does: qkv, o, gate and up, down for each layer; embedding and head. Without
    dimensions, the factor of two.
    """
    if not (size.layers and size.intermediate and size.hidden) or size.rough:
        return 2 * size.high * width // tensor_parallel
    layer = max(size.high - size.root, 0) // size.layers
    gate_up, down = 2 * size.hidden * size.intermediate, size.hidden * size.intermediate
    if gate_up + down > layer:  # experts: their tensors are not known one by one
        return 2 * size.high * width // tensor_parallel
    attention = layer - gate_up - down
    out = min(size.hidden * size.hidden, attention)
    blocks = [gate_up, down, attention - out, out]
    ends = [size.vocabulary * size.hidden] * (1 if size.tied else 2)
    return size.layers * sum(
        rounded(-(-block * width // tensor_parallel)) for block in blocks
    ) + sum(rounded(-(-end * width // tensor_parallel)) for end in ends)
