"""``pylock.toml`` (PEP 751): what uv wrote, under our header.

Only where every line has a hash: each file needs one, and an address.
"""

from __future__ import annotations

from typing import Optional

from ...model.resolution import Resolution
from .words import header

__all__ = ["render"]


def render(resolution: Resolution, version: str) -> Optional[str]:
    """Return the text of ``pylock.toml``, or None where uv wrote none."""
    if not resolution.closure.pylock:
        return None
    lines = header(resolution, version, "pylock.toml")
    if any(pin.from_source for pin in resolution.pins):
        lines.append("# install with install.sh: what is built from source needs an order")
    else:
        lines.append("# install with uv: uv pip sync pylock.toml (it removes what is not in here)")
        lines.append("# install with pip: pip install --no-deps -r pylock.toml")
    return "\n".join(lines) + "\n\n" + resolution.closure.pylock
