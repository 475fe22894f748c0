"""What a kernel of torch checks that failed on the GPU: the file of the kernel tells which
operation it was, and so which values to look at.
"""

from __future__ import annotations

from typing import Mapping, Sequence, Tuple

from ..model.finding import hint
from .logged_run import LoggedRun
from .trace_draft import TraceDraft

__all__ = ["tell_kernel_asserts"]

#: By the file of a kernel in aten/src/ATen/native/cuda what it does, and whose values are checked
#: (https://github.com/pytorch/pytorch/tree/v2.6.0/aten/src/ATen/native/cuda).
_BY_FILE: Mapping[str, Tuple[str, str]] = {
    "Indexing": (
        "It is the kernel that takes rows of a table, as an embedding does.",
        (
            "Compare the largest index with the number of rows: of token ids with those of the "
            "embedding (tokens that were added without resize_token_embeddings, the tokenizer of "
            "another model), of positions with the longest sequence"
        ),
    ),
    "IndexKernel": (
        "It is the kernel of indexing with a tensor, x[index].",
        "Compare the least and the largest value of the index with the size of what is indexed",
    ),
    "ScatterGatherKernel": (
        "It is the kernel of gather and scatter: an index is beyond the size of the dimension.",
        (
            "Look at the calls of gather, scatter and take_along_dim: print the least and the "
            "largest value of the index and the size of the dimension for the batch that fails, "
            "which may be shorter or longer than the others"
        ),
    ),
    "NLLLoss2d": (
        "It is the kernel of a loss over classes: a label is no class of the output.",
        (
            "Compare the least and the largest label with the number of classes; what is to be "
            "left out has the value of ignore_index"
        ),
    ),
    "MultinomialKernel": (
        "It is the kernel that draws samples: its probabilities are not finite, or negative.",
        (
            "Look for NaN and inf in what the model returns: weights that were loaded wrongly, or "
            "an overflow in half precision"
        ),
    ),
}
_ALIKE = {"Loss": "NLLLoss2d", "IndexKernelUtils": "IndexKernel"}


def tell_kernel_asserts(drafts: Sequence[TraceDraft], _: LoggedRun) -> None:
    """Say of an assertion that failed on the GPU what its kernel does, where its file is shown."""
    for draft in drafts:
        if not draft.is_made_by("cuda-device-assert"):
            continue
        kernels = (event.groups.get("kernel", "") for event in draft.events)
        entries = (_BY_FILE.get(_ALIKE.get(name, name)) for name in kernels)
        entry = next(filter(None, entries), None)
        if entry is None:
            continue
        what, look = entry
        draft.meaning = f"{what} That is of the program's data and code, not of the environment."
        draft.finding = draft.finding._replace(
            remedies=(
                hint(f"{look}. With CUDA_LAUNCH_BLOCKING=1 the traceback ends at the line of it"),
            )
        )
