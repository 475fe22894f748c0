"""Collectives that timed out, compared across ranks: do all of them wait in the same one?"""

from __future__ import annotations

from typing import Dict, Sequence, Set

from .logged_run import LoggedRun
from .trace_draft import TraceDraft

__all__ = ["tell_collectives"]


def tell_collectives(drafts: Sequence[TraceDraft], _run: LoggedRun) -> None:
    """Say where ranks wait in different collectives under one number.

    Each process group counts its collectives from the first (``SeqNum`` of torch's
    ProcessGroupNCCL.cpp); the line does not say of which group it speaks.
    """
    for draft in drafts:
        if not draft.is_made_by("nccl-timeout"):
            continue
        text = _different_ways(draft)
        if text:
            message = f"{draft.finding.message} {text}"
            draft.finding = draft.finding._replace(message=message)


def _different_ways(draft: TraceDraft) -> str:
    """Return a sentence about the first number under which ranks wait in different collectives."""
    waiting: Dict[str, Dict[str, str]] = {}  # by number, the collective of each rank
    of_several_groups: Set[str] = set()  # numbers under which one rank waits in two
    for event in draft.events:
        groups = event.groups
        if not {"number", "operation", "rank"} <= groups.keys():
            continue
        number, operation = groups["number"], groups["operation"]
        if waiting.setdefault(number, {}).setdefault(groups["rank"], operation) != operation:
            of_several_groups.add(number)
    for number, by_rank in waiting.items():
        rank_of = {operation: rank for rank, operation in by_rank.items()}
        if len(rank_of) > 1 and number not in of_several_groups:
            places = " and ".join(f"rank {rank} in {name}" for name, rank in rank_of.items())
            return (
                f"At number {number} there is {places}: where both are of one process group, "
                "these ranks took different ways through the program, such as a step that only "
                "some of them do."
            )
    return ""
