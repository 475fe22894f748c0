"""What programs print last that give up without an exception: the programs themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from envdoctor.intake.printed_failures import printed_failure


def printed(program, *arguments):
    """Return the lines that a Python program writes, which has to fail."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    return done.stdout.split("\n")


def test_a_parser_that_refuses():
    program = (
        "import argparse, sys\nsys.argv[0] = 'train.py'\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--lr', type=float)\noptions = parser.parse_args()\n"
        "parser.error('the learning rate has to be above 0')\n"
    )
    failure = printed_failure(printed(program, "--lr", "-1"))
    assert (failure.message, failure.ends) == (
        "train.py: error: the learning rate has to be above 0",
        True,
    )


@pytest.mark.parametrize(
    "form",
    [
        "%(levelname)s:%(name)s:%(message)s",
        "%(asctime)s - %(name)s - %(levelname)s - %(message)s",
        "[%(asctime)s] [%(levelname)s] %(message)s",
        "%(levelname)s %(asctime)s [%(filename)s:%(lineno)d] %(message)s",
        "%(asctime)s|%(levelname)s|%(message)s",
    ],
)
def test_a_log_that_ends_with_an_error(form):
    program = (
        f"import logging, sys\nlogging.basicConfig(level=logging.INFO, format={form!r})\n"
        "logging.info('reading the data')\n"
        "logging.error('the folder /data/x holds no shard')\nsys.exit(1)\n"
    )
    failure = printed_failure(printed(program))
    assert failure.message == "the folder /data/x holds no shard"
    assert not failure.ends


@pytest.mark.parametrize(
    "line",
    [
        "docker: Error response from daemon: No such image: none:latest.",
        "Error response from daemon: conflict: unable to delete abc",
        "Error: crun: executable file `python3` not found in $PATH: No such file or directory",
        "FATAL:   could not open image /images/none.sif: no such file or directory",
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        "fatal: not a git repository (or any of the parent directories): .git",
        "exec /entrypoint.sh: exec format error",
    ],
)
def test_what_ends_its_program(line):
    assert printed_failure(["pulling", line, "See 'docker run --help'.", ""]).message == line


@pytest.mark.parametrize(
    "lines",
    [
        ["INFO all is well", "done"],
        ["ERROR could not reach the tracker, going on", *["step"] * 5],
        ["2025-01-02 03:04:05 INFO errors: 0"],
        ["evaluated: 0 errors", "ERROR rate: 0.1"],
        ["ERROR SUMMARY: 0 errors from 0 contexts"],
        ["gcc: error: flag is unknown", *["step"] * 20],
        ["train.py: error: said by nobody's parser"],
        [],
    ],
)
def test_what_says_nothing_of_an_end(lines):
    failure = printed_failure(lines)
    assert failure is None or not failure.ends
    assert failure is None or "ERROR rate" in lines[-1]
