"""``requirements.txt``: every pin with its reasons, and the command that installs it."""

from __future__ import annotations

from typing import List

from ..model.resolution import Pin, Reason, Resolution
from .words import header, pin_line, reason_lines

__all__ = ["render"]


def render(found: Resolution, version: str) -> str:
    """Return the text of ``requirements.txt``."""
    lines = header(found, version, "requirements.txt")
    overridden = {override.name for override in found.overrides}
    if overridden:
        lines += [
            "# install with uv: uv pip install -r requirements.txt --override overrides.txt",
            "# install with pip: grep -v '# override' requirements.txt | pip install -r /dev/stdin && pip install --no-deps -r overrides.txt",
        ]
    else:
        lines.append("# install: uv pip install -r requirements.txt (or pip install -r requirements.txt)")
    others = sorted({pin.index_name for pin in found.pins} - {"pypi"})
    lines += [f"# lines with a local label (+...) come from the index {name}: add it with --extra-index-url" for name in others]
    for pin in found.pins:
        lines += ["", *(f"# {text}" for reason in _core_reasons(pin) for text in reason_lines(reason))]
        lines.append(pin_line(pin) + ("  # override" if pin.name in overridden else ""))
    return "\n".join(lines) + "\n"


def _core_reasons(pin: Pin) -> List[Reason]:
    """The reasons that stand at a pin: those that decide, and of many requirers the first three."""
    required = [reason for reason in pin.reasons if reason.kind == "required"]
    binding = [reason for reason in required if not reason.text.endswith("requires it")] or required
    shown = binding[:3]
    others = len(required) - len(shown)
    found = [reason for reason in pin.reasons if reason.kind == "asked"] + shown
    if others > 0:
        found.append(Reason("required", f"and {others} more require it"))
    return found + [reason for reason in pin.reasons if reason.kind not in ("asked", "required")]
