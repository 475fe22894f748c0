"""How a text says that its run trains: DeepSpeed's stage, or all parameters, in running text.

A sentence names a stage beside much that it leaves out. So it counts only where the text speaks of
training on one node, names one stage alone or that all parameters are trained, and nothing that
takes less memory than AdamW on all parameters does.
"""

from __future__ import annotations

import re
from typing import Dict, Sequence

from .clean_text import Line
from .draft import Draft
from .marked import Marked

__all__ = ["read_training"]

#: ``ZeRO-3``, ``zero2``, ``ZeRO stage 3``; not the name of a configuration, whose content tells.
_STAGE = re.compile(
    r"(?<![\w./-])(?:ZeRO[ _-]?|[Zz]ero[_-]?)(?:[Ss]tage[ _-]?)?([123])"
    r"(?![\w-]|\.\d|[\w./-]*\.(?:json|ya?ml))"
)
_MARK = Marked("zero", "ZeRO|[Zz]ero", 0)
_TRAINS = re.compile(
    r"\b(?:pre-?train\w*|train(?:s|ed|ing|er)?|fine-?tun\w*|sft|dpo)\b|微调|训练", re.IGNORECASE
)
#: What leaves part of the state out, keeps it elsewhere or smaller, or spreads it over nodes.
_OTHERWISE = re.compile(
    r"lora|adapter|infinity|nvme|\b[2348]-?bit|quanti[sz]|nf4|bitsandbytes|adafactor|galore"
    r"|\blion\b|\bsgd\b|muon|badam|apollo|paged|fr[eo]ezen?|zero\+\+|fsdp|megatron"
    r"|\bnodes\b|multi-?node|nnodes|hostfile|节点|多机|两台|冻结|量化",
    re.IGNORECASE,
)


_OFFLOADS = Marked(
    "offload, 卸载", r"(?<!\bno )(?<!\bwithout )(?<!\bw/o )(?<!\bno cpu )offload|卸载"
)
#: The optimizer's state in the memory of the host; an offload of who knows what decides nothing.
_OF_OPTIMIZER = Marked(
    "offload",
    r"offload\w*(?: \w+){0,3} (?:the )?optimi[sz]er|optimi[sz]er[ _-](?:state )?offload"
    r"|offload_optimi[sz]er",
)


#: That all parameters are trained: what even the stage that shards everything cannot hold fits with
#: none.
_FULL = Marked(
    "full, 全参, 全量微调",
    r"\bfull(?:y|[- ]param(?:eter)?s?)?[- ](?:fine-?tun\w*|sft|ft|training|dpo)\b"
    r"|\bfull[- ]param\w*|全参|全量微调|finetuning_type:? *full",
)


def read_training(lines: Sequence[Line], draft: Draft) -> None:
    """Claim the stage that a text names, where it names one alone and nothing else decides, and
    that all parameters are trained.
    """
    stages: Dict[str, Line] = {}
    for line in lines:
        for stage in _STAGE.findall(line.text) if _MARK.search(line.text) else ():
            stages.setdefault(stage, line)
    offload = next((line for line in lines if _OFFLOADS.search(line.text)), None)
    whose = next((line for line in lines if _OF_OPTIMIZER.search(line.text)), None)
    full = next((line for line in lines if _FULL.search(line.text)), None)
    if (
        offload is not whose
        or len(stages) > 1
        or not (stages or full)
        or any(_OTHERWISE.search(line.text) for line in lines)
    ):
        return
    # What keeps an optimizer's state somewhere trains.
    if whose is not None or any(_TRAINS.search(line.text) for line in lines):
        for stage, line in stages.items():
            draft.request("zero_stage", stage, line)
        if full is not None:
            draft.request("finetuning_type", "full", full)
        if whose is not None:
            draft.request("optimizer_offload", "true", whose)
