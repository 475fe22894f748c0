"""Bad input gets one clear line and exit 2."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from .conftest import BROKEN, COMMAND, ROOT, environment


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "expected a command"),
        (("chekc",), "no such command: chekc (did you mean check?)"),
        (("--versoin",), "no such option: --versoin (did you mean --version?)"),
        (("check", "--fromat", "json"), "no such option: --fromat (did you mean --format"),
        (("check", "surplus"), "surplus: cannot be read: No such file or directory"),
        (("check", "--format", "yaml"), "invalid choice: 'yaml'"),
        (("check", "--fail-on", "info"), "invalid choice: 'info'"),
        (("check", "--facts"), "expected at least one argument"),
        (("check", "--form", "json"), "no such option: --form"),
        (
            ("check", "--facts", "/nonexistent/facts.json"),
            "/nonexistent/facts.json: cannot be read: No such file or directory",
        ),
        (("check", "--facts", "/"), "/: cannot be read: Is a directory"),
        (
            ("check", "--report", "/proc/self/mem"),
            "/proc/self/mem: cannot be read: Input/output error",
        ),
        (
            ("check", "--facts", "-", "--requirements", "-"),
            "standard input ('-') can be read only once",
        ),
        (("check", "--facts", "x", "--report", "y"), "--facts and --report"),
        (("check", "--facts", "x", "--root", "/"), "--root says what to read on this machine"),
        (
            ("check", "--root", "/dev/null/none"),
            "--root /dev/null/none: expected a directory, found nothing",
        ),
        (
            ("check", "--python", "/dev/null/none"),
            (
                "--python /dev/null/none: expected an interpreter or the folder of an environment, "
                "found nothing"
            ),
        ),
        (("probe", "--python", "no-such-python"), "environment on PATH, found nothing"),
        (("check", "--python", "/proc"), "found a folder without bin/python"),
        (
            ("check", "--python", "/bin/python", "--root", "/proc"),
            "the folder of an environment in /proc, found nothing",
        ),
        (("check", "--report", "/dev/zero"), "larger than 16 MiB"),
        (
            ("probe", "--python-version", "three"),
            "--python-version: expected X.Y such as 3.11, found 'three'",
        ),
        (
            ("check", "--assume", "gpu=H2O:8"),
            "--assume gpu=H2O: no such GPU is known (did you mean H20",
        ),
        (("lock", "torch", "--assume", "gpu=A1000000"), "no such GPU is known"),
        (("bake", "--assume", "gpu=Foo"), "no such GPU is known"),
        (("diagnose", "/dev/null", "--assume", "gpu=Foo"), "no such GPU is known"),
        (
            ("check", "--assume", "python=3"),
            "--assume python=3: expected X.Y such as 3.11, found '3'",
        ),
        (("explain", "ED9999"), "ED9999: no such code, rule or row"),
        (("matrix", "--json", "list"), "--json belongs after the action"),
        (("diagnose", "--assume", "gpu=H20", "run.log"), "so put a file before it"),
        (("plan", "--assume", "gpu=H20", "run.sh"), "put CONFIG before them"),
        (("lock", "--assume", "gpu=H20", "vllm==0.8.5"), "put REQ before them"),
        (("explain",), "the following arguments are required"),
    ],
)
def test_wrong_usage(refused, arguments, words):
    message = refused(*arguments)
    assert words in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "found text that is no JSON"),
        (b"[]", "expected an object with 'schema_version' and 'facts'"),
        (b'{"schema_version": 99, "facts": {}}', "schema version 99"),
        (b'{"schema_version": 1, "facts": {"no.such": {"value": 1}}}', "facts.no.such"),
        (
            b'{"schema_version": 1, "facts": {"gpus": {"value": 3, "source": "x"}}}',
            "facts.gpus: expected a list",
        ),
        (b"[" * 100_000, "is no JSON"),
        (b"\xff\xfe\xff", "facts.json"),
        (b"\x80", "expected UTF-8 text, found the byte 0x80 at offset 0"),
        (b"", "is no JSON"),
    ],
)
def test_bad_facts_file(refused, tmp_path, text, words):
    path = tmp_path / "facts.json"
    path.write_bytes(text)
    assert words in refused("check", "--facts", path)


@pytest.mark.parametrize(
    "text", [b"", b"\n\n", b"nothing that any tool would print\n", bytes(range(256)) * 10]
)
def test_report_with_nothing_in_it(refused, text):
    refused("check", "--report", "-", input=text)


def test_control_characters_of_arguments_do_not_reach_the_terminal(refused):
    assert "\x1b" not in refused("check", "--facts", "/nonexistent/\x1b[31m")


def test_bad_matrix_names_file_and_fault(refused, tmp_path, broken):
    (tmp_path / "rows.toml").write_text("[[row]\n")
    message = refused("check", "--facts", broken, "--matrix", tmp_path)
    assert "rows.toml" in message


def test_unreadable_file(tmp_path, prerequisite):
    path = tmp_path / "secret"
    path.write_text("x")
    path.chmod(0)
    command = [*COMMAND, "check", "--report", str(path)]
    if os.geteuid() == 0:  # root reads everything, unless that capability is taken away
        prerequisite(shutil.which("setpriv"), "setpriv (util-linux)")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, env=environment(), capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"envdoctor: error: {path}: cannot be read: Permission denied\n".encode()


def test_unknown_codes(refused, broken):
    assert "--skip ED999: no such code" in refused("check", "--facts", broken, "--skip", "ED999")
    assert "--only nonsense: no such code" in refused(
        "check", "--facts", broken, "--only", "nonsense"
    )


def test_own_fault_is_one_line_and_exit_4():
    program = (
        "import sys; import envdoctor.cli.check as check\n"
        "def fail(options): raise ZeroDivisionError('by \\x1b zero')\n"
        "check.COMMAND = check.COMMAND._replace(execute=fail)\n"
        "from envdoctor.cli.main import main\n"
        "sys.argv = ['envdoctor', 'check']; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 4
    assert done.stderr.startswith(
        b"envdoctor: error: this is a fault of envdoctor itself: ZeroDivisionError: by \\x1b zero "
        b"in <string>:2."
    )
    assert done.stderr.count(b"\n") == 1
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(ENVDOCTOR_DEBUG="1"),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 4
    assert b"Traceback" in done.stderr


def test_too_little_memory_is_no_fault_of_ours(tmp_path):
    report = tmp_path / "report.txt"
    report.write_text("torch==2.4.0\n")
    command = f"ulimit -v 30000; exec {sys.executable} -m envdoctor check --report {report}"
    done = subprocess.run(
        ["sh", "-c", command], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert done.stderr.startswith("envdoctor: error: out of memory")
    assert done.stderr.count("\n") == 1


def test_interrupt_is_130(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    child = subprocess.Popen(
        [*COMMAND, "check", "--report", str(path)], env=environment(), stderr=subprocess.PIPE
    )
    with open(path, "wb"):  # opens only once the child reads
        child.send_signal(signal.SIGINT)
        _, message = child.communicate(timeout=30)
    assert child.returncode == 130
    assert message == b"envdoctor: error: interrupted\n"


def test_utf16_facts_as_powershell_writes_them(envdoctor, tmp_path):
    path = tmp_path / "facts.json"
    path.write_bytes(json.dumps(BROKEN).encode("utf-16"))
    assert envdoctor("check", "--facts", path).returncode == 1


@pytest.mark.parametrize("way", ["PYTHONPATH", "working directory"])
def test_modules_beside_the_patient_are_not_imported(tmp_path, way):
    """What the interpreter itself loads before us is theirs; all that comes later is ours."""
    for name in ("json", "select", "shutil", "argparse", "textwrap", "subprocess", "tomllib"):
        (tmp_path / f"{name}.py").write_text("import os\nos._exit(9)\n")
    path = [str(ROOT), str(tmp_path)] if way == "PYTHONPATH" else [str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-m", "envdoctor", "check", "--format", "json"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(reversed(path))},
        cwd=tmp_path if way == "working directory" else "/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert ('"ED805"' in done.stdout) == (way == "working directory")
