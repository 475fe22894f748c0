"""``requirements.txt``: every line with its reasons, and the command that installs it."""

from __future__ import annotations

from typing import List, Tuple

from ...model.requirement import parse_requirement
from ...model.resolution import ClosedLine, Pin, Reason, Resolution
from .build_steps import build_lines, built_on_torch, built_plain, tool_requirements, tools
from .words import header, pin_line, reason_lines

__all__ = ["install_commands", "install_steps", "render"]

#: Lines that cannot be installed with the others are marked with the step in which they are; lines
#: stand in paragraphs, so awk can part them.
_TOOL = "build tool"
_PLAIN = "built from source, before torch is there"
_SOURCE = "built from source, on torch"
_SEPARATE = "apart"
_ELSEWHERE = "come from the index {}: add its address with --extra-index-url"
_WHERE = {
    "github": (
        "are files of their project's release page on {}: fetch them, and add --find-links FOLDER"
    )
}
_SELECT = "awk -v RS= -v ORS='\\n\\n'"


def render(resolution: Resolution, version: str) -> str:
    """Return the text of ``requirements.txt``."""
    lines = header(resolution, version, "requirements.txt")
    lines += [f"# install with {tool}: {command}" for tool, command in install_commands(resolution)]
    lines += [f"# {line}" for line in build_lines(resolution)]
    given = resolution.request.addresses
    others = {pin.index_name for pin in resolution.pins if pin.name not in given} - {"pypi"}
    lines += [
        f"# lines with a local label (+...) {_WHERE.get(name, _ELSEWHERE).format(name)}"
        for name in sorted(others)
    ]
    if resolution.closure.is_closed:
        for line in resolution.closure.lines:
            lines += ["", *_closed_line(line, resolution)]
        return "\n".join(lines) + "\n"
    overridden = {override.name for override in resolution.overrides}
    for pin in resolution.pins:
        lines += [
            "",
            *_comments(pin, resolution),
            pin_line(pin, resolution.request.addresses.get(pin.name, ""))
            + ("  # override" if pin.name in overridden else ""),
        ]
    for needed in tool_requirements(resolution):
        mark = _TOOL if parse_requirement(needed).name in tools(resolution) else "for a build"
        lines += ["", f"# {mark}; not judged by envdoctor, and not pinned", needed]
    for root in resolution.request.others:
        lines += [
            "",
            f"# asked for: {root.text}; not judged by envdoctor, and not pinned",
            root.text,
        ]
    return "\n".join(lines) + "\n"


def install_commands(resolution: Resolution) -> List[Tuple[str, str]]:
    """Return (tool, command) that install ``requirements.txt``, run in its folder.

    A closed file has everything, so nothing is resolved again: an override would be refused
    otherwise. pip wants a hash at every line or at none, and what is built wants what builds it
    first, so these are steps of their own.
    """
    return [
        (tool, " && ".join(install_steps(resolution, tool, command)))
        for tool, command in (("uv", "uv pip install"), ("pip", "pip install"))
    ]


def install_steps(resolution: Resolution, tool: str, command: str) -> List[str]:
    """Return what one tool ("uv" or "pip") does, in order; ``command`` is how it is called. pip
    reads a pipe as /dev/stdin, uv as -.
    """
    closed = resolution.closure.is_closed
    call = command + _sources(resolution, tool)
    alone = f"{call} --no-deps"
    overrides = bool(resolution.overrides) and not closed
    if closed:
        first = checked = f"{alone} --require-hashes"
    else:
        first = call
        checked = f"{call} --override overrides.txt" if overrides and tool == "uv" else call
    built = f"{first} --no-build-isolation"
    pipe = "-" if tool == "uv" else "/dev/stdin"

    def step(pattern: str, how: str) -> str:
        return f"{_SELECT} '{pattern}' requirements.txt | {how} -r {pipe}"

    on_torch = bool(built_on_torch(resolution))
    separate = bool(resolution.closure.unhashed) or (overrides and tool == "pip")
    apart = "|".join([_SOURCE] * on_torch + [_SEPARATE] * separate)
    steps = []
    if built_plain(resolution):
        plain = built if closed else f"{built} --no-deps"
        steps += [step(f"/# {_TOOL}/", first), step(f"/# {_PLAIN}/", plain)]
    steps.append(step(f"!/# ({apart})/", checked) if apart else f"{checked} -r requirements.txt")
    if on_torch:
        steps.append(step(f"/# {_SOURCE}/", built))
    if separate:
        steps.append(step(f"/# {_SEPARATE}/", alone) if closed else f"{alone} -r overrides.txt")
    return steps


def _sources(resolution: Resolution, tool: str) -> str:
    """Return the options that name the indexes of a lock, each with a space before it."""
    closure = resolution.closure
    strategy = f"--index-strategy {closure.strategy}" if closure.strategy and tool == "uv" else ""
    return "".join(f" {option}" for option in (*closure.sources, strategy) if option)


def _closed_line(line: ClosedLine, resolution: Resolution) -> List[str]:
    """One line with its comments; hashes go on lines of their own, as pip and uv write them."""
    pin = resolution.pin(line.name)
    via = [name for name in line.via if name != line.name]
    if pin is not None:
        comments = _comments(pin, resolution)
    else:
        comments = (
            ["# asked for; not judged by envdoctor"]
            if any(root.name == line.name for root in resolution.request.others)
            else []
        )
        comments += [f"# via {', '.join(via)}"] if via else []
        comments += _marks(line.name, resolution)
    pinned = f"{line.name}{'===' if line.exact else '=='}{line.version}"
    if not line.hashes:
        address = resolution.request.addresses.get(line.name)
        pinned = f"{line.name} @ {address}" if address else pinned
        return [*comments, f"# {_SEPARATE}: no hash is to be had", pinned]
    return [*comments, " \\\n".join([pinned, *(f"    --hash={digest}" for digest in line.hashes)])]


def _marks(name: str, resolution: Resolution) -> List[str]:
    """The steps of its own that a line has."""
    return [
        f"# {mark}"
        for mark, names in (
            (_TOOL, tools(resolution)),
            (_PLAIN, built_plain(resolution)),
            (_SOURCE, built_on_torch(resolution)),
        )
        if name in names
    ]


def _comments(pin: Pin, resolution: Resolution) -> List[str]:
    comments = [f"# {text}" for reason in _core_reasons(pin) for text in reason_lines(reason)]
    comments += _marks(pin.name, resolution)
    if not resolution.closure.is_closed and any(
        override.name == pin.name for override in resolution.overrides
    ):
        comments.append(f"# {_SEPARATE} with pip: the override of a requirement")
    return comments


def _core_reasons(pin: Pin) -> List[Reason]:
    """The reasons that stand at a pin: those that decide, and of many requirers the first three."""
    required = [reason for reason in pin.reasons if reason.kind == "required"]
    binding = [reason for reason in required if reason.requirement] or required
    shown = binding[:3]
    others = len(required) - len(shown)
    reasons = [reason for reason in pin.reasons if reason.kind == "asked"] + shown
    if others > 0:
        reasons.append(Reason("required", f"and {others} more require it"))
    return reasons + [reason for reason in pin.reasons if reason.kind not in ("asked", "required")]
