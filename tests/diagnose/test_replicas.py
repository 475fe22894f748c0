"""Failures that torch.nn.DataParallel brings about."""

from __future__ import annotations

import pytest

TORCH = "/opt/env/lib/python3.10/site-packages/torch/nn/parallel"


def in_replica(kind, message, code, replica=0):
    """Return what torch prints of an exception in a copy of the model."""
    last = f"{kind}: {message}" if message else kind
    return (
        "Traceback (most recent call last):\n"
        '  File "/srv/fit/main.py", line 60, in <module>\n    loss = net(batch)\n'
        f'  File "{TORCH}/data_parallel.py", line 185, in forward\n'
        "    outputs = self.parallel_apply(replicas, inputs, module_kwargs)\n"
        f'  File "{TORCH}/parallel_apply.py", line 110, in parallel_apply\n'
        "    output.reraise()\n"
        f"{kind}: Caught {kind} in replica {replica} on device {replica}.\n"
        "Original Traceback (most recent call last):\n"
        f'  File "{TORCH}/parallel_apply.py", line 85, in _worker\n'
        "    output = module(*input, **kwargs)\n"
        f'  File "/srv/fit/net.py", line 17, in forward\n    {code}\n{last}\n'
    )


def plain(kind, message, code):
    last = f"{kind}: {message}" if message else kind
    return (
        "Traceback (most recent call last):\n"
        f'  File "/srv/fit/net.py", line 17, in forward\n    {code}\n{last}\n'
    )


TWO = "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and "
TWO += "cuda:0!"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (in_replica("StopIteration", "", "kind = next(self.parameters()).dtype"), "no parameters"),
        (in_replica("StopIteration", "", "return next(self.net.parameters()).device"), "no param"),
        (in_replica("RuntimeError", TWO, "y = x @ self.table", 1), "its own weights moved"),
    ],
)
def test_what_a_copy_of_the_model_meets(said, text, words):
    trace = said(text).traces[0]
    assert "DataParallel is at work" in trace.meaning
    assert words in trace.meaning
    (remedy,) = trace.finding.remedies
    assert "CUDA_VISIBLE_DEVICES=0" in remedy.text
    assert "device_map" not in remedy.text


@pytest.mark.parametrize(
    "text",
    [
        plain("StopIteration", "", "kind = next(self.parameters()).dtype"),
        plain("RuntimeError", TWO, "y = x @ self.table"),
        in_replica("StopIteration", "", "batch = next(self.batches)"),
        in_replica("ValueError", "the table has no row 3", "y = self.row(3)"),
    ],
)
def test_what_no_copy_is_to_blame_for(said, text):
    trace = said(text).traces[0]
    assert "DataParallel" not in trace.meaning


@pytest.mark.parametrize("wrapper", ["DataParallel", "DistributedDataParallel"])
def test_the_wrapper_has_no_attributes_of_the_model(said, wrapper):
    message = f"'{wrapper}' object has no attribute 'tie_rows'"
    trace = said(plain("AttributeError", message, "net.tie_rows()")).traces[0]
    assert "the model itself is its attribute module" in trace.meaning
    text = trace.finding.remedies[0].text
    assert "model.module.tie_rows" in text
    assert ("CUDA_VISIBLE_DEVICES" in text) is (wrapper == "DataParallel")
    other = said(plain("AttributeError", "'Parallel' object has no attribute 'a'", "p.a()"))
    assert "attribute module" not in other.traces[0].meaning
