"""Change a local environment as a plan says, and give it back as it was when that fails, or is
interrupted.

Snapshot, steps (through uv, or the environment's pip), verification; then the snapshot goes. A
failure or a signal in between restores it. After ``kill -9`` it stays, and ``roll_back`` restores
it. The lock is an flock on the prefix itself, which leaves no file behind; the installer inherits
it, so that one that outlives us still holds it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from ..errors import EnvdoctorError, InputError
from ..model.change import Plan
from . import environment_snapshot
from .change_plan import Step, steps_of

if TYPE_CHECKING:
    import subprocess

__all__ = [
    "ChangeFailed",
    "Environment",
    "apply_plan",
    "find_installer",
    "inspect",
    "roll_back",
    "unfinished",
]

_DEADLINE = 60
_GRACE = 10
_ASK = """
import json, sys, sysconfig, os
paths = sysconfig.get_paths()
# Python 3.9 has the function under its private name alone.
default = getattr(sysconfig, "get_default_scheme", None) or sysconfig._get_default_scheme
marker = os.path.join(sysconfig.get_path("stdlib", default()), "EXTERNALLY-MANAGED")
try:
    import importlib.util
    pip = importlib.util.find_spec("pip") is not None
except Exception:
    pip = False
print(json.dumps({
    "executable": sys.executable, "prefix": sys.prefix, "base": sys.base_prefix,
    "purelib": paths["purelib"], "platlib": paths["platlib"], "scripts": paths["scripts"],
    "managed": os.path.exists(marker), "pip": pip,
}))
"""


class ChangeFailed(EnvdoctorError):
    """The change was begun, did not come to a good end, and was rolled back."""

    exit_code = 1


class Environment(NamedTuple):
    """A local environment: its interpreter, its prefix, the folders that installers write to, and
    whether it has pip.
    """

    python: str
    prefix: str
    folders: Tuple[str, ...]
    pip: bool


class _Interrupted(BaseException):
    """A signal that asks us to end."""


def inspect(python: str) -> Environment:
    """Ask an interpreter for its folders.

    Raises :class:`InputError` where it does not answer, or is none that may be changed: conda's,
    the system's, a read-only one.
    """
    import subprocess

    try:
        asked = subprocess.run(
            [python, "-I", "-B", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_DEADLINE,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        answer = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InputError(
            f"{python}: expected a Python interpreter that answers, found {type(error).__name__}: "
            f"{str(error)[:200]}"
        ) from error
    prefix = os.path.realpath(answer["prefix"])
    own = answer["prefix"] != answer["base"]
    if os.path.isdir(os.path.join(prefix, "conda-meta")):
        raise InputError(
            f"{prefix}: conda manages this environment, so pip and uv would change it behind its "
            "back; make the changes with conda"
        )
    if not own and (answer["managed"] or prefix == "/usr"):
        raise InputError(
            f"{prefix}: this Python belongs to the operating system (externally managed); make a "
            "virtual environment and install there"
        )
    folders = (
        [prefix]
        if own
        else [os.path.realpath(answer[key]) for key in ("purelib", "platlib", "scripts")]
    )
    kept: List[str] = []
    for folder in sorted(set(folders)):
        if not any(folder.startswith(other + os.sep) for other in kept):
            kept.append(folder)
    for folder in (prefix, *kept, os.path.realpath(answer["purelib"])):
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(
                f"{folder}: cannot be written, so this environment cannot be changed; --output "
                "script gives the commands"
            )
    return Environment(answer["executable"], prefix, tuple(kept), bool(answer["pip"]))


def find_installer(environment: Environment) -> str:
    """Return the path of uv, or "" for the environment's own pip; raises :class:`InputError` where
    there is neither.
    """
    from shutil import which

    try:
        from uv import find_uv_bin
    except ImportError:
        path = which("uv")
    else:
        try:
            path = str(find_uv_bin())
        except FileNotFoundError:
            path = which("uv")
    if path is None and not environment.pip:
        raise InputError(
            f"{environment.prefix}: neither uv nor the environment's pip is there; 'pip install "
            "uv' brings it"
        )
    return path or ""


def unfinished(environment: Environment) -> Optional[Dict[str, Any]]:
    """Return what an unfinished change of an environment left ("changes", "when"), or None."""
    return environment_snapshot.read_state(environment.prefix)


def apply_plan(
    plan: Plan,
    environment: Environment,
    verify: Callable[[], Sequence[str]],
    notes: Dict[str, Any],
    *,
    installer: Optional[str] = None,
) -> None:
    """Make the changes of a plan, or leave the environment as it was.

    Args:
        plan: what to change.
        environment: where.
        verify: returns what is wrong afterwards, one line each; nothing means that the change
            stands.
        notes: what is noted with the snapshot: the exact list of what was installed.
        installer: path of uv, or "" for pip; found where left out.

    Raises:
        InputError: nothing was begun: another change is under way or unfinished, a wheel that no
            index has, the disk.
        ChangeFailed: it failed or was interrupted, and the environment is as it was.
    """
    steps = steps_of(plan)
    tool = find_installer(environment) if installer is None else installer
    if any(step.wheels for step in steps):
        raise InputError(
            "this plan takes wheels that no index has, so it cannot be applied here; --output "
            "script says what to give it"
        )
    with _locked(environment) as lock:
        if environment_snapshot.read_state(environment.prefix) is not None:
            raise InputError(_unfinished_words(environment))
        with _signals():
            try:
                environment_snapshot.take_snapshot(environment.prefix, environment.folders, notes)
            except _Interrupted as error:
                raise ChangeFailed(f"interrupted by {error}; nothing was changed") from error
            except OSError as error:
                raise InputError(
                    f"{error.filename or environment.prefix}: no snapshot can be made: "
                    f"{error.strerror}; nothing was changed"
                ) from error
            cause = _carry_out(steps, tool, environment, lock, verify)
            if cause:
                raise ChangeFailed(f"{cause}. {_restored(environment)}")
            with _deaf():
                environment_snapshot.discard_snapshot(environment.prefix)


def _carry_out(
    steps: Sequence[Step],
    tool: str,
    environment: Environment,
    lock: int,
    verify: Callable[[], Sequence[str]],
) -> str:
    """Run the steps and look at what came of them; return why it was no good end, or ""."""
    try:
        try:
            for step in steps:
                _run(step, tool, environment, lock)
            return "; ".join(list(verify())[:3])
        except (_Failed, EnvdoctorError, OSError) as error:
            return str(error)
    except _Interrupted as error:
        return f"interrupted by {error}"
    except _LeftBehind as error:
        raise ChangeFailed(
            f"the installer, process {error}, waits in the kernel and cannot be ended; it "
            "may still write, so nothing was restored yet. Once it is gone, "
            f"'envdoctor fix --rollback --python {environment.python}' gives the "
            "environment back as it was"
        ) from error
    except BaseException:  # a fault of ours: the environment first
        _restored(environment)
        raise


class _LeftBehind(BaseException):
    """An installer that no signal ends, by its number: it holds the lock of the environment."""


class _Failed(Exception):
    """A step or the verification did not come to a good end."""


def roll_back(environment: Environment) -> str:
    """Give an environment back as it was before an unfinished change; returns what was done, raises
    :class:`InputError` where there is none.
    """
    with _locked(environment):
        if environment_snapshot.read_state(environment.prefix) is None:
            raise InputError(f"{environment.prefix}: there is no unfinished change to roll back")
        return _restored(environment)


def _unfinished_words(environment: Environment) -> str:
    return (
        f"{environment.prefix}: an earlier change was cut off before its end; "
        f"'envdoctor fix --rollback --python {environment.python}' gives the environment back as "
        "it was"
    )


def _restored(environment: Environment) -> str:
    with _deaf():
        try:
            done = environment_snapshot.restore_snapshot(environment.prefix)
        except OSError as error:
            raise ChangeFailed(
                f"{error.filename or environment.prefix}: cannot be restored: {error.strerror}; "
                "the snapshot is kept, "
                f"'envdoctor fix --rollback --python {environment.python}' tries again"
            ) from error
        environment_snapshot.discard_snapshot(environment.prefix)
    if done.lost:
        return (
            f"Rolled back, but {len(done.lost)} files were overwritten in place and could not "
            f"be restored, the first {done.lost[0]}"
        )
    return f"The environment is as it was ({done.replaced} files put back, {done.removed} removed)"


def _run(step: Step, tool: str, environment: Environment, lock: int) -> None:
    """Run one step in a session of its own: a signal reaches us, and we end it."""
    import subprocess

    command = step.call(tool, environment.python).words()
    quiet = {**os.environ, "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.__stderr__,
        env=quiet,
        start_new_session=True,
        pass_fds=(lock,),
    )
    try:
        code = child.wait()
    except BaseException:
        _end(child)
        raise
    if code:
        words = " ".join([os.path.basename(command[0]), *command[1:]])
        raise _Failed(f"'{words}' ended with {code}")


def _end(child: subprocess.Popen[Any]) -> None:
    """End the installer and everything that it started; raises :class:`_LeftBehind`."""
    import subprocess
    from contextlib import suppress

    with _deaf():
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
                os.killpg(child.pid, number)
                child.wait(_GRACE)
        if child.poll() is None:
            raise _LeftBehind(child.pid)


@contextmanager
def _locked(environment: Environment) -> Iterator[int]:
    """Hold the environment: two changes at once would destroy it."""
    import fcntl

    descriptor = os.open(environment.prefix, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(
                f"{environment.prefix}: another change of this environment is under way"
            ) from error
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _signals() -> Iterator[None]:
    """Let the first signal that asks for an end raise, so that the environment is restored; further
    ones change nothing about that.
    """

    def interrupt(number: int, _frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise _Interrupted(signal.Signals(number).name)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _deaf() -> Iterator[None]:
    """Hold back those signals: a restore is not to be cut short by impatience."""
    numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        while signal.sigtimedwait(numbers - before, 0) is not None:
            continue
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
