"""What a command writes passes through unchanged and at once, and its end is kept."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from envdoctor.watch import command_output

REPOSITORY = Path(__file__).resolve().parents[2]

#: Watches the command of its arguments, and writes what was kept of its output to a file.
PROGRAM = f"""
import os, sys
sys.path.insert(0, {str(REPOSITORY)!r})
from envdoctor.watch.sampling import watch
place, *command = sys.argv[1:]
recording = watch(command=command, keep_output=True, interval=0.1)
with open(place, "wb") as file:
    for kept in recording.output:
        file.write(b"[%s, %d left out]\\n" % (kept.name.encode(), kept.left_out))
        file.write(kept.getvalue())
    file.write(recording.failure.encode())
os._exit(recording.exit_code)
"""


@pytest.fixture
def kept_in(tmp_path):
    """Return the file in which a watched command's kept output will be."""
    return tmp_path / "kept"


def command_of(kept_in, *command):
    return [sys.executable, "-c", PROGRAM, str(kept_in), *command]


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_output_is_the_same_as_without(kept_in, tmp_path, kind, joined):
    program = (
        "import sys\n"
        "for number in range(3000):\n"
        "    print('out', number)\n"
        "    print('err', number, file=sys.stderr)\n"
        "sys.stdout.buffer.write(b'no end of line \\xff')"
    )
    places = [tmp_path / "out", tmp_path / "err"]

    def run(command):
        with open(places[0], "wb") as out, open(places[1], "wb") as err:
            streams = {"pipe": (subprocess.PIPE, subprocess.PIPE), "file": (out, err)}[kind]
            done = subprocess.run(
                command,
                stdout=streams[0],
                stderr=subprocess.STDOUT if joined else streams[1],
                timeout=60,
            )
        files = tuple(place.read_bytes() for place in places)
        return (done.stdout, done.stderr) if kind == "pipe" else files

    plain = run([sys.executable, "-c", program])
    assert run(command_of(kept_in, sys.executable, "-c", program)) == plain
    kept = kept_in.read_bytes()
    assert kept.count(b"err ") == 3000
    assert kept.count(b"out ") == 3000
    for line in kept.split(b"\n"):
        assert line.startswith((b"out ", b"err ", b"[", b"no end of line \xff")) or not line


def test_of_much_output_the_end_is_kept_and_memory_is_bounded(kept_in):
    """The oracle is what arrives, and the kernel's account of the largest child."""
    program = (
        "import os, sys\n"
        "block = b''.join(b'%015d\\n' % n for n in range(65536))\n"  # 1 MiB
        "for _ in range(100): sys.stdout.buffer.write(block)\n"
        "sys.stdout.buffer.write(b'the end\\n')"
    )
    measured = (
        "import resource, subprocess, sys\n"
        "code = subprocess.call(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n"
        "sys.exit(code)"
    )
    block = b"".join(b"%015d\n" % n for n in range(65536))
    done = subprocess.run(
        [sys.executable, "-c", measured, *command_of(kept_in, sys.executable, "-c", program)],
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0
    expected = hashlib.sha256(block * 100 + b"the end\n").digest()
    assert hashlib.sha256(done.stdout).digest() == expected
    head, _, kept = kept_in.read_bytes().partition(b"\n")
    assert kept.endswith(b"%015d\nthe end\n" % 65535)
    assert command_output.KEPT - 16 <= len(kept) <= command_output.KEPT
    assert int(head.split()[-3]) + len(kept) >= (100 << 20) - 16
    assert int(done.stderr) < 64 << 10  # KiB


def test_a_line_arrives_before_the_next_is_written(kept_in):
    """An answer that is delayed until the end would hang this conversation."""
    program = "import sys\nfor line in sys.stdin: print('heard', line, end='', flush=True)"
    process = subprocess.Popen(
        command_of(kept_in, sys.executable, "-u", "-c", program),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    for number in range(20):
        process.stdin.write(b"%d\n" % number)
        process.stdin.flush()
        assert select.select([process.stdout], [], [], 30)[0]
        assert process.stdout.readline() == b"heard %d\n" % number
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()


def test_what_the_command_leaves_behind_goes_on_writing(kept_in):
    program = "(sleep 1; echo later; echo last) & echo now; exit 3"
    process = subprocess.Popen(command_of(kept_in, "sh", "-c", program), stdout=subprocess.PIPE)
    begun = time.monotonic()
    assert process.wait(30) == 3
    is_quick = time.monotonic() - begun < 1
    assert process.stdout.read() == b"now\nlater\nlast\n"
    assert b"now" in kept_in.read_bytes()
    assert is_quick or b"later" in kept_in.read_bytes()
    process.stdout.close()


def test_a_reader_that_leaves_ends_the_command_as_it_would_have(kept_in):
    process = subprocess.Popen(command_of(kept_in, "yes"), stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"y\n"
    process.stdout.close()
    assert process.wait(30) == 128 + signal.SIGPIPE


def test_a_reader_that_is_slow_gets_everything(kept_in):
    process = subprocess.Popen(
        command_of(kept_in, sys.executable, "-c", "print('x' * 300_000); print('end')"),
        stdout=subprocess.PIPE,
    )
    time.sleep(0.7)
    assert process.poll() is None  # as the command alone: its output does not fit into the pipe
    assert process.stdout.read() == b"x" * 300_000 + b"\nend\n"
    assert process.wait(30) == 0
    process.stdout.close()


def in_terminal(command, answer):
    """Run a command in a terminal of its own; ``answer`` gets the terminal and what it wrote so far.

    Returns the exit code and all that was written.
    """
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 123, 0, 0))
    written, end = b"", time.monotonic() + 30
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            break
        written += part
        answer(terminal, written)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), written.decode()


TERMINAL = """
import os, signal, sys, time
times = []
signal.signal(signal.SIGINT, lambda *_: times.append(1))
signal.signal(signal.SIGWINCH, lambda *_: None)
print("terminals", [os.isatty(stream) for stream in (0, 1, 2)])
print("its own", os.ttyname(0) == os.ctermid() or os.path.exists("/dev/tty"))
print("in front", os.tcgetpgrp(0) == os.getpgrp(), flush=True)
print("ready", flush=True)
while not times: time.sleep(0.05)
time.sleep(0.5)
print("interrupted", len(times), "size", tuple(os.get_terminal_size(1)))
sys.exit(5)
"""


def test_a_terminal_stays_one(kept_in):
    """With its size, also when that changes, and one Ctrl-C for the command."""
    answered = []

    def answer(terminal, written):
        if b"ready" in written and not answered:
            answered.append(True)
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
            time.sleep(0.2)
            os.write(terminal, b"\x03")

    command = command_of(kept_in, sys.executable, "-c", TERMINAL)
    code, written = in_terminal(command, answer)
    assert code == 5
    assert "terminals [True, True, True]\r\n" in written
    assert "in front True" in written
    assert "interrupted 1 size (99, 33)" in written
    assert b"interrupted 1" in kept_in.read_bytes()


def test_the_end_is_kept_whatever_is_written(monkeypatch):
    """Against a plain slice, with pieces of any size."""
    monkeypatch.setattr(command_output, "KEPT", 1000)
    choice = random.Random(7)
    for _ in range(50):
        tail, whole = command_output._Tail(), b""
        for _ in range(choice.randint(0, 12)):
            size = choice.choice([1, 90, 999, 1000, 2500])
            part = bytes(choice.randrange(97, 123) for _ in range(size))
            tail.add(part)
            whole += part
        kept = tail.kept("output")
        assert kept.getvalue() == whole[-1000:]
        assert kept.left_out == max(0, len(whole) - 1000)
