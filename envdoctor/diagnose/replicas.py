"""Failures that torch.nn.DataParallel brings about: it copies the model to each GPU for every step,
and hides the model's own attributes.
"""

from __future__ import annotations

from typing import List, Sequence

from ..model.finding import Remedy
from ..model.log import Raised
from ..model.pattern import pattern
from .logged_run import LoggedRun
from .trace_draft import TraceDraft

__all__ = ["tell_replicas"]

#: Where a copy is run (torch/nn/parallel/parallel_apply.py), and how what it raised is told
#: (torch._utils.ExceptionWrapper).
_RUN_AT = "/torch/nn/parallel/parallel_apply.py"
_CAUGHT = pattern(r"^Caught \w{1,80} in replica \d{1,3} on device \d{1,3}\.")
_DEVICES = pattern(
    r"same device, but (?:found|got)|\bon device: cuda:\d|different (?:GPUs?|devices)\b"
)
_WRAPPED = pattern(
    r"^'(?P<wrapper>(?:Distributed)?DataParallel)' object has no attribute '(?P<name>\w{1,80})'"
)
_REMEDY = Remedy(
    "Let the process see one GPU (CUDA_VISIBLE_DEVICES=0), or start one process for each GPU with "
    "DistributedDataParallel (torchrun, accelerate launch): the Trainer, and scripts that count "
    "GPUs, wrap the model in DataParallel where one process sees several."
)
_WORKS = "torch.nn.DataParallel is at work: one process sees several GPUs, and runs a copy of the "
_WORKS += "model on each. "
_STOPPED = (
    "The copies have no parameters of their own (since torch 1.5), so that next(self.parameters()) "
    "ends with StopIteration in them; only the model itself has them."
)
_SPREAD = (
    "A copy has its own weights moved to its GPU, and not what the model keeps besides (tensors "
    "that are no parameters or buffers, a device stored in an attribute), nor what device_map or "
    "the program put on a certain GPU."
)


def tell_replicas(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of the failure that DataParallel brought it about, where a copy of the model met it, or
    asks its wrapper for what the model has.
    """
    for draft in drafts:
        raised = draft.exception(run.exception)
        if raised is None or draft.parent is not None:
            continue
        links: List[Raised] = list(raised.chain())
        match = _WRAPPED.search(raised.message)
        if match is not None:
            _tell_wrapper(draft, match.group("wrapper"), match.group("name"))
        elif any(_is_of_replica(link) for link in links):
            kind = raised.kind.rpartition(".")[2]
            why = (
                _STOPPED
                if kind == "StopIteration" and "parameters()" in _code(raised)
                else _SPREAD
                if _DEVICES.search(raised.message)
                else ""
            )
            if why:
                draft.meaning = _WORKS + why
                draft.finding = draft.finding._replace(remedies=(_REMEDY,))


def _is_of_replica(raised: Raised) -> bool:
    return _CAUGHT.search(raised.message) is not None or any(
        frame.file.endswith(_RUN_AT) for frame in raised.frames
    )


def _code(raised: Raised) -> str:
    return raised.frames[-1].code if raised.frames else ""


def _tell_wrapper(draft: TraceDraft, wrapper: str, name: str) -> None:
    draft.meaning = (
        f"{wrapper} wraps the model, and has none of its attributes: the model itself is its "
        "attribute module."
    )
    ways = f"Ask the model for it (model.module.{name}), as unwrap_model of accelerate does"
    if wrapper == "DataParallel":
        ways += ", or let the process see one GPU (CUDA_VISIBLE_DEVICES=0), so that nothing is "
        ways += "wrapped"
    draft.finding = draft.finding._replace(remedies=(Remedy(f"{ways}."),))
