"""Wheel tags: which Python and machine a wheel serves, and what the wheel that a target gets asks
for.
"""

from __future__ import annotations

from ..model.pattern import pattern
from ..model.sizes import whole_number
from ..model.versions import Version, parse_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import FrozenSet, Optional, Sequence

    from .tables import Release

__all__ = ["LEGACY_GLIBC", "glibc_for", "served_release", "serves_python"]

#: The glibc of platform tags from before PEP 600.
LEGACY_GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
_MANYLINUX = pattern(r"manylinux_(\d+)_(\d+)_(\w+)\Z")


def serves_python(tag: str, python: Version) -> bool:
    """``py3`` serves every Python 3, ``cp38-abi3`` everything from 3.8 on, ``cp310`` that minor
    alone.
    """
    interpreter, _, abi = tag.partition("-")
    digits = interpreter[2:]
    if whole_number(digits) is None:
        # cp313t is a free-threaded build; any other odd tag is taken to fit.
        return not interpreter.endswith("t")
    wanted = (int(digits[0]), int(digits[1:])) if len(digits) > 1 else (int(digits[0]),)
    minor = python.release[:2]
    if interpreter.startswith("py"):
        return minor[0] == wanted[0] and minor >= wanted
    if abi == "abi3":
        return minor >= wanted
    return minor == wanted


def glibc_for(tag: str, platform: str, architecture: str) -> Optional[Version]:
    """Return the glibc that a platform tag asks for (0 for "any"), or None where it is for another
    platform.
    """
    if tag == "any":
        return parse_version("0")
    if platform != "linux":
        return (
            parse_version("0")
            if tag.startswith({"darwin": "macosx", "win32": "win"}.get(platform, "?"))
            else None
        )
    match = _MANYLINUX.match(tag)
    if match is not None:
        return (
            parse_version(f"{match.group(1)}.{match.group(2)}")
            if match.group(3) == architecture
            else None
        )
    for name, floor in LEGACY_GLIBC.items():
        if tag == f"{name}_{architecture}":
            return parse_version(floor)
    return parse_version("0") if tag == f"linux_{architecture}" else None


def served_release(
    release: Release, python: Optional[Version], platform: str, architecture: str
) -> Release:
    """Return a release with the metadata of the wheel that a target gets.

    Installers take the most specific tag that serves: ``cp310`` before ``cp37-abi3`` before
    ``py3``. Where the Python is not known, a difference counts if the wheels for all Pythons have
    it. What the matrix does not store: which Pythons the other wheels of one platform are for.

    Args:
        release: a release, the wheels of which may ask for different things (``differs``).
        python: the target's Python, at least its minor, or None.
        platform: ``linux``, as ``sys.platform`` has it.
        architecture: ``x86_64``, as ``platform.machine()`` has it.
    """
    if not release.differs:
        return release
    best = _most_specific(
        [tag for tag in release.pythons if python is None or serves_python(tag, python)], python
    )
    for other in release.differs:
        platforms = [tag for tags in other.platforms for tag in tags.split(".")]
        if (
            best
            and best <= set(other.pythons)
            and any(glibc_for(tag, platform, architecture) is not None for tag in platforms)
        ):
            asked = (
                other.requires_python
                if other.requires_python is not None
                else release.requires_python
            )
            return release._replace(requires=other.requires, requires_python=asked)
    return release


def _most_specific(tags: Sequence[str], python: Optional[Version]) -> FrozenSet[str]:
    if python is None:
        return frozenset(tags)
    ranks = {tag: 0 if tag.startswith("py") else 1 if tag.endswith("-abi3") else 2 for tag in tags}
    return frozenset(tag for tag in tags if ranks[tag] == max(ranks.values()))
