"""What uv's words say when nothing fits: which requirement a pin does not meet, what the index
lacks, what could be loosened.

uv has no other form of it. Words that are not understood teach nothing, and are shown as they are.
"""

from __future__ import annotations

import re
from typing import Dict, FrozenSet, Optional, Sequence, Tuple

from ...model.requirement import Requirement, try_requirement
from ...model.resolution import Hole, Pin, Resolution
from ...model.versions import InvalidSpecifier

__all__ = ["advised", "find_conflicts", "find_holes", "find_requirers"]

_DEPENDS = re.compile(r"depends? on (\S+)")
_REQUIRER = re.compile(r"(\S+) depends? on ")
_MARKER = re.compile(r"\{[^}]*\}")
#: "Because only certifi<=2026.10.18 is available and vllm>=0.33.0 depends on certifi>=2026.10.19,
#: we can conclude"
_GAP = re.compile(
    r"Because (only (?P<there>\S+) (?:is|are) available|only the following versions of \S+ are "
    r"available:.*?|there (?:is|are) no versions? of \S+"
    r"|\S+ was not found in the package registry|\S+ was not found in the provided package "
    r"locations)"
    r" and (?:all versions of )?(?P<requirer>\S+) depends? on (?P<wanted>\S+?),? we can conclude"
)
#: "Because there is no version of torch==2.14.0 and you require torch==2.14.0"
_NO_PIN = re.compile(r"there is no version of (\S+) and you require (\S+)")


def find_conflicts(message: str, pins: Sequence[Pin]) -> Tuple[str, ...]:
    """Return the requirements in uv's words that a pin does not meet: "packaging<26.0,>=25.0"."""
    chosen = {pin.name: pin.version for pin in pins}
    conflicts: Dict[str, None] = {}
    for word in _DEPENDS.findall(_plain(message)):
        requirement = _requirement(word)
        if requirement is None or requirement.name not in chosen:
            continue
        try:
            met = chosen[requirement.name] in requirement.versions
        except InvalidSpecifier:
            continue
        if not met:
            conflicts[requirement.name + requirement.specifier] = None
    return tuple(conflicts)


def find_requirers(message: str) -> FrozenSet[str]:
    """Return the names of the packages of which uv could read what they require."""
    words = map(_requirement, _REQUIRER.findall(_plain(message)))
    return frozenset(requirement.name for requirement in words if requirement is not None)


def find_holes(message: str, pins: Sequence[Pin]) -> Tuple[Hole, ...]:
    """Return the pins that cannot be installed from the index, because it lacks them or something
    that they ask for.
    """
    chosen = {pin.name: str(pin.version) for pin in pins}
    text = _plain(message)
    holes: Dict[Hole, None] = {}
    for words in _NO_PIN.findall(text):
        missing, required = map(_requirement, words)
        if missing is None or required is None or missing.exact is None:
            continue
        if missing.name == required.name and missing.name in chosen:
            holes[Hole(missing.name, chosen[missing.name])] = None
    for match in _GAP.finditer(text):
        requirer = _requirement(match.group("requirer"))
        if requirer is not None and requirer.name in chosen:
            pinned = chosen[requirer.name]
            hole = Hole(requirer.name, pinned, match.group("wanted"), match.group("there") or "")
            holes[hole] = None
    return tuple(holes)


def _plain(message: str) -> str:
    return _MARKER.sub("", " ".join(message.split()))


def _requirement(word: str) -> Optional[Requirement]:
    """Read one word of a sentence as a requirement."""
    return try_requirement(word.strip("`'\"(),.:;"))


def advised(message: str, resolution: Resolution, holes: Sequence[Hole]) -> str:
    """Return the words of uv, and what to loosen."""
    request = resolution.request
    words = map(_requirement, _plain(message).split())
    named = {requirement.name for requirement in words if requirement is not None}
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
    ours = [pin for pin in resolution.pins if pin.name in named and pin.name not in asked]
    ways += [
        f"{pin.name}=={pin.version} is our choice: ask for {pin.name} with the range that uv names"
        for pin in ours[:3]
    ]
    return message + (
        "\nwhat could be loosened:\n" + "\n".join(f"  - {way}" for way in ways) if ways else ""
    )
