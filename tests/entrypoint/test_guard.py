"""The script envdoctor-entrypoint under the shells that images have as /bin/sh: CMD starts whatever
becomes of Python, and gets what the script got.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..fuse import SILENT, mounted
from .conftest import ROOT, environment, write_lock
from .test_exec import ODD, OPEN, TELL, prepare, told

SCRIPT = ROOT / "envdoctor" / "entrypoint" / "envdoctor-entrypoint"


def shells(folder):
    """Return the shells of this machine, each as images start it: by the name sh."""
    commands = {}
    for name, program in (("dash", "dash"), ("bash", "bash"), ("ash", "busybox")):
        path = shutil.which(program)
        if path:
            link = folder / name / "sh"
            link.parent.mkdir()
            link.symlink_to(path)
            commands[name] = str(link)
    return commands


@pytest.fixture(scope="session")
def found_shells(tmp_path_factory):
    return shells(tmp_path_factory.mktemp("shells"))


def found(name, found_shells, prerequisite):
    prerequisite(name in found_shells, f"{name} (ash: Debian's busybox)")
    return found_shells[name]


@pytest.fixture(params=["dash", "bash", "ash"])
def shell(request, found_shells, prerequisite):
    return found(request.param, found_shells, prerequisite)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("bash", "ash")]


@pytest.fixture(params=["dash", *SLOW])
def one_shell(request, found_shells, prerequisite):
    """For what takes seconds: dash, and all of them where there is time."""
    return found(request.param, found_shells, prerequisite)


def make_environment(folder):
    """Make an environment with envdoctor, what it needs, and the script; return its folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next((folder / "lib").glob("python*/site-packages"))
    (site / "packaging").symlink_to(Path(__import__("packaging").__file__).parent)
    (site / "envdoctor").symlink_to(ROOT / "envdoctor")
    shutil.copy(SCRIPT, folder / "bin")
    console = folder / "bin" / "envdoctor"
    console.write_text(f"#!{folder}/bin/python\nfrom envdoctor.cli.main import main\n\nmain()\n")
    console.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    return make_environment(tmp_path_factory.mktemp("installed") / "env")


@pytest.fixture
def own(tmp_path):
    """An environment that a test may damage."""
    return make_environment(tmp_path / "env")


def script_of(folder):
    return str(folder / "bin" / "envdoctor-entrypoint")


def variables(**changes):
    return environment(PYTHONPATH=None, **changes)


JOB = ["sh", "-c", "echo ran; exit 7"]


def run(folder, *arguments, shell=None, **options):
    options.setdefault("env", variables())
    words = [*([shell] if shell else []), script_of(folder), *arguments]
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        **options,
    )


# --------------------------------------------------------------------------------------------------
# what CMD gets


def entries(seen):
    return sorted(bytes.fromhex(seen["environ"]).split(b"\0"))


def same(ours, bare):
    """Shells keep no order of the entries of an environment."""
    assert entries(ours) == entries(bare)
    assert {**ours, "environ": 0} == {**bare, "environ": 0}


@pytest.fixture
def tell(tmp_path):
    path = tmp_path / "tell.py"
    path.write_text(TELL)
    return path


@pytest.mark.parametrize("policy", ["off", "warn", "enforce"])
@pytest.mark.parametrize("prepared", [None, prepare])
def test_command_sees_what_it_would_see_without_us(
    tmp_path, installed, shell, tell, policy, prepared
):
    """With ``prepare``, signals are blocked and ignored."""
    with open(tmp_path / "locked", "w") as file:
        options = {
            "env": variables(ENVDOCTOR_POLICY=policy, ODD="\udcff", MULTI="a\nb\n"),
            "preexec_fn": prepared,
            "pass_fds": [file.fileno()],
            "cwd": tmp_path,
        }
        bare = told([], ODD, tell, **options)
        ours = told([shell, script_of(installed), "--"], ODD, tell, **options)
    same(ours, bare)
    assert bare["children"] == ""
    assert [bytes.fromhex(word) for word in ours["argv"][1:]] == ODD


ENVIRONMENTS = {
    "nothing of a shell": {},
    "a shell's": {"PWD": "/", "OLDPWD": "/usr", "SHLVL": "4", "_": "/usr/bin/x"},
    "a wrong folder": {"PWD": "/wrong", "SHLVL": "abc"},
    "names that are none": {"a.b": "1", "tls-key": "x\ny\n", "9": "", "é": "ü"},
    "functions": {"BASH_FUNC_module%%": "() {  echo a\n}", "BASH_FUNC_kill%%": "() {  exit 9\n}"},
    "names of shells": {"IFS": "x", "OPTIND": "7", "PPID": "5", "UID": "77", "RANDOM": "3"},
    "names of bash": {"BASH_VERSION": "1", "SHELLOPTS": "noclobber", "SECONDS": "4"},
    "names of ours": {"code": "1", "policy": "2", "envdoctor": "3"},
    "an interactive shell's": {"ENV": "/nonexistent", "BASH_ENV": "/nonexistent", "PS4": "+"},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("broken", [False, True], ids=["", "without Python"])
def test_environment_is_what_it_was(tmp_path, installed, shell, tell, name, broken):
    """Where no Python is, env stands in for it."""
    if broken:
        folder = tmp_path / "bare"
        (folder / "bin").mkdir(parents=True)
        shutil.copy(SCRIPT, folder / "bin")
    else:
        folder = installed
    changes = {"SHLVL": None, "PWD": None, "_": None, **ENVIRONMENTS[name]}
    options = {"env": variables(**changes), "cwd": "/"}
    bare = told([], [], tell, **options)
    ours = told([shell, script_of(folder), "--"], [], tell, **options)
    kept, expected = entries(ours), entries(bare)
    assert kept == expected


def test_entries_that_are_no_variables_are_passed_on(tmp_path, installed, shell):
    """An entry without "=", and the same name twice."""
    raw = tmp_path / "raw.c"
    raw.write_text(
        '#include <unistd.h>\nint main(int n, char **a) {(void)n; char *e[] = {"X=1", "nothing", '
        '"X=2", "PATH=/usr/bin:/bin", 0}; execve(a[1], a + 1, e); return 9;}'
    )
    subprocess.run(["cc", "-o", str(tmp_path / "raw"), str(raw)], check=True)
    words = [str(tmp_path / "raw"), shell, script_of(installed), "--", "cat", "/proc/self/environ"]
    done = subprocess.run(words, capture_output=True, timeout=60, check=True)
    assert done.stdout.split(b"\0")[:3] == [b"X=1", b"nothing", b"X=2"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full 2>&1"])
def test_closed_and_full_descriptors(tmp_path, installed, one_shell, closed):
    (tmp_path / "open.c").write_text(OPEN)
    subprocess.run(["cc", "-o", str(tmp_path / "open"), str(tmp_path / "open.c")], check=True)
    codes = []
    for before in ([], [one_shell, script_of(installed), "--"]):
        words = ["sh", "-c", f'exec "$@" {closed}', "sh", *before, str(tmp_path / "open")]
        options = {"env": variables(), "stdin": subprocess.DEVNULL, "capture_output": True}
        codes.append(subprocess.run(words, check=False, timeout=60, **options).returncode)
    assert codes[0] == codes[1]


@pytest.mark.parametrize("command", ["no-such-command", "/nonexistent/x", "/etc/passwd", "/"])
def test_codes_of_commands_that_cannot_be_run(installed, one_shell, command):
    bare = subprocess.run(
        ["dash", "-c", 'exec "$@"', "sh", command], capture_output=True, check=False
    )
    done = run(installed, "--", command, shell=one_shell)
    assert done.returncode == bare.returncode
    assert done.stderr.splitlines()[-1]


def test_signal_dispositions_and_children(installed, one_shell):
    """What is left of the guard when the command runs: nothing."""
    line = 'read -r left </proc/$$/task/$$/children; echo "$left"; cat /proc/self/status'
    done = run(installed, "--", "sh", "-c", line, shell=one_shell)
    assert done.returncode == 0
    assert done.stdout.startswith("\n")
    assert "SigCgt:\t0000000000000000\n" in done.stdout


# --------------------------------------------------------------------------------------------------
# Python starts of other people

POLICIES = {
    "warn": ["--policy", "warn"],
    "enforce": ["--policy", "enforce"],
    "strict": ["--policy", "enforce", "--strict"],
}


def answers(folder, expected="verdict", **options):
    """Start under each policy; ``expected`` says whether there is a verdict."""
    for policy, words in POLICIES.items():
        done = run(folder, *words, "--", *JOB, **options)
        assert "Traceback" not in done.stderr
        if expected == "none" and policy == "strict":
            assert (done.returncode, done.stdout) == (69, ""), done.stderr
        else:
            assert (done.returncode, done.stdout) == (7, "ran\n"), (policy, done.stderr)
        if expected == "none":
            assert "envdoctor: no verdict: " in done.stderr
        else:
            assert done.stderr.startswith("envdoctor: ")
            assert "no verdict" not in done.stderr


HOSTILE = {
    "PYTHONHOME": "/nonexistent",
    "PYTHONSTARTUP": "/nonexistent",
    "PYTHONINSPECT": "1",
    "PYTHONWARNINGS": "error",
    "PYTHONMALLOC": "bogus",
    "PYTHONHASHSEED": "bogus",
    "PYTHONIOENCODING": "bogus",
    "PYTHONUTF8": "7",
    "PYTHONTRACEMALLOC": "bogus",
    "PYTHONPLATLIBDIR": "/nonexistent",
    "PYTHONSAFEPATH": "1",
    "PYTHONOPTIMIZE": "2",
    "PYTHONVERBOSE": "2",
    "PYTHONBREAKPOINT": "bogus",
    "PYTHONPYCACHEPREFIX": "/dev/full",
    "PYTHONEXECUTABLE": "/nonexistent",
}


def test_variables_of_python_do_not_reach_the_check(installed):
    answers(installed, env=variables(**HOSTILE))
    done = run(installed, "--", "env", env=variables(**HOSTILE))
    assert {f"{name}={value}" for name, value in HOSTILE.items()} <= set(done.stdout.splitlines())


MISCHIEF = {
    "exits": "import os; os._exit(0)",
    "exits with 78": "import os; os._exit(78)",
    "raises": "raise RuntimeError('x')",
    "sleeps": "import time; time.sleep(30)",
}


@pytest.mark.parametrize("mischief", MISCHIEF)
@pytest.mark.parametrize("place", ["sitecustomize.py", "usercustomize.py", "x.pth"])
def test_code_of_the_environment_does_not_run(own, place, mischief):
    site = next((own / "lib").glob("python*/site-packages"))
    text = MISCHIEF[mischief]
    if place == "x.pth":
        text = f"import os; exec({text!r})"
    (site / place).write_text(text + "\n")
    started = time.monotonic()
    answers(own)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("way", ["PYTHONPATH", "working directory", "user site"])
def test_modules_of_others_are_not_imported(installed, tmp_path, way):
    """Each module that a start may load, as a file that ends the process."""
    folder = tmp_path
    if way == "user site":
        folder = tmp_path / ".local/lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        folder = folder / "site-packages"
        folder.mkdir(parents=True)
    for name in ("json", "re", "select", "os", "envdoctor", "packaging", "ctypes", "struct"):
        (folder / f"{name}.py").write_text("import os\nos._exit(0)\n")
    options = {
        "PYTHONPATH": {"env": variables() | {"PYTHONPATH": str(tmp_path)}},
        "working directory": {"cwd": tmp_path},
        "user site": {"env": variables(HOME=str(tmp_path))},
    }[way]
    answers(installed, **options)


def test_environment_without_its_packages(own):
    """A hidden site-packages: an empty mount over it, say."""
    site = next((own / "lib").glob("python*/site-packages"))
    site.rename(site.with_name("hidden"))
    answers(own, expected="none")


def test_environment_without_its_interpreter(own):
    for path in (own / "bin").glob("python*"):
        path.unlink()
    answers(own, expected="none")


def test_moved_environment(own, tmp_path):
    moved = own.rename(tmp_path / "moved to another place")
    answers(moved)


def test_interpreter_that_crashes_or_is_none(own):
    python = own / "bin" / "python3"
    for text, reason in (
        ("#!/bin/sh\nkill -s SEGV $$\n", "Python was ended by signal 11"),
        ("#!/bin/sh\nexit 1\n", "ended with exit code 1"),
        ("#!/nonexistent\n", "exit code 127"),
        ("\x7fELF no program", "exit code"),
    ):
        python.unlink()
        python.write_text(text)
        python.chmod(0o755)
        answers(own, expected="none")
        assert reason in run(own, "--", "true").stderr


def test_interpreter_that_hangs(own, one_shell):
    python = own / "bin" / "python3"
    python.unlink()
    python.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n")
    python.chmod(0o755)
    started = time.monotonic()
    done = run(own, "--timeout", "0.5", "--", *JOB, shell=one_shell)
    assert (done.returncode, done.stdout) == (7, "ran\n")
    assert "no verdict: the check did not answer in time" in done.stderr
    assert time.monotonic() - started < 12


def test_interpreter_in_state_d(own, one_shell, freezer):
    """What is frozen in a v1 freezer dies of no signal, as what waits for a dead NFS server."""
    python = own / "bin" / "python3"
    python.unlink()
    python.write_text(
        f"#!/bin/sh\necho $$ >{freezer}/cgroup.procs\necho FROZEN >{freezer}/freezer.state\n"
        "while :; do sleep 1; done\n"
    )
    python.chmod(0o755)
    words = [one_shell, script_of(own), "--timeout", "0.5", "--", *JOB]
    # No pipe: until it has started, the check holds standard error.
    with open(own / "said", "w") as said:
        done = subprocess.run(
            words, env=variables(), stdout=subprocess.PIPE, stderr=said, timeout=30, check=False
        )
    assert (done.returncode, done.stdout) == (7, b"ran\n")
    assert "is unkillable, left behind" in (own / "said").read_text()


# --------------------------------------------------------------------------------------------------
# signals

HANGS = "#!/bin/sh\necho $$ >{mark}\nwhile :; do sleep 1; done\n"


@pytest.fixture
def hanging(own, tmp_path):
    python = own / "bin" / "python3"
    python.unlink()
    python.write_text(HANGS.format(mark=tmp_path / "mark"))
    python.chmod(0o755)
    return script_of(own), tmp_path / "mark"


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_signal_during_the_check_ends_both(hanging, one_shell, number):
    script, mark = hanging
    process = subprocess.Popen(
        [one_shell, script, "--", "echo", "ran"],
        env=variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    wait_for(lambda: mark.exists() and mark.read_text().endswith("\n"))
    check = int(mark.read_text())
    process.send_signal(number)
    started = time.monotonic()
    stdout, _ = process.communicate(timeout=30)
    assert time.monotonic() - started < 3
    # bash and busybox ignore QUIT themselves.
    expected = {-number, 128 + number} if number == signal.SIGQUIT else {-number}
    assert process.returncode in expected
    assert stdout == b""
    wait_for(lambda: not os.path.exists(f"/proc/{check}"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_as_process_1_a_signal_ends_the_container(hanging, one_shell, prerequisite, number):
    space = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    prerequisite(
        subprocess.run([*space, "true"], capture_output=True, check=False).returncode == 0,
        "root and PID namespaces",
    )
    script, mark = hanging
    process = subprocess.Popen([*space, one_shell, script, "--", "echo", "ran"], env=variables())
    wait_for(mark.exists)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), number)
    assert process.wait(timeout=30) == 128 + number


def test_signals_at_any_moment_end_it_or_reach_the_command(installed, one_shell):
    outcomes = set()
    for number in range(16):
        process = subprocess.Popen(
            [one_shell, script_of(installed), "--", "sleep", "5"],
            env=variables(),
            stderr=subprocess.DEVNULL,
        )
        time.sleep(0.012 * number)
        process.terminate()
        outcomes.add(process.wait(timeout=20))
    assert outcomes == {-signal.SIGTERM}


# --------------------------------------------------------------------------------------------------
# options

LINES = [
    [],
    ["--"],
    ["true"],
    ["--", "true"],
    ["--policy", "warn", "true"],
    ["--policy=enforce", "--strict", "true", "--", "x"],
    ["--polcy", "enforce", "--", "true"],
    ["--polcy", "enforce", "true"],
    ["--what", "true", "--", "x", "--", "y"],
    ["--timeout", "--", "true"],
    ["--timeout"],
    ["--timeout=2.5", "--lock", "--", "--", "-x"],
    ["-", "x"],
    ["--policy", " Warn\t", "--", "x"],
    ["--policy=OFF", "--strict", "--", "x"],
    ["--policy", "", "--", "x"],
    ["--strict=1", "--format", "none", "--report=x", "--baseline", "y", "sh", "-c", "z"],
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_script_and_python_agree_on_where_the_command_begins(line, one_shell):
    from envdoctor.entrypoint.options import parse_settings

    source = SCRIPT.read_text().partition("\nunset envdoctor_kept")[0]
    done = subprocess.run(
        [
            one_shell,
            "-c",
            source + '\nenvdoctor_parse "$@"; echo "$envdoctor_words $envdoctor_policy"; '
            'echo "${envdoctor_strict:-0} $envdoctor_format $envdoctor_seconds"',
            "sh",
            *line,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    settings = parse_settings(line, {})
    assert done.stdout.split() == [
        str(len(settings.command)),
        settings.policy,
        str(int(settings.strict)),
        settings.format,
        str(int(settings.timeout)),
    ]


def test_switched_off(installed):
    for options in ({"ENVDOCTOR_DISABLE": "1"}, {"ENVDOCTOR_POLICY": "off"}):
        done = run(installed, "--", *JOB, env=variables(**options))
        assert (done.returncode, done.stdout, done.stderr) == (7, "ran\n", "")


def test_no_command_is_wrong_usage(installed, own):
    assert run(installed).returncode == 64
    assert run(installed, "--policy", "off").returncode == 64
    (own / "bin" / "python3").unlink()
    (own / "bin" / "python").unlink()
    assert run(own, "--").returncode == 64


def test_what_is_said_is_what_the_entrypoint_says(installed):
    ours = run(installed, "--format", "json", "--", *JOB)
    python = str(installed / "bin" / "python")
    theirs = subprocess.run(
        [python, "-m", "envdoctor", "entrypoint", "--format", "json", "--", *JOB],
        env=variables(),
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert theirs.returncode == 7
    said = [json.loads(done.stderr) for done in (ours, theirs)]
    assert said[0]["findings"] == said[1]["findings"]


# --------------------------------------------------------------------------------------------------
# memory


@pytest.fixture
def group(prerequisite):
    """Return a v1 memory group."""
    root = Path("/sys/fs/cgroup/memory")
    prerequisite(
        os.geteuid() == 0 and os.access(root / "cgroup.procs", os.W_OK),
        "root and a v1 memory cgroup",
    )
    path = root / f"envdoctor-guard-{os.getpid()}"
    path.mkdir()
    yield path
    wait_for(lambda: not (path / "cgroup.procs").read_text().strip())
    path.rmdir()


def start_in(group, limit, folder, *arguments):
    (group / "memory.limit_in_bytes").write_text(str(limit))
    line = f'echo $$ >{group}/cgroup.procs; exec "$@"'
    return subprocess.run(
        ["sh", "-c", line, "sh", script_of(folder), *arguments, "--", *JOB],
        env=variables(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def kills_in(group):
    return int((group / "memory.oom_control").read_text().split("oom_kill ")[1].split()[0])


def test_small_memory_limit_costs_the_verdict_and_no_kill(installed, group):
    done = start_in(group, 24 << 20, installed)
    assert (done.returncode, done.stdout) == (7, "ran\n")
    assert "no verdict: of a memory limit of 24 MiB" in done.stderr
    assert kills_in(group) == 0
    refused = start_in(group, 24 << 20, installed, *POLICIES["strict"])
    assert (refused.returncode, refused.stdout) == (69, "")


@pytest.mark.parametrize("mebibytes", [48, 64, 128])
def test_check_that_needs_more_than_there_is_is_not_killed(installed, group, tmp_path, mebibytes):
    """A baseline that takes ten times its size in memory."""
    baseline = tmp_path / "baseline.json"
    baseline.write_text('{"schema_version": 2, "stamp": {"a": [' + "{}," * (15 << 20) + "{}]}}")
    done = start_in(group, mebibytes << 20, installed, "--baseline", str(baseline))
    assert (done.returncode, done.stdout) == (7, "ran\n"), done.stderr
    assert kills_in(group) == 0
    assert "no verdict: out of memory" in done.stderr


# --------------------------------------------------------------------------------------------------
# what enforce is asked for


def test_inputs_that_cannot_be_read_are_wrong_usage_under_enforce(installed, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    broken = tmp_path / "broken"
    broken.write_text("{")
    for words, changes in (
        (["--lock", str(pipe)], {}),
        (["--lock", "/nonexistent"], {}),
        (["--baseline", str(pipe)], {}),
        (["--baseline", str(broken)], {}),
        ([], {"ENVDOCTOR_IGNORE": str(pipe)}),
        ([], {"ENVDOCTOR_IGNORE": "/nonexistent"}),
        ([], {"ENVDOCTOR_MATRIX": "/nonexistent"}),
        ([], {"ENVDOCTOR_POLICY": "Enforce"}),
        (["--trust-matrix", "me"], {}),
        (["--trust-matrix", "sha256:" + "0" * 64], {}),
    ):
        policy = [] if "ENVDOCTOR_POLICY" in changes else ["--policy", "enforce"]
        done = run(installed, *policy, *words, "--", *JOB, env=variables(**changes))
        assert (done.returncode, done.stdout) == (64, ""), (words, changes, done.stderr)
        if policy:
            warned = run(installed, *words, "--", *JOB, env=variables(**changes))
            assert (warned.returncode, warned.stdout) == (7, "ran\n"), (words, changes)


def test_another_matrix_is_named_and_may_be_left_out(installed, tmp_path):
    site = tmp_path / "site" / "errata"
    site.mkdir(parents=True)
    env = variables(ENVDOCTOR_MATRIX=str(site.parent))
    assert (
        f"in {site.parent}, not by the built-in one" in run(installed, "--", "true", env=env).stderr
    )
    trusting = run(installed, "--trust-matrix", "built-in", "--", "true", env=env)
    assert "is not trusted, and was left out" in trusting.stderr
    pinned = run(
        installed,
        *POLICIES["enforce"],
        "--trust-matrix",
        "sha256:" + "0" * 64,
        "--",
        "true",
        env=env,
    )
    assert pinned.returncode == 64


# --------------------------------------------------------------------------------------------------
# a known error counts

CRASHES = """
import ctypes, os, sys
sys.path += {path!r}
import envdoctor.probes as probes
real, last = probes.run_probes, probes.load_probes(probes.MODULES)[-1].name

def run_probes(machine, chosen, announce=None):
    def body(machine):
        {fault}
    broken = [
        probe._replace(function=body, isolated=False) if probe.name == last else probe
        for probe in chosen
    ]
    return real(machine, broken, announce)

probes.run_probes = run_probes
from envdoctor.entrypoint.handoff import hand_off
hand_off(["--timeout", "2", "--policy", "enforce", *sys.argv[1:], "--", "echo", "ran"])
"""
FAULTS = {
    "SIGSEGV": "ctypes.string_at(0)",
    "SIGBUS": "os.kill(os.getpid(), 7)",
    "exit": "os._exit(0)",
    "hang": "import signal, time; signal.pthread_sigmask(0, range(1, 65)); time.sleep(60)",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_error_that_was_found_counts_when_a_later_probe_fails(tmp_path, fault):
    """A lock that the environment does not meet, and a last probe that crashes or hangs."""
    lock = write_lock(tmp_path / "lock", "vllm==0.6.3", roots=["vllm"])
    source = CRASHES.format(path=[*sys.path[1:], str(ROOT)], fault=FAULTS[fault])
    words = [sys.executable, "-c", source, "--lock", str(lock)]
    done = subprocess.run(
        words, env=variables(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (78, ""), done.stderr
    assert "ED306 error: vllm is not installed" in done.stderr
    assert "ED901" in done.stderr


def test_a_check_that_crashes_leaves_no_core(folder_for_cores):
    """The folder is the job's, and its limits are what they were."""
    source = CRASHES.format(path=[*sys.path[1:], str(ROOT)], fault=FAULTS["SIGSEGV"])
    source = source.replace("enforce", "warn").replace('"echo", "ran"', '"sh", "-c", "ulimit -c"')
    done, directly = (
        subprocess.run(words, env=variables(), capture_output=True, text=True, timeout=60)
        for words in ([sys.executable, "-c", source], ["sh", "-c", "ulimit -c"])
    )
    assert done.stdout == directly.stdout, done.stderr
    assert "signal 11" in done.stderr
    assert os.listdir(folder_for_cores) == []


def test_report_that_cannot_be_written_is_a_line(installed, tmp_path):
    lock = write_lock(tmp_path / "lock", "vllm==0.6.3", roots=["vllm"])
    for report in ("/nonexistent/report.json", str(tmp_path), "/proc/1/x"):
        words = ["--policy", "enforce", "--lock", str(lock), "--report", report]
        done = run(installed, *words, "--", *JOB)
        assert (done.returncode, done.stdout) == (78, ""), done.stderr
        assert "the report cannot be written to" in done.stderr


@pytest.mark.slow
def test_a_baked_folder_that_falls_silent_is_named(own, tmp_path, prerequisite):
    prerequisite(os.geteuid() == 0, "mounts need root")
    source, place = tmp_path / "source", tmp_path / "place"
    (source / "extra-1.0.dist-info").mkdir(parents=True)
    (source / "extra-1.0.dist-info/METADATA").write_text("Name: extra\nVersion: 1.0\n")
    place.mkdir()
    options = {"env": environment(PYTHONPATH=str(place))}
    strict = ["--policy", "enforce", "--strict", "--", *JOB]
    with mounted(source, place, {}):
        command = [str(own / "bin" / "envdoctor"), "bake"]
        subprocess.run(command, check=True, capture_output=True, **options)
        assert run(own, *strict, **options).stdout == "ran\n"
    with mounted(source, place, {"": SILENT}):
        done = run(own, *strict, **options)
    assert (done.returncode, done.stdout) == (78, ""), done.stderr
    assert f"judged whole, not as baked: {place}" in done.stderr
    assert f"ED907 undetermined: {place}" in done.stderr


@pytest.fixture
def silent(tmp_path, prerequisite):
    """A folder in which no look-up ever ends."""
    prerequisite(os.geteuid() == 0, "mounts need root")
    source, place = tmp_path / "source", tmp_path / "place"
    source.mkdir()
    place.mkdir()
    with mounted(source, place, {"": SILENT}):
        yield place


def start_free_of_libraries(folder, shell, tmp_path, **changes):
    """Start a shell and a command that do not ask LD_LIBRARY_PATH, as if linked statically; return
    the exit code, both outputs and the seconds.
    """
    loader = re.search(r"/\S*/ld-linux\S*", Path("/proc/self/maps").read_text("utf-8"))
    assert loader is not None
    free = [loader.group(), "--library-path", ""]
    words = [*free, shell, script_of(folder), "--timeout", "1", "--", *free, "/bin/sh", *JOB[1:]]
    if shell.endswith("ash/sh"):  # busybox tells by its name what it is
        words[len(free)] = str(shutil.which("busybox"))
        words.insert(len(free) + 1, "sh")
    begun = time.monotonic()
    # What is left behind holds these: a pipe of them would not end.
    with open(tmp_path / "output", "wb") as output, open(tmp_path / "errors", "wb") as errors:
        process = subprocess.Popen(
            words, env=variables(**changes), stdout=output, stderr=errors, start_new_session=True
        )
        try:
            process.wait(60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    seconds = time.monotonic() - begun
    texts = [(tmp_path / name).read_text("utf-8") for name in ("output", "errors")]
    return process.returncode, *texts, seconds


def test_a_silent_folder_of_programs_does_not_hold_the_guard(
    installed, one_shell, silent, tmp_path
):
    changes = {"PATH": f"{silent}:{os.environ['PATH']}"}
    code, output, errors, _ = start_free_of_libraries(installed, one_shell, tmp_path, **changes)
    assert (code, output) == (7, "ran\n"), errors


@pytest.mark.slow
def test_silent_libraries_do_not_hold_the_guard(installed, shell, silent, tmp_path):
    """They hold the check in the kernel. What waits for it is not to be held beside it."""
    code, output, errors, seconds = start_free_of_libraries(
        installed, shell, tmp_path, LD_LIBRARY_PATH=str(silent)
    )
    assert (code, output) == (7, "ran\n"), errors
    assert "did not answer in time; process " in errors
    assert "is unkillable, left behind" in errors
    assert seconds >= 6  # its own deadline and five seconds
