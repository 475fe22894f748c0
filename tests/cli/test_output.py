"""Whatever standard output is, and whatever surrounds the process."""

import os
import pty
import re
import shutil
import subprocess
import sys
import termios

import pytest

from envdoctor.report import REPORTERS

from .conftest import BROKEN, COMMAND, ROOT, environment

ANSI = re.compile(rb"\x1b\[[0-9;]*m")
# What progress wrote on a slow machine, and took away again.
GONE = re.compile(rb"\r[^\n]*\r")


def on_terminal(arguments, columns, **changes):
    """Run envdoctor with standard output on a pseudo-terminal of so many columns; return (exit
    code, bytes).
    """
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, columns)) if sys.version_info >= (3, 11) else set_columns(
        theirs, columns
    )
    env = environment(**{"TERM": "xterm-256color", **changes})
    child = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux: the last writer closed the terminal
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return child.wait(30), GONE.sub(b"", seen.replace(b"\r\n", b"\n"))


def set_columns(descriptor, columns):
    import fcntl
    import struct

    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))


def test_terminal_gets_colour_and_the_words_of_plain(envdoctor, broken):
    code, seen = on_terminal(["check", "--facts", broken], 80)
    assert code == 1
    assert b"\x1b[" in seen
    assert ANSI.sub(b"", seen) == envdoctor("check", "--facts", broken, "--format", "plain").stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (
            (
                "fix",
                "--assume",
                "gpu=H100",
                "nvidia-driver=550.54.15",
                "--python-version",
                "3.11",
                "--requirements",
            ),
            0,
        ),
        (
            (
                "lock",
                "vllm==0.8.5",
                "--dry-run",
                "--assume",
                "gpu=H20:8",
                "nvidia-driver=535.129.03",
                "--python-version",
                "3.10",
            ),
            0,
        ),
        (
            (
                "lock",
                "torch==2.4.0",
                "--dry-run",
                "--assume",
                "gpu=H20:8",
                "nvidia-driver=450.80.02",
                "--python-version",
                "3.10",
            ),
            3,
        ),
    ],
)
def test_fix_and_lock_are_as_wide_as_asked(envdoctor, tmp_path, arguments, code):
    if arguments[0] == "fix":
        (tmp_path / "requirements.txt").write_text("torch==2.11.0\n")
        arguments = (*arguments, tmp_path / "requirements.txt")
    words = set()
    for columns in (110, 60):
        done = envdoctor(*arguments, env=environment(COLUMNS=str(columns)))
        text = (done.stdout or done.stderr).decode()
        assert done.returncode == code, done.stderr
        assert max(map(len, text.splitlines())) > columns * 0.8
        assert (
            max(
                len(line)
                for line in text.splitlines()
                if " " in line.strip() and "http" not in line
            )
            <= columns
        )
        words.add(" ".join(text.split()))
    assert len(words) == 1


@pytest.mark.parametrize("columns", [60, 40])
def test_narrow_terminal(broken, columns):
    _, seen = on_terminal(["check", "--facts", broken], columns)
    lines = ANSI.sub(b"", seen).decode().splitlines()
    # Commands are indented by twelve columns, and neither they nor addresses are broken.
    prose = [
        line
        for line in lines
        if len(line.split()) > 1 and "http" not in line and not line.startswith(" " * 12)
    ]
    assert prose
    assert max(map(len, prose)) <= columns


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_when_not_wanted(broken, changes):
    assert b"\x1b" not in on_terminal(["check", "--facts", broken], 80, **changes)[1]
    assert b"\x1b" not in on_terminal(["check", "--facts", broken, "--no-color"], 80)[1]


def test_text_in_a_pipe_has_no_colour_and_goes_by_its_older_name(envdoctor, broken):
    plain = envdoctor("check", "--facts", broken).stdout
    assert envdoctor("check", "--facts", broken, "--format", "text").stdout == plain
    assert envdoctor("check", "--facts", broken, "--format", "console").stdout == plain
    assert plain.split(b"\n")[0].startswith(b"envdoctor: ")


@pytest.mark.parametrize(
    ("options", "changes", "colored"),
    [
        ((), {}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "0"}, False),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--no-color",), {"FORCE_COLOR": "1"}, False),
        (("--format", "plain"), {"FORCE_COLOR": "1"}, False),
        (("--format", "json"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_in_a_pipe_is_as_asked(envdoctor, broken, options, changes, colored):
    done = envdoctor("check", "--facts", broken, *options, env=environment(**changes))
    assert (b"\x1b[" in done.stdout) is colored


def test_every_command_that_draws_takes_the_same_options(envdoctor, broken):
    """What is learned of one command holds for the others."""
    shared = {}
    for command in ("check", "diagnose", "explain", "probe", "plan", "lock", "fix", "bake"):
        text = envdoctor("help", command).stdout.decode()
        assert text.startswith(f"usage: envdoctor {command}"), text
        assert text == envdoctor(command, "--help").stdout.decode()
        assert max(map(len, text.splitlines())) <= 80
        for option in ("--format", "-o, --output", "-q, --quiet", "--color"):
            assert f"\n  {option} " in text, (command, option)
        for option in ("--assume", "--python PATH", "--report", "--framework", "--color", "-q"):
            at = text.find(f"\n  {option}")
            if at >= 0:
                words = re.split(r"\n  (?=-)|\n\n", text[at + 1 :])[0].split()
                assert shared.setdefault(option, words) == words, (command, option)
    assert len(shared) == 6


def test_quiet_is_the_verdict_alone_and_output_a_file(envdoctor, broken, tmp_path):
    whole = envdoctor("check", "--facts", broken)
    quiet = envdoctor("check", "--facts", broken, "-q")
    assert quiet.stdout == whole.stdout.split(b"\n\n")[0] + b"\n"
    assert quiet.returncode == whole.returncode == 1
    done = envdoctor("check", "--facts", broken, "-o", tmp_path / "report.txt")
    assert (done.stdout, done.returncode) == (b"", 1)
    assert (tmp_path / "report.txt").read_bytes() == whole.stdout


def test_one_name_for_facts(envdoctor, broken):
    given = envdoctor("check", "--facts", broken).stdout
    assert envdoctor("check", "--target", broken).stdout == given


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "--format", "json"],
        ["check"],
        ["--help"],
        ["--version"],
        ["check", "--help"],
        ["probe"],
    ],
)
def test_full_disk(envdoctor, broken, arguments):
    source = (
        ["--facts", broken]
        if arguments[0] in ("check", "probe") and "--help" not in arguments
        else []
    )
    with open("/dev/full", "wb") as full:
        done = envdoctor(*arguments, *source, stdout=full)
    assert done.returncode == 2
    assert (
        done.stderr
        == b"envdoctor: error: cannot write to standard output: No space left on device\n"
    )


def test_full_disk_for_errors_too(envdoctor):
    with open("/dev/full", "wb") as full:
        assert envdoctor("check", "--nonsense", stdout=full, stderr=full).returncode == 2


def test_reader_that_went_away_leaves_the_verdict(broken):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, "check", "--facts", str(broken)],
        env=environment(),
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("closing", "code"), [(">&-", 2), ("2>&-", 1), ("<&-", 1), ("<&- >&- 2>&-", 2), ("<&- 2>&-", 1)]
)
def test_closed_descriptors(broken, closing, code):
    command = f'"{sys.executable}" -m envdoctor check --facts "{broken}" {closing}'
    done = subprocess.run(
        ["sh", "-c", command], env=environment(), capture_output=True, check=False, timeout=30
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    if ">&-" in closing.split() and "2>&-" not in closing:
        assert (
            done.stderr
            == b"envdoctor: error: standard output is closed, so the report has nowhere to go\n"
        )


def test_closed_standard_input_for_a_report():
    command = f'"{sys.executable}" -m envdoctor check --report - <&-'
    done = subprocess.run(
        ["sh", "-c", command], env=environment(), capture_output=True, check=False, timeout=30
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"envdoctor: error: standard input is closed")


@pytest.mark.parametrize("form", list(REPORTERS))
def test_surroundings_change_nothing(envdoctor, broken, tmp_path, form):
    """Locale, encoding, HOME, hash seed and working directory leave every byte as it is."""
    arguments = ["check", "--facts", broken, "--format", form, "--verbose"]
    expected = envdoctor(*arguments).stdout
    assert expected
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    coerced = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for changes in (
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", **home},
        {"LC_ALL": "POSIX", **coerced, "PYTHONHASHSEED": "1", "HOME": None},
        {"LC_ALL": None, "LANG": "de_DE.ISO-8859-1", "PYTHONHASHSEED": "77"},
    ):
        assert envdoctor(*arguments, env=environment(**changes)).stdout == expected, changes
    assert envdoctor(*arguments, cwd="/").stdout == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node-a.json"]


def test_deleted_working_directory(envdoctor, broken, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    command = (
        f'cd "{folder}" && rmdir "{folder}" && exec "{sys.executable}" -m envdoctor check '
        f'--facts "{broken}"'
    )
    done = subprocess.run(
        ["sh", "-c", command], env=environment(), capture_output=True, check=False, timeout=30
    )
    assert done.stderr == b""
    assert done.stdout == envdoctor("check", "--facts", broken).stdout


def test_probe_of_this_machine_in_a_deleted_directory(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    command = (
        f'cd "{folder}" && rmdir "{folder}" && exec "{sys.executable}" -m envdoctor probe --json'
    )
    done = subprocess.run(
        ["sh", "-c", command], env=environment(), capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_stray_modules_of_the_working_directory_are_not_imported(envdoctor, broken, tmp_path):
    folder = tmp_path / "project"
    (folder / "rich").mkdir(parents=True)
    for name in ("json.py", "argparse.py", "re.py", "packaging.py", "rich/__init__.py"):
        (folder / name).write_text("raise SystemExit('a stray module was imported')\n")
    assert (
        envdoctor("check", "--facts", broken, cwd=folder).stdout
        == envdoctor("check", "--facts", broken).stdout
    )


def test_non_ascii_text_survives_or_is_escaped(envdoctor, tmp_path):
    text = (
        str(BROKEN)
        .replace("'", '"')
        .replace("True", "true")
        .replace('470.57.02", "source": "/proc', '470.57.02", "source": "/größe/proc')
    )
    path = tmp_path / "facts.json"
    path.write_text(text, encoding="utf-8")
    assert "/größe/proc" in envdoctor("probe", "--facts", path).stdout.decode("utf-8")
    assert (
        b"/gr\\xf6\\xdfe/proc"
        in envdoctor("probe", "--facts", path, env=environment(PYTHONIOENCODING="ascii")).stdout
    )


def test_file_that_cannot_be_written(refused, broken):
    assert "/dev/null/x: cannot be written: Not a directory" in refused(
        "probe", "--facts", broken, "-o", "/dev/null/x"
    )
    assert "No space left on device" in refused("probe", "--facts", broken, "-o", "/dev/full")


def test_read_only_disk_without_network(broken, prerequisite):
    """A mount namespace in which nothing can be written, and a network namespace without
    interfaces.
    """
    prerequisite(shutil.which("unshare"), "unshare (util-linux)")
    inner = (
        f'mount -o remount,ro,bind / 2>/dev/null; exec "{sys.executable}" -m envdoctor check '
        f'--facts "{broken}" --format json'
    )
    done = subprocess.run(
        ["unshare", "--mount", "--net", "sh", "-c", inner],
        env=environment(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    prerequisite(b"unshare" not in done.stderr, "namespaces cannot be made here")
    assert (done.returncode, done.stderr) == (1, b"")


def test_the_sources_of_this_test_are_the_ones_under_test():
    program = "import envdoctor; print(envdoctor.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert done.startswith(str(ROOT))


def test_progress_shows_on_a_terminal_only_and_leaves_nothing(tmp_path):
    program = (
        "import sys, time; from envdoctor.cli.output import Progress, write_error\n"
        "Progress.patience = 0.05; Progress._tick = 0.05; progress = Progress()\n"
        "progress.start('working'); time.sleep(0.4); progress.stop(); print('done')\n"
    )
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", program], env=environment(TERM="xterm"), stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert child.wait(30) == 0
    assert b"envdoctor: working (0 s)" in seen
    assert GONE.sub(b"", seen.replace(b"\r\n", b"\n")) == b"done\n"
    piped = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, check=True
    )
    assert (piped.stdout, piped.stderr) == (b"done\n", b"")
