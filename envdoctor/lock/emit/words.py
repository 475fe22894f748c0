"""The words that several files share: who wrote it and for what, a pin, a reason."""

from __future__ import annotations

from typing import List

from ...model.calls import InstallerCall
from ...model.line import TextLine
from ...model.request import SourceStep
from ...model.resolution import Pin, Reason, Resolution

__all__ = [
    "header",
    "left_out_words",
    "one_line",
    "pin_line",
    "profile_lines",
    "reason_lines",
    "requires_words",
    "source_call",
    "state_words",
    "warning_lines",
]


def header(resolution: Resolution, version: str, what: str) -> List[str]:
    """Return the comment lines that stand first in a file; ``what`` says which file it is."""
    request, requires = resolution.request, resolution.requires
    lines = [
        f"# {state_words(resolution)} ({what})",
        f"# written by envdoctor {version} with the matrix of {resolution.matrix_date}",
        f"# asked for: {', '.join(root.text for root in (*request.roots, *request.others))}"
        + (f", as of {request.as_of}" if request.as_of else ""),
        f"# for: Python {requires.python}, {request.platform} {request.architecture}",
    ]
    bounds = [root.text for root in request.constraints if root.name in resolution.names]
    lines += [f"# constraints: {', '.join(bounds)}"] if bounds else []
    lines += [f"# target: {words}" for words in resolution.targets]
    lines.append(f"# requires: {requires_words(resolution)}")
    lines += [f"# set: {name}={value}" for name, value in sorted(resolution.settings.items())]
    lines += [f"# {line}" for line in (*profile_lines(resolution), *warning_lines(resolution))]
    lines += [f"# note: {one_line(note)}" for note in resolution.notes]
    return lines + [f"# {line}" for line in _index_lines(resolution)]


def _index_lines(resolution: Resolution) -> List[str]:
    """Return which indexes closed a lock, how they were joined, and what none of them has."""
    closure = resolution.closure
    lines = [f"indexes: {', '.join(closure.indexes)}"] if closure.indexes else []
    if lines and closure.strategy:
        lines[0] += f"; uv's index strategy: {closure.strategy}"
    if closure.local:
        lines.append(
            f"from a folder of the machine that closed this: {', '.join(closure.local)}; to "
            "install, name a folder with these files in PIP_FIND_LINKS or UV_FIND_LINKS"
        )
    return lines


def profile_lines(resolution: Resolution) -> List[TextLine]:
    """Return which request of a profile a lock is for, and what comes from repositories after the
    pins.
    """
    profile = resolution.request.profile
    lines = [TextLine(profile, head="profile:")] if profile else []
    return lines + [
        TextLine(str(source_call(step)), head="then:", whole=True) for step in resolution.sources
    ]


def source_call(step: SourceStep) -> InstallerCall:
    """Return what installs a repository at its tag or commit, after the pins."""
    return InstallerCall("install", (step.requirement,), ("--no-deps",))


def warning_lines(resolution: Resolution) -> List[TextLine]:
    """Return the rows that hold of the pins on a target and do not forbid them: wrong results, what
    was only reported, what is slower.
    """
    return [
        TextLine(f"{one_line(reason.text)} [{reason.row}]", "warning", head="warning:")
        for reason in resolution.warnings
    ]


def state_words(resolution: Resolution) -> str:
    """Return how complete a lock is, and why it is not more."""
    closure = resolution.closure
    if closure.state == "closed":
        return (
            f"a full lock: every line is pinned and hashed, closed by {closure.tool} for "
            f"{closure.platform}"
        )
    if closure.state == "partial":
        return (
            f"partially closed by {closure.tool} for {closure.platform}: every line is pinned, "
            f"but {one_line(closure.reason)}"
        )
    words = "core pins, not a full lock: their other dependencies are not pinned"
    return f"{words}; {one_line(closure.reason)}" if closure.reason else words


def left_out_words(resolution: Resolution) -> str:
    """Return why a lock has no ``pylock.toml``."""
    if resolution.closure.local:
        named = ", ".join(resolution.closure.local)
        return f"it needs an address for each file, and from a folder came {named}"
    return state_words(resolution)


def requires_words(resolution: Resolution) -> str:
    """Return what a machine has to have for these pins."""
    requires = resolution.requires
    parts = [f"Python {requires.python}"]
    if requires.driver:
        parts.append(f"NVIDIA driver {requires.driver} or newer")
    if requires.glibc:
        parts.append(f"glibc {requires.glibc} or newer")
    if requires.sm:
        parts.append(f"a GPU of compute capability {', '.join(requires.sm)}")
    return "; ".join(parts)


def reason_lines(reason: Reason) -> List[str]:
    """Return a reason as lines: the sentence with its row, and the first source."""
    line = one_line(reason.text)
    if reason.row:
        line += f" [row {reason.row}]"
    return [line, *(f"  source: {one_line(source.address)}" for source in reason.sources[:1])]


def one_line(text: str) -> str:
    """Return a text with every run of white space, line ends too, as one blank."""
    return " ".join(text.split())


def pin_line(pin: Pin, address: str = "") -> str:
    """Return a pin as a requirement: ``vllm[flashinfer]==0.10.2``, or by a wheel's address."""
    extras = f"[{','.join(pin.extras)}]" if pin.extras else ""
    return f"{pin.name}{extras} @ {address}" if address else f"{pin.name}{extras}=={pin.version}"
