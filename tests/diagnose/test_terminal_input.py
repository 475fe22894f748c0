"""Programs that ask for input where nobody types: really run, with their input closed or empty."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = "def ask():\n    return input('rows? ')\n\n\nprint(ask())\n"


def raised(message, code, kind="OSError"):
    return (
        "Traceback (most recent call last):\n"
        f'  File "/srv/talk.py", line 7, in <module>\n    {code}\n{kind}: {message}\n'
    )


def test_an_empty_input(said, tmp_path):
    path = tmp_path / "talk.py"
    path.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    trace = said(ran.stdout).traces[0]
    assert "waits there for somebody to type" in trace.meaning
    assert "terminal that stays" in trace.finding.remedies[0].text


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("[Errno 9] Bad file descriptor", "word = input('? ')"),
        ("[Errno 5] Input/output error", "key = getpass('key: ')"),
        ("[Errno 9] Bad file descriptor", "line = sys.stdin.readline()"),
    ],
)
def test_a_closed_input(said, message, code):
    assert "somebody to type" in said(raised(message, code)).traces[0].meaning


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("[Errno 9] Bad file descriptor", "rows.write(b'a')"),
        ("[Errno 2] No such file or directory: 'a/b'", "word = input('? ')"),
        ("[Errno 9] Bad file descriptor", "out = take_input(rows)"),
    ],
)
def test_what_asks_nobody(said, message, code):
    assert "somebody to type" not in said(raised(message, code)).traces[0].meaning
