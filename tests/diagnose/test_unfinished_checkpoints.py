"""Checkpoints that lack a file of a training's state."""

from __future__ import annotations

import pytest


def missing(path, code="fit(rows)"):
    return (
        "Traceback (most recent call last):\n"
        f'  File "/srv/go.py", line 9, in <module>\n    {code}\n'
        f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'\n"
    )


@pytest.mark.parametrize(
    ("path", "code", "folder"),
    [
        ("out/checkpoint-40/trainer_state.json", "fit(rows)", "out/checkpoint-40"),
        ("/data/step_900/optimizer.pt", "fit(rows)", "/data/step_900"),
        ("w/global_step12/mp_rank_00_model_states.pt", "fit(rows)", "w/global_step12"),
        ("w/iter_0000100/table.bin", "load_checkpoint(path)", "w/iter_0000100"),
        ("w/epoch3/table.bin", "run.resume(path)", "w/epoch3"),
    ],
)
def test_a_checkpoint_that_is_not_whole(said, path, code, folder):
    trace = said(missing(path, code)).traces[0]
    assert f"The checkpoint {folder} is not whole" in trace.finding.message
    assert "go.py, line 9" in trace.finding.message
    (remedy,) = trace.finding.remedies
    assert (remedy.label, "whole one" in remedy.text) == ("hint", True)


@pytest.mark.parametrize(
    "path", ["out/rows-40/rows.json", "out/checkpoint-40/notes.json", "trainer_state.json"]
)
def test_other_files_that_are_missing(said, path):
    for trace in said(missing(path)).traces:
        assert "not whole" not in trace.finding.message
