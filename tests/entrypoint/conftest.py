"""envdoctor entrypoint as a real process that becomes another one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "envdoctor", "entrypoint"]


def environment(**changes):
    """A small environment; None removes."""
    base = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": "/dev/null/home",
        "LC_ALL": "C.UTF-8",
        **changes,
    }
    return {name: value for name, value in base.items() if value is not None}


@pytest.fixture
def start():
    """Return a function that runs the entrypoint with arguments and returns the finished process;
    outputs are bytes.
    """

    def run(*arguments, **options):
        options.setdefault("env", environment())
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("timeout", 60)
        return subprocess.run([*COMMAND, *arguments], check=False, **options)

    return run
