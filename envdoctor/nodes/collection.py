"""Run one program on many nodes at once and yield what each says as it comes.

A node that hangs, dies, has no Python, answers garbage or floods costs its own line and nothing
else: every job has a deadline and a bound of what is read of it, runs in a session of its own, and
what does not die when it is killed is left behind.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import signal
import tempfile
import time
import zlib
from contextlib import suppress
from typing import IO, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..errors import InputError
from ..model.node_answers import Answers, NodeAnswer, facts_of
from ..model.redaction import redact
from .payload import MARK

__all__ = ["FAILED_MARK", "MOST_OUTPUT", "NAMES_MARK", "SEPARATOR", "Job", "collect"]

#: A job that asks many nodes itself names them first, as a JSON object, each with what is known of
#: it (``Job.known``), and says which failed.
NAMES_MARK = "\x1eenvdoctor-nodes:"
FAILED_MARK = "\x1eenvdoctor-failed:"
#: Between the name of a node and its answer, where a job speaks for many.
SEPARATOR = "\x1f"

#: Bytes that are read of one node: an answer has about 10 kB, 100 kB with long lists.
MOST_OUTPUT = 8 << 20

_MOST_UNPACKED = 64 << 20
_MOST_SAID = 4096  # of standard error
_GRACE = 0.5  # seconds between TERM and KILL


class Job(NamedTuple):
    """A command that runs the program on a node, or, without ``node``, on nodes that it names.

    title: what stands for these where it named none. known: facts that the engine has of the node,
    and no process on it: field -> entry as JSON.
    """

    argv: Tuple[str, ...]
    node: str = ""
    environment: Optional[Mapping[str, str]] = None
    known: Mapping[str, Any] = {}
    title: str = ""


class _Run:
    """One job that runs."""

    def __init__(self, job: Job, program: IO[bytes], deadline: float) -> None:
        import subprocess

        program.seek(0)
        self.job = job
        self.began = time.monotonic()
        self.began_clock = time.time()
        self.end = self.began + deadline
        self.output = bytearray()
        self.read = 0
        self.said = bytearray()
        self.open = 2
        self.killed_at = 0.0
        self.expected: Dict[str, bool] = {job.node: False} if job.node else {}
        self.known: Dict[str, Mapping[str, Any]] = {job.node: job.known}
        # Opened anew: the offset of a descriptor that children share is shared, too.
        with open(f"/dev/fd/{program.fileno()}", "rb") as own:
            self.process = subprocess.Popen(
                job.argv,
                stdin=own,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=job.environment,
            )

    def take(self, data: bytes, is_error: bool) -> bool:
        """Keep what was read; False where it is too much."""
        if is_error:
            self.said = (self.said + data)[-_MOST_SAID:]
            return True
        self.read += len(data)
        self.output += data
        return self.read <= MOST_OUTPUT * max(1, len(self.expected))

    def lines(self) -> Iterator[str]:
        """Yield the lines that are whole, and forget them."""
        end = self.output.rfind(b"\n")
        whole, self.output = bytes(self.output[: end + 1]), self.output[end + 1 :]
        for line in whole.split(b"\n"):
            if b"\x1e" in line:
                yield line.decode("utf-8", "replace")

    def seconds(self) -> float:
        return round(time.monotonic() - self.began, 3)

    def stop(self, number: int = signal.SIGKILL) -> None:
        with suppress(OSError):
            os.killpg(self.process.pid, number)

    def is_gone(self) -> bool:
        """Tell whether it ended; kill it where it had its time to."""
        if self.process.poll() is not None:
            return True
        if time.monotonic() > self.killed_at:
            self.stop()
        return False

    def close(self) -> None:
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def collect(
    jobs: Sequence[Job],
    program: str,
    answers: Answers,
    *,
    deadline: float = 30.0,
    at_once: int = 64,
) -> Iterator[NodeAnswer]:
    """Yield an answer for every node, as it comes; nothing that runs is left when this ends.

    Args:
        jobs: What to run.
        program: What each gets on standard input.
        answers: Keeps what nodes share.
        deadline: Seconds that each job has.
        at_once: How many jobs run at the same time.
    """
    waiting = list(reversed(jobs))
    running: Dict[int, _Run] = {}
    ended: List[_Run] = []
    with tempfile.TemporaryFile() as file, selectors.DefaultSelector() as selector:
        file.write(program.encode("utf-8"))
        file.flush()
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    yield from _start(waiting.pop(), file, deadline, running, selector)
                yield from _step(running, ended, selector, answers)
                ended[:] = [run for run in ended if not run.is_gone()]
        finally:
            for run in running.values():
                run.stop(signal.SIGTERM)
                run.close()
            _reap([*ended, *running.values()])


def _start(
    job: Job,
    file: IO[bytes],
    deadline: float,
    running: Dict[int, _Run],
    selector: selectors.BaseSelector,
) -> Iterator[NodeAnswer]:
    try:
        run = _Run(job, file, deadline)
    except OSError as error:
        reason = f"{job.argv[0]} cannot be started: {error.strerror or error}"
        yield NodeAnswer(job.node or job.title, failed=reason)
        return
    running[run.process.pid] = run
    for stream in (run.process.stdout, run.process.stderr):
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
            is_error = stream is run.process.stderr
            selector.register(stream, selectors.EVENT_READ, (run, is_error))


def _step(
    running: Dict[int, _Run],
    ended: List[_Run],
    selector: selectors.BaseSelector,
    answers: Answers,
) -> Iterator[NodeAnswer]:
    """Wait until something happens, and yield what came of it."""
    now = time.monotonic()
    nearest = min((run.end for run in running.values()), default=now)
    for key, _ in selector.select(min(max(nearest - now, 0.0), 1.0) + 0.01):
        run, is_error = key.data
        for line in _read(run, is_error, key.fileobj, selector):
            yield from _answers(run, line, answers)
    for pid, run in list(running.items()):
        late = time.monotonic() > run.end
        if run.open and not late:
            continue
        del running[pid]
        ended.append(run)
        yield from _finish(run, late, selector)


def _read(
    run: _Run, is_error: bool, stream: Any, selector: selectors.BaseSelector
) -> Iterator[str]:
    """Yield the lines that have come."""
    try:
        data = stream.read(1 << 18)
    except OSError:
        data = b""
    if data is None:
        return
    if not data:
        selector.unregister(stream)
        run.open -= 1
        return
    fits = run.take(data, is_error)
    yield from run.lines()
    if not fits:
        run.said = bytearray(b"more than %d MiB of output" % (MOST_OUTPUT >> 20))
        run.end = 0.0


def _answers(run: _Run, line: str, answers: Answers) -> Iterator[NodeAnswer]:
    """Yield what a line of a job says."""
    names = line.partition(NAMES_MARK)[2]
    if names and not run.job.node:
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            run.known.update(json.loads(names).items())
            run.expected.update({name: False for name in run.known if name})
        return
    for mark in (MARK, FAILED_MARK):
        text = line.partition(mark)[2].strip()
        if not text:
            continue
        name, separator, answer = text.partition(SEPARATOR)
        node = name if separator and not run.job.node else run.job.node
        answer = answer if separator else text
        if run.expected.get(node) is not False:  # not asked, or answered already
            return
        run.expected[node] = True
        if mark == FAILED_MARK:
            yield NodeAnswer(node, failed=redact(answer)[:300], seconds=run.seconds())
        else:
            yield _unpacked(run, node, answer, answers)


def _unpacked(run: _Run, node: str, text: str, answers: Answers) -> NodeAnswer:
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b85decode(text), _MOST_UNPACKED)
        if unpacker.unconsumed_tail:
            return NodeAnswer(
                node, failed="its answer is too large when unpacked", seconds=run.seconds()
            )
        message = json.loads(data)
        table, clock = message["facts"]["facts"], float(message["clock"])
        table.update(run.known.get(node, {}))
        offset = _offset(clock, run.began_clock, time.time())
        answer = answers.answer_of(node, table, run.seconds(), offset)._replace(
            said={name: value for name, value in message.items() if name not in ("facts", "clock")}
        )
        facts_of(answer, answers.environments)
    except InputError as error:
        failed = f"facts that cannot be read: {error}"
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error, RecursionError) as error:
        failed = f"its answer cannot be read ({type(error).__name__})"
    else:
        return answer
    return NodeAnswer(node, failed=failed, seconds=run.seconds())


def _offset(clock: float, before: float, after: float) -> float:
    """Return by how many seconds a clock lies outside of the time in which it was read."""
    return round(min(clock - before, 0.0) + max(clock - after, 0.0), 3)


def _finish(run: _Run, late: bool, selector: selectors.BaseSelector) -> Iterator[NodeAnswer]:
    """End a job and yield its nodes that did not answer, with the reason."""
    seconds = run.seconds()
    run.killed_at = time.monotonic() + _GRACE
    if late:
        run.stop(signal.SIGTERM)
    for stream in (run.process.stdout, run.process.stderr):
        with suppress(KeyError, ValueError):
            selector.unregister(stream)  # type: ignore[arg-type]
    run.close()
    missing = [node for node, answered in run.expected.items() if not answered]
    if not run.job.node and not run.expected:
        missing = [run.job.title]
    if missing:
        code = None if late else _code_of(run)
        for node in missing:
            yield NodeAnswer(node, failed=_reason(run, late, code, seconds), seconds=seconds)


def _code_of(run: _Run) -> Optional[int]:
    """Return the exit code of a job that closed its output: it ends now, or was never to end."""
    import subprocess

    try:
        return run.process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        return None


def _reap(runs: Sequence[_Run]) -> None:
    """Wait for what was ended, kill what does not end, and leave behind what cannot be killed: in
    state D nothing ends a process.
    """
    for number in (None, signal.SIGKILL):
        if number is not None:
            for run in runs:
                run.stop(number)
        end = time.monotonic() + _GRACE
        while runs and time.monotonic() < end:
            runs = [run for run in runs if run.process.poll() is None]
            if runs:
                time.sleep(0.01)


def _reason(run: _Run, late: bool, code: Optional[int], seconds: float) -> str:
    lines = [line.strip() for line in run.said.decode("utf-8", "replace").split("\n")]
    said: List[str] = [redact(line)[:300] for line in lines if line.strip()]
    last = f": {said[-1]}" if said else ""
    if late and run.end:
        return f"no answer within {run.end - run.began:.3g} s{last}"
    if late:
        return said[-1] if said else "stopped"
    ended = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return f"{os.path.basename(run.job.argv[0])} ended with {ended} after {seconds:.1f} s{last}"
