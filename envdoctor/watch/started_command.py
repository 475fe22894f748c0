"""The command that is watched, as a child: started as it would have been without a watch, told
every signal that this process gets, and waited for.

Signals are blocked and taken from the kernel with what it says of their origin: one that a terminal
sends reached the command already, since it goes to all processes of the foreground.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Callable, FrozenSet, NoReturn, Optional, Sequence, Set

__all__ = ["StartedCommand"]

#: Stay with the kernel: they stop and go on by group, tell of a fault of this process itself, or
#: are sent to everybody.
_OWN = frozenset(
    {
        signal.SIGKILL,
        signal.SIGSTOP,
        signal.SIGCHLD,
        signal.SIGCONT,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        signal.SIGWINCH,
        signal.SIGURG,
        signal.SIGPIPE,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGSEGV,
        signal.SIGSYS,
        signal.SIGTRAP,
        signal.SIGXFSZ,
    }
)
_STARTS = 250  # milliseconds that the first sample waits for the command to be itself
_SENT_BY_KERNEL = 0x80  # SI_KERNEL of <asm-generic/siginfo.h>


class StartedCommand:
    """A command that runs; ``code`` is its exit code once it has ended, 128 + n for signal n."""

    def __init__(self, command: Sequence[str], become: Callable[[Sequence[str]], NoReturn]) -> None:
        """Start the command.

        Args:
            command: Its words.
            become: Turns a process into the command, or ends it as shells do where there is none.

        Raises:
            OSError: there can be no further process.
        """
        reading, writing = os.pipe()
        self.code: Optional[int] = None
        self.stopped_by: Set[int] = set()  # signals that it was sent through this process
        self._taken: FrozenSet[int] = frozenset(signal.valid_signals() - _OWN)
        # Where it is ignored the kernel keeps no exit code for us.
        self._chld = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*self._taken, signal.SIGCHLD})
        try:
            self.pid = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            self._restore()
            raise
        if self.pid == 0:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
                become(command)
            finally:
                os._exit(126)
        os.close(writing)
        # Until it is the command its memory is this process's, shared; then the pipe's end, which
        # no new program inherits (PEP 446), is closed.
        ends = select.poll()
        ends.register(reading, select.POLLIN)
        ends.poll(_STARTS)
        os.close(reading)

    def ended(self, seconds: float) -> bool:
        """Wait for its end for so long, and hand on every signal meanwhile."""
        end = time.monotonic() + seconds
        while self.code is None:
            info = signal.sigtimedwait(
                {*self._taken, signal.SIGCHLD}, max(0.0, end - time.monotonic())
            )
            if info is None:
                self._reap()
                break
            if info.si_signo == signal.SIGCHLD:
                self._reap()
            elif info.si_code != _SENT_BY_KERNEL:
                self._send(info.si_signo)
            else:
                self.stopped_by.add(info.si_signo)
        return self.code is not None

    def close(self) -> None:
        """Let this process have its signals again."""
        self._restore()

    def _send(self, number: int) -> None:
        self.stopped_by.add(number)
        try:
            os.kill(self.pid, number)
        except OSError:  # it may have taken another user's identity
            return

    def _reap(self) -> None:
        """Take the ends of children: as the first process of a container those of orphans too."""
        whose = -1 if os.getpid() == 1 else self.pid
        while self.code is None:
            try:
                pid, status = os.waitpid(whose, os.WNOHANG)
            except ChildProcessError:
                self.code = 126  # not ours to know
                return
            if pid == 0:
                return
            if pid == self.pid:
                killed = os.WIFSIGNALED(status)
                self.code = 128 + os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)

    def _restore(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        signal.signal(signal.SIGCHLD, self._chld)
