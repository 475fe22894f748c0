"""Which layer refused what it was given: torch itself raises, in programs that are really run."""

from __future__ import annotations

import subprocess
import textwrap

import pytest

MODEL = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.k_proj = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)
        self.conv = nn.Conv1d(3, 3, 1)
    def forward(self, states):
        {line}
        return out
Block()(torch.ones(2, 6))
"""


@pytest.fixture
def log_of(tmp_path, torch_python):
    def run(program):
        path = tmp_path / "model.py"
        path.write_text(textwrap.dedent(program))
        command = [torch_python, str(path)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        assert done.returncode
        return done.stderr

    return run


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("out = self.k_proj(states)", "The layer is self.k_proj, and what it is given is states."),
        ("out = self.norm(states)", "The layer is self.norm, and what it is given is states."),
        ("out = self.norm(states)", "made for 3 values, and what comes in is 6 wide: 2 parts of 3"),
        ("out = self.conv(states[None])", "The layer is self.conv, and what it is given is states"),
    ],
)
def test_the_layer_and_what_it_is_given(said, log_of, line, words):
    assert words in said(log_of(MODEL.format(line=line))).traces[0].meaning


@pytest.mark.parametrize(
    "line",
    [
        "out = self.k_proj(self.norm(states))",  # which of the two is not sure without marks
        "out = states @ torch.ones(3, 3)",
        "out = undefined(states)",
    ],
)
def test_what_is_not_sure_is_not_said(said, log_of, line):
    meaning = said(log_of(MODEL.format(line=line))).traces[0].meaning
    if "self.norm(states)" in line:
        assert "self.norm, and" in meaning or "The layer" not in meaning
    else:
        assert "The layer is" not in meaning


def test_an_argument_that_the_program_gives_a_model_itself(said, log_of):
    """torch's own places between the two hand all on, and fill no dict."""
    program = """
    import torch
    class Model(torch.nn.Module):
        def forward(self, states):
            return states
    model = Model()
    out = model(
        torch.ones(2),
        image=3,
    )
    """
    trace = said(log_of(program)).traces[0]
    assert trace.finding.message.startswith("Model.forward does not take the argument 'image'.")
    assert "The program itself hands 'image' over" in trace.meaning
    assert "model.py, line 7" in trace.finding.remedies[0].text


def test_an_argument_of_a_dict_that_a_model_is_given(said, log_of):
    program = """
    import torch
    class Model(torch.nn.Module):
        def forward(self, states):
            return states
    batch = {"states": torch.ones(2), "image": 3}
    Model()(**batch)
    """
    trace = said(log_of(program)).traces[0]
    assert "a key of what is handed on to it" in trace.finding.message
    assert "Model()(**batch)" in trace.finding.message
