"""Watching a run: samples of its memory, where they are heading, and the run's own end.

The command is started, never changed: it keeps the terminal, gets every signal that this process
gets, and its exit code is what is returned. A run that is watched from outside (by its process
number) is only read.
"""

from __future__ import annotations

import os
import select
import signal
import time
from functools import partial
from types import FrameType
from typing import Callable, Dict, List, NoReturn, Optional, Sequence, TextIO, Tuple, TypeVar

from ..errors import InputError
from ..probes.machine import Machine
from ..probes.usage import find_group, find_members, find_tree, read_group, read_processes
from .command_output import Kept, Output
from .recording import Outlook, Recording, Sample
from .started_command import StartedCommand
from .trend import Point, find_trend, predict

__all__ = ["watch"]

#: Samples that are kept at most; beyond, every second one goes.
_KEPT = 4096
_KEPT_OF_PROCESS = 256
_KEPT_KILLS = 64
_NOISE = 1 << 20  # bytes
_T = TypeVar("_T")


class _Series:
    """Points in the order of time, thinned where they become too many."""

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.points: List[Point] = []

    def add(self, elapsed: float, value: float) -> None:
        self.points.append((elapsed, value))
        if len(self.points) >= self.kept:
            self.points = self.points[::2]


class _Watch:
    """The samples of one run."""

    def __init__(
        self, machine: Machine, pid: int, container: bool, interval: float, csv: Optional[TextIO]
    ) -> None:
        self.machine = machine
        self.pid = pid
        self.container = container
        self.interval = interval
        self.csv = csv
        self.failure = ""
        group = find_group(machine, pid)
        if group is None:
            raise InputError(
                f"neither the control group of process {pid} nor /proc/meminfo can be read, so "
                "there is nothing to watch"
            )
        self.group = group
        self.begun = time.monotonic()
        self.cpu = time.process_time()
        self.samples: List[Sample] = []
        self.latest: Optional[Sample] = None
        self.taken = 0
        self.peak = 0
        self.used = _Series(_KEPT)
        self.by_process: Dict[Tuple[int, int], _Series] = {}
        self.kills: Optional[int] = None
        self.killed_at: List[float] = []

    @property
    def is_own(self) -> bool:
        """Tell whether the run is judged by its own memory: the limit is the machine's."""
        return self.group.directory is None and not self.container

    def take(self) -> Optional[Sample]:
        """Take one sample, or None where the group is gone."""
        use = read_group(self.machine, self.group)
        if use is None:
            return None
        pids = (
            find_members(self.machine, self.group)
            if self.container
            else find_tree(self.machine, self.pid)
        )
        own = os.getpid()
        processes = read_processes(self.machine, [pid for pid in pids if pid != own])
        if self.is_own and not processes and self.latest is not None:
            return self.latest  # it has just ended
        elapsed = time.monotonic() - self.begun
        before = self.latest.use.oom_kills if self.latest is not None else use.oom_kills
        sample = self.latest = Sample(elapsed, use, processes, self.is_own)
        self.kills = use.oom_kills if self.kills is None else self.kills
        self._note_kills(before, use.oom_kills, elapsed)
        self.taken += 1
        used = sample.own.used
        self.peak = max(self.peak, used)
        self.used.add(elapsed, used)
        alive = {(process.pid, process.started): process for process in processes}
        for identity, process in alive.items():
            self.by_process.setdefault(identity, _Series(_KEPT_OF_PROCESS)).add(
                sample.elapsed, process.used
            )
        for identity in self.by_process.keys() - alive.keys():
            del self.by_process[identity]
        self.samples.append(sample)
        if len(self.samples) >= _KEPT:
            self.samples = self.samples[::2]
        self._write(sample)
        return sample

    def _note_kills(self, before: int, now: int, elapsed: float) -> None:
        if now > before and len(self.killed_at) < _KEPT_KILLS:
            self.killed_at.append(elapsed)

    def _write(self, sample: Sample) -> None:
        """Append a sample to the CSV file; a full disk ends the file, never the run."""
        if self.csv is None:
            return
        use = sample.use
        pools = (
            ("used", use.used),
            ("anonymous", use.anonymous),
            ("shared", use.shared),
            ("file", use.file),
            ("kernel", use.kernel),
        )
        rows = [
            f"{sample.elapsed:.2f},pool,,{name},{value}"
            for name, value in (*pools, ("limit", self.group.limit))
        ]
        # A name is what a process calls itself: commas, quotes and line ends of it would break the
        # table, and "=" makes formulas.
        rows += [
            f"{sample.elapsed:.2f},process,{process.pid},{_cell(process.name)},{process.used}"
            for process in sample.processes
        ]
        try:
            self.csv.write("\n".join(rows) + "\n")
            self.csv.flush()
        except OSError as error:
            self.failure = (
                f"samples after {sample.elapsed:.0f} s are not in the file: {error.strerror}"
            )
            self.csv = None

    def outlook(self) -> Optional[Outlook]:
        """Return what the samples so far say."""
        sample = self.latest
        if sample is None:
            return None
        # On a whole machine others come and go: below a hundredth of its memory that is no trend.
        is_machine = self.group.directory is None and not self.is_own
        trend = find_trend(self.used.points, self.group.limit / 100 if is_machine else _NOISE)
        growing = None
        for process in sample.processes:
            own = find_trend(self.by_process[(process.pid, process.started)].points)
            if own.grows and (growing is None or own.slope > growing[1].slope):
                growing = (process, own)
        limit = sample.own.used + sample.room(self.group.limit)
        return Outlook(sample, self.group, trend, predict(trend, limit), growing)

    def guarded(self, step: Callable[[], _T], otherwise: _T) -> _T:
        """Return what a step gives; a fault of ours in it is a remark at the end, no end of the
        run.
        """
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - of ours, so that the run never ends by it
            from ..model.redaction import redact

            fault = redact(f"{type(error).__name__}: {error}")[:200]
            self.failure = f"a fault of envdoctor itself while sampling, {fault}"
            return otherwise

    def end(
        self,
        exit_code: Optional[int],
        stopped_by: Tuple[int, ...] = (),
        output: Tuple[Kept, ...] = (),
    ) -> Recording:
        # A kill comes after the last sample.
        last = self.guarded(lambda: read_group(self.machine, self.group), None)
        duration = time.monotonic() - self.begun
        if last is not None and self.latest is not None:
            self._note_kills(self.latest.use.oom_kills, last.oom_kills, duration)
        return Recording(
            self.group,
            tuple(self.samples),
            self.taken,
            self.guarded(self.outlook, None),
            self.peak,
            duration,
            exit_code,
            max(0, last.oom_kills - (self.kills or 0)) if last is not None else 0,
            time.process_time() - self.cpu,
            self.failure,
            tuple(self.killed_at),
            stopped_by,
            output,
        )


def _cell(name: str) -> str:
    return "".join(
        character if character.isalnum() or character in "._-:/ " else "_" for character in name
    )


def watch(
    *,
    command: Sequence[str] = (),
    become: Optional[Callable[[Sequence[str]], NoReturn]] = None,
    keep_output: bool = False,
    pid: Optional[int] = None,
    container: bool = False,
    interval: float = 1.0,
    duration: Optional[float] = None,
    csv: Optional[TextIO] = None,
    report: Callable[[Outlook], None] = lambda _: None,
    report_every: float = 60.0,
) -> Recording:
    """Watch a run until it ends, this process is asked to end, or ``duration`` is over.

    Args:
        command: what to start and watch.
        become: turns a process into the command, or ends it as shells do where there is none.
        keep_output: keep the end of what the command writes.
        pid: a process that runs already, watched with all that descend from it.
        container: every process of the control group that limits this one; alone, or beside a
            command.
        interval: seconds between two samples.
        duration: seconds after which to stop watching; a started command goes on being waited for.
        csv: open file that samples are appended to as they are taken.
        report: called with the outlook every ``report_every`` seconds, and when the shape of the
            trend changes.
        report_every: seconds.

    Raises:
        InputError: no such process, or nothing of which memory can be read; the command was not
            started then.
    """
    machine = Machine()
    watched = os.getpid() if container or command else pid
    if watched is None or not machine.exists(f"/proc/{watched}"):
        raise InputError(f"process {pid}: expected a running process, found none")
    seen = _Watch(machine, watched, container, interval, csv)
    sample = partial(_sample_until, seen, duration=duration, report=report, every=report_every)
    if command:
        return _watch_command(seen, command, become or _become, keep_output, sample)
    handle = _open_process(watched) if not container else None
    stopped: List[int] = []

    def stop(number: int, _: Optional[FrameType]) -> None:
        stopped.append(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        sample(
            lambda wait: bool(stopped) or _ended(machine, watched, handle, wait) or bool(stopped)
        )
    finally:
        for number, old in before.items():
            signal.signal(number, old)
        if handle is not None:
            os.close(handle)
    return seen.end(None)


def _become(command: Sequence[str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], list(command))  # noqa: S606 - no shell is wanted
    except FileNotFoundError:
        os._exit(127)
    except OSError:
        os._exit(126)


def _watch_command(
    seen: _Watch,
    command: Sequence[str],
    become: Callable[[Sequence[str]], NoReturn],
    keep_output: bool,
    sample: Callable[[Callable[[float], bool]], None],
) -> Recording:
    output = seen.guarded(Output, None) if keep_output else None
    try:
        if output is not None:
            output.redirect()
        child = StartedCommand(command, become)
    except OSError as error:
        raise InputError(f"{command[0]}: cannot be started: {error.strerror}") from error
    finally:
        if output is not None:
            output.restore()
    seen.pid = child.pid
    try:
        sample(child.ended)
        while not child.ended(3600):
            continue
    finally:
        child.close()
    kept: List[Kept] = []
    if output is not None:
        try:
            kept = seen.guarded(output.settle, kept)
        except KeyboardInterrupt:  # whoever reads our output does not; the run has ended
            kept = []
    return seen.end(child.code, tuple(sorted(child.stopped_by)), tuple(kept))


def _open_process(pid: int) -> Optional[int]:
    """Return a descriptor that becomes readable when the process ends; None before Linux 5.3."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _ended(machine: Machine, pid: int, handle: Optional[int], wait: float) -> bool:
    if handle is None:
        time.sleep(wait)
        return not machine.exists(f"/proc/{pid}")
    return bool(select.select([handle], [], [], wait)[0])


def _sample_until(
    seen: _Watch,
    is_over: Callable[[float], bool],
    duration: Optional[float],
    report: Callable[[Outlook], None],
    every: float,
) -> None:
    """Sample until the run is over. Early samples come faster, so that a short run has some too."""
    shape = "unknown"
    reported = looked = seen.begun
    while seen.guarded(lambda: seen.take() is not None, True):
        now = time.monotonic()
        if duration is not None and now - seen.begun >= duration:
            return
        # The trend costs more than a sample, and changes its mind early on: it is asked ten times
        # in the period in which it is told.
        is_due = now - looked >= every / 10
        outlook = seen.guarded(seen.outlook, None) if is_due else None
        looked = now if is_due else looked
        if outlook is not None and (
            now - reported >= every or (outlook.trend.shape != shape and outlook.trend.grows)
        ):
            seen.guarded(partial(report, outlook), None)
            reported, shape = now, outlook.trend.shape
        wait = min(seen.interval, max(0.05, (now - seen.begun) / 10))
        if is_over(wait):
            return
