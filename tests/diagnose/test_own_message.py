"""Values in messages that the program's own line writes: programs are really run."""

from __future__ import annotations

import pytest

CASES = {
    'raise ValueError(f"Unknown task {args.task}")': "args.task is sst",
    'raise ValueError("No checkpoints in " + args.folder)': "args.folder is out/run1",
    'raise ValueError(f"{args.task!r} is none of {sorted(known)}")': "args.task is 'sst'",
    'raise ValueError("rows: " + str(len(rows)) + ", labels: 7")': "len(rows) is 2",
    'assert args.folder is None, f"no folder {args.folder} is taken"': "args.folder is out/run1",
}
PROGRAM = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--task")
parser.add_argument("--folder")
args = parser.parse_args()
known, rows = ["mnli"], [1, 2]
text = f"The task {args.task}"
LINE
"""


@pytest.fixture
def trace_of(said, tmp_path, printed):
    def run(line):
        path = tmp_path / "train.py"
        path.write_text(PROGRAM.replace("LINE", line))
        words = ("--task", "sst", "--folder", "out/run1")
        command = f"python train.py {' '.join(words)}\n"
        return said(command + printed(path, *words)).traces[0]

    return run


@pytest.mark.parametrize("line", sorted(CASES))
def test_the_values_that_a_message_is_made_of(trace_of, line):
    trace = trace_of(line)
    assert CASES[line] in trace.meaning
    assert trace.finding.remedies


def test_the_option_that_gave_one_is_named_with_its_line(trace_of):
    trace = trace_of('raise ValueError(f"Unknown task {args.task}")')
    assert "task is sst" in trace.finding.message
    assert any("--task sst" in entry.detail for entry in trace.finding.evidence)


@pytest.mark.parametrize(
    "line", ["raise ValueError(text)", 'raise ValueError("no task")', "raise KeyError(args.task)"]
)
def test_nothing_where_the_line_does_not_write_it_out(trace_of, line):
    assert "By that line" not in trace_of(line).meaning
