"""Ranks that wait in different collectives under one number."""

from __future__ import annotations

import pytest


def timeout(rank, operation, number=80078):
    return (
        f"[rank{rank}]:[E816 01:45:40.183 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={number}, OpType={operation}, NumelIn=1, "
        "NumelOut=1, Timeout(ms)=600000) ran for 600026 milliseconds before timing out.\n"
    )


def test_ranks_in_different_collectives_took_different_ways(said):
    (trace,) = said(timeout(7, "BROADCAST") + timeout(3, "ALLREDUCE")).traces
    assert "At number 80078 there is rank 7 in BROADCAST and rank 3 in ALLREDUCE" in (
        trace.finding.message
    )
    assert trace.certainty == "candidate"


@pytest.mark.parametrize(
    "lines",
    [
        timeout(7, "ALLREDUCE") + timeout(3, "ALLREDUCE"),
        timeout(7, "BROADCAST", 1) + timeout(3, "ALLREDUCE", 2),
        # One rank in two at a time: two process groups, which count for themselves.
        timeout(7, "BROADCAST") + timeout(7, "ALLREDUCE") + timeout(3, "ALLREDUCE"),
    ],
)
def test_nothing_is_said_of_ranks_that_may_go_together(said, lines):
    (trace,) = said(lines).traces
    assert "At number" not in trace.finding.message
