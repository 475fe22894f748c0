"""An end for the probes of this process: a slow filesystem must not hold the whole report.

It ends the sum of many slow reads. One look-up in state D (a dead NFS server, a FUSE that does not
answer) is ended by no signal: where such a file system is mounted, ``watched`` runs the probes.
"""

from __future__ import annotations

# Importing signal makes enums, 2 ms; this is the module behind it.
import _signal as signal  # type: ignore[import-not-found,unused-ignore]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Tuple

__all__ = ["Alarm", "TooLong"]


class TooLong(BaseException):
    """The time of a probe is over.

    No ``Exception``: nothing that a probe catches of its own accord.
    """


class Alarm:
    """The process's interval timer, lent for a ``with`` block.

    It stays off where the timer is not ours to take: outside the main thread, and where the caller
    uses it.
    """

    __slots__ = ("_armed", "_previous", "_ready")

    def __init__(self) -> None:
        self._ready = False
        self._armed = False
        self._previous: Any = None

    def __enter__(self) -> Alarm:
        self._previous = signal.getsignal(signal.SIGALRM)
        if self._previous is None or signal.getitimer(signal.ITIMER_REAL)[0]:
            return self  # a handler that Python does not know, or an alarm that is set
        try:
            signal.signal(signal.SIGALRM, self._ring)
        except ValueError:  # not the main thread
            return self
        self._ready = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._ready:
            signal.signal(signal.SIGALRM, self._previous)

    def call(self, function: Callable[..., Any], arguments: Tuple[Any, ...], seconds: float) -> Any:
        """Return what the function returns; raises :class:`TooLong` after so many seconds."""
        if not self._ready:
            return function(*arguments)
        try:
            self._armed = True
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return function(*arguments)
        finally:
            # A signal that is on its way finds this before the timer is off.
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, *_: object) -> None:
        if self._armed:
            raise TooLong
