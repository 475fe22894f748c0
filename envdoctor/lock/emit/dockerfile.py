"""``Dockerfile``: the lock as layers of an image, below a base image of your choice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ...model.resolution import Resolution
from ...model.versions import parse_version
from .build_steps import build_lines, compiled
from .words import header

if TYPE_CHECKING:
    from ...matrix.loader import Matrix

__all__ = ["render"]

#: The systems that NVIDIA's images of a toolkit are made on, with the glibc of each and the first
#: CUDA that has one. nvcc refuses a gcc newer than it knows; that of Ubuntu 22.04 (11) is known to
#: every CUDA from 11.5 on, and knows C++20
#: (https://docs.nvidia.com/cuda/cuda-installation-guide-linux/, host compiler support policy).
_SYSTEMS = (
    ("ubuntu22.04", "2.35", "11.7"),
    ("ubuntu24.04", "2.39", "12.6"),
    ("ubuntu20.04", "2.31", "11.0"),
)
_PYTHON = """\
COPY --from=ghcr.io/astral-sh/uv:latest /uv /usr/local/bin/uv
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates g++ git \\
    && rm -rf /var/lib/apt/lists/*
RUN uv venv --seed --python {minor} /opt/venv
ENV VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:$PATH"""
_GIT = (
    "RUN command -v git >/dev/null || { apt-get update && apt-get install -y "
    "--no-install-recommends git && rm -rf /var/lib/apt/lists/*; }"
)


def render(resolution: Resolution, version: str, matrix: Matrix) -> str:
    """Return the text of the fragment.

    The base image brings Python; where something is compiled, it is that of a CUDA toolkit, and
    Python comes from uv.
    """
    requires = resolution.requires
    minor = ".".join(requires.python.split(".")[:2])
    lines = [
        *header(resolution, version, "Dockerfile"),
        *(f"# {line}" for line in build_lines(resolution)),
    ]
    if compiled(resolution):
        lines += [
            "# The base image has nvcc of torch's CUDA; its tag was not looked up.",
            "# The driver is the host's.",
            f"ARG BASE={_toolkit_image(resolution, matrix)}",
            "FROM ${BASE}",
            _PYTHON.format(minor=minor),
        ]
    else:
        glibc = f" and glibc {requires.glibc} or newer" if requires.glibc else ""
        lines += [
            f"# The base image has Python {minor}{glibc}; the driver is the host's.",
            f"ARG BASE=python:{minor}-slim",
            "FROM ${BASE}",
        ]
        if resolution.sources:
            lines += ["# what comes from a repository needs git", _GIT]
    lines += [
        "COPY . /opt/envdoctor-lock/",
        "RUN sh /opt/envdoctor-lock/install.sh python3",
        *(f"ENV {name}={json.dumps(value)}" for name, value in sorted(resolution.settings.items())),
        (
            "# To be told at start what this host lacks (scripts/build_pyz of envdoctor makes both "
            "files):"
        ),
        "# COPY envdoctor.pyz /usr/local/bin/envdoctor",
        "# COPY envdoctor-entrypoint /usr/local/bin/envdoctor-entrypoint",
        '# ENTRYPOINT ["envdoctor-entrypoint", "--lock", "/opt/envdoctor-lock", "--"]',
    ]
    return "\n".join(lines) + "\n"


def _toolkit_image(resolution: Resolution, matrix: Matrix) -> str:
    """Return the development image of torch's CUDA: ``nvidia/cuda:12.8.1-devel-ubuntu22.04``."""
    requires = resolution.requires
    cuda = parse_version(requires.cuda or "12")
    releases = [
        name
        for name in matrix.toolkits
        if parse_version(name).release[: len(cuda.release)] == cuda.release
    ]
    # The first that mended something: the one that has an image as a rule.
    mended = [name for name in releases if not name.endswith(".0")]
    glibc = parse_version(requires.glibc or "2.17")
    fitting = [
        system
        for system, newest, first in _SYSTEMS
        if parse_version(newest) >= glibc and cuda >= parse_version(first)
    ]
    release = [*mended, *releases, f"{cuda}.0"][0]
    return f"nvidia/cuda:{release}-devel-{[*fitting, _SYSTEMS[0][0]][0]}"
