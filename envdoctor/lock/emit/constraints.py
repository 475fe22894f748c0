"""``constraints.txt``: the pins as bounds, without those that contradict metadata."""

from __future__ import annotations

from ...model.resolution import Resolution
from .words import header

__all__ = ["render"]


def render(resolution: Resolution, version: str) -> str:
    """Return the text of ``constraints.txt``."""
    overridden = {override.name for override in resolution.overrides}
    exact = {line.name for line in resolution.closure.lines if line.exact}
    lines = header(
        resolution, version, "constraints.txt: the same pins as bounds, for pip install -c"
    )
    for line in resolution.closure.lines if resolution.closure.is_closed else resolution.pins:
        pinned = f"{line.name}{'===' if line.name in exact else '=='}{line.version}"
        lines.append(
            f"# {pinned} contradicts metadata: see overrides.txt"
            if line.name in overridden
            else pinned
        )
    return "\n".join(lines) + "\n"
