"""A resolution and an explanation as short texts for people."""

from __future__ import annotations

from ...model.resolution import Explanation, Resolution
from .words import one_line, pin_line, profile_lines, requires_words, state_words, warning_lines

__all__ = ["explanation_text", "summary_text"]


def summary_text(resolution: Resolution) -> str:
    """Return a resolution as a short text: what was asked for, what it takes, and what has to be
    known of it.
    """
    asked = (
        {root.name for root in resolution.request.roots}
        | {"torch"}
        | {override.name for override in resolution.overrides}
    )
    named = [f"  {pin_line(pin)}" for pin in resolution.pins if pin.name in asked]
    request = resolution.request
    wanted = ", ".join(root.text for root in (*request.roots, *request.others))
    lines = [f"{len(resolution.pins)} core pins for {one_line(wanted)}:", *named]
    if len(resolution.pins) > len(named):
        lines.append(f"  and {len(resolution.pins) - len(named)} more")
    lines.append(f"requires {requires_words(resolution)}")
    for override in resolution.overrides:
        broken = (
            f"{override.requirer} {override.requirer_version}'s {override.name}{override.specifier}"
        )
        lines += [f"overrides {broken}: {one_line(override.title)} [{override.row}]"]
    lines += [f"set {name}={value}" for name, value in sorted(resolution.settings.items())]
    lines += profile_lines(resolution)
    lines += [
        f"built from source when installed: {pin_line(pin)}"
        for pin in resolution.pins
        if pin.from_source
    ]
    lines += [
        f"yanked: {pin_line(pin)}; nothing else meets the request"
        for pin in resolution.pins
        if pin.yanked
    ]
    lines += warning_lines(resolution)
    lines += [f"note: {one_line(note)}" for note in resolution.notes]
    if resolution.closure.is_closed:
        lines.append(f"{len(resolution.closure.lines)} packages in all: {state_words(resolution)}")
    else:
        lines.append(state_words(resolution))
    return "\n".join(lines) + "\n"


def explanation_text(explanation: Explanation) -> str:
    """Return why there is nothing, and the ways out, one cause a line."""
    lines = ["no set of packages meets this request:"]
    for cause in explanation.causes:
        note = cause.row or ", ".join(source.address for source in cause.sources[:1])
        lines.append(f"  - {one_line(cause.text)}" + (f" [{note}]" if note else ""))
        if cause.row and cause.sources:
            lines.append(f"    source: {one_line(cause.sources[0].address)}")
    if explanation.ways_out:
        lines.append("what would give one:")
        lines += [f"  - {one_line(way)}" for way in explanation.ways_out]
    else:
        lines.append("giving up any one or two of these does not help")
    return "\n".join(lines)
