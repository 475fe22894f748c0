"""``envdoctor diagnose`` as a user meets it."""

from __future__ import annotations

import json

from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.model.facts import Facts
from envdoctor.model.serde import dump_facts

from ..schemas import unproduced

LINE = (
    "[Fri Nov 21 10:05:00 2025] Memory cgroup out of memory: Killed process 9187 (python) "
    "total-vm:2kB, anon-rss:16736460kB\n"
)


def test_a_cause_is_exit_code_1_and_stands_in_the_first_line(envdoctor, tmp_path):
    log = tmp_path / "run.log"
    log.write_text("fine\n" + LINE + "exit code 137\n")
    done = envdoctor("diagnose", str(log))
    text = done.stdout.decode()
    assert done.returncode == 1, done.stderr
    assert text.startswith("envdoctor: The kernel killed python (pid 9187)")
    assert "established" in text
    assert "run.log:2" in text
    assert "consequence: A process was ended by SIGKILL" in text
    assert max(map(len, text.splitlines())) <= 110


def test_nothing_is_exit_code_0_and_says_what_was_looked_for(envdoctor, tmp_path):
    log = tmp_path / "run.log"
    log.write_text("fine\n")
    done = envdoctor("diagnose", str(log))
    assert done.returncode == 0
    assert b"Looked for" in done.stdout


def test_json(envdoctor, tmp_path):
    log = tmp_path / "run.log"
    log.write_text(LINE)
    answer = json.loads(envdoctor("diagnose", str(log), "--format", "json").stdout)
    (trace,) = answer["traces"]
    assert (trace["component"], trace["kind"], trace["certainty"], trace["lines"][0]["number"]) == (
        "host-memory",
        "host-oom",
        "established",
        1,
    )
    assert answer["summary"]["exit_code"] == 1


def test_a_report_decides_what_the_log_leaves_open(envdoctor, tmp_path):
    log, report = tmp_path / "run.log", tmp_path / "report.txt"
    log.write_text("Floating point exception (core dumped)\n")
    report.write_text(
        "GPU 0: NVIDIA H20\n[pip3] nvidia-cublas-cu12==12.1.3.1\n[pip3] torch==2.4.0\n"
    )
    text = envdoctor("diagnose", str(log), "--report", str(report)).stdout.decode()
    assert "cuBLAS 12.0.2 to 12.2.1" in text.splitlines()[0]


def test_a_report_inside_the_log_is_used(envdoctor, tmp_path):
    log = tmp_path / "run.log"
    log.write_text(
        "Collecting environment information...\nPyTorch version: 2.4.0+cu121\nGPU 0: NVIDIA H20\n"
        "[pip3] nvidia-cublas-cu12==12.1.3.1\n[pip3] torch==2.4.0\n\nFloating point exception "
        "(core dumped)\n"
    )
    text = envdoctor("diagnose", str(log)).stdout.decode()
    assert "Joined with the log" in text
    assert "cuBLAS 12.0.2 to 12.2.1" in text.splitlines()[0]


def test_hostile_text_is_never_echoed(envdoctor, tmp_path):
    log = tmp_path / "run.log"
    log.write_bytes(
        (
            b"\x1b]0;owned\x07\x1b[2JModuleNotFoundError: No module named 'evil\x1b[31m' \x9b5n "
            b"\xe2\x80\xae\n"
        )
        + LINE.encode()
    )
    done = envdoctor("diagnose", str(log), "--verbose")
    assert not any(sign < 32 and sign != 10 for sign in done.stdout)


def test_what_cannot_be_read_is_exit_code_2(envdoctor, tmp_path):
    done = envdoctor("diagnose", str(tmp_path / "missing.log"))
    assert (done.returncode, b"cannot be read" in done.stderr) == (2, True)
    done = envdoctor("diagnose", "-", "--report", "-")
    assert (done.returncode, b"once only" in done.stderr) == (2, True)


def test_json_has_all_of_the_published_schema_and_no_more(envdoctor, tmp_path):
    log = tmp_path / "run.log"
    log.write_text(
        LINE
        + (
            "ray.exceptions.ActorDiedError: The actor died\nImportError: cannot import name 'x' "
            "from "
            "'vllm.y' (z)\nBus error (core dumped)\n"
        )
    )
    answers = []
    for more in ((), ("--assume", "gpu=H20:8", "shm=64MiB", "torch==2.6.0", "driver=450.80")):
        answer = json.loads(envdoctor("diagnose", str(log), "--format", "json", *more).stdout)
        assert len(answer["traces"]) >= 3
        answers.append(answer)
    assert unproduced("diagnosis", answers) == set()


def test_facts_of_several_nodes(envdoctor, tmp_path):
    """What one node has may be the cause; only what no node has is none."""
    log = tmp_path / "run.log"
    log.write_text("Floating point exception (core dumped)\n")
    for name, gpu in (("one", "A100:8"), ("two", "H20:8")):
        facts = with_assumptions(
            Facts(), dict(parse_assumptions([f"gpu={gpu}", "nvidia-cublas-cu12==12.1.3.1"]))
        )
        (tmp_path / f"{name}.json").write_text(json.dumps(dump_facts(facts)))
    one, two = str(tmp_path / "one.json"), str(tmp_path / "two.json")
    assert b"cuBLAS" not in envdoctor("diagnose", str(log), "--facts", one).stdout
    text = envdoctor("diagnose", str(log), "--facts", one, two).stdout.decode()
    assert "cuBLAS 12.0.2 to 12.2.1" in text.splitlines()[0]
    assert "H20" in text
    assert "A100" in text


def test_explain_says_what_a_code_of_a_log_means(envdoctor):
    text = envdoctor("explain", "ED695").stdout.decode()
    assert text.startswith("ED695 memory-log: What a log says: memory of hosts and GPUs")
    assert "kernel-oom-cgroup" in text
    assert envdoctor("explain", "ed795").returncode == 0
    assert envdoctor("explain", "ED995").returncode == 2


def test_a_report_that_says_nothing_stops_no_diagnosis(envdoctor, tmp_path):
    log, report = tmp_path / "run.log", tmp_path / "report.txt"
    log.write_text(LINE)
    report.write_text("hello\n")
    done = envdoctor("diagnose", str(log), "--report", str(report))
    assert done.returncode == 1
    assert b"The kernel killed python" in done.stdout
    assert b"nothing about an environment" in done.stderr


def test_what_the_log_itself_tells_is_joined_with_what_was_given(envdoctor, tmp_path):
    log, report = tmp_path / "run.log", tmp_path / "report.txt"
    log.write_text("[pip3] torch==2.4.0\nFloating point exception (core dumped)\n")
    report.write_text("GPU 0: NVIDIA H20\n[pip3] nvidia-cublas-cu12==12.1.3.1\n")
    text = envdoctor("diagnose", str(log), "--report", str(report)).stdout.decode()
    assert "torch 2.4.0" in text
    assert "H20" in text


def test_without_a_log_this_machine_is_read(envdoctor):
    text = envdoctor("diagnose", "--format", "markdown").stdout.decode()
    assert text.startswith("**envdoctor: no log was given")
    assert "This machine was read" in text
