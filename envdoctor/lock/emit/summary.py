"""A resolution and an explanation as a few lines for people."""

from __future__ import annotations

from typing import List

from ...model.line import TextLine
from ...model.resolution import Explanation, Resolution
from .build_steps import build_lines
from .words import one_line, pin_line, profile_lines, requires_words, state_words, warning_lines

__all__ = ["explanation_lines", "summary_lines"]


def summary_lines(resolution: Resolution) -> List[TextLine]:
    """Return a resolution as a few lines: what was asked for, what it takes, and what has to be
    known of it.
    """
    asked = (
        {root.name for root in resolution.request.roots}
        | {"torch"}
        | {override.name for override in resolution.overrides}
    )
    named = [TextLine(pin_line(pin), indent=2) for pin in resolution.pins if pin.name in asked]
    request = resolution.request
    wanted = ", ".join(root.text for root in (*request.roots, *request.others))
    lines = [TextLine(f"{len(resolution.pins)} core pins for {one_line(wanted)}:", "title"), *named]
    if len(resolution.pins) > len(named):
        lines.append(TextLine(f"and {len(resolution.pins) - len(named)} more", indent=2))
    lines.append(TextLine(f"requires {requires_words(resolution)}"))
    for override in resolution.overrides:
        broken = (
            f"{override.requirer} {override.requirer_version}'s {override.name}{override.specifier}"
        )
        text = f"{broken}: {one_line(override.title)} [{override.row}]"
        lines.append(TextLine(text, "advice", head="overrides"))
    lines += [
        TextLine(f"set {name}={value}", "command")
        for name, value in sorted(resolution.settings.items())
    ]
    lines += profile_lines(resolution)
    lines += [TextLine(line, "dim") for line in build_lines(resolution)]
    lines += [
        TextLine(f"yanked: {pin_line(pin)}; nothing else meets the request")
        for pin in resolution.pins
        if pin.yanked
    ]
    lines += warning_lines(resolution)
    lines += [TextLine(f"note: {one_line(note)}", "dim") for note in resolution.notes]
    closure = resolution.closure
    count = f"{len(closure.lines)} packages in all: " if closure.is_closed else ""
    return [*lines, TextLine(count + state_words(resolution))]


def explanation_lines(explanation: Explanation) -> List[TextLine]:
    """Return why there is nothing, and the ways out, one cause a line."""
    lines = [TextLine("no set of packages meets this request:", "title")]
    for cause in explanation.causes:
        note = cause.row or ", ".join(source.address for source in cause.sources[:1])
        text = one_line(cause.text) + (f" [{note}]" if note else "")
        lines.append(TextLine(f"- {text}", indent=2))
        if cause.row and cause.sources:
            lines.append(TextLine(f"source: {one_line(cause.sources[0].address)}", "dim", 4))
    if explanation.ways_out:
        lines.append(TextLine("what would work:", "title"))
        lines += [TextLine(f"- {one_line(way)}", indent=2) for way in explanation.ways_out]
    else:
        lines.append(TextLine("giving up any one or two of these does not help"))
    return lines
