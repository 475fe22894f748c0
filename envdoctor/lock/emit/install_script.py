"""``install.sh``: the steps that one requirements file cannot express, in order.

First what has wheels, then what is built on torch, what has no hash, overrides, and repositories at
a tag or commit. The commands are those of the header of ``requirements.txt``; the script adds the
interpreter, checks it, and says what else has to be set.
"""

from __future__ import annotations

from shlex import quote
from typing import List

from ...model.resolution import Resolution
from .requirements_txt import install_steps
from .words import header

__all__ = ["render"]

_START = """\
set -eu
python=$(command -v "${1:-python3}") || {
    echo "install.sh: no interpreter '${1:-python3}'; usage: sh install.sh [PYTHON]" >&2
    exit 2
}
case $python in /*) ;; *) python=$PWD/$python ;; esac
cd "$(dirname "$0")"
"""

_FOLDER = """\
[ "${{UV_FIND_LINKS:-}}${{PIP_FIND_LINKS:-}}" ] || \
    echo "install.sh: {} came from a folder of the machine that closed this lock; if they are not \
found, name a folder with these files in UV_FIND_LINKS or PIP_FIND_LINKS" >&2
"""

_TOOLS = """\
if command -v uv >/dev/null 2>&1; then
    install() { uv pip install --python "$python" "$@"; }
%s
else
    install() { "$python" -m pip install "$@"; }
%s
fi
"""


def render(resolution: Resolution, version: str) -> str:
    """Return the text of ``install.sh``, for any POSIX shell."""
    minor = ".".join(resolution.requires.python.split(".")[:2])
    lines = [
        "#!/bin/sh",
        *header(resolution, version, "install.sh"),
        "# usage: sh install.sh [PYTHON]; PYTHON is that of an environment of its own",
    ]
    lines.append(
        _START
        + (
            'found=$("$python" -c '
            f"{quote('import sys; print(chr(46).join(map(str, sys.version_info[:2])))')})"
        )
    )
    lines.append(
        f'[ "$found" = {minor} ] || {{ echo "install.sh: expected Python {minor}, found $found '
        '($python)" >&2; exit 2; }'
    )
    local = resolution.closure.local
    if local:
        lines.append(_FOLDER.format(", ".join(local)))
    lines.append(
        _TOOLS % (_indented(_steps(resolution, "uv")), _indented(_steps(resolution, "pip")))
    )
    lines += [
        f"echo {quote(f'set before it runs: export {name}={quote(value)}')}"
        for name, value in sorted(resolution.settings.items())
    ]
    return "\n".join(lines) + "\n"


def _steps(resolution: Resolution, tool: str) -> List[str]:
    steps = install_steps(resolution, tool, "install")
    return steps + [f"install --no-deps {quote(step.requirement)}" for step in resolution.sources]


def _indented(steps: List[str]) -> str:
    return "\n".join(f"    {step}" for step in steps)
