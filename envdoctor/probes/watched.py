"""Probes beside file systems that may never answer: a dead NFS server, a FUSE that hangs.

A process that waits for one is in state D: no signal reaches it, not even an alarm of its own. So
the probes run in a child that shows in shared memory at which path it is. Where one look-up does
not come back, that child is left behind and another goes on without the path, and without all else
on its mount: what hangs there holds locks of the kernel that the next one would wait for.
"""

from __future__ import annotations

import errno
import json
import os
import time
from contextlib import suppress

from ..model.facts import Facts
from ..model.serde import dump_facts, read_facts
from ..mounts import mounts_elsewhere
from .alarm import Alarm
from .isolation import GRACE, run_isolated, start_stream
from .machine import READ_LIMIT, Machine
from .probe_run import fail_probe, join_facts, run_probe, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

    from .isolation import Child, ChildOutcome
    from .machine import Probe

    T = TypeVar("T")

__all__ = ["WatchedMachine", "ask_watched", "find_silent", "run_watched"]

_PATIENCE = 2.0
"""Seconds that one look-up may take. A cold file on a large Lustre takes tens of milliseconds."""

_FIRST_PATIENCE = 1.0  # the same before the probes begin
_SHARE = 0.4  # of the time of all probes: two dead mounts still leave some for the rest
_SLACK = 0.5  # a probe that waits for children of its own ends of itself, and says more
_TICK = 0.05
_PAGE = 8192

_SILENT: Dict[str, str] = {}
"""What this process leaves alone from here on: mounts, with the path that did not answer there."""


class Place:
    """The path at which a process is, in memory that it shares with its parent."""

    __slots__ = ("_count", "_depth", "_page")

    def __init__(self) -> None:
        import mmap

        self._page = mmap.mmap(-1, _PAGE)
        self._count = self._depth = 0

    def at(self, path: str) -> Place:
        """Say which path is looked up in the ``with`` block; one within another says nothing."""
        if not self._depth:
            # The count tells two look-ups of one path apart.
            self._count = self._count % 255 + 1
            content = b"%c%s\0" % (self._count, os.fsencode(path)[: _PAGE - 2])
            self._page[: len(content)] = content
        return self

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.clear()

    def clear(self) -> None:
        """Say that nothing is looked up."""
        self._page[0] = 0

    def get(self) -> bytes:
        """Return the count and the path; b"" where nothing is looked up."""
        return self._page[:].partition(b"\0")[0]


class WatchedMachine(Machine):
    """A machine that says at which path it is, and looks nothing up where one did not answer.

    ``place``: where it says so.
    """

    __slots__ = ("place",)

    def __init__(self, machine: Machine, place: Place) -> None:
        for name in Machine.__slots__:
            setattr(self, name, getattr(machine, name))
        self.place = place

    def realpath(self, path: str) -> str:
        """Resolve a path, as the machine does; so do all below."""
        return self._at(path, path, super().realpath, path)

    def use(self, function: Callable[[str], T], path: str) -> T:
        """Raise :class:`TimeoutError` where the path is left alone."""
        if self._is_left_alone(path):
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        with self.place.at(path):
            return super().use(function, path)

    def try_read(self, path: str, limit: int = READ_LIMIT) -> Tuple[Optional[bytes], str]:
        """Read a file."""
        nothing: Tuple[Optional[bytes], str] = (None, "it was left alone")
        return self._at(path, nothing, super().try_read, path, limit)

    def listdir(self, path: str) -> Optional[List[str]]:
        """List a folder."""
        return self._at(path, None, super().listdir, path)

    def readlink(self, path: str) -> Optional[str]:
        """Read a link."""
        return self._at(path, None, super().readlink, path)

    def _test(self, path: str, kind: Optional[Callable[[int], bool]]) -> bool:
        return self._at(path, False, super()._test, path, kind)

    def _at(self, path: str, otherwise: T, function: Callable[..., T], *arguments: Any) -> T:
        if self._is_left_alone(path):
            return otherwise
        with self.place.at(path):
            return function(*arguments)

    def _is_left_alone(self, path: str) -> bool:
        for folder, culprit in _SILENT.items():
            if _is_in(path, folder):
                self.unread.setdefault(path, f"left alone, since {culprit} did not answer")
                return True
        return False


def run_watched(
    machine: Machine,
    probes: Sequence[Probe],
    elsewhere: Sequence[str],
    announce: Optional[Callable[[str], None]] = None,
) -> bool:
    """Run probes in a child and join their facts to the machine's, whatever never answers; return
    False where there can be no child, so that nothing was run.

    Args:
        machine: What is looked at; its ``end`` is kept to.
        probes: What is run.
        elsewhere: Where file systems are mounted that may not answer.
        announce: Is told the name of each probe before it runs.
    """
    rounds = _Rounds(machine, list(probes), announce)
    while rounds.waiting and machine.end > time.monotonic():
        try:
            silent = rounds.run()
        except OSError:
            if len(rounds.waiting) == len(probes):
                return False
            break
        if silent:
            _SILENT[_mount_of(silent, elsewhere)] = silent
    for probe in rounds.waiting:
        fail_probe(probe, machine, f"not started, {machine.deadline:.3g} s had passed")
    return True


class _Rounds:
    """Probes that wait for their turn, one child after the other."""

    def __init__(
        self, machine: Machine, waiting: List[Probe], announce: Optional[Callable[[str], None]]
    ) -> None:
        self.machine = machine
        self.waiting = waiting
        self._announce = announce
        self._place = Place()
        self._patience = min(_PATIENCE, machine.deadline * _SHARE)
        self._began = self._limit = 0.0  # of the first of the waiting

    def run(self) -> str:
        """Run one child until it is done, fails or hangs; return the path that did not answer.

        Raises OSError where none can be made.
        """
        self._place.clear()
        child = start_stream(self._work, max(self.machine.end - time.monotonic(), 0))
        try:
            reason, silent = self._follow(child)
        except BaseException:  # an interruption
            child.stop()
            raise
        end = child.stop(0.0 if silent else GRACE)
        if silent:
            self.machine.unread[silent] = reason + end
        elif self.waiting:
            fail_probe(self.waiting.pop(0), self.machine, reason + end)
        return silent

    def _work(self, write: Callable[[bytes], None]) -> None:
        """Run the probes, in the child."""
        machine = WatchedMachine(self.machine, self._place)
        for probe in self.waiting:
            write(b"\n")
            before = set(machine.unread)
            run_probe(probe, machine, Alarm())  # the parent keeps its time
            self._place.clear()
            facts = {name: machine.facts[name] for name in probe.fields if name in machine.facts}
            unread = {path: machine.unread[path] for path in machine.unread if path not in before}
            answer = {"facts": dump_facts(Facts(facts)), "unread": unread}
            write(json.dumps(answer).encode("ascii") + b"\n")

    def _follow(self, child: Child) -> Tuple[str, str]:
        """Take what the child tells; return why it has to end, and the path that did not answer."""
        received = bytearray()
        self._begin()
        at, since = b"", self._began
        while self.waiting:
            part = child.read(_TICK)
            if part == b"":
                return "the process that read it ended", ""
            if part:
                received += part
                *lines, rest = received.split(b"\n")
                received = bytearray(rest)
                for line in lines:
                    self._take(bytes(line))
                continue
            now, here = time.monotonic(), self._place.get()
            if here != at:
                at, since = here, now
            path = os.fsdecode(at[1:])
            if path and now - since >= self._patience:
                return f"no answer within {self._patience:.2g} s", path
            if now > min(self.machine.end, self._began + self._limit):
                return f"took longer than {now - self._began:.2g} s", path
        return "", ""

    def _begin(self) -> None:
        self._began = time.monotonic()
        self._limit = time_of(self.waiting[0], self.machine) + _SLACK

    def _take(self, line: bytes) -> None:
        if line:
            answer = json.loads(line)
            join_facts(self.machine.facts, dict(read_facts(answer["facts"], "a probe")))
            self.machine.unread.update(answer["unread"])
            self.waiting.pop(0)
            return
        self._begin()
        if self._announce is not None:
            self._announce(self.waiting[0].name)


def find_silent(paths: Sequence[str]) -> Optional[Tuple[str, str]]:
    """Return the first of some paths that does not answer, and why; None where all do.

    They are looked up only where a file system is mounted that may never answer.
    """

    def look(machine: WatchedMachine) -> bytes:
        for path in paths:
            with machine.place.at(path), suppress(OSError, ValueError):  # that is an answer
                os.stat(path)
        return b""

    elsewhere = mounts_elsewhere()
    if not elsewhere:
        return None
    outcome, path = ask_watched(look, elsewhere)
    return (path, outcome.reason) if path else None


def ask_watched(
    question: Callable[[WatchedMachine], bytes], elsewhere: Sequence[str]
) -> Tuple[ChildOutcome, str]:
    """Ask something of this machine in a child that has a second; return what came of it, and the
    path that did not answer, or "". That one is left alone from here on.
    """
    place = Place()
    outcome = run_isolated(lambda: question(WatchedMachine(Machine(), place)), _FIRST_PATIENCE)
    path = os.fsdecode(place.get()[1:]) if outcome.reason else ""
    if path:
        _SILENT[_mount_of(path, elsewhere)] = path
    return outcome, path


def _mount_of(path: str, elsewhere: Sequence[str]) -> str:
    """Return the mount on which a path lies, as far as its text says; else the path."""
    return max((point for point in elsewhere if _is_in(path, point)), key=len, default=path)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
