"""Signals while the check runs: the entrypoint ends as the command would, with its child, and loses
none; and many starts leave nothing behind.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import COMMAND, environment

CHAOS = [
    sys.executable,
    str(Path(__file__).with_name("chaos.py")),
    "variables",
    "hang",
    "-",
    "entrypoint",
    "--timeout",
    "8",
    "--",
]
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it did not come")


def gone(pid):
    """Tell whether a process is no more; a zombie still is."""
    return not os.path.exists(f"/proc/{pid}")


def start(words, **options):
    process = subprocess.Popen(
        words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )
    child = wait_for(lambda: children(process.pid))[0]
    wait_for(lambda: os.getpgid(child) == child)  # it is set up
    time.sleep(0.3)
    return process, child


@pytest.mark.parametrize("number", ENDING)
def test_signal_during_the_check_ends_both(number):
    process, child = start(
        [*CHAOS, "echo", "ran"], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)
    )
    sent = time.monotonic()
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=30)
    assert time.monotonic() - sent < 2
    assert process.returncode == -number
    assert stdout == b""
    assert wait_for(lambda: gone(child))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ignored_signal_stays_ignored(number):
    """As under nohup: the command would ignore it, so the check goes on."""
    words = [*CHAOS[:-3], "--timeout", "1", "--", "sh", "-c", "grep SigIgn /proc/self/status"]
    process, _ = start(words, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert int(stdout.split()[1], 16) & 1 << number - 1


def test_blocked_signal_waits_for_the_command():
    waiting = (
        "import signal; signal.signal(15, lambda *_: print('got it')); "
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, [15])"
    )
    words = [*CHAOS[:-3], "--timeout", "1", "--", sys.executable, "-c", waiting]
    process, _ = start(
        words, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    )
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (0, b"got it\n")


def test_as_pid_1_a_signal_ends_the_container(prerequisite):
    """The kernel does not end PID 1 by a signal without handler: here the entrypoint ends itself,
    as an init would.
    """
    space = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    prerequisite(
        subprocess.run([*space, "true"], capture_output=True, check=False).returncode == 0,
        "root and PID namespaces",
    )
    process = subprocess.Popen(
        [*space, *CHAOS, "echo", "ran"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    first = wait_for(lambda: children(process.pid))[0]
    child = wait_for(lambda: children(first))[0]
    wait_for(lambda: os.getpgid(child) == child)
    time.sleep(0.3)
    os.kill(first, signal.SIGTERM)
    stdout, _ = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (128 + signal.SIGTERM, b"")


def test_child_ends_when_the_entrypoint_is_killed():
    process, child = start([*CHAOS[:-3], "--timeout", "1", "--", "true"])
    process.kill()
    process.wait()
    assert wait_for(
        lambda: (
            gone(child) or Path(f"/proc/{child}/stat").read_text().split(")")[1].split()[0] == "Z"
        ),
        5,
    )


def test_signals_at_any_moment_end_it_or_reach_the_command():
    """TERM at a random moment: either the check ends by it, or the command gets it; never
    neither.
    """
    outcomes = set()
    for number in range(24):
        process = subprocess.Popen(
            [*COMMAND, "--", "sleep", "5"], env=environment(), stderr=subprocess.DEVNULL
        )
        time.sleep(0.012 * number)
        process.terminate()
        outcomes.add(process.wait(timeout=20))
    assert outcomes == {-signal.SIGTERM}


# --------------------------------------------------------------------------------------------------
# many starts

REAPER = """
import ctypes, os, subprocess, sys, time
# Whatever is left behind comes to this process, and is counted.
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
count, at_once, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
running, codes, open_at_first = [], [], len(os.listdir("/proc/self/fd"))
for _ in range(count):
    reader, writer = os.pipe()
    running.append((subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE), reader))
    os.close(writer)
    while len(running) >= at_once or (len(codes) + len(running) == count and running):
        process, reader = running.pop(0)
        said = process.stderr.read()
        codes.append(process.wait())
        assert os.read(reader, 1) == b"", "somebody still holds the pipe"
        os.close(reader)
        process.stderr.close()
time.sleep(0.2)
left = []
while True:
    try:
        left.append(os.waitpid(-1, os.WNOHANG))
        if left[-1][0] == 0:
            break
    except ChildProcessError:
        break
assert len(os.listdir("/proc/self/fd")) == open_at_first
print(len(codes), set(codes), left)
"""


# Ends with 7 where exactly 0, 1 and 2 are open and there is no child.
ALONE = """
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    int n, open = 0;
    char path[64];
    for (n = 0; n < 99; n++) open += fcntl(n, F_GETFD) != -1 ? n < 3 ? 1 << n : 8 : 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "r");
    if (!children || fgetc(children) != EOF) open += 64;
    return open;
}
"""


@pytest.mark.parametrize(
    ("count", "at_once"),
    [
        (10, 1),
        (20, 20),
        pytest.param(50, 50, marks=pytest.mark.slow),
        pytest.param(1000, 1, marks=pytest.mark.slow),
    ],
)
def test_many_starts_leave_nothing_behind(tmp_path, count, at_once):
    """No orphan, no zombie, no descriptor, no file: of each command, and of the process that
    started them.
    """
    (tmp_path / "alone.c").write_text(ALONE)
    subprocess.run(["cc", "-o", str(tmp_path / "alone"), str(tmp_path / "alone.c")], check=True)
    before = sorted(os.listdir(tmp_path))
    words = [
        sys.executable,
        "-c",
        REAPER,
        str(count),
        str(at_once),
        *COMMAND,
        "--",
        str(tmp_path / "alone"),
    ]
    variables = environment(TMPDIR=str(tmp_path), HOME=str(tmp_path))
    done = subprocess.run(
        words, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=580, check=False
    )
    assert done.stdout == f"{count} {{7}} []\n", done.stderr
    assert sorted(os.listdir(tmp_path)) == before
