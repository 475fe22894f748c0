"""``requirements.txt``: every line with its reasons, and the command that installs it."""

from __future__ import annotations

from typing import List, Tuple

from ...model.resolution import ClosedLine, Pin, Reason, Resolution
from .words import header, pin_line, reason_lines

__all__ = ["install_commands", "install_steps", "render"]

#: Lines that cannot be installed with the others are marked with the step in which they are; lines
#: stand in paragraphs, so awk can part them.
_SOURCE = "step 2"
_SEPARATE = "step 3"
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
    if _built_on_torch(resolution):
        lines.append(
            "# step 2 compiles: it takes nvcc of torch's CUDA, ninja, setuptools and wheel in the "
            "environment, and up to hours"
        )
    others = sorted({pin.index_name for pin in resolution.pins} - {"pypi"})
    lines += [
        f"# lines with a local label (+...) {_WHERE.get(name, _ELSEWHERE).format(name)}"
        for name in others
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
            pin_line(pin) + ("  # override" if pin.name in overridden else ""),
        ]
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
    otherwise. pip wants a hash at every line or at none, and a build on torch wants torch first, so
    these are steps of their own.
    """
    return [
        (tool, " && ".join(install_steps(resolution, tool, command)))
        for tool, command in (("uv", "uv pip install"), ("pip", "pip install"))
    ]


def install_steps(resolution: Resolution, tool: str, command: str) -> List[str]:
    """Return what one tool ("uv" or "pip") does, in order; ``command`` is how it is called. pip
    reads a pipe as /dev/stdin, uv as -.
    """
    closure = resolution.closure
    pipe = "-" if tool == "uv" else "/dev/stdin"
    sources = "".join(f" {option}" for option in closure.sources)
    if closure.is_closed:
        checked = f"{command} --no-deps --require-hashes{sources}"
        unhashed = f"{command} --no-deps{sources}" if closure.unhashed else ""
        built = f"{checked} --no-build-isolation"
    else:
        checked = command + (
            " --override overrides.txt" if resolution.overrides and tool == "uv" else ""
        )
        unhashed = (
            f"{command} --no-deps -r overrides.txt"
            if resolution.overrides and tool == "pip"
            else ""
        )
        built = f"{command} --no-build-isolation"
    source = _built_on_torch(resolution)
    apart = [step for step, there in ((_SOURCE, source), (_SEPARATE, unhashed)) if there]
    if not apart:
        return [f"{checked} -r requirements.txt"]
    steps = [f"{_SELECT} '!/# ({'|'.join(apart)})/' requirements.txt | {checked} -r {pipe}"]
    steps += [f"{_SELECT} '/# {_SOURCE}/' requirements.txt | {built} -r {pipe}"] if source else []
    if unhashed:
        steps.append(
            f"{_SELECT} '/# {_SEPARATE}/' requirements.txt | {unhashed} -r {pipe}"
            if closure.is_closed
            else unhashed
        )
    return steps


def _built_on_torch(resolution: Resolution) -> List[str]:
    """The pins whose build imports torch, so that it has to be there before, and not in a folder of
    the build's own.
    """
    return [pin.name for pin in resolution.pins if pin.from_source and "torch" in pin.requires]


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
    pinned = f"{line.name}{'===' if line.exact else '=='}{line.version}"
    if not line.hashes:
        return [*comments, f"# {_SEPARATE}: no hash is to be had", pinned]
    return [*comments, " \\\n".join([pinned, *(f"    --hash={digest}" for digest in line.hashes)])]


def _comments(pin: Pin, resolution: Resolution) -> List[str]:
    comments = [f"# {text}" for reason in _core_reasons(pin) for text in reason_lines(reason)]
    if pin.name in _built_on_torch(resolution):
        comments.append(f"# {_SOURCE}: built from source, after torch")
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
