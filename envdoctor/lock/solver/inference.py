"""What was not read of a build, inferred from its neighbours: what is unknown does not fit for that
reason alone.

What was not read is taken from the releases before and after it for the same architecture of which
it is known: only what both have code for, the newer glibc of both, the CUDA of the nearer by date.
Else it is that of the same release for the other architecture, else of its neighbours there (CUDA
is not). The glibc of a build of another index is first that of the one on the default index.
Neighbours are at most a year away, unless there is one on both sides or it is older than all that
was read. A build that was read and has no CUDA has none.

Of 252 wheels of which both are known, neighbours of the same architecture tell 234 right and the
same release for the other architecture 42 (glibc and code, leaving out one at a time, 2026-11-28).
"""

from __future__ import annotations

from datetime import date
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...matrix.derive import build_attributes, find_builds
from ...matrix.tables import Release
from ...model.versions import Version

__all__ = ["INFERRED_WORDS", "Inference", "Inferred"]

#: What is inferred, as people name it.
INFERRED_WORDS = {"cuda": "CUDA version", "code": "GPU code", "glibc": "glibc"}
_ARCHITECTURES = ("x86_64", "aarch64")
_NEAR = 365  # days


class Inferred(NamedTuple):
    """An attribute that was not read: what it is taken to be, and from what.

    ``value``: None of a CUDA version that there is none.
    """

    attribute: str
    value: Any
    origin: str

    @property
    def text(self) -> str:
        """The inference as a sentence."""
        what = INFERRED_WORDS[self.attribute]
        return f"its {what} was not read, and is taken to be that of {self.origin}"


class Inference:
    """The releases of one package, oldest first, on an architecture.

    ``wanted``: the attributes that are inferred, of "cuda", "code" and "glibc".
    """

    def __init__(
        self,
        releases: Sequence[Tuple[Version, Release]],
        architecture: str,
        wanted: Sequence[str],
    ) -> None:
        self._releases = releases
        self._architecture = architecture
        self._wanted = tuple(wanted) if any(release.builds for _, release in releases) else ()
        self._read: Dict[Tuple[int, str], Mapping[str, Any]] = {}

    def missing(
        self, place: int, attributes: Mapping[str, Any], index_name: str = "pypi"
    ) -> List[Inferred]:
        """Return what is inferred of a build that has these attributes.

        Args:
            place: of its release.
            attributes: what was read of it; none where it was not read at all.
            index_name: the index that it comes from.
        """
        without_cuda = bool(attributes) and "cuda" not in attributes
        inferences = []
        for name in self._wanted:
            if name in attributes or (without_cuda and name != "glibc"):
                continue
            inferred = next(filter(None, self._sources(place, name, index_name)), None)
            if inferred is not None:
                without_cuda = without_cuda or inferred.value is None
                inferences.append(inferred)
        return inferences

    def _sources(self, place: int, name: str, index_name: str) -> Iterator[Optional[Inferred]]:
        """What may be inferred, the surest first."""
        others = [each for each in _ARCHITECTURES if each != self._architecture]
        if index_name != "pypi" and name == "glibc":
            yield self._of_release(place, name, self._architecture, "the build on PyPI")
        yield self._of_neighbours(place, name, self._architecture)
        for other in others if index_name == "pypi" else ():
            yield self._of_release(place, name, other, f"the wheel for {other}")
        for other in others if name != "cuda" else ():
            yield self._of_neighbours(place, name, other)

    def _attributes(self, place: int, architecture: str) -> Mapping[str, Any]:
        """What was read of a release on the default index, where its builds agree in it; "index"
        says that there is such a build.
        """
        common = self._read.get((place, architecture))
        if common is None:
            version, release = self._releases[place]
            every = [
                build_attributes(build) for build in find_builds(release, version, architecture)
            ]
            common = self._read[place, architecture] = {
                name: every[0][name]
                for name in ("index", *self._wanted)
                if every
                and name in every[0]
                and all(other.get(name) == every[0][name] for other in every)
            }
        return common

    def _of_release(
        self, place: int, name: str, architecture: str, origin: str
    ) -> Optional[Inferred]:
        value = self._attributes(place, architecture).get(name)
        return Inferred(name, value, origin) if value is not None else None

    def _of_neighbours(self, place: int, name: str, architecture: str) -> Optional[Inferred]:
        before = self._nearest(range(place - 1, -1, -1), name, architecture)
        after = self._nearest(range(place + 1, len(self._releases)), name, architecture)
        sides = [side for side in (before, after) if side is not None]
        # What is older than all that was read has no code for what came later still, and no CUDA
        # where that came later still.
        oldest = before is None and after is not None and (name == "code" or after[1] is None)
        if not oldest and (name != "code" or len(sides) < 2):
            sides = [side for side in sides if self._days_between(place, side[0]) <= _NEAR]
        if not sides:
            return None
        values = [value for _, value in sides]
        origin = " and ".join(str(self._releases[other][0]) for other, _ in sides)
        if name == "code":
            return Inferred(name, frozenset.intersection(*values), origin)
        if name == "glibc":
            return Inferred(name, max(values), origin)
        nearer, value = min(sides, key=lambda side: self._days_between(place, side[0]))
        return Inferred(name, value, str(self._releases[nearer][0]))

    def _nearest(
        self, places: Sequence[int], name: str, architecture: str
    ) -> Optional[Tuple[int, Any]]:
        """The first of these releases of which an attribute is known; of the CUDA version also that
        there is none.
        """
        for place in places:
            attributes = self._attributes(place, architecture)
            if name in attributes or (name == "cuda" and attributes):
                return place, attributes.get(name)
        return None

    def _days_between(self, place: int, other: int) -> int:
        first, second = (
            date.fromisoformat(self._releases[number][1].released[:10]) for number in (place, other)
        )
        return abs((first - second).days)
