"""``envdoctor watch``: the run keeps its streams, its signals and its exit code."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from ..schemas import unproduced, validate

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def start(*arguments, **options):
    command = [sys.executable, "-m", "envdoctor", "watch", *arguments]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        **options,
    )


def run(*arguments, **options):
    process = start(*arguments, **options)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("ulimit -c 0; kill -SEGV $$", 128 + signal.SIGSEGV),
        ("kill -KILL $$", 137),
    ],
)
def test_ends_as_the_run_ends(program, code):
    returned, _, errors = run("--", "sh", "-c", program)
    assert returned == code
    assert "of CPU time" in errors


def test_a_fault_in_what_is_said_leaves_the_exit_code(monkeypatch, capfd):
    from envdoctor.cli.main import run as run_here
    from envdoctor.report import watch_text

    def broken(_recording):
        raise RuntimeError("summary broke")

    monkeypatch.setattr(watch_text, "summary_lines", broken)
    assert run_here(["watch", "--", "sh", "-c", "exit 7"]) == 7
    assert "summary broke" in capfd.readouterr().err


def test_the_run_keeps_its_streams():
    with open(__file__) as file:
        code, output, errors = run("--", "sh", "-c", "cat; echo said >&2", stdin=file)
    assert code == 0
    assert output == Path(__file__).read_text()
    assert "said\n" in errors


ANSWERS_SIGNALS = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, lambda got, _: sys.exit(got + 100))
print("up", flush=True)
time.sleep(30)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_run(number):
    process = start("--", sys.executable, "-c", ANSWERS_SIGNALS, stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == "up\n"
    process.send_signal(number)
    assert process.wait(20) == number + 100
    process.communicate()


def test_samples_and_drawing(tmp_path):
    table, drawing = tmp_path / "run.csv", tmp_path / "run.svg"
    program = "import time\nheld = bytearray(b'x') * (64 << 20)\ntime.sleep(1.2)"
    code, _, errors = run(
        "--interval",
        "0.1",
        "--csv",
        str(table),
        "--svg",
        str(drawing),
        "--",
        sys.executable,
        "-c",
        program,
    )
    assert code == 0, errors
    rows = list(csv.DictReader(table.open()))
    assert {row["name"] for row in rows if row["kind"] == "pool"} == {
        "used",
        "anonymous",
        "shared",
        "file",
        "kernel",
        "limit",
    }
    highest = max(int(row["bytes"]) for row in rows if row["kind"] == "process")
    assert 64 << 20 <= highest <= 100 << 20
    root = ElementTree.fromstring(drawing.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert any(element.tag.endswith("polygon") for element in root.iter())


def test_watches_what_runs_already():
    sleeper = subprocess.Popen(["sleep", "1"])
    code, output, errors = run(str(sleeper.pid), "--interval", "0.1")
    sleeper.wait()
    assert (code, output) == (0, "")
    assert "watched for" in errors


def catches(pid, number):
    """Whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)[1], 16) >> (number - 1) & 1


def test_can_be_asked_to_stop_watching():
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        process = start(str(sleeper.pid), "--interval", "0.1")
        end = time.monotonic() + 30
        while not catches(process.pid, signal.SIGTERM) and time.monotonic() < end:
            time.sleep(0.02)  # watching begins when it is ready to be stopped
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0
        assert "watched for" in errors
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected a process number"),
        (("1", "--container"), "give one of them"),
        (("4194305",), "expected a running process, found none"),
        (("--interval", "0", "--", "true"), "--interval: expected"),
        (("--csv", "/dev/null/x.csv", "--", "true"), "/dev/null/x.csv: cannot be written"),
        (
            ("--svg", "/dev/null/x.svg", "--", "echo", "ran"),
            "--svg /dev/null/x.svg: expected a file that can be written, found no folder /dev/null",
        ),
        (
            ("--svg", "/proc", "--", "echo", "ran"),
            "--svg /proc: expected a file that can be written, found a folder",
        ),
        (("--diagnose", "1"), "--diagnose: expected a command after '--'"),
    ],
)
def test_wrong_arguments(arguments, words):
    code, output, errors = run(*arguments)
    assert (code, output) == (2, "")
    assert words in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/proc", 126)])
def test_a_command_that_cannot_be_run(command, code):
    """As a shell says it: the exit codes are those that docker and schedulers know."""
    returned, output, errors = run("--", command)
    assert (returned, output) == (code, "")
    assert f"'{command}' cannot be run" in errors


def test_an_end_by_exception_is_diagnosed():
    code, output, errors = run("--diagnose", "--", "python3", "-c", "print(1); int('x')")
    assert (code, output) == (1, "1\n")
    assert "The run failed with ValueError" in errors.split("of CPU time")[1]


@pytest.mark.parametrize(("number", "words"), [(9, "SIGKILL"), (11, "SIGSEGV"), (6, "SIGABRT")])
def test_an_end_by_a_signal_is_diagnosed(number, words):
    program = f"import os; print(1, flush=True); os.kill(os.getpid(), {number})"
    code, output, errors = run("--diagnose", "--", "python3", "-c", program)
    assert (code, output) == (128 + number, "1\n")
    assert f"A process was ended by {words}" in errors.split("of CPU time")[1]


@pytest.fixture
def small_group(prerequisite):
    """A control group with 512 MiB of memory, of version 1 or 2; what joins a process to it."""
    root = Path("/sys/fs/cgroup")
    version_1 = (root / "memory").is_dir()
    group = (root / "memory" if version_1 else root) / "envdoctor-test-watch"
    try:
        group.mkdir(exist_ok=True)
        name = "memory.limit_in_bytes" if version_1 else "memory.max"
        (group / name).write_text(str(512 << 20))
    except OSError as error:
        prerequisite(False, f"no control group can be made: {error}")
    yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    for _ in range(50):
        with contextlib.suppress(OSError):
            group.rmdir()
            break
        time.sleep(0.1)


def test_a_run_that_its_control_group_killed(small_group):
    """As in a container or a job with a limit: the kernel writes nothing into the run's output."""
    program = "import time; x = []\nwhile True: x.append(b'1' * (16 << 20)); time.sleep(0.05)"
    command = ("python3", "-c", program)
    code, _, errors = run("--diagnose", "--", *command, preexec_fn=small_group)
    assert code == 137
    said = errors.split("of CPU time")[1]
    assert "The kernel has killed 1 process of this control group" in said, errors
    assert "consequence: A process was ended by SIGKILL" in said


def test_a_signal_behind_an_exception_is_its_consequence():
    program = "import os, traceback\ntry:\n    int('x')\nexcept ValueError:\n"
    program += "    traceback.print_exc()\n    os.kill(os.getpid(), 9)"
    code, _, errors = run("--diagnose", "--", "python3", "-c", program)
    assert code == 137
    said = errors.split("of CPU time")[1]
    assert "The run failed with ValueError" in said
    assert "consequence: A process was ended by SIGKILL" in said


@pytest.mark.parametrize("program", ["exit 0", "kill -TERM $PPID; exec sleep 20"])
def test_a_run_that_ended_well_or_was_stopped_is_not_diagnosed(program):
    _, _, errors = run("--diagnose", "--", "sh", "-c", f"echo 'ValueError: no'; {program}")
    assert "envdoctor: " not in errors
    assert ("asked to end (SIGTERM)" in errors) == ("kill" in program)


def test_a_full_disk_does_not_end_the_run():
    code, _, errors = run(
        "--interval", "0.1", "--csv", "/dev/full", "--", "sh", "-c", "sleep 0.5; exit 3"
    )
    assert code == 3
    assert "are not in the file: No space left on device" in errors


def test_a_drawing_that_cannot_be_kept_does_not_change_the_exit_code():
    code, _, errors = run("--interval", "0.1", "--svg", "/dev/full", "--", "sh", "-c", "exit 3")
    assert code == 3
    assert "/dev/full: cannot be written: No space left on device" in errors


def test_the_last_report_as_json(tmp_path):
    """Memory that grows fills in the outlook; the command keeps its standard output."""
    file = tmp_path / "report.json"
    grow = (
        "import time\nkept = []\nfor _ in range(40):\n    kept.append(b'x' * (1 << 22))\n"
        "    time.sleep(0.1)\ntime.sleep(0.5)\nprint('done')"  # all of it is seen more than once
    )
    code, output, _ = run(
        *("--interval", "0.1", "--format", "json", "-o", str(file)),
        *("--", sys.executable, "-c", grow),
    )
    assert (code, output) == (0, "done\n")
    grown = json.loads(file.read_text())
    assert grown["peak"] >= 40 << 22
    assert grown["samples"] >= 10
    sleeper = subprocess.Popen(["sleep", "30"])
    try:
        code, output, errors = run(
            str(sleeper.pid), "--duration", "0.3", "--interval", "0.1", "--format", "json"
        )
    finally:
        sleeper.kill()
        sleeper.wait()
    assert (code, errors) == (0, "")
    left = unproduced("watch", [grown, json.loads(output)])
    assert {place.rpartition("/")[2] for place in left} <= {"likely", "earliest", "latest"}
    assert run("--format", "json", "--", "true")[0] == 2


@pytest.mark.parametrize(("program", "is_told"), [("int('x')", True), ("print(1)", False)])
def test_the_json_says_why_it_failed(tmp_path, program, is_told):
    file = tmp_path / "report.json"
    options = ("--diagnose", "--format", "json", "-o", str(file))
    code, _, _ = run(*options, "--", sys.executable, "-c", program)
    report = json.loads(file.read_text())
    validate(report, "watch")
    assert (code == 1) is is_told is (report["diagnosis"] is not None)
    if is_told:
        assert "ValueError: invalid literal" in report["diagnosis"]["summary"]["line"]
