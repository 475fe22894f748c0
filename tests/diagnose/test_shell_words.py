"""Words that a shell took for commands."""

from __future__ import annotations

import pytest


def ended(message, code="go(options)"):
    return (
        "Traceback (most recent call last):\n"
        f'  File "/srv/fit/begin.py", line 31, in <module>\n    {code}\n{message}\n'
    )


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("--shards", "an option"),
        ("-n", "an option"),
        ("--shards=4", "an option"),
        ("begin.py", "an argument"),
        ("./rows.yaml", "an argument"),
        ("batch=8", "an argument"),
    ],
)
def test_the_rest_of_a_command(said, word, what):
    trace = said(f"./begin.sh: line 9: {word}: command not found\n").traces[0]
    assert f"took {word} for a command" in trace.finding.message
    assert f"is {what}" in trace.meaning
    (remedy,) = trace.finding.remedies
    assert remedy.label == "hint"
    assert "backslash" in remedy.text
    assert trace.collect == ()


@pytest.mark.parametrize("word", ["nvcc", "module", "/opt/tools/tune", "fit2"])
def test_a_program_that_is_not_there(said, word):
    trace = said(f"./begin.sh: line 9: {word}: command not found\n").traces[0]
    assert trace.finding.message == f"No command {word} was found."
    assert trace.collect


@pytest.mark.parametrize(
    "end",
    [
        ended("AssertionError", "assert options.run is not None"),
        ended("ValueError: --run has to be given"),
        "begin.py: error: the following arguments are required: --run\n",
    ],
)
def test_the_value_that_the_program_lacks(said, end):
    line = "/var/spool/job7/script: line 9: k3-x9: command not found\n"
    shell, failed = said(end + line).traces[:2]
    assert "took k3-x9 for a command" in shell.finding.message
    assert "is most likely the value that " in shell.meaning
    assert failed.finding.caused_by == shell.finding.key


@pytest.mark.parametrize(
    ("end", "word"),
    [
        (ended("AssertionError", "assert rows == 4"), "k3-x9"),
        (ended("AssertionError", "assert options.run is not None"), "tensorboard"),
        (ended("AssertionError", "assert options.run is not None") + "next\n" * 9, "k3-x9"),
    ],
)
def test_a_program_after_one_that_failed(said, end, word):
    traces = said(f"{end}./begin.sh: line 9: {word}: command not found\n").traces
    assert any(trace.finding.message == f"No command {word} was found." for trace in traces)


def test_a_list_of_folders(said):
    trace = said("./begin.sh: line 9: :/opt/cuda/bin/nvcc: command not found\n").traces[0]
    assert "extended as a list" in trace.meaning
