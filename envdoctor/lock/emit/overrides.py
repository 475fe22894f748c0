"""``overrides.txt``: the pins that contradict metadata on purpose, each with its row."""

from __future__ import annotations

from ...model.resolution import Resolution
from .words import one_line

__all__ = ["render"]


def render(resolution: Resolution, version: str) -> str:
    """Return the text of ``overrides.txt``."""
    lines = [
        (
            "# overrides.txt: pins that contradict metadata on purpose; written by envdoctor "
            f"{version} with the matrix of {resolution.matrix_date}"
        )
    ]
    if not resolution.overrides:
        lines.append("# none")
    for override in resolution.overrides:
        broken = (
            f"{override.requirer} {override.requirer_version} asks for "
            f"{override.name}{override.specifier}"
        )
        lines += [
            f"# {broken}: {one_line(override.title)} [row {override.row}]",
            *(f"#   source: {one_line(source.address)}" for source in override.sources),
            f"{override.name}=={override.version}",
        ]
    return "\n".join(lines) + "\n"
