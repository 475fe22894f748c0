"""Start a trial in a child that is bounded in time, memory of what it says, and reach: it has a
session, a home and caches of its own, and nothing that it started outlives it.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from secrets import token_hex
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..model.proof import TrialStep
from ..model.redaction import redact
from ..probes.core_files import leave_no_core

__all__ = ["run_together", "run_trial"]

_MOST_SAID = 64 << 10  # bytes of standard error that are kept
_MOST_RESULTS = 4 << 20
_MARK = "ENVDOCTOR_PROVE"
_PR_SET_PDEATHSIG = 1
_GRACE = 5.0  # seconds for the kernel to end what was killed


def _text_of_trials() -> str:
    """Return the source of ``trials``, wherever this package was loaded from."""
    name = f"{__package__}.trials"
    spec = find_spec(name)
    # Of a folder, of an archive, or a node's program's own (nodes.payload).
    loader: Any = spec.loader if spec is not None else None
    return str(loader.get_source(name))


def _bounded() -> Callable[[], None]:
    """Return what a child does before it becomes the judged interpreter: a crash of torch would
    write a core file as large as all its memory, and the kernel ends the child where this process
    is killed (prctl(2)).
    """
    control: Any = None
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        control = ctypes.CDLL(None).prctl

    def bound() -> None:
        leave_no_core()
        if control is not None:
            control(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)

    return bound


class _Child:
    """One process of a trial. rank: among those of all nodes. local: among those of this one."""

    def __init__(
        self,
        python: str,
        trial: str,
        parameters: Mapping[str, Any],
        place: _Place,
        rank: str,
        local: str,
    ) -> None:
        import subprocess

        text = _text_of_trials()
        self.results, end = os.pipe()
        os.set_inheritable(end, True)
        words = [python, "-c", text, str(end), trial, json.dumps(parameters)]
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**place.environment, "RANK": rank, "LOCAL_RANK": local},
                cwd=place.folder,
                pass_fds=(end,),
                start_new_session=True,
                preexec_fn=_bounded(),
            )
        except BaseException:
            os.close(self.results)
            raise
        finally:
            os.close(end)
        self.trial = trial
        self.rank = rank
        self.said = bytearray()
        self.lines = bytearray()

    @property
    def streams(self) -> Tuple[int, ...]:
        error = self.process.stderr
        return (self.results, *([error.fileno()] if error is not None else []))

    def take(self, descriptor: int, data: bytes) -> None:
        """Keep what was read: the end of what it said, and all results."""
        if descriptor == self.results:
            self.lines = (self.lines + data)[:_MOST_RESULTS]
        else:
            self.said = (self.said + data)[-_MOST_SAID:]

    def wait(self, seconds: float) -> None:
        import subprocess

        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def kill(self) -> None:
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        with suppress(OSError):
            os.close(self.results)
        if self.process.stderr is not None:
            self.process.stderr.close()


class _Place:
    """A folder of its own, and an environment whose mark tells what was started from here."""

    def __init__(self, folder: str, size: int) -> None:
        self.folder = folder
        self.mark = f"{_MARK}={token_hex(16)}"
        name, _, value = self.mark.partition("=")
        own = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR"), folder)
        self.environment = {
            **{key: text for key, text in os.environ.items() if key != "PYTHONSTARTUP"},
            **own,
            name: value,
            "WORLD_SIZE": str(size),
            "HF_HUB_OFFLINE": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
        }

    def left(self) -> Iterator[int]:
        """Yield the processes that still have the mark."""
        wanted = self.mark.encode()
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        yield int(name)

    def clear(self) -> None:
        """End whatever was started from here, also what left its session.

        A process that forks and ends during a scan is gone when it is read, and its child is newer
        than the list: only two empty scans in a row tell that nothing is left.
        """
        end = time.monotonic() + _GRACE
        empty = 0
        while empty < 2 and time.monotonic() < end:
            left = list(self.left())
            empty = 0 if left else empty + 1
            for number in left:
                with suppress(OSError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(0.02)


def run_trial(
    python: str, trial: str, parameters: Mapping[str, Any], deadline: float, subject: str = ""
) -> List[TrialStep]:
    """Run a trial in one child; see :func:`run_together`."""
    return run_together(python, trial, parameters, deadline, 1, subject)


def run_together(
    python: str,
    trial: str,
    parameters: Mapping[str, Any],
    deadline: float,
    count: int,
    subject: str = "",
    *,
    first: int = 0,
    world: int = 0,
) -> List[TrialStep]:
    """Run a trial in ``count`` children at once and return the steps of the first one, and of the
    others those that did not work.

    Args:
        python: The judged interpreter.
        trial: A name of ``trials.TRIALS``.
        parameters: What it takes, as JSON; "{folder}" in a text is the folder of the children.
        deadline: Seconds that all of them have.
        count: How many, each with its RANK.
        subject: What it is about: a distribution, a device.
        first: The rank of the first child, where others run elsewhere.
        world: How many there are with those; 0: these are all.
    """
    folder = tempfile.mkdtemp(prefix="envdoctor-prove-")
    place = _Place(folder, world or count)
    text = json.dumps(parameters).replace("{folder}", folder)
    children: List[_Child] = []
    try:
        for local in range(count):
            rank = str(first + local)
            children += [_Child(python, trial, json.loads(text), place, rank, str(local))]
        late = _read_all(children, deadline)
        codes = [child.process.poll() for child in children]
    finally:
        for child in children:
            child.kill()
        place.clear()
        for child in children:
            child.wait(_GRACE)
            child.close()
        shutil.rmtree(folder, ignore_errors=True)
    steps = [
        (child.rank, step)
        for child, code in zip(children, codes)
        for step in _steps(child, code, late, deadline, subject)
    ]
    shown = [(rank, step) for rank, step in steps if rank == "0" or step.outcome != "works"]
    alone = (world or count) == 1
    return [step if alone else step._replace(rank=rank) for rank, step in shown]


def _read_all(children: Sequence[_Child], deadline: float) -> bool:
    """Read what children say until all have ended; True where they did not in time."""
    end = time.monotonic() + deadline
    with selectors.DefaultSelector() as selector:
        for child in children:
            for stream in child.streams:
                selector.register(stream, selectors.EVENT_READ, child)
        while selector.get_map():
            for key, _ in selector.select(0.2):
                data = os.read(key.fd, 1 << 16)
                if data:
                    key.data.take(key.fd, data)
                else:
                    selector.unregister(key.fd)
            # A child of a child may hold the pipes: the trial is over with the child.
            if all(child.process.poll() is not None for child in children):
                for key, _ in selector.select(0):
                    key.data.take(key.fd, os.read(key.fd, 1 << 20))
                return False
            if time.monotonic() > end:
                return True
    for child in children:
        child.wait(max(end - time.monotonic(), 0.1))
    return False


def _steps(
    child: _Child, code: Optional[int], late: bool, deadline: float, subject: str
) -> Iterator[TrialStep]:
    """Yield what each step came to; the one that began last is what the process ended in."""
    said = redact(child.said.decode("utf-8", "replace"))
    begun, done, place = "", False, "start"
    for line in bytes(child.lines).split(b"\n"):
        try:
            entry: Dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        begun = str(entry.get("begins", "")) or begun
        done = done or "done" in entry
        if "ends" not in entry:
            continue
        begun, place = "", "end"
        error = redact(str(entry.get("error", "")))
        yield TrialStep(
            child.trial,
            subject,
            str(entry["ends"]),
            "fails" if error else "works",
            error,
            entry.get("value"),
            str(entry.get("unit", "")),
            said if error else "",
        )
    if done and not begun:
        return
    if late:
        words, outcome = f"not done after {deadline:.3g} s", "hangs"
    elif code is not None and code < 0:
        words, outcome = f"ended by {_signal(-code)}", "crashes"
    else:
        last = [line for line in said.split("\n") if line.strip()][-1:]
        words, outcome = "; ".join([f"exit code {code}", *last])[:2000], "fails"
    yield TrialStep(child.trial, subject, begun or place, outcome, words, said=said)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
