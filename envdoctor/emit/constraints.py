"""``constraints.txt``: the pins as bounds, without those that contradict metadata."""

from __future__ import annotations

from ..model.resolution import Resolution
from .words import header

__all__ = ["render"]


def render(found: Resolution, version: str) -> str:
    """Return the text of ``constraints.txt``."""
    overridden = {override.name for override in found.overrides}
    lines = header(found, version, "constraints.txt: the same pins as bounds, for pip install -c")
    for pin in found.pins:
        if pin.name in overridden:
            lines.append(f"# {pin.name}=={pin.version} contradicts metadata: see overrides.txt")
        else:
            lines.append(f"{pin.name}=={pin.version}")
    return "\n".join(lines) + "\n"
