"""How far the loading of a model had come when memory of a GPU ran out, on how many ranks alike,
and what all of it would take.
"""

from __future__ import annotations

from typing import Optional, Sequence, Set, Tuple

from ..model.pattern import pattern
from ..model.sizes import parse_size, size_text
from .logged_run import LoggedRun
from .trace_draft import TraceDraft

__all__ = ["tell_loading_progress"]

_MEMORY = "cuda-out-of-memory"
#: The bars of transformers (modeling_utils.py of 4.20 to 5.0) and vLLM (weight_utils.py).
_BAR = pattern(
    r"Loading (?:\w{1,20} )?checkpoint shards:\s+\d{1,3}%[^\r\n]{0,60}?\|\s*(?P<done>\d{1,5})/"
    r"(?P<all>\d{1,5})"
)
_ABOVE = 60  # lines above the first line that tells of it
#: What divides the weights among ranks.
_DIVIDED = pattern(
    r"(?i)\bzero[ _-]?(?:stage[\"']?)?[ :=_-]{0,3}3\b|\bstage3|\bfsdp|\btensor[ _-]parallel"
    r"|\btp_(?:plan|size)"
)


def tell_loading_progress(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of memory that ran out while the files of a model were read how far that was."""
    for draft in drafts:
        if not draft.is_made_by(_MEMORY) or draft.first is None:
            continue
        bar = _last_bar(run.report, draft.first.number)
        if bar is None:
            continue
        done, files = bar
        words = f"It had read {done} of the model's {files} files."
        ranks = _ranks_alike(draft)
        if len(ranks) > 1 and _DIVIDED.search(run.report) is None:
            words += (
                f" {len(ranks)} ranks failed alike, each on a GPU of its own: each of them puts "
                "the whole model there, as processes for data parallelism do."
            )
            words += _of_all(draft.events[0].groups.get("own", ""), done, files)
        draft.finding = draft.finding._replace(
            message=f"{draft.finding.message.rstrip('.')}. {words}"
        )


def _last_bar(report: str, number: int) -> Optional[Tuple[int, int]]:
    """Return how many files were read, and of how many, right above a line."""
    above = report.split("\n")[max(number - 1 - _ABOVE, 0) : number - 1]
    bars = [match for line in above for match in _BAR.finditer(line)]
    if not bars:
        return None
    done, files = (int(bars[-1].group(name)) for name in ("done", "all"))
    return (done, files) if done < files else None


def _ranks_alike(draft: TraceDraft) -> Set[Tuple[str, str]]:
    """Return the processes whose lines tell of as much memory of GPUs of their own."""
    first = draft.events[0].groups
    same = [
        event
        for event in draft.events
        if all(event.groups.get(name) == first.get(name) for name in ("tried", "total"))
    ]
    return {
        (event.first.process, event.groups["gpu"])
        for event in same
        if event.first.process and "gpu" in event.groups
    }


def _of_all(own: str, done: int, files: int) -> str:
    """Say what all files would take by what those that were read hold."""
    size = parse_size(own)
    if size is None or not done:
        return ""
    return f" By what these hold, all would take about {size_text(size * files // done)} on each."
