"""What holds of a lock and does not forbid it is said, as check says it."""

from __future__ import annotations

from typing import Tuple

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.emit import render, summary_lines
from envdoctor.lock.locking import lock
from envdoctor.lock.solver import explanation
from envdoctor.lock.solver.objective import applied
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.line import text_of
from envdoctor.model.resolution import Explanation, Resolution
from envdoctor.rules import judge

CASES = [
    (
        "torch==2.11.0",
        "3.11",
        ("gpu=B200:8", "nvidia-driver=615.71.09"),
        "cublaslt-tmem-cu13",
        "wrong-results",
    ),
    (
        "torch==2.8.0",
        "3.11",
        ("gpu=B200:8", "nvidia-driver=580.95.05"),
        "cublaslt-tmem-cu12",
        "wrong-results",
    ),
    (
        "vllm==0.6.3",
        "3.10",
        ("gpu=H20:8", "nvidia-driver=535.129.03"),
        "vllm-pyairports-placeholder",
        "degrades",
    ),
    (
        "verl[vllm]",
        "3.12",
        ("gpu=H100:8", "nvidia-driver=550.54.15"),
        "ptx-12.9-on-9.0-some:vllm",
        "degrades",
    ),
]


@pytest.mark.parametrize(
    ("request_text", "python", "target", "row", "effect"), CASES, ids=[case[0] for case in CASES]
)
def test_every_row_that_check_warns_of_has_a_line(
    request_text: str, python: str, target: Tuple[str, ...], row: str, effect: str, matrix: Matrix
) -> None:
    facts = Facts(parse_assumptions(list(target)))
    resolution = lock([request_text], [facts], matrix, python=python, as_of="latest")
    assert isinstance(resolution, Resolution)
    own = {finding.row for finding in judge(facts, matrix, today=matrix.date)}
    warned = {
        finding.row
        for finding in judge(applied(resolution, facts), matrix, today=matrix.date)
        if finding.severity == "warning"
        and finding.verdict == "violated"
        and matrix.row(finding.row) is not None
        and finding.row not in own
    }
    told = {reason.row: reason.kind for reason in resolution.warnings}
    assert warned <= set(told)
    assert told[row] == effect
    for text in (
        text_of(summary_lines(resolution)),
        render(resolution, "0", matrix)["requirements.txt"],
    ):
        assert sorted(told) == sorted(
            line.rpartition("[")[2].rstrip("]")
            for line in text.splitlines()
            if line.lstrip("# ").startswith("warning: ")
        )


def test_no_lock_takes_an_engine_whose_server_cannot_be_imported(
    matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own requirements admit the triton and the vllm beside which it fails, and to leave out
    the extra that brings them leaves an engine without a server.
    """
    monkeypatch.setattr(explanation, "_LINES", 99)  # the causes of old releases come last
    facts = Facts(parse_assumptions(["gpu=H100:8", "nvidia-driver=580.95.05"]))
    refused = lock(["sglang", "xformers"], [facts], matrix, python="3.13")
    assert isinstance(refused, Explanation)
    (way,) = refused.ways_out
    assert way.startswith("use Python 3.12: sglang 0.5.")
    extra = "sglang 0.1.3 to 0.5.2 ask for torch only with the extra srt"
    assert extra in [cause.text for cause in refused.causes]
