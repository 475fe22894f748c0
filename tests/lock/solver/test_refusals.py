"""Refusals are true as they are printed, and their ways out lead to a lock: drawn ones, and those
that once did not.
"""

from __future__ import annotations

from typing import Callable

import pytest

from envdoctor.matrix.loader import Matrix
from envdoctor.model.resolution import Explanation

from .refusals import Ask, answer, judge_refusal, refusals

CASES = {
    "the tags of a wheel ask for a newer glibc than its code": Ask(
        None,
        ("vllm==0.17.1",),
        ("gpu=B200", "nvidia-driver=580.95.05", "glibc=2.28"),
        "3.10",
    ),
    "a profile excludes what is asked for besides": Ask(
        "tinyzero", ("torch==2.14.1",), ("gpu=H100", "nvidia-driver=550.54.15", "glibc=2.28"), "3.9"
    ),
    "nothing but another Python and another driver": Ask(
        "nemo-rl", (), ("gpu=A100", "nvidia-driver=470.82.01", "glibc=2.28"), "3.14"
    ),
    "a profile's own bounds are not the user's": Ask(
        "slime", (), ("gpu=H100", "nvidia-driver=535.129.03", "glibc=2.28"), "3.14"
    ),
    "a profile's pin on an old machine, and roots that go with none of it": Ask(
        "slime",
        ("openrlhf[vllm]==0.9.7", "numpy>=1.23.4", "trl<0.26.0"),
        ("gpu=V100", "nvidia-driver=470.82.01", "glibc=2.35"),
        "3.13",
    ),
    "a release that keeps torch in an extra": Ask(
        None, ("sglang==0.5.5.post1",), ("gpu=V100", "nvidia-driver=580.95.05", "glibc=2.39"), None
    ),
    "a device that the driver does not know": Ask(
        "openrlhf",
        ("xformers==0.0.32.post2",),
        ("gpu=B200", "nvidia-driver=550.54.15", "glibc=2.28"),
        None,
    ),
}


@pytest.mark.parametrize(
    "case",
    [  # the first three; the others are slow tests
        pytest.param(case, marks=[pytest.mark.slow] if number >= 3 else [])
        for number, case in enumerate(CASES)
    ],
)
def test_a_refusal_is_true_and_its_ways_out_work(
    case: str, matrix: Matrix, require_module: Callable[[str], None]
) -> None:
    require_module("pysat")
    resolution = answer(CASES[case], matrix)
    assert isinstance(resolution, Explanation)
    judged = judge_refusal(CASES[case], resolution, matrix)
    assert not judged.faults, "\n".join(judged.faults)


def test_a_label_that_the_index_does_not_have(matrix: Matrix) -> None:
    """The torch 2.8.0 of the index is the build that is asked for by its label."""
    machine = ("gpu=H100", "nvidia-driver=580.95.05", "glibc=2.35")
    answered = answer(Ask(None, ("torch==2.8.0+cu128",), machine, "3.12"), matrix)
    assert isinstance(answered, Explanation)
    first = "ask for torch==2.8.0, which is for CUDA 12.8 too: torch 2.8.0"
    assert answered.ways_out[0] == first


def test_a_false_sentence_is_a_fault(matrix: Matrix, require_module: Callable[[str], None]) -> None:
    """The judge can fail: a wrong end of a range, a cause that nobody gave, a way that leads
    nowhere.
    """
    require_module("pysat")
    machine = ("gpu=H100", "nvidia-driver=580.95.05", "glibc=2.35")
    ask = Ask(None, ("accelerate==0.19.0", "trl>=1.16.0"), machine, "3.12")
    resolution = answer(ask, matrix)
    assert isinstance(resolution, Explanation)
    assert not judge_refusal(ask, resolution, matrix).faults
    edge = next(cause for cause in resolution.causes if cause.kind == "metadata")
    asked = next(cause for cause in resolution.causes if cause.kind == "request")
    lies = [
        (edge, edge._replace(text=edge.text.replace("trl 1.16.0", "trl 0.9.6"))),
        (asked, asked._replace(text="you asked for trl>=1.15")),
    ]
    for true, lie in lies:
        assert lie != true
        causes = tuple(lie if cause is true else cause for cause in resolution.causes)
        assert judge_refusal(ask, resolution._replace(causes=causes), matrix).faults, lie.text
    for way in ("update the driver to 590.1 or newer: trl 1.16.0", "pray: trl 1.16.0"):
        assert judge_refusal(ask, resolution._replace(ways_out=(way,)), matrix).faults, way


@pytest.mark.slow
def test_drawn_refusals(matrix: Matrix, require_module: Callable[[str], None]) -> None:
    require_module("pysat")
    faults = [
        f"{judged.ask.words}: {fault}"
        for judged in refusals(20, 20261123, matrix)
        for fault in judged.faults
    ]
    assert not faults, "\n".join(faults)
