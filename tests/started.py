"""envdoctor as a process that is started, for tests outside of ``tests/cli``."""

from __future__ import annotations

import os
import subprocess
import sys


def run(*arguments, columns=100, timeout=120, environment=None, **options):
    """Run a command line; returns the exit code, standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "envdoctor", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "COLUMNS": str(columns), **(environment or {})},
        check=False,
        **options,
    )
    return done.returncode, done.stdout, done.stderr
