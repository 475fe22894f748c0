"""A fork answers as a process that was started: the tests of commands rest on that."""

from __future__ import annotations

import subprocess

import pytest

from envdoctor.cli.main import COMMANDS

from .conftest import COMMAND, environment


@pytest.mark.parametrize(
    "arguments",
    [
        *([command, "--help"] for command in COMMANDS),
        ["--version"],
        [],
        ["check", "--facts", "{facts}"],
        ["check", "--facts", "-", "--format", "json"],
        ["check", "--no-such-option"],
        ["diagnose", "{facts}"],
        ["explain", "ED304"],
        ["plan", "--facts", "{facts}", "--", "python", "x.py"],
        ["lock", "--no-close", "torch==2.4.0", "--python-version", "3.11"],
        ["fix", "--facts", "{facts}"],
        ["matrix", "show", "gpu", "h100"],
    ],
    ids=" ".join,
)
def test_a_fork_answers_as_a_process_that_was_started(fork_server, broken, tmp_path, arguments):
    words = [word.format(facts=broken) for word in arguments]
    data = broken.read_bytes()
    started = subprocess.run(
        [*COMMAND, *words],
        env=environment(),
        cwd=tmp_path,
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
    )
    forked = fork_server.run(words, environment(), tmp_path, data, 60)
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


def test_a_fork_has_its_own_variables(fork_server, broken, tmp_path):
    words = ["check", "--facts", str(broken), "--color", "auto"]
    plain = fork_server.run(words, environment(), tmp_path, None, 60)
    bright = fork_server.run(words, environment(FORCE_COLOR="1"), tmp_path, None, 60)
    assert b"\x1b[" not in plain.stdout
    assert b"\x1b[" in bright.stdout
    assert fork_server.run(words, environment(), tmp_path, None, 60).stdout == plain.stdout
