"""Throwaway environments in which scripts install packages by uv and run what they contain."""

from __future__ import annotations

import os
import subprocess
from typing import Mapping, Sequence, Tuple

__all__ = ["Environment", "Fault", "call"]

LIMIT_S = 900
"""How long one command may take, in seconds: the first download of a large wheel is the slowest."""
_KEPT = 40_000
"""Characters of what a command that fails printed last: a compiler says the cause early."""


class Fault(Exception):
    """A trial could not be run: what was tried and what was printed."""


def call(
    command: Sequence[str],
    variables: Mapping[str, str],
    expected: bool = True,
    limit: float = LIMIT_S,
    text: str = "",
) -> Tuple[int, str]:
    """Run a command without this environment's variables; return its exit code and its output.

    limit: seconds. text: its input. Raises Fault where it takes longer, or where it fails and
    success is expected.
    """
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    try:
        done = subprocess.run(
            command,
            env={**environment, **variables},
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        raise Fault(f"{' '.join(command)}: not done after {limit:.0f} s") from None
    if expected and done.returncode:
        raise Fault(f"{' '.join(command)}:\n{done.stdout.strip()[-_KEPT:]}")
    return done.returncode, done.stdout


class Environment:
    """A virtual environment in a folder, made by uv with the Python named."""

    def __init__(self, python: str, folder: str) -> None:
        self.folder = folder
        self.python = os.path.join(folder, "bin", "python")
        call(["uv", "venv", "--quiet", "--python", python, folder], {})

    def install(self, *arguments: str) -> None:
        """Install by uv. Raises Fault where uv refuses."""
        call(["uv", "pip", "install", "--quiet", "--python", self.python, *arguments], {})

    def run(
        self, code: str, variables: Mapping[str, str], limit: float = LIMIT_S
    ) -> Tuple[int, str]:
        """Run Python code; return its exit code and its output."""
        return call([self.python, "-c", code], variables, expected=False, limit=limit)
