"""Assertions of kernels, told by the files of the kernels."""

from __future__ import annotations

import pytest

LINE = (
    "/pytorch/aten/src/ATen/native/cuda/{}.cu:88: run: block: [1,0,0], thread: [2,0,0] "
    "Assertion `i < n` failed.\n"
)
RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/srv/go.py", line 9, in <module>\n    fit()\n'
    "RuntimeError: CUDA error: device-side assert triggered\n"
)


@pytest.mark.parametrize(
    ("kernel", "word"),
    [
        ("Indexing", "rows"),
        ("IndexKernel", "x[index]"),
        ("IndexKernelUtils", "x[index]"),
        ("ScatterGatherKernel", "gather"),
        ("NLLLoss2d", "label"),
        ("Loss", "label"),
        ("MultinomialKernel", "NaN"),
    ],
)
def test_what_a_kernel_looks_up(said, kernel, word):
    trace = said(LINE.format(kernel) * 3 + RAISED).traces[0]
    (remedy,) = trace.finding.remedies
    assert remedy.label == "hint"
    assert word in f"{trace.meaning} {remedy.text}"
    assert ("embedding" in remedy.text) == (kernel == "Indexing")


@pytest.mark.parametrize("text", [RAISED, LINE.format("fused_rope") + RAISED])
def test_a_kernel_that_is_not_known(said, text):
    trace = said(text).traces[0]
    assert trace.meaning.startswith("Mostly an index")
    assert "vocabulary" not in trace.finding.remedies[0].text
