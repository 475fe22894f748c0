"""What was measured of a run, and what it says."""

from __future__ import annotations

from typing import Optional, Tuple

from ..model.record import NamedTuple
from ..probes.usage import Group, GroupUse, ProcessUse
from .command_output import Kept
from .trend import Arrival, Trend

__all__ = ["Outlook", "Recording", "Sample"]


class Sample(NamedTuple):
    """Memory at one moment; ``elapsed`` in seconds since the watch began."""

    elapsed: float
    use: GroupUse
    processes: Tuple[ProcessUse, ...]
    is_own: bool = False  # judged is what the processes use, not what the group does

    @property
    def own(self) -> GroupUse:
        """What is judged: the use of the group; or of the processes, where the limit is that of a
        whole machine, on which others come and go. Shared memory is mapped by several: the largest
        share counts, which is the least that it can be.
        """
        if not self.is_own:
            return self.use
        anonymous = sum([process.anonymous for process in self.processes])
        shared = max([process.shared for process in self.processes], default=0)
        return GroupUse(anonymous + shared, anonymous, shared, 0, 0, self.use.oom_kills)

    def room(self, limit: int) -> int:
        """Return the bytes that are left below a limit of the group."""
        return max(0, limit - self.use.used)


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
    peak: int  # bytes, the highest that was judged
    duration: float  # seconds
    exit_code: Optional[int]  # of the run, where it was started here: its own, or 128 + signal
    oom_kills: int  # that the kernel counted meanwhile
    cost: float  # CPU seconds that the watch itself took
    failure: str = ""  # why the samples are not all in the file
    killed_at: Tuple[float, ...] = ()  # seconds at which the counter of OOM kills had moved
    stopped_by: Tuple[int, ...] = ()  # signals by which a user or a scheduler asked the run to end
    output: Tuple[Kept, ...] = ()  # the end of what it wrote, where that was asked for

    @property
    def is_own(self) -> bool:
        """Tell whether the run's own memory was judged, not that of a group."""
        return bool(self.samples) and self.samples[-1].is_own
