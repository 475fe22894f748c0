"""Programs that fail for real, and what is said of them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def failed(program, tmp_path, expected=1):
    """Return what a program writes that fails."""
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
    )
    assert done.returncode == expected, done.stdout
    return done.stdout


def first(diagnosis):
    """Return certainty and sentence of what is said first."""
    trace = diagnosis.traces[0]
    return trace.certainty, trace.finding.message


def place(message, tmp_path, line):
    """Return where a program says that it raised: its own line, or Python's on behalf of it."""
    own = f"{tmp_path / 'train.py'}, line {line}"
    return f"at {own}" if f"raised at {own}" in message else message.partition(", raised ")[2][:-1]
