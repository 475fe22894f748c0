"""A loss that is NaN to the end of a log."""

from __future__ import annotations

import pytest


def steps(values, form="{{'loss': {}, 'epoch': 0.1}}"):
    return "".join(f"{form.format(value)}\n" for value in values)


FORMS = (
    "{{'loss': {}, 'learning_rate': 1e-05}}",
    "step 4 | loss: {} | lr 0.1",
    "fit: 4%| | 4/90 [00:04<01:00, 1.0it/s, loss={}]",
)


@pytest.mark.parametrize("form", FORMS)
def test_a_loss_that_is_never_a_number_again(said, form):
    trace = said(steps(["2.1", "1.9", *["nan"] * 40], form)).traces[0]
    assert trace.certainty == "likely"
    assert "The loss is NaN from line 3 on" in trace.finding.message
    first = said(steps(["nan"] * 40, form)).traces[0]
    assert "from the first one that the log prints" in first.finding.message


def test_half_precision_is_named_where_the_log_has_it(said):
    text = "rows torch.float16\nbf16: true\n" + steps(["nan"] * 20)
    assert "float16, and bf16 in its settings." in said(text).traces[0].finding.message


@pytest.mark.parametrize(
    "values",
    [
        ["2.1", *["nan"] * 20, "1.8"],
        ["2.1", *["nan"] * 20, *["1.8"] * 40],
        ["2.1", "nan", "nan"],
        ["2.1"] * 40,
    ],
)
def test_a_loss_that_is_a_number_again(said, values):
    assert all("in vain" not in trace.finding.message for trace in said(steps(values)).traces)
