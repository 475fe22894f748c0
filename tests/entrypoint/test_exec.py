"""What the command gets is what the entrypoint got; the same command without it is the oracle."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from envdoctor.entrypoint import handoff

from .conftest import COMMAND, environment

# Prints all that an exec passes on, but for the process id.
TELL = r"""
import json, os, sys
def status():
    lines = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
    return {name: lines[name].strip() for name in ("SigBlk", "Umask", "Uid", "Gid", "Groups", "NoNewPrivs", "CapEff", "Seccomp")}
ignored = int([line for line in open("/proc/self/status") if line.startswith("SigIgn")][0].split()[1], 16)
descriptors = {}
for name in os.listdir("/proc/self/fd"):
    try:
        descriptors[name] = os.readlink("/proc/self/fd/" + name)
    except OSError:  # the one that listed them
        continue
try:
    folder = os.readlink("/proc/self/cwd")
except OSError as error:
    folder = repr(error)
print(json.dumps({
    "argv": [os.fsencode(word).hex() for word in sys.argv],
    "environ": open("/proc/self/environ", "rb").read().hex(),
    "cwd": folder, "status": status(), "ignored": ignored, "descriptors": descriptors,
    "limits": open("/proc/self/limits").read(), "group": os.getpgrp(), "session": os.getsid(0), "nice": os.nice(0),
    "parent": os.getppid(), "children": open("/proc/self/task/%d/children" % os.getpid()).read(),
}))
"""


def told(before, after, script, **options):
    """Run TELL with ``before`` in front of it, and return what it saw; standard output is a
    file.
    """
    words = [*before, sys.executable, "-I", "-S", str(script), *after]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False, **options
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    # Each run has pipes of its own.
    seen["descriptors"] = {
        number: path.split(":")[0] for number, path in seen["descriptors"].items()
    }
    return seen


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "tell.py"
    path.write_text(TELL)
    return path


def prepare(*blocked):
    """Something unusual in everything that a process inherits.

    Python's own ignoring of two signals is undone, as in a shell.
    """
    os.umask(0o137)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGTERM, *blocked])
    os.nice(3)


ODD = [
    b"",
    b" ",
    b"--",
    b"--policy",
    b"\xff\xfe",
    "é€\U0001f600".encode(),
    b"a\nb",
    b"*",
    b"$HOME",
    b"x" * 1000,
]


@pytest.mark.parametrize("policy", ["off", "warn", "enforce"])
def test_command_sees_what_it_would_see_without_us(tmp_path, script, policy):
    with open(tmp_path / "locked", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        options = {
            "env": environment(ENVDOCTOR_POLICY=policy, ODD="\udcff"),
            "preexec_fn": prepare,
            "pass_fds": [file.fileno()],
            "cwd": tmp_path,
        }
        bare = told([], ODD, script, **options)
        ours = told([*COMMAND, "--"], ODD, script, **options)
    assert ours == bare
    assert bare["children"] == ""
    assert [bytes.fromhex(word) for word in ours["argv"][1:]] == ODD


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": None},
        {"LC_ALL": "C"},
        {"LC_ALL": None, "LC_CTYPE": "C"},
        {"LC_ALL": None, "LANG": "de_DE"},
    ],
)
def test_python_leaves_no_locale_behind(script, variables):
    """In the C locale Python sets LC_CTYPE for itself and its children (PEP 538)."""
    options = {"env": environment(**variables)}
    assert told([*COMMAND, "--"], ODD[4:6], script, **options) == told(
        [], ODD[4:6], script, **options
    )


def test_entries_that_are_no_variables_are_passed_on(tmp_path, script):
    """An environment may hold what os.environ cannot: an entry without '=', and the same name
    twice.
    """
    raw = tmp_path / "raw.c"
    raw.write_text(
        '#include <unistd.h>\nint main(int n, char **a) {(void)n; char *e[] = {"X=1", "nothing", '
        '"X=2", a[1], 0}; execve(a[2], a + 2, e); return 9;}'
    )
    subprocess.run(["cc", "-o", str(tmp_path / "raw"), str(raw)], check=True)
    start = [str(tmp_path / "raw"), f"PYTHONPATH={environment()['PYTHONPATH']}"]
    done = subprocess.run(
        [*start, *COMMAND, "--", "/bin/cat", "/proc/self/environ"],
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout
    assert done.split(b"\0")[:3] == [b"X=1", b"nothing", b"X=2"]
    assert not [entry for entry in done.split(b"\0")[4:] if entry]


def test_the_process_id_stays():
    process = subprocess.Popen(
        [*COMMAND, "--", "sh", "-c", "echo $$"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert int(process.communicate(timeout=60)[0]) == process.pid


def test_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'cd {gone} && rmdir {gone} && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, "--", "readlink", "/proc/self/cwd"],
        env=environment(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, f"{gone} (deleted)\n".encode())


# Returns which of 0, 1 and 2 are open, as bits; 8 for each other one.
OPEN = (
    "#include <fcntl.h>\nint main(void) {int n, m = 0; for (n = 0; n < 99; n++) m += fcntl(n, "
    "F_GETFD) != -1 ? n < 3 ? 1 << n : 8 : 0; return m;}"
)


@pytest.mark.parametrize(
    "closed",
    [
        "<&-",
        ">&-",
        "2>&-",
        "<&- >&-",
        "<&- 2>&-",
        ">&- 2>&-",
        "<&- >&- 2>&-",
        ">/dev/full",
        "2>/dev/full",
        ">/dev/full 2>&1",
    ],
)
def test_closed_and_full_descriptors(tmp_path, closed):
    """The command finds its descriptors as they were, and starts.

    Shells and Pythons fill gaps themselves, so the command is in C.
    """
    (tmp_path / "open.c").write_text(OPEN)
    subprocess.run(["cc", "-o", str(tmp_path / "open"), str(tmp_path / "open.c")], check=True)
    codes = []
    for before in ([], [*COMMAND, "--"]):
        options = {"env": environment(), "stdin": subprocess.DEVNULL, "capture_output": True}
        words = ["sh", "-c", f'exec "$@" {closed}', "sh", *before, str(tmp_path / "open")]
        codes.append(subprocess.run(words, check=False, timeout=60, **options).returncode)
    assert (
        codes[0]
        == codes[1]
        == 7
        - sum(
            1 << int(word[0]) if word[0] == "2" else 1 << (word[0] == ">")
            for word in closed.split()
            if "&-" in word
        )
    )


def test_full_pipe_whose_reader_sleeps_does_not_hold_the_job(tmp_path):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    started = time.monotonic()
    done = subprocess.run(
        [*COMMAND, "--", "true"], env=environment(), stderr=writer, timeout=60, check=False
    )
    os.close(reader)
    os.close(writer)
    assert done.returncode == 0
    assert time.monotonic() - started < 5


# --------------------------------------------------------------------------------------------------
# what cannot be run


def _file(folder, name, content, mode):
    path = folder / name
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_codes_of_commands_that_cannot_be_run(start, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    _file(folder, "plain", b"#!/bin/sh\nexit 0\n", 0o644)
    cases = {
        "no-such-command": 127,
        str(tmp_path / "nothing"): 127,
        _file(tmp_path, "no-interpreter", b"#!/no/such/interpreter\n", 0o755): 127,
        _file(tmp_path, "not-executable", b"#!/bin/sh\n", 0o644): 126,
        str(tmp_path): 126,
        "/etc/passwd/x": 127,
        "plain": 126,
    }
    for command, code in cases.items():
        done = start("--", command, env=environment(PATH=f"{folder}:{os.environ['PATH']}"))
        assert done.returncode == code, (command, done.stderr)
        assert done.stderr.decode().splitlines()[-1].startswith("envdoctor: ")
        assert b"Traceback" not in done.stderr
        shell = subprocess.run(
            ["dash", "-c", 'exec "$@"', "sh", command],
            env=environment(PATH=f"{folder}:{os.environ['PATH']}"),
            capture_output=True,
            check=False,
        )
        assert shell.returncode == code, command  # POSIX's shell is the oracle


def test_search_goes_on_behind_what_may_not_be_run(start, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    _file(first, "tool", b"#!/bin/sh\nexit 1\n", 0o644)
    _file(second, "tool", b"#!/bin/sh\nexit 3\n", 0o755)
    assert (
        start(
            "--",
            "tool",
            env=environment(PATH=f"{first}:/nonexistent:{second}:{os.environ['PATH']}"),
        ).returncode
        == 3
    )


def test_script_without_an_interpreter_line_runs_as_under_execvp(start, tmp_path):
    path = _file(tmp_path, "script", b"echo $# $1\n", 0o755)
    assert start("--", path, "a b", "c").stdout == b"2 a b\n"


def test_empty_path_entry_is_the_current_folder(start, tmp_path):
    _file(tmp_path, "here", b"#!/bin/sh\nexit 4\n", 0o755)
    assert start("--", "here", env=environment(PATH=""), cwd=tmp_path).returncode == 4


# --------------------------------------------------------------------------------------------------
# options


def test_wrong_options_never_stop_a_command_unless_enforced(start):
    for wrong in (
        ["--polcy", "enforce"],
        ["--timeout", "soon"],
        ["--strict=1"],
        ["--format", "xml"],
        ["--timeout"],
    ):
        done = start(*wrong, "--", "sh", "-c", "exit 7")
        assert done.returncode == 7, wrong
        assert b"ignored: " in done.stderr
        enforced = start(
            *wrong, "--", "sh", "-c", "exit 7", env=environment(ENVDOCTOR_POLICY="enforce")
        )
        assert enforced.returncode == 64, wrong


def test_variables(start):
    assert start("--policy", "off", "--", "true").stderr == b""
    assert start("--", "true", env=environment(ENVDOCTOR_POLICY="off")).stderr == b""
    assert (
        start(
            "--policy", "enforce", "--polcy", "--", "true", env=environment(ENVDOCTOR_DISABLE="1")
        ).returncode
        == 0
    )
    assert start("--", "true", env=environment(ENVDOCTOR_DISABLE="0")).stderr.startswith(
        b"envdoctor: "
    )
    assert start("--", "true", env=environment(ENVDOCTOR_FORMAT="none")).stderr == b""
    document = json.loads(start("--", "true", env=environment(ENVDOCTOR_FORMAT="json")).stderr)
    assert document["tool"]["name"] == "envdoctor"
    unknown = start(
        "--",
        "sh",
        "-c",
        "exit 7",
        env=environment(ENVDOCTOR_POLICY=" Warn", ENVDOCTOR_TIMEOUT="x"),
    )
    assert unknown.returncode == 7
    assert b"ENVDOCTOR_POLICY: expected one of" in unknown.stderr


@pytest.mark.parametrize("value", ["Enforce", "enforce ", "enfroce", "strict", "1"])
def test_a_policy_that_is_none_is_wrong_usage(start, value):
    """Neither warn nor off was asked for, so the command is not waved through."""
    for arguments, variables in (
        (["--policy", value], {}),
        ([], {"ENVDOCTOR_POLICY": value}),
    ):
        done = start(*arguments, "--", "true", env=environment(**variables))
        assert done.returncode == 64
        assert b"expected one of off, warn, enforce" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["--"], ["--policy", "warn"], ["--what", "true"]])
def test_no_command_is_wrong_usage(start, arguments):
    assert start(*arguments).returncode == 64


def test_command_may_follow_without_dashes(start):
    assert start("--policy", "warn", "sh", "-c", "exit 6").returncode == 6
    assert start("echo", "--", "x").stdout == b"-- x\n"


def test_help(start):
    done = start("--help")
    assert done.returncode == 0
    assert b"ENVDOCTOR_DISABLE" in done.stdout


# --------------------------------------------------------------------------------------------------
# our own faults


@pytest.mark.parametrize(
    "module",
    ["select", "envdoctor.entrypoint.verdict", "envdoctor.matrix.loader", "envdoctor.probes"],
)
def test_broken_installation_never_stops_a_command_unless_strictly_enforced(
    start, tmp_path, module
):
    """A module that fails at import, in the process itself (select) or in its child (the
    others).
    """
    hook = f"""
import sys

class Broken:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            raise ImportError("broken")

sys.meta_path.insert(0, Broken)
"""
    (tmp_path / "sitecustomize.py").write_text(hook)
    broken = environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{environment()['PYTHONPATH']}")
    command = ["--", "sh", "-c", "grep SigIgn /proc/self/status; exit 7"]

    def ignored(done):
        """Return the signals that are ignored, but for 32 and 33: they are glibc's, and the
        subprocess of Python 3.13.0 has them ignored in its children.
        """
        return int(done.stdout.split()[1], 16) & 0x7FFF_FFFF

    # under nohup, SIGHUP is ignored here and there
    bare = subprocess.run(command[1:], capture_output=True, check=False)
    for options in ([], ["--policy", "enforce"]):
        done = start(*options, *command, env=broken)
        assert (done.returncode, ignored(done)) == (7, ignored(bare))
    assert b"envdoctor: no verdict: ImportError: broken" in done.stderr
    assert start("--policy", "enforce", "--strict", *command, env=broken).returncode == 69


def test_no_process_can_be_made(prerequisite):
    """Where the kernel refuses a fork, the command still runs: it needs none."""
    prerequisite(
        os.geteuid() == 0 and os.access("/sys/fs/cgroup/pids/cgroup.procs", os.W_OK),
        "root and a v1 pids cgroup",
    )
    group = f"/sys/fs/cgroup/pids/envdoctor-test-{os.getpid()}"
    os.mkdir(group)
    try:
        line = f'echo 1 >{group}/pids.max; echo $$ >{group}/cgroup.procs; exec "$@"'
        words = ["sh", "-c", line, "sh", *COMMAND, "--", "echo", "ran"]
        done = subprocess.run(
            words, env=environment(), capture_output=True, check=False, timeout=60
        )
    finally:
        os.rmdir(group)
    assert (done.returncode, done.stdout) == (0, b"ran\n")
    assert b"no verdict: no child process" in done.stderr


def test_memory_limit_of_a_process_costs_the_verdict_at_most(start):
    line = 'ulimit -v 40000; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, "--", "echo", "ran"],
        env=environment(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"ran\n"), done.stderr


def test_the_words_of_a_fault_hold_no_secret():
    def fails(announce, failed, seconds):
        raise ValueError("https://user:hunter2hunter2@host/simple cannot be read")

    answer = handoff.supervise(fails, 10)
    assert "ValueError" in answer.details
    assert "hunter2" not in answer.line + answer.details
