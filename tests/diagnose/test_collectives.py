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


def report(rank, elements=64, number=512, operation="_ALLGATHER_BASE", group="0(default_pg)"):
    """Return what torch prints of a collective that did not end, and of its process group."""
    start = f"[rank{rank}]:[E103 11:02:09.700 ProcessGroupNCCL.cpp"
    return (
        f"{start}:629] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={number}, OpType={operation}, NumelIn={elements}, NumelOut=99, "
        "Timeout(ms)=600000) ran for 600004 milliseconds before timing out.\n"
        f"{start}:2168] [PG ID 0 PG GUID {group} Rank {rank}]  failure detected by watchdog at "
        f"work sequence id: {number} PG status: last enqueued work: {number + 2}, last completed "
        f"work: {number - 1}\n"
    )


APART = "The ranks do not make the same collectives."


@pytest.mark.parametrize(
    "lines",
    [
        report(0) + report(1) + report(2, elements=4096),
        report(0, operation="BROADCAST") + report(1, operation="ALLREDUCE"),
        report(0, operation="ALLREDUCE", elements=1) + report(1, operation="ALLREDUCE"),
    ],
)
def test_ranks_of_one_group_that_went_apart(said, lines):
    trace = said(lines).traces[0]
    assert trace.finding.message.startswith(APART)
    assert trace.certainty == "likely"
    assert not trace.suspects
    assert "same calls in the same order" in trace.finding.remedies[0].text


@pytest.mark.parametrize(
    "lines",
    [
        # Of two groups.
        report(0, group="7") + report(1, elements=4096, group="8"),
        # Each rank gives what it has.
        report(0, operation="ALLTOALL_BASE") + report(1, operation="ALLTOALL_BASE", elements=3),
        report(0, operation="GATHER") + report(1, operation="GATHER", elements=3),
    ],
)
def test_ranks_that_need_not_have_gone_apart(said, lines):
    trace = said(lines).traces[0]
    assert not trace.finding.message.startswith(APART)
    assert trace.certainty == "candidate"


def test_ranks_of_one_group_at_different_numbers(said):
    message = said(report(0) + report(1) + report(2, number=511)).traces[0].finding.message
    assert "rank 2 waits at number 511 and ranks 0 and 1 at 512" in message
    other = said(report(0, group="7") + report(2, number=511, group="8")).traces[0]
    assert "at number" not in other.finding.message


@pytest.mark.parametrize(
    ("before", "who", "left"),
    [
        ("init: world_size=3, backend=nccl\n", "All 3 ranks wait in the same one", 0),
        ("{'world_size': 3}\n", "All 3 ranks wait in the same one", 0),
        # Who knows whether there were more?
        ("", "Ranks 0 to 2 wait in the same one", 1),
    ],
)
def test_all_ranks_in_the_same_collective_hang_in_it(said, before, who, left):
    trace = said(before + report(1) + report(0) + report(2)).traces[0]
    assert who in trace.finding.message
    assert "the collective itself does not end" in trace.meaning
    assert sum("died" in suspect.text for suspect in trace.suspects) == left


@pytest.mark.parametrize(
    ("lines", "absent"),
    [
        ("init: world_size=4\n" + report(0) + report(1) + report(3), "Rank 2 reports no timeout"),
        ("init: world_size=4\n" + report(0) + report(1) + report(2), "Rank 3 reports no timeout"),
        (report(1) + report(2), "Rank 0 reports no timeout"),
        ("World size: 6\n" + report(0) + report(3) + report(4) + report(5), "Ranks 1 and 2 report"),
    ],
)
def test_a_rank_that_does_not_wait_is_the_one_to_look_at(said, lines, absent):
    trace = said(lines).traces[0]
    assert absent in trace.finding.message
    assert "wait in the same one" not in trace.finding.message
    assert any("died" in suspect.text for suspect in trace.suspects)


def test_one_of_many_ranks_says_nothing_of_the_others(said):
    message = said("world_size=64\n" + report(5)).traces[0].finding.message
    assert "no timeout" not in message


REFUSED = (
    "[rank1]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, invalid usage "
    "(run with NCCL_DEBUG=WARN for details), NCCL version 2.21.5\n[rank1]: ncclInvalidUsage: This "
    "usually reflects invalid usage of NCCL library.\n"
)


@pytest.mark.parametrize(
    ("before", "is_crowded"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1\nlocal_rank: 0\nlocal_rank: 3\n", True),
        ("$ CUDA_VISIBLE_DEVICES=2 torchrun --nproc_per_node=2 train.py\n", True),
        ("device_count(): 1\nargs: local_rank=1\n", True),
        ("CUDA_VISIBLE_DEVICES=0,1\nlocal_rank=1\n", False),
        ("$ torchrun --nproc-per-node 2 train.py\n", False),
        # Each rank was given its own.
        ("CUDA_VISIBLE_DEVICES=0 local_rank=0\nCUDA_VISIBLE_DEVICES=1,2 local_rank=1\n", False),
        ("", False),
    ],
)
def test_ranks_that_nccl_refuses_are_counted(said, before, is_crowded):
    trace = said(before + REFUSED).traces[0]
    assert ("ranks share one" in trace.finding.message) is is_crowded
    assert (trace.certainty == "likely") is is_crowded
    if not is_crowded:
        assert "Two ranks were given one GPU" in trace.suspects[0].text


def test_the_two_ranks_of_one_gpu(said):
    line = (
        "node1:71:88 [1] init.cc:943 NCCL WARN Duplicate GPU detected : rank 3 and rank 1 both on "
        "CUDA device 4a000\n"
    )
    first = said(line + REFUSED).traces[0]
    assert "rank 3 and rank 1" in first.finding.message
    assert first.certainty == "established"
