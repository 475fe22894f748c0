"""What a command writes, passed on at once, with its last mebibytes kept in memory.

A stream that is a file is the command's own, and is read again at the end. Of a pipe or a terminal
a small process of its own takes what is written, passes it on and keeps the tail in memory that
both share: it lives as long as anybody writes, so what the command leaves behind never writes to a
closed pipe. A terminal stays one for the command, with its size, and the command keeps its
controlling terminal, its group and its standard input.
"""

from __future__ import annotations

import fcntl
import io
import mmap
import os
import select
import signal
import stat
import struct
import termios
from contextlib import suppress
from typing import Dict, List, NoReturn, Optional, Tuple

__all__ = ["KEPT", "Kept", "Output"]

KEPT = 4 << 20
"""Bytes of what is written to each stream that are kept."""

_PART = 1 << 16
_PIPE_BUF = 4096  # what a pipe takes at once when it is ready
_TOTAL = struct.Struct("<Q")
_STREAMS = {1: "standard output", 2: "standard error"}
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Kept(io.BytesIO):
    """The end of what was written, as a file with a name."""

    def __init__(self, name: str, content: bytes, left_out: int) -> None:
        super().__init__(content)
        self.name = name
        self.left_out = left_out  # bytes before it


class Output:
    """Standard output and standard error of a command that is about to start.

    The caller starts the command after :meth:`redirect`, and calls :meth:`settle` at its end.
    """

    def __init__(self) -> None:
        self._files: Dict[int, Tuple[str, int]] = {}  # stream -> name, where the command begins
        self._pairs: Dict[int, Tuple[int, int]] = {}  # stream -> what we read, what it writes to
        self._shared: List[int] = []  # standard error goes where standard output goes
        self._tails: Dict[int, _Tail] = {}
        self._asked: Optional[int] = None
        self._answered: Optional[int] = None
        self._copier = 0
        self._kept_streams: Dict[int, int] = {}
        seen: Dict[Tuple[int, int, int], int] = {}
        for stream, name in _STREAMS.items():
            self._look_at(stream, name, seen)
        if self._pairs:
            self._start_copier()

    def _look_at(self, stream: int, name: str, seen: Dict[Tuple[int, int, int], int]) -> None:
        """Decide how a stream is kept; one of which nothing can be kept stays as it is."""
        try:
            state = os.fstat(stream)
            identity = (state.st_dev, state.st_ino, state.st_rdev)
            if identity in seen:
                if seen[identity] in self._pairs:
                    self._shared.append(stream)
                return
            seen[identity] = stream
            if stat.S_ISREG(state.st_mode):
                self._files[stream] = (name, state.st_size)
            else:
                self._pairs[stream] = _terminal_like(stream) if os.isatty(stream) else os.pipe()
        except (OSError, termios.error):
            return

    def redirect(self) -> None:
        """Point this process's streams at what is kept; :meth:`restore` takes it back."""
        for stream, (_, writer) in self._pairs.items():
            self._kept_streams[stream] = os.dup(stream)
            os.dup2(writer, stream)
            os.close(writer)
        for stream in self._shared:
            self._kept_streams[stream] = os.dup(stream)
            os.dup2(1, stream)

    def restore(self) -> None:
        """Give this process its own streams again: the command has been started."""
        for stream, kept in self._kept_streams.items():
            os.dup2(kept, stream)
            os.close(kept)
        self._kept_streams.clear()

    def settle(self) -> List[Kept]:
        """Wait until all that the command wrote is passed on, and return what was kept of it."""
        kept = [_end_of_file(stream, *file) for stream, file in self._files.items()]
        if self._asked is not None and self._answered is not None:
            with suppress(OSError):  # it has ended: all streams were closed
                os.write(self._asked, b"?")
            os.read(self._answered, 1)
            os.close(self._asked)
            os.close(self._answered)
            self._asked = None
            for stream, tail in self._tails.items():
                name = "the output" if self._shared else _STREAMS[stream]
                kept.append(tail.kept(name))
        return [part for part in kept if part is not None and part.getbuffer().nbytes]

    def _start_copier(self) -> None:
        try:
            self._tails = {stream: _Tail() for stream in self._pairs}
            asking = os.pipe()
            answering = os.pipe()
            self._copier = os.fork()
        except OSError:  # no memory, no process: the streams stay as they are
            self._pairs.clear()
            self._shared.clear()
            return
        if self._copier == 0:
            try:
                _Copier(self._pairs, self._tails, asking[0], answering[1]).run()
            finally:
                os._exit(0)
        for descriptor in (asking[0], answering[1], *(pair[0] for pair in self._pairs.values())):
            os.close(descriptor)
        self._asked, self._answered = asking[1], answering[0]


def _terminal_like(stream: int) -> Tuple[int, int]:
    """Return the two ends of a terminal that looks as the one behind ``stream``."""
    ours, theirs = os.openpty()
    settings = termios.tcgetattr(stream)
    settings[1] &= ~termios.OPOST  # the real one makes its line ends
    settings[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)  # nobody types into it
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    _copy_size(stream, theirs)
    return ours, theirs


def _copy_size(terminal: int, other: int) -> None:
    try:
        size = fcntl.ioctl(terminal, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(other, termios.TIOCSWINSZ, size)
    except OSError:  # it has hung up
        return


def _end_of_file(stream: int, name: str, begin: int) -> Optional[Kept]:
    """Return the end of what a command wrote to a file, where we may read it."""
    try:
        with open(f"/proc/self/fd/{stream}", "rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = max(begin if begin <= size else 0, size - KEPT)
            file.seek(start)
            content = file.read(KEPT)
    except OSError:
        return None
    left_out = max(0, start - begin)
    return Kept(name, _from_whole_line(content, left_out), left_out)


def _from_whole_line(content: bytes, left_out: int) -> bytes:
    return content.partition(b"\n")[2] if left_out and b"\n" in content else content


class _Tail:
    """The end of what was written to a stream, in memory that processes share."""

    def __init__(self) -> None:
        self._size = KEPT
        self._memory = mmap.mmap(-1, _TOTAL.size + self._size)
        self._total = 0

    def add(self, part: bytes) -> None:
        """Append what was written; the oldest bytes go."""
        last = part[-self._size :]
        at = (self._total + len(part) - len(last)) % self._size
        first, rest = last[: self._size - at], last[self._size - at :]
        self._memory[_TOTAL.size + at : _TOTAL.size + at + len(first)] = first
        self._memory[_TOTAL.size : _TOTAL.size + len(rest)] = rest
        self._total += len(part)
        _TOTAL.pack_into(self._memory, 0, self._total)

    def kept(self, name: str) -> Kept:
        """Return what is kept, from whichever process added it."""
        (total,) = _TOTAL.unpack_from(self._memory, 0)
        at = total % self._size
        content = self._memory[_TOTAL.size :]
        content = content[at:] + content[:at] if total > self._size else content[:total]
        left_out = max(0, total - self._size)
        return Kept(name, _from_whole_line(content, left_out), left_out)


class _Channel:
    """One stream on its way."""

    def __init__(self, stream: int, source: int, tail: _Tail) -> None:
        self.stream = stream
        self.source = source
        self.tail = tail
        self.waiting = b""  # read and not written yet


class _Copier:
    """The process that passes on what a command writes. It reads nothing further from a stream
    before what it read is written, so a slow reader slows the command as it would have without.
    """

    def __init__(
        self,
        pairs: Dict[int, Tuple[int, int]],
        tails: Dict[int, _Tail],
        asked: int,
        answer: int,
    ) -> None:
        self.asked: Optional[int] = asked
        self.answer = answer
        self.must_answer = False
        self.copied = 0  # bytes since we were asked
        self.channels = [_Channel(stream, pair[0], tails[stream]) for stream, pair in pairs.items()]
        self._leave_the_rest(asked, answer)

    def _leave_the_rest(self, *needed: int) -> None:
        """Hold nothing of the job's open but the streams, and outlive what ends it: the last words
        are the ones that count.
        """
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGWINCH, self._resize)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        streams = {channel.stream for channel in self.channels}
        for stream in {1, 2} - streams:
            os.dup2(null, stream)
        wanted = {0, 1, 2, *needed, *(channel.source for channel in self.channels)}
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            if descriptor not in wanted:
                try:
                    os.close(descriptor)
                except OSError:  # the one that listed them
                    continue

    def run(self) -> NoReturn:
        """Copy until nobody can write any more."""
        while self.channels:
            poll = select.poll()
            for channel in self.channels:
                if channel.waiting:
                    poll.register(channel.stream, select.POLLOUT)
                else:
                    poll.register(channel.source, select.POLLIN)
            if self.asked is not None:
                poll.register(self.asked, select.POLLIN)
            is_through = self.must_answer and not any(one.waiting for one in self.channels)
            ready = dict(poll.poll(0 if is_through else None))
            if self.asked is not None and ready.pop(self.asked, 0):
                self.must_answer, self.copied, self.asked = True, 0, None
            elif is_through and (not ready or self.copied > 2 * _PART):
                self._tell()
            for channel in list(self.channels):
                if channel.stream in ready and channel.waiting:
                    self._write(channel)
                elif channel.source in ready and not channel.waiting:
                    self._read(channel)
        self._tell()
        os._exit(0)

    def _tell(self) -> None:
        """Answer that all is written that was there when we were asked."""
        self.must_answer = False
        try:
            os.write(self.answer, b"!")
        except OSError:  # nobody waits for it any more
            return

    def _read(self, channel: _Channel) -> None:
        try:
            part = os.read(channel.source, _PART)
        except OSError:  # of a terminal: the last one that wrote to it has gone
            part = b""
        if not part:
            self._end(channel)
            return
        self.copied += len(part)
        channel.waiting = part
        self._write(channel)

    def _write(self, channel: _Channel) -> None:
        """Write what does not make this process wait."""
        poll = select.poll()
        poll.register(channel.stream, select.POLLOUT)
        while channel.waiting:
            if not poll.poll(0):
                return
            try:
                count = os.write(channel.stream, channel.waiting[:_PIPE_BUF])
            except BlockingIOError:
                return
            except OSError:  # the reader left: the command is told as it would have been
                self._end(channel)
                return
            channel.tail.add(channel.waiting[:count])
            channel.waiting = channel.waiting[count:]

    def _end(self, channel: _Channel) -> None:
        os.close(channel.source)
        os.close(channel.stream)
        self.channels.remove(channel)

    def _resize(self, *_: object) -> None:
        for channel in self.channels:
            if os.isatty(channel.stream):
                _copy_size(channel.stream, channel.source)
