"""What a memory plan consists of: terms with their bounds, pools with their limits and the verdict
of each, and levers: changes of settings with what they do to a pool.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Tuple

from .evidence import Evidence
from .finding import Finding
from .record import NamedTuple
from .workload import Workload

__all__ = [
    "PHASES",
    "VERDICTS",
    "CacheCheck",
    "Input",
    "Lever",
    "Limit",
    "MemoryPlan",
    "MemoryTerm",
    "PlanResult",
    "Pool",
    "Variant",
]

#: What a run does one after the other. A pool needs what its worst phase needs.
PHASES = ("load", "rollout", "update", "save")

#: From good to bad; "cannot tell" is no answer.
VERDICTS = ("fits", "cannot tell", "tight", "does not fit")


class Input(NamedTuple):
    """A value that a formula took, and where it was set; ``place`` is empty for what nobody set."""

    field: str
    value: Any
    place: str = ""


class MemoryTerm(NamedTuple):
    """One part of what a pool has to hold, in bytes: not less than ``low``, not more than ``high``.

    passing: only one model at a time has it there, because models are updated one after the other.
    """

    name: str
    low: int
    high: int
    formula: str
    source: str
    phases: Tuple[str, ...]
    role: str = ""
    inputs: Tuple[Input, ...] = ()
    note: str = ""
    passing: bool = False


class Limit(NamedTuple):
    """What a pool may hold.

    ``usable``: from where on a run is in danger (Ray's monitor acts at 95 %); ``reason`` says which
    of the limits it is.
    """

    size: int
    usable: int
    reason: str
    evidence: Tuple[Evidence, ...] = ()


class Unstated(NamedTuple):
    """A setting that a run does not state, and the bounds of a pool with each value that it may
    have: the setting as one writes it, low and high in bytes.
    """

    field: str
    ranges: Tuple[Tuple[str, int, int], ...]


class Pool(NamedTuple):
    """One kind of memory: ``host`` (a node's), ``gpu`` (one device's), ``shm`` (/dev/shm of a
    node).

    missing: inputs without which ``high`` is no upper bound, each as a question. doubts: inputs
    that would narrow the bounds. unread: settings of the run that nobody here knows, each of which
    may make ``low`` no lower bound. unstated: the one of ``doubts`` and of other unstated settings
    that would narrow the bounds most.
    """

    name: str
    terms: Tuple[MemoryTerm, ...]
    limit: Optional[Limit] = None
    subject: str = ""
    missing: Tuple[str, ...] = ()
    doubts: Tuple[str, ...] = ()
    unread: Tuple[str, ...] = ()
    unstated: Optional[Unstated] = None

    def bounds(self, phase: str) -> Tuple[int, int]:
        """Return low and high of one phase, bytes."""
        held = [term for term in self.terms if phase in term.phases]
        return sum(term.low for term in held), sum(term.high for term in held)

    @property
    def low(self) -> int:
        """What the worst phase needs at least, bytes."""
        return max(self.bounds(phase)[0] for phase in PHASES)

    @property
    def high(self) -> int:
        """What the worst phase needs at most, bytes."""
        return max(self.bounds(phase)[1] for phase in PHASES)

    @property
    def peak(self) -> str:
        """The phase that needs most."""
        return max(PHASES, key=lambda phase: (self.bounds(phase)[1], self.bounds(phase)[0]))

    @property
    def floor(self) -> str:
        """The phase that surely needs most."""
        return max(PHASES, key=lambda phase: self.bounds(phase))

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``.

        It hangs on where the limit lies, not on how far the bounds lie apart: above both it fits,
        below both it does not, between them it is "tight", and ``share_above`` says how much of
        the range does not fit. "Fits" needs all inputs and a limit: an unknown limit is not
        "unlimited".
        """
        if self.limit is None:
            return "cannot tell"
        if self.low > self.limit.usable:
            return "tight" if self.unread else "does not fit"
        if self.missing:
            return "cannot tell"
        return "fits" if self.high <= self.limit.usable else "tight"

    @property
    def share_above(self) -> Optional[float]:
        """How much of the range from ``low`` to ``high`` lies above what may be used, 0 to 1."""
        if self.limit is None:
            return None
        if self.high == self.low:
            return float(self.low > self.limit.usable)
        share = (self.high - self.limit.usable) / (self.high - self.low)
        return min(1.0, max(0.0, share))

    def term(self, name: str) -> Tuple[MemoryTerm, ...]:
        """Return the terms of this name, of all roles."""
        return tuple(term for term in self.terms if term.name == name)


class CacheCheck(NamedTuple):
    """Whether the KV cache of one engine holds one sequence of the longest length that it accepts.

    Bytes per GPU; tokens for messages.
    """

    need: int
    low: int
    high: int
    length: int
    per_token: int
    formula: str
    inputs: Tuple[Input, ...] = ()
    missing: Tuple[str, ...] = ()
    unread: Tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``; ``need`` is no lower bound where something is missing, and ``high``
        no upper one where a setting was not understood. Without a length (0) there is an answer
        only where nothing is left.
        """
        if not self.length:
            return "cannot tell" if self.high >= self.per_token or self.unread else "does not fit"
        if self.low >= self.need:
            return "fits"
        if self.missing:
            return "cannot tell"
        return "does not fit" if self.high < self.need and not self.unread else "tight"

    @property
    def tokens(self) -> Tuple[int, int]:
        """How many tokens the cache surely holds, and how many at most."""
        each = max(self.per_token, 1)
        return self.low // each, self.high // each


class MemoryPlan(NamedTuple):
    """The plan of one node (all are alike) and of each kind of GPU on it."""

    pools: Tuple[Pool, ...]
    cache: Optional[CacheCheck] = None
    notes: Tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The worst verdict: "does not fit" before "tight" before "cannot tell" before "fits"."""
        verdicts = [pool.verdict for pool in self.pools] + (
            [self.cache.verdict] if self.cache is not None else []
        )
        return max(verdicts, key=VERDICTS.index) if verdicts else "cannot tell"

    def pool(self, name: str, subject: Optional[str] = None) -> Pool:
        """Return a pool by name; raises :class:`KeyError`."""
        for pool in self.pools:
            if pool.name == name and subject in (None, pool.subject):
                return pool
        raise KeyError(name)

    def matching(self, names: Iterable[Tuple[str, str]]) -> List[Pool]:
        """Return pools by (name, subject), in the order asked."""
        known: Dict[Tuple[str, str], Pool] = {
            (pool.name, pool.subject): pool for pool in self.pools
        }
        return [known[name] for name in names if name in known]


class Lever(NamedTuple):
    """One change and its predicted effect on one pool.

    ``settings``: key=value in the framework's words. cost: 1 (none to speak of) to 5.
    """

    pool: str
    subject: str
    settings: Tuple[str, ...]
    before: Tuple[int, int]
    after: Tuple[int, int]
    verdict: str
    cost: int
    price: str
    fields: Tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The settings as they are written."""
        return " ".join(self.settings)


class PlanResult(NamedTuple):
    """The plan of one run on one machine. before: the plan without the changes that ``changes``
    names. findings: of the memory and the settings.
    """

    workload: Workload
    plan: MemoryPlan
    levers: Tuple[Lever, ...]
    findings: Tuple[Finding, ...]
    before: Optional[MemoryPlan] = None
    changes: Tuple[str, ...] = ()


class Variant(NamedTuple):
    """A plan with some settings changed: one row of a sweep."""

    settings: Tuple[str, ...]
    plan: MemoryPlan
