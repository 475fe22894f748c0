"""Names of variables that stand where their values should."""

from __future__ import annotations

import pytest


def failed(kind, message, file="/srv/go/load.py"):
    return (
        "Traceback (most recent call last):\n"
        f'  File "{file}", line 9, in <module>\n    take(path)\n{kind}: {message}\n'
    )


MISSING = "[Errno 2] No such file or directory: "


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (failed("FileNotFoundError", MISSING + "'${SHARDS}/a.bin'"), "${SHARDS}"),
        (failed("FileNotFoundError", MISSING + "'/data/$RUN_ID/a.bin'"), "$RUN_ID"),
        (failed("FileNotFoundError", MISSING + "'%WEIGHTS%/a.bin'"), "%WEIGHTS%"),
        (failed("OSError", "$BASE_MODEL is not a local folder, nor one of the hub"), "$BASE_MODEL"),
        (failed("ValueError", "Invalid repository name: '${BASE:-llama}'"), "${BASE:-llama}"),
        ("fit.py: error: argument --rows: invalid int value: '$ROWS'\n", "$ROWS"),
    ],
)
def test_a_variable_that_nothing_replaced(said, text, name):
    trace = said(text).traces[0]
    assert trace.meaning.startswith(f"{name} stands there as it was written")
    (remedy,) = trace.finding.remedies
    assert f"replace {name}" in remedy.text


@pytest.mark.parametrize(
    "text",
    [
        failed("FileNotFoundError", MISSING + "'/data/run/a.bin'"),
        failed("ValueError", "Invalid price '$5' in row 3"),
        failed("KeyError", "'$defs'"),
        failed("ValueError", "invalid reference '$ref/items'"),
        failed("RuntimeError", "the command 'echo $HOME && run' was not found there"),
        failed("ValueError", "Invalid configuration: '${trainer.epochs}' is no number"),
        "fit.py: error: argument --rows: invalid int value: 'many'\n",
    ],
)
def test_what_is_no_variable_of_a_shell(said, text):
    assert "as it was written" not in said(text).traces[0].meaning


def test_the_sign_of_the_home_directory(said):
    trace = said(failed("FileNotFoundError", MISSING + "'~/data/a.bin'")).traces[0]
    assert "Only a shell replaces ~" in trace.meaning
    assert "expanduser" in trace.finding.remedies[0].text
    other = said(failed("FileNotFoundError", MISSING + "'/home/a/data~/a.bin'")).traces[0]
    assert "Only a shell" not in other.meaning
