"""Through what a call went before it failed: parts of torch and transformers that are at work and
that the program does not name, and arguments that are handed on as a dict.
"""

from __future__ import annotations

import re
from typing import Optional, Sequence

from ..model.log import Frame, Raised
from ..model.pattern import pattern
from ..model.record import NamedTuple

__all__ = ["handed_on", "is_open", "of_parts"]


class _Part(NamedTuple):
    """A file that a call goes through, what is at work then, and, of a message, what it means."""

    file: re.Pattern[str]
    words: str
    said: Optional[re.Pattern[str]] = None


#: The more special ones first.
_PARTS = (
    _Part(
        pattern(r"/torch/(?:cuda/)?amp/grad_scaler\.py$"),
        "A GradScaler is at work, so mixed precision is set to float16, and the gradients are "
        "bfloat16, since the weights are: set bf16 in place of fp16, or load the weights in "
        "float32.",
        pattern(r"BFloat16"),
    ),
    _Part(
        pattern(r"/torch/(?:cuda/)?amp/grad_scaler\.py$"),
        "A GradScaler is at work, so mixed precision is set to float16, and the weights that are "
        "trained are float16 themselves: load them in float32, or set bf16 in place of fp16.",
        pattern(r"unscale FP16 gradients"),
    ),
    _Part(
        pattern(r"/transformers/integrations(?:/integration_utils)?\.py$"),
        "transformers' Trainer calls that by itself, since it is installed and report_to does not "
        "leave it out: set it up, or report_to=\"none\" or a list without it.",
    ),
    _Part(
        pattern(r"/torch/nn/parallel/(?:data_parallel|scatter_gather|comm)\.py$"),
        "torch.nn.DataParallel is at work: one process sees several GPUs, and the Trainer, or the "
        "program, spreads each batch over them. One visible GPU (CUDA_VISIBLE_DEVICES=0), or a "
        "process for each (torchrun), does without it.",
    ),
    _Part(
        pattern(r"(?:^|/)(?:bdb|pdb)\.py$"),
        "A breakpoint was left in the program: the debugger asked at a terminal, and there is none "
        "that answers.",
    ),
    _Part(
        pattern(r"^<stdin>$"),
        "<stdin> is a program that a shell handed to Python's standard input, as a here-document "
        "of a script does.",
    ),
)  # fmt: skip
_PASSES = pattern(r"\*\*(\w{1,80})")


def of_parts(raised: Raised) -> str:
    """Say what a call went through; "" where nothing is known to be at work."""
    files = [frame.file.replace("\\", "/") for frame in raised.frames]
    for part in _PARTS:
        if part.said is not None and not part.said.search(raised.message):
            continue
        if any(part.file.search(file) for file in files):
            return part.words
    return ""


def handed_on(name: str, frames: Sequence[Frame]) -> Optional[Frame]:
    """Return the outermost place that is seen to hand an argument on within a dict (``**kwargs``),
    None where a call on the way names it, or the innermost one hands nothing on.
    """
    place = None
    for number, frame in enumerate(reversed(frames)):
        if re.search(rf"\b{re.escape(name)} ?=(?!=)", frame.code):
            return None
        if _PASSES.search(frame.code):
            place = frame
        elif number == 0 or not is_open(frame):
            break
    return place


def is_open(frame: Frame) -> bool:
    """Tell whether a call goes on below the line of source that is shown."""
    return frame.code.count("(") > frame.code.count(")")
