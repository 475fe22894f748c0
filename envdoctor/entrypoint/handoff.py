"""Check in a child, say what it found, become the command.

This process reads no file of the machine and loads nothing that can hang: it forks, waits on a pipe
with a deadline, writes to standard error without ever waiting for a reader, and executes. Whatever
the check does, crash, hang, or be unkillable in a driver call, the command gets what this process
was given: arguments, environment, folder, descriptors, umask, signal mask and dispositions.
"""

from __future__ import annotations

# Importing signal makes enums, 2 ms; this is the module behind it.
import _signal as signal  # type: ignore[import-not-found,unused-ignore]
import os
import select
import time

from .answer import Answer, words_of
from .options import Settings, parse_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterator, List, NoReturn, Optional, Tuple, Union

    Check = Callable[[Callable[[str], None], Dict[str, str], float], Answer]
    Finish = Callable[[Answer], str]

__all__ = [
    "CANNOT_RUN",
    "NOT_FOUND",
    "NO_VERDICT",
    "REFUSED",
    "USAGE",
    "decide_start",
    "execute",
    "hand_off",
    "supervise",
]

USAGE = 64  # EX_USAGE
NO_VERDICT = 69  # EX_UNAVAILABLE: refused, since envdoctor itself failed
REFUSED = 78  # EX_CONFIG: free of the codes of shells, docker and signals
CANNOT_RUN = 126
NOT_FOUND = 127

GRACE = 0.2
"""Seconds that a killed child has to die before it is left behind."""

PATIENCE = 2.0
"""Seconds for a killed child that is not held by the kernel."""

AGAIN = 1.0
"""Seconds for a check without the probe that crashed the first, or held it until the deadline."""

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_NOT_CHECKED = "envdoctor: not checked"
_TERMINATION_LOG = "/dev/termination-log"
_TERMINATION_LIMIT = 2048  # the kubelet cuts at 4096, and at 2048 where it falls back to logs
_PIPE_BUF = 4096
_SLICE = 0.1


class _Stopped(BaseException):
    """A signal that ends programs arrived."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def hand_off(arguments: List[str]) -> NoReturn:
    """Do ``envdoctor entrypoint``: check, then become the command, or end with 64, 69, 78, 126 or
    127.
    """
    execute(decide_start(arguments))


def decide_start(arguments: List[str]) -> List[str]:
    """Check, say what was found, and return the command; end with 64, 69 or 78 where it may not
    start.
    """
    settings = parse_settings(arguments, os.environ)
    if not settings.command:
        why = "; ".join(settings.troubles) or "no command"
        say(f"envdoctor: error: {why}: expected 'envdoctor entrypoint [OPTION ...] -- CMD ...'")
        os._exit(USAGE)
    if settings.disabled or (settings.policy == "off" and not settings.troubles):
        return settings.command
    if settings.troubles and settings.policy == "enforce":
        say(
            f"envdoctor: error: {'; '.join(settings.troubles)}; 'envdoctor entrypoint --help' says "
            "more"
        )
        os._exit(USAGE)
    _decide(
        settings,
        _checked(settings) if settings.policy != "off" else Answer("fault", _NOT_CHECKED),
    )
    return settings.command


def _checked(settings: Settings) -> Answer:
    """Return the answer of a child; a signal that ends this process ends the child first."""

    def check(announce: Callable[..., None], failed: Dict[str, str], seconds: float) -> Answer:
        from .verdict import check_start

        return check_start(settings, announce, failed, seconds)

    def write(answer: Answer) -> str:
        from .verdict import write_report

        return write_report(str(settings.report), answer.document)

    kept = _catch()
    try:
        answer = supervise(check, settings.timeout, write if settings.report is not None else None)
        _release(kept)
    except _Stopped as stopped:
        _release(kept, raising=False)
        _die(stopped.number)
    return answer


def _decide(settings: Settings, answer: Answer) -> None:
    """Say what was found, and end the process where the policy refuses."""
    is_refused = settings.policy == "enforce" and (
        answer.kind == "errors" or (settings.strict and answer.kind not in ("ok", "usage"))
    )
    code = NO_VERDICT if answer.kind == "fault" else REFUSED
    _add_troubles(settings, answer)
    text = f"{answer.line}\n{_outcome(settings, answer, code if is_refused else 0)}{answer.details}"
    said = {"text": text, "line": answer.line, "json": answer.document or answer.line}
    if settings.format in said:
        say(said[settings.format])
    if answer.kind == "usage" and settings.policy == "enforce":
        os._exit(USAGE)
    if is_refused or answer.kind == "errors":
        _leave_message(text)
    if is_refused:
        os._exit(code)


def _add_troubles(settings: Settings, answer: Answer) -> None:
    """Put what was ignored of the options before the details."""
    if not settings.troubles:
        return
    ignored = "".join(f"  ignored: {trouble}\n" for trouble in settings.troubles)
    answer.details = ignored + answer.details
    if answer.line == _NOT_CHECKED:
        answer.line = (
            "envdoctor: an option means nothing and was ignored; policy off, nothing was checked"
        )


def _outcome(settings: Settings, answer: Answer, code: int) -> str:
    """Say what becomes of the command, where that is not simply that it starts.

    code: The exit code where it is refused, else 0.
    """
    command = settings.command[0]
    if code:
        policy = "enforce --strict" if settings.strict else "enforce"
        return f"  refused: {command} does not start under policy {policy} (exit code {code})\n"
    if answer.kind == "errors":
        return f"  policy warn: {command} starts all the same\n"
    return ""


# --------------------------------------------------------------------------------------------------
# the child


class _Loss:
    """A check that gave no answer.

    step: What it did. probe: The one that it ran, or "". reason: How it ended. is_final: Another
    one would end as this one did.
    """

    def __init__(self, step: str, probe: str, reason: str, is_final: bool) -> None:
        self.step = step
        self.probe = probe
        self.reason = reason
        self.is_final = is_final


def supervise(check: Check, timeout: float, finish: Optional[Finish] = None) -> Answer:
    """Run a check in a child and return its answer after at most ``timeout`` seconds; ``AGAIN``
    more where a probe crashed it or held it, and twice ``GRACE`` for the death of each child.

    Args:
        check: Gets a function to which it tells what it does next, so that what hangs or crashes
            has a name; the probes that are left out, with the reason; and the seconds that it has.
        timeout: Seconds.
        finish: Is run in the child after its answer was sent; returns what went wrong, or "".
    """
    end = time.monotonic() + timeout
    last = end + AGAIN
    failed: Dict[str, str] = {}
    while True:
        outcome = _attempt(check, failed, finish, end)
        if isinstance(outcome, Answer):
            return outcome
        end = min(last, max(end, time.monotonic() + AGAIN))
        is_known = outcome.probe in ("", *failed)
        if outcome.is_final or is_known or end <= time.monotonic():
            return _fault(f"{outcome.reason} in {outcome.step}")
        failed[outcome.probe] = outcome.reason


def _attempt(
    check: Check, failed: Dict[str, str], finish: Optional[Finish], end: float
) -> Union[Answer, _Loss]:
    try:
        reader, writer = os.pipe()
    except OSError as error:
        return _fault(f"no pipe: {error.strerror}")
    try:
        pid = os.fork()
    except OSError as error:
        os.close(reader)
        os.close(writer)
        return _fault(f"no child process: {error.strerror}")
    if pid == 0:
        try:
            os.close(reader)
            _run_child(check, failed, finish, writer, end)
        finally:
            os._exit(70)
    os.close(writer)
    try:
        return _await(pid, reader, end)
    except BaseException:
        _stop(pid)
        raise
    finally:
        os.close(reader)


def _run_child(
    check: Check, failed: Dict[str, str], finish: Optional[Finish], pipe: int, end: float
) -> None:
    """Do the check. Nothing of the parent's stays open here: an unkillable child must not hold the
    job's files, locks or terminal.
    """
    os.setpgid(0, 0)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _leave)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for descriptor in _open_descriptors():
        if descriptor > 2 and descriptor != pipe:
            try:
                os.close(descriptor)
            except OSError:  # the one that listed them
                continue

    def announce(step: str, probe: str = "") -> None:
        _send(pipe, b"S", f"{step}\0{probe}".encode("utf-8", "replace"))

    try:
        from ..probes.core_files import leave_no_core

        leave_no_core()  # in the folder of the job
        answer = check(announce, failed, end - time.monotonic())
    except MemoryError:
        answer = _fault("out of memory: the memory limit leaves too little for this check")
    except Exception as error:  # noqa: BLE001 - the policy decides, no traceback
        answer = _fault(words_of(error))
    if finish is None or not answer.document:
        _send(pipe, b"A", answer.pack())
    else:
        # What is written may hang or crash; the verdict stands.
        _send(pipe, b"V", answer.pack())
        _send(pipe, b"R", finish(answer).encode("utf-8", "replace"))
    os._exit(0)


def _leave(*_: object) -> NoReturn:
    # Unwinds through the probe that waits for a child of its own, and kills that.
    raise SystemExit(70)


def _open_descriptors() -> List[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # no /proc
        return list(range(3, 256))


def _send(pipe: int, kind: bytes, content: bytes) -> None:
    content = kind + len(content).to_bytes(4, "big") + content
    while content:
        content = content[os.write(pipe, content) :]


def _await(pid: int, pipe: int, end: float) -> Union[Answer, _Loss]:
    """Read messages until the answer, the child's end or the deadline."""
    received = bytearray()
    step, probe = "starting", ""
    status: Tuple[int, ...] = ()
    verdict: Optional[Answer] = None
    began = time.monotonic()
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while True:
        left = end - time.monotonic()
        if poll.poll(max(min(left, _SLICE), 0) * 1000):
            part = os.read(pipe, 1 << 16)
            received += part
            for kind, content in _messages(received):
                if kind == b"S":
                    step, _, probe = content.decode("utf-8", "replace").partition("\0")
                    continue
                trouble = content.decode("utf-8", "replace") if kind == b"R" else ""
                verdict = verdict if kind == b"R" and verdict else Answer.unpack(content)
                if kind in b"AR":
                    _ = status or _reap(pid, GRACE) or _stop(pid)
                    return _with_trouble(verdict, trouble)
            if part:
                continue
            status = status or _reap(pid, GRACE)
            reason = _ending(status) if status else f"no answer{_stop(pid)}"
            break
        if status:  # dead, and nothing more in the pipe: what it left behind may hold the other end
            reason = _ending(status)
            break
        status = _reap(pid, 0)
        if left <= 0 and not status:
            reason = f"no answer within {round(end - began, 2):g} s{_stop(pid)}"
            break
    if verdict is not None:
        return _with_trouble(verdict, f"the report was not written: {reason}")
    # Killed: by the kernel for want of memory, say.
    return _Loss(step, probe, reason, bool(status) and os.WTERMSIG(status[0]) == signal.SIGKILL)


def _with_trouble(answer: Answer, trouble: str) -> Answer:
    if trouble:
        answer.details += f"  {trouble}\n"
    return answer


def _messages(received: bytearray) -> Iterator[Tuple[bytes, bytes]]:
    """Take whole messages from the front of what was received."""
    while len(received) >= 5 and len(received) >= 5 + int.from_bytes(received[1:5], "big"):
        size = 5 + int.from_bytes(received[1:5], "big")
        message = bytes(received[:size])
        del received[:size]
        yield message[:1], message[5:]


def _stop(pid: int) -> str:
    """End the child: asked first, so that it kills what it started; return what must be known of
    its death ("" for a clean one).
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except OSError:
            return ""
        if _reap(pid, GRACE):
            return ""
    # On a busy machine one that was killed may wait for its turn to die.
    if _state(pid) != b"D" and _reap(pid, PATIENCE):
        return ""
    return f"; process {pid} is unkillable, left behind"


def _state(pid: int) -> bytes:
    """Return the state letter of a process (D waits in the kernel, and does not die); b"" where it
    cannot be read.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b""


def _reap(pid: int, seconds: float) -> Tuple[int, ...]:
    """Return the wait status of the child as a tuple of one, or () where it does not end in
    time.
    """
    end = time.monotonic() + seconds
    pause = 0.0002
    while True:
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:  # SIGCHLD is ignored: the kernel reaped it
            return (0,)
        if ended:
            return (status,)
        left = end - time.monotonic()
        if left <= 0:
            return ()
        time.sleep(min(pause, left))
        pause = min(pause * 2, 0.01)


def _ending(status: Tuple[int, ...]) -> str:
    value = status[0]
    return (
        f"ended by signal {os.WTERMSIG(value)}"
        if os.WIFSIGNALED(value)
        else f"ended with exit code {os.WEXITSTATUS(value)}"
    )


def _fault(reason: str) -> Answer:
    """The answer where there is none: the reason on one line."""
    reason = " ".join(reason.split())
    line = f"envdoctor: no verdict: {reason}"
    return Answer(
        "fault",
        line if len(line) <= 80 else line[:77] + "...",
        f"  envdoctor itself failed, so nothing was judged: {reason[:400]}\n",
    )


# --------------------------------------------------------------------------------------------------
# signals


def _catch() -> List[Tuple[int, object]]:
    """Take the signals that end programs, where they are not ignored; return what was there."""

    def stop(number: int, _: object) -> None:
        raise _Stopped(number)

    return [
        (number, signal.signal(number, stop))
        for number in _SIGNALS
        if signal.getsignal(number) != signal.SIG_IGN
    ]


def _release(kept: List[Tuple[int, object]], raising: bool = True) -> None:
    """Put the dispositions back that an exec leaves, and lose no signal in between: blocked ones
    wait for the old disposition.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        for number, _ in kept:
            signal.signal(number, signal.SIG_DFL)
    except _Stopped:
        if raising:
            raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _die(number: int) -> NoReturn:
    """End as a program without a handler would.

    PID 1 cannot be ended by its own signal: it tells by its exit code.
    """
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    os.kill(os.getpid(), number)
    os._exit(128 + number)


# --------------------------------------------------------------------------------------------------
# output


def say(text: str) -> None:
    """Write to standard error, and never wait for it: a full pipe whose reader sleeps must not hold
    the job.
    """
    content = (text if text.endswith("\n") else text + "\n").encode("utf-8", "backslashreplace")
    end = time.monotonic() + 1.0
    try:
        poll = select.poll()
        poll.register(2, select.POLLOUT)
        while content:
            ready = poll.poll(max(end - time.monotonic(), 0) * 1000)
            if not ready or not ready[0][1] & select.POLLOUT:
                return
            # After POLLOUT a pipe takes this many bytes without waiting.
            content = content[os.write(2, content[:_PIPE_BUF]) :]
    except OSError:  # closed, full, or its reader left: the exit code has to speak
        return


def _leave_message(text: str) -> None:
    """Write to the file that Kubernetes shows as the reason of a pod's end, where there is one."""
    try:
        descriptor = os.open(
            _TERMINATION_LOG, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW
        )
    except OSError:
        return
    try:
        os.write(descriptor, text.encode("utf-8", "backslashreplace")[:_TERMINATION_LIMIT])
    except OSError:
        return
    finally:
        os.close(descriptor)


# --------------------------------------------------------------------------------------------------
# exec


def execute(
    command: List[str], entries: Optional[List[bytes]] = None, ignored: int = 0
) -> NoReturn:
    """Become the command; where that is impossible, end with 127 (not found) or 126, as shells and
    docker do.

    Args:
        command: Its words.
        entries: Its environment, where that is not this process's.
        ignored: The signals that stay ignored of those that Python ignores, bit n - 1 for n.
    """
    _restore_locale()
    _restore_signals(ignored)
    words = [os.fsencode(word) for word in command]
    error = _try_candidates(words, entries)
    why = "not found" if error is None else str(error.strerror)
    if error is None and b"/" in words[0] and os.path.exists(words[0]):
        why = "found, but the interpreter that it names is missing"
    say(f"envdoctor: {command[0][:200]!r} cannot be run: {why}")
    os._exit(NOT_FOUND if error is None else CANNOT_RUN)


def _restore_signals(ignored: int) -> None:
    """Python ignores these two, and an ignored signal stays ignored over an exec."""
    for number in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", None)):
        if number is not None and not ignored & 1 << number - 1:
            signal.signal(number, signal.SIG_DFL)


def _try_candidates(words: List[bytes], entries: Optional[List[bytes]]) -> Optional[OSError]:
    """Return why no file of that name can be run; None where there is none."""
    first: Optional[OSError] = None
    for path in _candidates(words[0]):
        error = _try(path, words, entries)
        if error is None or isinstance(error, (FileNotFoundError, NotADirectoryError)):
            continue
        first = first or error
        # Another folder may have one that may be run.
        if not isinstance(error, PermissionError):
            break
    return first


def _try(path: bytes, words: List[bytes], entries: Optional[List[bytes]]) -> Optional[OSError]:
    """Become this file; return why that is impossible, None where no file can have this name."""
    try:
        _exec(path, words, entries)
    except OSError as error:
        if error.errno != 8:  # ENOEXEC
            return error
    except ValueError:  # an empty word, or a null byte
        return None
    # What a shell would do (and tini, env): no "#!" and no ELF header is a script of the shell.
    try:
        _exec(b"/bin/sh", [b"sh", path, *words[1:]], entries)
    except OSError as error:
        return error


def _exec(path: bytes, words: List[bytes], entries: Optional[List[bytes]]) -> NoReturn:
    if entries is None:
        os.execv(path, words)  # noqa: S606 - no shell is wanted
    variables = dict(entry.partition(b"=")[::2] for entry in entries)
    if len(variables) == len(entries) and all(b"=" in entry[1:] for entry in entries):
        os.execve(path, words, variables)  # noqa: S606 - the same
    # The same name twice, or no "=": what no mapping holds.
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    arrays = [(ctypes.c_char_p * (len(texts) + 1))(*texts) for texts in (words, entries)]
    library.execve(path, *arrays)
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def _candidates(name: bytes) -> List[bytes]:
    """Return where a command may lie, as execvp(3) looks for it: an empty entry of PATH is the
    current folder.
    """
    if b"/" in name or not name:
        return [name]
    folders = os.environb.get(b"PATH", b"/bin:/usr/bin").split(b":")
    return [folder + b"/" + name if folder else b"./" + name for folder in folders]


def _restore_locale() -> None:
    """Undo what Python did to LC_CTYPE: in the C locale it sets C.UTF-8 for itself (PEP 538), and a
    child would inherit that.

    execv passes the environment of the C library on, with every entry that os.environ cannot hold,
    so only this one is put back.
    """
    if not os.environb.get(b"LC_CTYPE"):
        return
    try:
        with open("/proc/self/environ", "rb") as file:
            first = [entry for entry in file.read().split(b"\0") if entry.startswith(b"LC_CTYPE=")]
    except OSError:
        return
    if not first:
        os.unsetenv(b"LC_CTYPE")
    else:
        os.putenv(b"LC_CTYPE", first[0][9:])
