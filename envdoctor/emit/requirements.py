"""``requirements.txt``: every line with its reasons, and the command that installs it."""

from __future__ import annotations

from typing import List, Optional, Tuple

from ..model.resolution import ClosedLine, Pin, Reason, Resolution
from .words import header, pin_line, reason_lines

__all__ = ["install_commands", "render"]

#: How a line without a hash is marked, so that the install command can tell it from the others.
_UNHASHED = "# no hash"


def render(found: Resolution, version: str) -> str:
    """Return the text of ``requirements.txt``."""
    lines = header(found, version, "requirements.txt")
    lines += [f"# install with {tool}: {command}" for tool, command in install_commands(found)]
    others = sorted({pin.index_name for pin in found.pins} - {"pypi"})
    lines += [f"# lines with a local label (+...) come from the index {name}: add it with --extra-index-url" for name in others]
    if found.closure.is_closed:
        for line in found.closure.lines:
            lines += ["", *_closed_line(line, found.pin(line.name), found)]
        return "\n".join(lines) + "\n"
    overridden = {override.name for override in found.overrides}
    for pin in found.pins:
        lines += ["", *_comments(pin), pin_line(pin) + ("  # override" if pin.name in overridden else "")]
    for root in found.request.others:
        lines += ["", f"# asked for: {root.text}; not judged by envdoctor, and not pinned", root.text]
    return "\n".join(lines) + "\n"


def install_commands(found: Resolution) -> List[Tuple[str, str]]:
    """Return (tool, command) that install ``requirements.txt``, run in its folder.

    A closed file has everything, so nothing is resolved again: an override would be refused otherwise. pip wants a hash at every line or at
    none, so what has none goes second.
    """
    closure = found.closure
    sources = "".join(f" {option}" for option in closure.sources)
    if closure.state == "closed":
        rest = f"install --require-hashes --no-deps{sources} -r requirements.txt"
        return [("uv", f"uv pip {rest}"), ("pip", f"pip {rest}")]
    if closure.state == "partial":
        hashed = f"grep -v '{_UNHASHED}' requirements.txt | pip install --require-hashes --no-deps{sources} -r /dev/stdin"
        rest = f"grep '{_UNHASHED}' requirements.txt | pip install --no-deps{sources} -r /dev/stdin"
        return [("uv", f"uv pip install --no-deps{sources} -r requirements.txt"), ("pip", f"{hashed} && {rest}")]
    if not found.overrides:
        return [("uv", "uv pip install -r requirements.txt"), ("pip", "pip install -r requirements.txt")]
    first = "grep -v '# override' requirements.txt | pip install -r /dev/stdin"
    return [("uv", "uv pip install -r requirements.txt --override overrides.txt"), ("pip", f"{first} && pip install --no-deps -r overrides.txt")]


def _closed_line(line: ClosedLine, pin: Optional[Pin], found: Resolution) -> List[str]:
    """One line with its comments; hashes go on lines of their own, as pip and uv write them."""
    via = [name for name in line.via if name != line.name]
    if pin is not None:
        comments = _comments(pin)
    else:
        comments = ["# asked for; not judged by envdoctor"] if any(root.name == line.name for root in found.request.others) else []
        comments += [f"# via {', '.join(via)}"] if via else []
    pinned = f"{line.name}{'===' if line.exact else '=='}{line.version}"
    if not line.hashes:
        return [*comments, f"{pinned}  {_UNHASHED}"]
    return [*comments, " \\\n".join([pinned, *(f"    --hash={digest}" for digest in line.hashes)])]


def _comments(pin: Pin) -> List[str]:
    return [f"# {text}" for reason in _core_reasons(pin) for text in reason_lines(reason)]


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
