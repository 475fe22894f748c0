"""Runs that counted to their end, and what stands behind it."""

from __future__ import annotations

import pytest

NCCL = (
    "[rank3]:[E814 ProcessGroupNCCL.cpp:542] [Rank 3] Collective WorkNCCL(SeqNum=9, "
    "OpType=ALLREDUCE, Timeout(ms)=600000) raised the following async exception: NCCL error: "
    "unhandled system error, NCCL version 2.21.5\n"
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed\n"
)
CLOSING = "saved out/last.pt\n====\nall rows were seen\nit took 40 min\n"


def steps(count, of):
    return "".join(f"step {number}/{of} took 2 s\n" for number in range(count - 3, count + 1))


def test_what_came_while_ranks_went_away(said):
    assert said(steps(40, 40) + NCCL + CLOSING).traces == ()


@pytest.mark.parametrize(
    "text",
    [
        steps(39, 40) + NCCL + CLOSING,
        steps(4, 4) + NCCL + CLOSING,
        steps(40, 40) + NCCL,
        steps(40, 40) + NCCL + CLOSING + "srun: error: node1: task 0: Exited with exit code 1\n",
        NCCL + CLOSING,
    ],
)
def test_what_a_run_may_have_ended_by(said, text):
    assert said(text).traces


def test_an_exception_behind_the_last_step_counts(said):
    raised = (
        "Traceback (most recent call last):\n"
        '  File "/srv/go.py", line 9, in <module>\n    save(rows)\nValueError: rows are empty\n'
    )
    assert "rows are empty" in said(steps(40, 40) + raised + CLOSING).traces[0].finding.message
