"""Watching a run: samples of its memory, where they are heading, and the run's own end.

The command is started, never changed: it keeps the terminal, gets every signal that asks this
process to end, and its exit code is what is returned. A run that is watched from outside (by its
process number) is only read.
"""

from __future__ import annotations

import os
import select
import signal
import time
from functools import partial
from types import FrameType
from typing import Callable, Dict, List, Optional, Sequence, TextIO, Tuple, TypeVar

from ..errors import InputError
from ..probes.machine import Machine
from ..probes.usage import find_group, find_members, find_tree, read_group, read_processes
from .recording import Outlook, Recording, Sample
from .trend import Point, find_trend, predict

__all__ = ["watch"]

#: Samples that are kept at most; beyond, every second one goes.
_KEPT = 4096
_KEPT_OF_PROCESS = 256
_NOISE = 1 << 20  # bytes
_T = TypeVar("_T")
_FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


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
        sample = self.latest = Sample(time.monotonic() - self.begun, use, processes)
        self.kills = use.oom_kills if self.kills is None else self.kills
        self.taken += 1
        self.peak = max(self.peak, use.used)
        self.used.add(sample.elapsed, use.used)
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
        # On a whole machine others come and go: below a hundredth of its memory that is no trend of
        # this run.
        noise = self.group.limit / 100 if self.group.directory is None else _NOISE
        trend = find_trend(self.used.points, noise)
        growing = None
        for process in sample.processes:
            own = find_trend(self.by_process[(process.pid, process.started)].points)
            if own.grows and (growing is None or own.slope > growing[1].slope):
                growing = (process, own)
        return Outlook(sample, self.group, trend, predict(trend, self.group.limit), growing)

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

    def end(self, exit_code: Optional[int]) -> Recording:
        # A kill comes after the last sample.
        last = self.guarded(lambda: read_group(self.machine, self.group), None)
        return Recording(
            self.group,
            tuple(self.samples),
            self.taken,
            self.guarded(self.outlook, None),
            self.peak,
            time.monotonic() - self.begun,
            exit_code,
            max(0, last.oom_kills - (self.kills or 0)) if last is not None else 0,
            time.process_time() - self.cpu,
            self.failure,
        )


def _cell(name: str) -> str:
    return "".join(
        character if character.isalnum() or character in "._-:/ " else "_" for character in name
    )


def watch(
    *,
    command: Sequence[str] = (),
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
        InputError: no such process, or a command that cannot be started.
    """
    machine = Machine()
    if command:
        return _watch_command(
            machine, command, container, interval, duration, csv, report, report_every
        )
    watched = os.getpid() if container else pid
    if watched is None or not machine.exists(f"/proc/{watched}"):
        raise InputError(f"process {pid}: expected a running process, found none")
    seen = _Watch(machine, watched, container, interval, csv)
    handle = _open_process(watched) if not container else None
    stopped: List[int] = []

    def stop(number: int, _: Optional[FrameType]) -> None:
        stopped.append(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        _sample_until(
            seen,
            lambda wait: bool(stopped) or _ended(machine, watched, handle, wait) or bool(stopped),
            duration,
            report,
            report_every,
        )
    finally:
        for number, old in before.items():
            signal.signal(number, old)
        if handle is not None:
            os.close(handle)
    return seen.end(None)


def _watch_command(
    machine: Machine,
    command: Sequence[str],
    container: bool,
    interval: float,
    duration: Optional[float],
    csv: Optional[TextIO],
    report: Callable[[Outlook], None],
    report_every: float,
) -> Recording:
    import subprocess

    seen = _Watch(machine, os.getpid(), container, interval, csv)
    try:
        child = subprocess.Popen(list(command))
    except OSError as error:
        raise InputError(f"{command[0]}: cannot be started: {error.strerror}") from error
    seen.pid = child.pid

    def forward(number: int, _: Optional[FrameType]) -> None:
        # Ctrl-C of a terminal reaches the whole foreground group, the command included: twice would
        # be once too often.
        if number not in (signal.SIGINT, signal.SIGQUIT) or not _in_foreground():
            child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    handle = _open_process(child.pid)

    def is_over(wait: float) -> bool:
        if handle is None:
            try:
                child.wait(wait)
            except subprocess.TimeoutExpired:
                return False
            return True
        select.select([handle], [], [], wait)
        return child.poll() is not None

    try:
        _sample_until(seen, is_over, duration, report, report_every)
        status = child.wait()
    finally:
        for number, old in before.items():
            signal.signal(number, old)
        if handle is not None:
            os.close(handle)
    return seen.end(128 - status if status < 0 else status)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # no terminal
        return False


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
    report_every: float,
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
        is_due = now - looked >= report_every / 10
        outlook = seen.guarded(seen.outlook, None) if is_due else None
        looked = now if is_due else looked
        if outlook is not None and (
            now - reported >= report_every or (outlook.trend.shape != shape and outlook.trend.grows)
        ):
            seen.guarded(partial(report, outlook), None)
            reported, shape = now, outlook.trend.shape
        wait = min(seen.interval, max(0.05, (now - seen.begun) / 10))
        if is_over(wait):
            return
