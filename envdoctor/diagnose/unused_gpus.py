"""Memory of a GPU that ran out while other GPUs of the machine held nothing of the model, since an
engine puts it on one GPU where nothing states over how many it is spread.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Optional, Tuple

from ..model.evidence import Evidence
from ..model.finding import Remedy
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..rules.rule import Context
from .logged_run import LoggedRun
from .memory_shortage import is_engine_start, of_holders
from .trace_draft import TraceDraft

__all__ = ["tell_unused_gpus"]

_SIGNATURES = ("cuda-out-of-memory", "cuda-error-oom")
_LONGEST = 200_000  # characters of a text that are searched


class _Engine(NamedTuple):
    """An engine that uses one GPU unless an option states more: its name, what starts it, the
    option, and where that is written.
    """

    name: str
    command: re.Pattern[str]
    option: str


#: https://docs.vllm.ai/en/v0.6.3/serving/distributed_serving.html,
#: https://docs.sglang.ai/backend/server_arguments.html (--tp-size, 1),
#: lmdeploy/cli/utils.py (ArgumentHelper.tp, 1), fastchat/model/model_adapter.py (--num-gpus, 1).
#: Not here are text-generation-inference, llama.cpp and Ollama, which use all GPUs by themselves.
_ENGINES = (
    _Engine(
        "vLLM",
        pattern(r"\bvllm serve\b|-m vllm\.entrypoints\.(?:openai\.)?api_server\b"),
        "--tensor-parallel-size",
    ),
    _Engine("SGLang", pattern(r"\bsglang serve\b|-m sglang\.launch_server\b"), "--tp-size"),
    _Engine("LMDeploy", pattern(r"\blmdeploy serve (?:api_server|gradio)\b"), "--tp"),
    _Engine("fastchat", pattern(r"-m fastchat\.serve\.(?:cli|model_worker)\b"), "--num-gpus"),
)
#: Options of these engines, of their calls and of what they log that spread a model, or copies of
#: it, over GPUs; and what of these says one.
_SPREADS = pattern(
    r"(?:tensor|pipeline|data|expert|context)[_-]parallel|\b(?:tp|pp|dp|ep)[_-]?size\b|"
    r"--?(?:tp|pp|dp)\b|"
    r"\btp ?[=:]|num[_-]?(?:gpus|shard)|\bdevice_map\b|world_size|\bnproc|torchrun|max[_-]memory"
)
_ONE = pattern(
    r"(?:(?:tensor|pipeline|data)_parallel_size|[tpd]p(?:_size)?|world_size)"
    r"['\"]?(?: ?[=:] ?)1(?!\d)"
)
_VISIBLE = pattern(r"\bCUDA_VISIBLE_DEVICES=[\"']?(\d{1,2}(?:,\d{1,2}){0,15})(?![\d,])")
_ORDINAL = pattern(r"\bGPU (\d{1,2})\b")


def tell_unused_gpus(drafts: List[TraceDraft], run: LoggedRun) -> None:
    """Say of memory that ran out on the first GPU that an engine used that GPU alone, where several
    are visible, its command is there, and nothing in the text spreads the model.
    """
    report = run.report[:_LONGEST]
    short = [draft for draft in drafts if draft.is_made_by(*_SIGNATURES) and not draft.parent]
    engine = _engine_started(report) if short else None
    if engine is None or _SPREADS.search(_ONE.sub("", report)):
        return
    count, evidence = _gpus(report, run.context)
    if count < 2:
        return
    for draft in short:
        text = draft.text(run.exception)
        if of_holders(text) is not None or set(_ORDINAL.findall(text)) - {"0"}:
            continue
        raised = run.exception
        is_of_start = raised is not None and any(
            is_engine_start(link.frames) for link in raised.chain()
        )
        more = f", or more of the {count} where two do not hold it" if count > 2 else ""
        spread = Remedy(f"Spread the model over two GPUs{more}.", (f"{engine.option} 2",), "safe")
        # While requests are served, less of them at once helps as well, and costs no GPU.
        others = draft.finding.remedies if not is_of_start else ()
        draft.finding = draft.finding._replace(
            message=f"{draft.finding.message.rstrip('.')}. {count} GPUs are visible, and one is "
            f"used: {engine.name} is started without {engine.option}, whose default is 1.",
            remedies=(*others, spread),
            evidence=tuple(dict.fromkeys((*draft.finding.evidence, *evidence))),
        )


def _engine_started(report: str) -> Optional[_Engine]:
    """Return the one engine whose command is in a text, None for none or several."""
    started = [engine for engine in _ENGINES if engine.command.search(report)]
    return started[0] if len(started) == 1 else None


def _gpus(report: str, context: Context) -> Tuple[int, Tuple[Evidence, ...]]:
    """Return how many GPUs the process sees, 0 where nobody knows, and where that was read."""
    lists = set(_visible_lists(report, context))
    if len(lists) > 1:
        return 0, ()
    if lists:
        return len(set(lists.pop().split(","))), context.evidence("variables")
    return len(context.visible_gpus()), context.evidence("gpus")


def _visible_lists(report: str, context: Context) -> Iterator[str]:
    """Yield the lists of devices that CUDA_VISIBLE_DEVICES is set to."""
    yield from _VISIBLE.findall(report)
    stated = (context.facts.value("variables") or {}).get("CUDA_VISIBLE_DEVICES")
    if stated:
        yield stated.strip("\"'").replace(" ", "")
