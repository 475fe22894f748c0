"""What a text claims of one fact, and which of two claims holds: of values, distributions, releases
and devices.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Sequence, Set

from ..model.facts import Distribution, Gpu
from ..model.versions import Version

__all__ = [
    "DONE",
    "EXACT",
    "INTENT",
    "LABEL",
    "MENTION",
    "PROSE",
    "SEEN",
    "TextClaim",
    "contradict",
    "is_same_device",
    "joined_devices",
    "model_of",
    "refines",
    "releases_meant",
    "settled",
    "settled_distribution",
    "shortened",
    "was_never_released",
]

# How specific a statement is; the lower number wins, then the first one.
SEEN = 5  # what a traceback shows of where it ran
EXACT = 10  # a tool's own output for exactly this
DONE = 15  # what an installer ended with: over what it found before
LABEL = 20  # a labelled line of a report
PROSE = 40  # a sentence
MENTION = PROSE + 5  # a device that a sentence names beside other things
INTENT = 50  # what somebody asked to install or to run

_NO_MODEL = re.compile(
    r"\b(?:nvidia|geforce|tesla|quadro|gpu|sxm\d?|pcie|nvl\d*|hbm\d?e?|\d+ ?gb?)\b"
)
_MAJORS_AHEAD = 2  # of the newest release that is known, for what is older than the report


class TextClaim(NamedTuple):
    """A value that a line of a text states, how specific the statement is, and what other lines say
    in its place.
    """

    rank: int
    line: int
    value: Any
    note: str = ""


def contradict(first: TextClaim, second: TextClaim) -> bool:
    """Tell whether two claims of the same weight say different things of a value that is one."""
    return (
        first.rank == second.rank < INTENT
        and first.value != second.value
        and isinstance(first.value, (str, int))
        and not refines(first.value, second.value)
        and not refines(second.value, first.value)
    )


def settled(old: TextClaim, new: TextClaim) -> TextClaim:
    """Return which of two claims of one fact holds, with what the other says."""
    if old.value == new.value:
        return old if old.rank <= new.rank else new
    winner, loser = (old, new) if old.rank <= new.rank else (new, old)
    if refines(winner.value, loser.value):
        return winner
    if refines(loser.value, winner.value):
        return winner._replace(value=loser.value, line=loser.line)
    note = f"line {loser.line} says {shortened(loser.value)}"
    return winner._replace(
        note=winner.note
        if winner.note.count(" says ") > 2
        else "; ".join(filter(None, [winner.note, note]))
    )


def releases_meant(version: Version, finals: Sequence[Version]) -> Sequence[Version]:
    """Return the releases whose last part people leave out: ``.post1``, and the build of NVIDIA's
    libraries (12.8.5 is 12.8.5.5).
    """
    posts = [known for known in finals if known.base_version == str(version)]
    if posts:
        return posts[-1:]
    size = len(version.release)
    return [known for known in finals if size > 1 and known.release[:size] == version.release]


def was_never_released(version: Version, package: Any, finals: Sequence[Version]) -> bool:
    """Tell whether a number lies among those of the releases and is none of them, or far beyond
    them; builds of a checkout and pre-releases have numbers of their own.
    """
    if len(finals) > 1 and version.major > finals[-1].major + _MAJORS_AHEAD:
        return True
    return (
        len(finals) > 1
        and finals[0] < version < finals[-1]
        and version.public == version.base_version
        and package.release(version) is None
    )


def refines(value: Any, other: Any) -> bool:
    """``12.4.131`` says what ``12.4`` says, and more."""
    return (
        isinstance(value, str)
        and isinstance(other, str)
        and other[-1:].isdigit()
        and value.startswith((other + ".", other + "+"))
    )


def shortened(value: Any) -> str:
    """Return a value as a message quotes it, at most 60 characters."""
    return f"{value!r:.60}" if not isinstance(value, str) else value[:60]


#: What one statement of a distribution says and another does not.
_KEPT = (
    *("location", "tags", "installer", "editable"),
    *("direct_url", "build", "constraint", "built"),
)


def settled_distribution(old: TextClaim, new: TextClaim) -> TextClaim:
    """Return which of two claims of a distribution holds, with what only the other tells."""
    winner, loser = (old, new) if old.rank <= new.rank else (new, old)
    kept: Distribution = winner.value
    other: Distribution = loser.value
    if other.version is not None and (kept.version is None or refines(other.version, kept.version)):
        # The same release, told with more numbers or its local label, or one where there was none.
        note, kept = winner.note, kept._replace(version=other.version)
    elif (
        other.version is None
        or kept.version is None
        or refines(kept.version, other.version.split("+")[0])
        or kept.version == other.version
    ):
        note = winner.note
    else:
        note = winner.note or f"line {loser.line} says {other.version}"
    filled: Dict[str, Any] = {}
    if kept.tags and other.tags and not (kept.location or other.location):  # of several files
        filled["tags"] = tuple(dict.fromkeys(kept.tags + other.tags))
    for name in _KEPT:
        if not getattr(kept, name) and getattr(other, name):
            filled[name] = getattr(other, name)
    return winner._replace(value=kept._replace(**filled), note=note)


def joined_devices(first: Gpu, second: Gpu) -> Gpu:
    """What both tell; the first one wins, but a full name wins over one that nvidia-smi cut."""
    values = {
        name: getattr(first, name) if getattr(first, name) is not None else getattr(second, name)
        for name in Gpu._fields
    }
    if (
        first.name
        and second.name
        and first.name.endswith("...")
        and not second.name.endswith("...")
    ):
        values["name"] = second.name
    return Gpu(**values)


def model_of(name: str) -> str:
    """Return a device's name without vendor, form factor and size of memory."""
    return _NO_MODEL.sub("", name.lower()).replace(" ", "").replace("-", "")


def is_same_device(first: Gpu, second: Gpu) -> bool:
    """Tell whether two names may be of one device; nvidia-smi cuts long ones."""
    if first.name is None or second.name is None:
        return True
    names: List[Set[str]] = [
        set(re.findall(r"[a-z]*\d+[a-z]*", name.lower())) for name in (first.name, second.name)
    ]
    cut = [name[:-3].strip() for name in (first.name, second.name) if name.endswith("...")]
    return bool(names[0] & names[1]) or any(
        first.name.startswith(part) or second.name.startswith(part) for part in cut
    )
