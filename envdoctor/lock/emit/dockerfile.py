"""``Dockerfile``: the lock as layers of an image, below a base image of your choice."""

from __future__ import annotations

import json

from ...model.resolution import Resolution
from .words import header

__all__ = ["render"]


def render(resolution: Resolution, version: str) -> str:
    """Return the text of the fragment.

    The base image brings Python and, where something is built, the compiler.
    """
    requires = resolution.requires
    minor = ".".join(requires.python.split(".")[:2])
    base = f"Python {minor}" + (f" and glibc {requires.glibc} or newer" if requires.glibc else "")
    built = sorted(pin.name for pin in resolution.pins if pin.from_source)
    lines = [
        *header(resolution, version, "Dockerfile"),
        f"# The base image has {base}; the driver is the host's.",
        *(
            [
                (
                    f"# {', '.join(built)} is built from source: it takes gcc and, on torch, "
                    "nvcc of "
                    f"CUDA {requires.cuda}."
                )
            ]
            if built
            else []
        ),
        f"ARG BASE=python:{minor}-slim",
        "FROM ${BASE}",
    ]
    if resolution.sources:
        lines.append("# what comes from a repository needs git")
        lines.append(
            "RUN command -v git >/dev/null || { apt-get update && apt-get install -y "
            "--no-install-recommends git && rm -rf /var/lib/apt/lists/*; }"
        )
    lines += [
        "COPY . /opt/envdoctor-lock/",
        "RUN sh /opt/envdoctor-lock/install.sh python3",
        *(f"ENV {name}={json.dumps(value)}" for name, value in sorted(resolution.settings.items())),
        (
            "# To be told at start what this host lacks (scripts/build_pyz of envdoctor makes the "
            "file):"
        ),
        "# COPY envdoctor.pyz /opt/envdoctor.pyz",
        (
            '# ENTRYPOINT ["python3", "/opt/envdoctor.pyz", "entrypoint", "--lock", '
            '"/opt/envdoctor-lock", "--"]'
        ),
    ]
    return "\n".join(lines) + "\n"
