"""What uv's words say when nothing fits: which requirement a pin does not meet, what the index
lacks, what could be loosened.

uv has no other form of it. Words that are not understood teach nothing, and are shown as they are.
"""

from __future__ import annotations

import re
from typing import Dict, Sequence, Tuple

from ...model.resolution import Hole, Pin, Resolution
from ...model.versions import InvalidSpecifier, VersionSet, canonicalize_name, parse_version

__all__ = ["advised", "find_conflicts", "find_holes"]

_NAME = r"[A-Za-z0-9][\w.-]*"
_DEPENDS = re.compile(rf"depends? on ({_NAME})(?:\[[^\]]*\])?((?:[<>=!~]=?[\w.+*]+,?)+)(?<!,)")
_MARKER = re.compile(r"\{[^}]*\}")
#: "Because only certifi<=2026.10.18 is available and vllm>=0.33.0 depends on certifi>=2026.10.19,
#: we can conclude"
_GAP = re.compile(
    r"Because (only (?P<there>\S+) (?:is|are) available|only the following versions of \S+ are "
    rf"available:.*?|there (?:is|are) no versions? of \S+"
    r"|\S+ was not found in the package registry|\S+ was not found in the provided package "
    rf"locations)"
    rf" and (?:all versions of )?(?P<requirer>{_NAME})(?:\[[^\]]*\])?(?:[<>=!~][^\s,]*)? depends? "
    rf"on (?P<wanted>[^\s]+?),? we can conclude"
)
#: "Because there is no version of torch==2.14.0 and you require torch==2.14.0"
_NO_PIN = re.compile(
    rf"there is no version of (?P<name>{_NAME})(?:\[[^\]]*\])?===?(?P<version>\S+) and you require "
    rf"(?P=name)\b"
)


def find_conflicts(message: str, pins: Sequence[Pin]) -> Tuple[str, ...]:
    """Return the requirements in uv's words that a pin does not meet: "packaging<26.0,>=25.0"."""
    chosen = {pin.name: parse_version(pin.version) for pin in pins}
    found: Dict[str, None] = {}
    for name, specifier in _DEPENDS.findall(_plain(message)):
        name = canonicalize_name(name)
        try:
            met = name not in chosen or chosen[name] in VersionSet.parse(specifier)
        except InvalidSpecifier:
            continue
        if not met:
            found[f"{name}{specifier}"] = None
    return tuple(found)


def find_holes(message: str, pins: Sequence[Pin]) -> Tuple[Hole, ...]:
    """Return the pins that cannot be installed from the index, because it lacks them or something
    that they ask for.
    """
    chosen = {pin.name: pin.version for pin in pins}
    text = _plain(message)
    found: Dict[Hole, None] = {}
    for match in _NO_PIN.finditer(text):
        name = canonicalize_name(match.group("name"))
        if name in chosen:
            found[Hole(name, chosen[name])] = None
    for match in _GAP.finditer(text):
        name = canonicalize_name(match.group("requirer"))
        if name in chosen:
            found[Hole(name, chosen[name], match.group("wanted"), match.group("there") or "")] = (
                None
            )
    return tuple(found)


def _plain(message: str) -> str:
    return _MARKER.sub("", " ".join(message.split()))


def advised(message: str, found: Resolution, holes: Sequence[Hole]) -> str:
    """Return the words of uv, and what to loosen."""
    request = found.request
    named = {
        canonicalize_name(name)
        for name in re.findall(_NAME, re.sub(r"[=<>!~].*?(?=[\s,]|$)", "", message, flags=re.M))
    }
    ways = [
        (
            f"{hole.text}: give an index that has it (--index-url, --extra-index-url), or ask for "
            f"{hole.name}!={hole.version}"
        )
        for hole in holes
    ]
    ways += [
        f"ask for {root.name} without {root.specifier}"
        for root in (*request.roots, *request.others)
        if root.specifier and root.name in named
    ]
    if request.as_of is not None:
        ways.append(f"take releases after {request.as_of} too: a later --as-of, or --as-of latest")
    asked = {root.name for root in request.roots}
    ours = [pin for pin in found.pins if pin.name in named and pin.name not in asked]
    ways += [
        f"{pin.name}=={pin.version} is our choice: ask for {pin.name} with the range that uv names"
        for pin in ours[:3]
    ]
    return message + (
        "\nwhat could be loosened:\n" + "\n".join(f"  - {way}" for way in ways) if ways else ""
    )
