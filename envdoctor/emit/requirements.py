"""Core pins as ``requirements.txt``, ``constraints.txt``, ``overrides.txt`` and ``envdoctor.lock.json``, and an explanation as text."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping

from ..model.resolution import Explanation, Pin, Reason, Resolution
from ..model.row import Source

__all__ = ["FILES", "explanation_text", "lock_json", "render", "summary_text"]

SCHEMA_VERSION = 1


def render(found: Resolution, version: str) -> Dict[str, str]:
    """Return the text of every file by name.

    Args:
        found: the resolution.
        version: version of envdoctor, for the headers.
    """
    return {name: write(found, version) for name, write in FILES.items()}


def _header(found: Resolution, version: str, what: str) -> List[str]:
    request, requires = found.request, found.requires
    lines = [
        f"# core pins, not a full lock: what these packages need besides is not pinned ({what})",
        f"# written by envdoctor {version} with the matrix of {found.matrix_date}",
        f"# asked for: {', '.join(root.text for root in request.roots)}" + (f", as of {request.as_of}" if request.as_of else ""),
        f"# for: Python {requires.python}, {request.platform} {request.architecture}",
    ]
    lines += [f"# target: {words}" for words in found.targets]
    lines.append(f"# requires: {_requires_words(found)}")
    lines += [f"# set: {name}={value}" for name, value in sorted(found.settings.items())]
    lines += [f"# {line}" for line in _profile_lines(found)]
    return lines


def _profile_lines(found: Resolution) -> List[str]:
    """Which request of a profile this is, why not a newer one, and what comes from repositories."""
    lines = [f"profile {found.request.profile}"] if found.request.profile else []
    lines += [_one_line(reason.text) for reason in found.passed]
    lines += [f"then: pip install --no-deps '{step.requirement}'" for step in found.sources]
    return lines


def _requires_words(found: Resolution) -> str:
    requires = found.requires
    parts = [f"Python {requires.python}"]
    if requires.driver:
        parts.append(f"NVIDIA driver {requires.driver} or newer")
    if requires.glibc:
        parts.append(f"glibc {requires.glibc} or newer")
    if requires.sm:
        parts.append(f"a GPU of compute capability {', '.join(requires.sm)}")
    return "; ".join(parts)


def _requirements(found: Resolution, version: str) -> str:
    lines = _header(found, version, "requirements.txt")
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
        lines += ["", *(f"# {text}" for reason in _core_reasons(pin) for text in _reason_lines(reason))]
        lines.append(_line(pin) + ("  # override" if pin.name in overridden else ""))
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


def _reason_lines(reason: Reason) -> List[str]:
    line = _one_line(reason.text)
    if reason.row:
        line += f" [row {reason.row}]"
    return [line, *(f"  source: {_one_line(source.address)}" for source in reason.sources[:1])]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _line(pin: Pin) -> str:
    extras = f"[{','.join(pin.extras)}]" if pin.extras else ""
    return f"{pin.name}{extras}=={pin.version}"


def _constraints(found: Resolution, version: str) -> str:
    overridden = {override.name for override in found.overrides}
    lines = _header(found, version, "constraints.txt: the same pins as bounds, for pip install -c")
    for pin in found.pins:
        if pin.name in overridden:
            lines.append(f"# {pin.name}=={pin.version} contradicts metadata: see overrides.txt")
        else:
            lines.append(f"{pin.name}=={pin.version}")
    return "\n".join(lines) + "\n"


def _overrides(found: Resolution, version: str) -> str:
    lines = [f"# overrides.txt: pins that contradict metadata on purpose; written by envdoctor {version} with the matrix of {found.matrix_date}"]
    if not found.overrides:
        lines.append("# none")
    for override in found.overrides:
        broken = f"{override.requirer} {override.requirer_version} asks for {override.name}{override.specifier}"
        lines += [
            f"# {broken}: {_one_line(override.title)} [row {override.row}]",
            *(f"#   source: {_one_line(source.address)}" for source in override.sources),
            f"{override.name}=={override.version}",
        ]
    return "\n".join(lines) + "\n"


def lock_json(found: Resolution, version: str) -> Dict[str, Any]:
    """Return a resolution as the JSON object of ``envdoctor.lock.json``."""
    request = found.request
    return {
        "schema_version": SCHEMA_VERSION,
        "envdoctor": version,
        "matrix": found.matrix_date,
        "closed": False,
        "request": {
            "roots": [root.text for root in request.roots],
            "python": request.python,
            "platform": request.platform,
            "architecture": request.architecture,
            "as_of": request.as_of,
            "allow_index": list(request.allow_index),
            **({"profile": request.profile} if request.profile else {}),
        },
        "targets": list(found.targets),
        "requires": {name: list(value) if isinstance(value, tuple) else value for name, value in found.requires._asdict().items()},
        "settings": dict(sorted(found.settings.items())),
        "pins": [
            {
                "name": pin.name,
                "version": pin.version,
                "index": pin.index_name,
                "extras": list(pin.extras),
                "yanked": pin.yanked,
                "from_source": pin.from_source,
                "requires": list(pin.requires),
                "reasons": [_reason_json(reason) for reason in pin.reasons],
            }
            for pin in found.pins
        ],
        "overrides": [
            {
                "requirer": override.requirer,
                "requirer_version": override.requirer_version,
                "name": override.name,
                "specifier": override.specifier,
                "version": override.version,
                "row": override.row,
                "title": override.title,
                "sources": [_source_json(source) for source in override.sources],
            }
            for override in found.overrides
        ],
        "sources": [step._asdict() for step in found.sources],
        "warnings": [_reason_json(reason) for reason in found.warnings],
    }


def _reason_json(reason: Reason) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"kind": reason.kind, "text": reason.text}
    if reason.row:
        entry["row"] = reason.row
    if reason.sources:
        entry["sources"] = [_source_json(source) for source in reason.sources]
    return entry


def _source_json(source: Source) -> Dict[str, str]:
    return {"address": source.address, "quote": source.quote} if source.quote else {"address": source.address}


def _lock_text(found: Resolution, version: str) -> str:
    return json.dumps(lock_json(found, version), indent=2, ensure_ascii=False) + "\n"


#: File name -> what writes it.
FILES: Mapping[str, Callable[[Resolution, str], str]] = {
    "requirements.txt": _requirements,
    "constraints.txt": _constraints,
    "overrides.txt": _overrides,
    "envdoctor.lock.json": _lock_text,
}


def summary_text(found: Resolution) -> str:
    """Return a resolution as a short text: what was asked for, what it takes, and what has to be known of it."""
    asked = {root.name for root in found.request.roots} | {"torch"} | {override.name for override in found.overrides}
    lines = [f"{_line(pin)}" for pin in found.pins if pin.name in asked]
    lines.append(f"and {len(found.pins) - len(lines)} more core pins" if len(found.pins) > len(lines) else "no other core pins")
    lines.append(f"requires {_requires_words(found)}")
    for override in found.overrides:
        broken = f"{override.requirer} {override.requirer_version}'s {override.name}{override.specifier}"
        lines += [f"overrides {broken}: {_one_line(override.title)} [{override.row}]"]
    lines += [f"set {name}={value}" for name, value in sorted(found.settings.items())]
    lines += _profile_lines(found)
    lines += [f"built from source when installed: {_line(pin)}" for pin in found.pins if pin.from_source]
    lines += [f"yanked: {_line(pin)}; nothing else meets the request" for pin in found.pins if pin.yanked]
    lines += [f"warning: {_one_line(reason.text)} [{reason.row}]" for reason in found.warnings]
    return "\n".join(lines) + "\n"


def explanation_text(found: Explanation) -> str:
    """Return why there is nothing, and the ways out, one cause a line."""
    lines = ["no set of packages meets this request:"]
    for cause in found.causes:
        note = cause.row or ", ".join(source.address for source in cause.sources[:1])
        lines.append(f"  - {_one_line(cause.text)}" + (f" [{note}]" if note else ""))
        if cause.row and cause.sources:
            lines.append(f"    source: {_one_line(cause.sources[0].address)}")
    if found.ways_out:
        lines.append("what would give one:")
        lines += [f"  - {_one_line(way)}" for way in found.ways_out]
    else:
        lines.append("giving up any one or two of these does not help")
    return "\n".join(lines)
