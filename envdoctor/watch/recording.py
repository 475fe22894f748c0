"""What was measured of a run, and what it says."""

from __future__ import annotations

from typing import Optional, Tuple

from ..model.record import NamedTuple
from ..probes.usage import Group, GroupUse, ProcessUse
from .trend import Arrival, Trend

__all__ = ["Outlook", "Recording", "Sample"]


class Sample(NamedTuple):
    """Memory at one moment; ``elapsed`` in seconds since the watch began."""

    elapsed: float
    use: GroupUse
    processes: Tuple[ProcessUse, ...]


class Outlook(NamedTuple):
    """What the samples so far say."""

    sample: Sample
    group: Group
    trend: Trend
    arrival: Optional[Arrival]
    growing: Optional[Tuple[ProcessUse, Trend]]  # the process that grows fastest


class Recording(NamedTuple):
    """A watch that has ended."""

    group: Group
    samples: Tuple[Sample, ...]  # thinned
    taken: int  # samples
    outlook: Optional[Outlook]
    peak: int  # bytes, the highest ``used``
    duration: float  # seconds
    exit_code: Optional[int]  # of the run, where it was started here: its own, or 128 + signal
    oom_kills: int  # that the kernel counted meanwhile
    cost: float  # CPU seconds that the watch itself took
    failure: str = ""  # why the samples are not all in the file
