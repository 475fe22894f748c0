"""What the resolver found: pins with their reasons, what they require of a machine, or why there is
nothing.
"""

from __future__ import annotations

from typing import FrozenSet, Mapping, NamedTuple, Optional, Tuple

from .facts import Facts
from .request import Request, SourceStep
from .row import Source
from .versions import Version

__all__ = [
    "BuildStep",
    "ClosedLine",
    "Closure",
    "Explanation",
    "Hole",
    "Override",
    "Pin",
    "Reason",
    "Requires",
    "Resolution",
    "Statement",
]


class Reason(NamedTuple):
    """One reason. ``kind``: asked, required, row (asks for it), refused (a newer release),
    override, yanked, source-build, inferred (what was not read of it), index, profile.

    requirer: what requires it, with the extra that does ("vllm[audio]"). requirement: what was
    asked for ("vllm>=0.8"), or the releases that the requirer admits (">=2.6", "" for any).
    """

    kind: str
    text: str
    row: str = ""
    sources: Tuple[Source, ...] = ()
    requirer: str = ""
    requirement: str = ""


class BuildStep(NamedTuple):
    """How a pin without a wheel is built. ``needs``: requirement lines of what is installed before;
    ``compiler``: "nvcc", or "" where nothing is compiled; ``fetched``: its setup takes a wheel of
    the project for the torch that is pinned.
    """

    needs: Tuple[str, ...]
    compiler: str = ""
    fetched: bool = False


class Pin(NamedTuple):
    """One chosen package. ``version`` carries the local label of a build from another index;
    ``extras`` are those that something asks for; ``build``: how it is built where it is from
    source.
    """

    name: str
    version: Version
    index_name: str = "pypi"
    extras: Tuple[str, ...] = ()
    reasons: Tuple[Reason, ...] = ()
    yanked: bool = False
    from_source: bool = False
    requires: Tuple[str, ...] = ()  # names of pins that it requires
    build: Optional[BuildStep] = None


class Override(NamedTuple):
    """A metadata edge that is broken: ``requirer`` asks for ``specifier``, and ``version`` is
    installed all the same.

    row: id of the established row, or the request of a profile whose maintainers do so ("profile
    nemo-rl:0.7.0").
    """

    requirer: str
    requirer_version: str
    name: str
    specifier: str
    version: str
    row: str
    title: str
    sources: Tuple[Source, ...]


class Requires(NamedTuple):
    """What the pins require of a machine.

    Versions are lowest ones; ``sm`` are the compute capabilities that all pins have code for.
    """

    python: str
    driver: Optional[str] = None
    glibc: Optional[str] = None
    cuda: Optional[str] = None
    sm: Tuple[str, ...] = ()
    platform: str = "linux"
    architecture: str = "x86_64"


class ClosedLine(NamedTuple):
    """One line of a closed lock.

    ``via`` are the names that require it; ``exact``: only ``===`` names this build, not one with a
    local label.

    ``hashes`` are "sha256:…" of every file of the release, and none where none is to be had;
    ``source`` is its index, without credentials.
    """

    name: str
    version: str
    hashes: Tuple[str, ...] = ()
    via: Tuple[str, ...] = ()
    source: str = ""
    exact: bool = False


class Hole(NamedTuple):
    """A pin that the index at hand cannot serve: it lacks the release itself, or ``wanted``, of
    which ``there`` is what it has.
    """

    name: str
    version: str
    wanted: str = ""
    there: str = ""

    @property
    def text(self) -> str:
        """The hole in words."""
        if not self.wanted:
            return f"the index at hand has no {self.name} {self.version}"
        return (
            f"{self.name} {self.version} asks for {self.wanted}, and the index at hand has "
            f"{f'only {self.there}' if self.there else 'none'}"
        )


class Closure(NamedTuple):
    """What closing the tail gave: everything that the pins need besides.

    state: closed (all lines hashed), partial (some have no hash), core (not closed), refused
    (nothing fits the pins). reason: why it is not closed. message: the words of the tool that
    refused, with what to loosen. conflicts: requirements that the pins do not meet, of packages
    that the matrix may not know. holes: pins that the index cannot serve. platform: the wheels that
    the lines stand for ("x86_64-manylinux_2_28"). sources: options that name further indexes,
    without credentials. strategy: uv's for several indexes. local: names of the lines that only a
    folder of the machine that closed the lock has. pylock: the text of ``pylock.toml``. late: what
    the as-of date does not bind. extras: what was asked for with an extra that it does not have
    ("einops[gpu]").
    """

    state: str = "core"
    reason: str = ""
    message: str = ""
    conflicts: Tuple[str, ...] = ()
    lines: Tuple[ClosedLine, ...] = ()
    tool: str = ""
    platform: str = ""
    sources: Tuple[str, ...] = ()
    pylock: str = ""
    late: Tuple[str, ...] = ()
    holes: Tuple[Hole, ...] = ()
    strategy: str = ""
    local: Tuple[str, ...] = ()
    extras: Tuple[str, ...] = ()

    @property
    def indexes(self) -> Tuple[str, ...]:
        """The indexes that the lines are from, without folders of one machine."""
        return tuple(sorted({line.source for line in self.lines if line.source}))

    @property
    def is_closed(self) -> bool:
        """Whether there are lines for everything that is needed, hashed or not."""
        return self.state in ("closed", "partial")

    @property
    def unhashed(self) -> Tuple[str, ...]:
        """Names of the lines that no hash is to be had for."""
        return tuple(line.name for line in self.lines if not line.hashes)


class Resolution(NamedTuple):
    """A resolution.

    settings: environment variables without which a row would apply, or that a profile wants.
    warnings: rows that do not block. passed: newer requests of the same profile, and why they do
    not fit the targets. notes: sentences that whoever asked has to know: what was not judged, of
    which day the pins are. targets: in words, and machines: as facts, what it is for.
    """

    request: Request
    pins: Tuple[Pin, ...]
    overrides: Tuple[Override, ...]
    requires: Requires
    settings: Mapping[str, str]
    warnings: Tuple[Reason, ...]
    matrix_date: str
    targets: Tuple[str, ...] = ()
    notes: Tuple[str, ...] = ()
    closure: Closure = Closure()
    passed: Tuple[Reason, ...] = ()
    machines: Tuple[Facts, ...] = ()

    @property
    def sources(self) -> Tuple[SourceStep, ...]:
        """What is installed from repositories after the pins, in order."""
        return self.request.sources

    @property
    def names(self) -> FrozenSet[str]:
        """The names of everything that is installed, as far as it was closed."""
        lines = frozenset(line.name for line in self.closure.lines)
        return lines.union(pin.name for pin in self.pins)

    def pin(self, name: str) -> Optional[Pin]:
        """Return the pin of a package, or None."""
        return next((pin for pin in self.pins if pin.name == name), None)

    def with_reasons(self, reasons: Mapping[str, Reason]) -> Resolution:
        """Return this with other reasons, by requirement, for what only seems to be asked for."""

        def named(reason: Reason) -> Reason:
            return reasons.get(reason.requirement, reason) if reason.kind == "asked" else reason

        pins = (pin._replace(reasons=tuple(map(named, pin.reasons))) for pin in self.pins)
        return self._replace(pins=tuple(pins))


class Statement(NamedTuple):
    """One cause of a refusal.

    ``kind``: request, metadata, build, row, hardware, python, date, index. ``requirement``: of a
    request, what was asked for.
    """

    kind: str
    text: str
    row: str = ""
    sources: Tuple[Source, ...] = ()
    requirement: str = ""


class Explanation(NamedTuple):
    """Why there is no resolution: causes of which none can be left out, and what would make it
    solvable.
    """

    request: Request
    causes: Tuple[Statement, ...]
    ways_out: Tuple[str, ...]
    targets: Tuple[str, ...] = ()
