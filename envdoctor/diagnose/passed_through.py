"""Through what a call went before it failed: parts of torch and transformers that are at work and
that the program does not name, and arguments that are handed on as a dict.
"""

from __future__ import annotations

import re
from typing import Optional, Sequence

from ..model.log import Frame, Raised
from ..model.pattern import pattern
from ..model.record import NamedTuple

__all__ = ["handed_on", "is_open", "names_inputs", "of_parts", "remedy_of_parts"]


class _Part(NamedTuple):
    """A file that a call goes through, what is at work then, what to do, of which messages that is
    so, and in which function of the file, where it is not in all.
    """

    file: re.Pattern[str]
    words: str
    fix: str
    said: re.Pattern[str] = pattern(r"")
    function: str = ""


_NO_TRITON = pattern(r"^Cannot find a working ?t ?riton installation")
#: The more special ones first.
_PARTS = (
    _Part(
        pattern(r"/torch/(?:cuda/)?amp/grad_scaler\.py$"),
        "A GradScaler is at work, so mixed precision is set to float16, and the gradients are "
        "bfloat16, since the weights are.",
        "Set bf16 in place of fp16, or load the weights in float32",
        pattern(r"BFloat16"),
    ),
    _Part(
        pattern(r"/torch/(?:cuda/)?amp/grad_scaler\.py$"),
        "A GradScaler is at work, so mixed precision is set to float16, and the weights that are "
        "trained are float16 themselves.",
        "Load the weights in float32, or set bf16 in place of fp16",
        pattern(r"unscale FP16 gradients"),
    ),
    _Part(
        pattern(r"/transformers/integrations(?:/integration_utils)?\.py$"),
        "transformers' Trainer calls that by itself, since it is installed and report_to does not "
        "leave it out.",
        "Set it up on this machine, or give report_to=\"none\" or a list without it",
    ),
    _Part(
        pattern(r"/torch/nn/parallel/(?:data_parallel|scatter_gather|comm)\.py$"),
        "torch.nn.DataParallel is at work: one process sees several GPUs, and the Trainer, or the "
        "program, spreads each batch over them.",
        "Let the process see one GPU (CUDA_VISIBLE_DEVICES=0), or start one for each (torchrun)",
    ),
    _Part(
        pattern(r"/torch/nn/modules/batchnorm\.py$"),
        "The layer is torch.nn.SyncBatchNorm, the one batch norm that asks the other ranks, and "
        "this process is of no group of ranks.",
        "Start it with torchrun, so that a group is made, or leave the batch norms of one process "
        "as they are (no sync_batchnorm, no convert_sync_batchnorm)",
        pattern(r"process group has not been initialized"),
    ),
    _Part(
        pattern(r"/torch/utils/checkpoint\.py$"),
        "Activations are checkpointed in the reentrant way: a backward pass runs within the "
        "backward pass, and DDP sees the parameters of that part become ready twice.",
        "Checkpoint without it (gradient_checkpointing_kwargs={'use_reentrant': False}, or "
        "use_reentrant=False of torch.utils.checkpoint)",
        pattern(r"mark a variable ready only once"),
        "backward",
    ),
    _Part(
        pattern(r"^[A-Za-z]:/.*/torch/_(?:inductor|dynamo)/"),
        "torch.compile is at work and compiles with Triton, which torch does not bring on Windows.",
        "Install triton-windows of the release that goes with this torch, or run without "
        "torch.compile (TORCHDYNAMO_DISABLE=1)",
        _NO_TRITON,
    ),
    _Part(
        pattern(r"/torch/_(?:inductor|dynamo)/"),
        "torch.compile is at work and compiles with Triton, which is not there, or not the one "
        "that this torch wants.",
        "Install the triton that torch's own metadata ask for, or run without torch.compile "
        "(TORCHDYNAMO_DISABLE=1)",
        _NO_TRITON,
    ),
    _Part(
        pattern(r"/peft/tuners/"),
        "peft puts its adapter in the place of single layers of torch, and what target_modules "
        "names here is a module of a class that this peft does not know.",
        "Name the layers within that module (target_modules=[….linear], or exclude_modules for "
        "the part that is left out), or take a newer peft that knows the model",
        pattern(r"^Target module [^\0]{1,1200} is not supported"),
    ),
    _Part(
        pattern(r"(?:^|/)subprocess\.py$"),
        "What is named there is a program that was to be started.",
        "Install that program, or put its folder on PATH (command -v NAME says what is found)",
        pattern(r"^\[(?:Errno|WinError) 2\]"),
        "_execute_child",
    ),
    _Part(
        pattern(r"(?:^|/)(?:bdb|pdb)\.py$"),
        "A breakpoint was left in the program: the debugger asked at a terminal, and there is none "
        "that answers.",
        "Take breakpoint() or pdb.set_trace() out of the program",
    ),
    _Part(
        pattern(r"^<stdin>$"),
        "<stdin> is a program that a shell handed to Python's standard input, as a here-document "
        "of a script does, and what Python cannot read there may be the value of a variable that "
        "the shell had put in.",
        "Give such values as arguments or variables (sys.argv, os.environ) and quote the end word "
        "(<<'EOF'), or put the variable in quotes there",
        pattern(r"^(?:invalid syntax|unterminated|unexpected|leading zeros|invalid decimal|EOL )"),
    ),
    _Part(
        pattern(r"^<stdin>$"),
        "<stdin> is a program that a shell handed to Python's standard input, as a here-document "
        "of a script does.",
        "",
    ),
)  # fmt: skip
#: PeftModelForCausalLM.forward and those of the other task types (peft 0.3 to 0.18).
_OF_TASK_TYPE = pattern(r"/peft/peft_model\.py$")
_PASSES = pattern(r"\*\*(\w{1,80})")


def of_parts(raised: Raised) -> str:
    """Say what a call went through; "" where nothing is known to be at work."""
    part = _part(raised)
    return part.words if part is not None else ""


def remedy_of_parts(raised: Raised) -> str:
    """Say what to do about what a call went through; "" where that is not known."""
    part = _part(raised)
    return part.fix if part is not None else ""


def _part(raised: Raised) -> Optional[_Part]:
    places = [(frame.file, frame.function) for frame in raised.frames]
    for part in _PARTS:
        if part.said.search(raised.message) and any(
            part.file.search(file) and part.function in ("", function) for file, function in places
        ):
            return part
    return None


def handed_on(name: str, frames: Sequence[Frame]) -> Optional[Frame]:
    """Return the outermost place that is seen to hand an argument on within a dict (``**kwargs``),
    None where a call on the way names it, or the innermost one hands nothing on.
    """
    place = None
    for number, frame in enumerate(reversed(frames)):
        if re.search(rf"\b{re.escape(name)} ?=(?!=)", frame.code) or names_inputs(frame):
            return None
        if frame.is_relay:
            continue
        if _PASSES.search(frame.code):
            place = frame
        elif number == 0 or not is_open(frame):
            break
    return place


def names_inputs(frame: Frame) -> bool:
    """Tell whether a place is the wrapper that peft puts around a model for a task type, which
    calls it with the arguments that models of text take, each by its name.
    """
    return frame.function == "forward" and _OF_TASK_TYPE.search(frame.file) is not None


def is_open(frame: Frame) -> bool:
    """Tell whether a call goes on below the line of source that is shown."""
    return frame.code.count("(") > frame.code.count(")")
