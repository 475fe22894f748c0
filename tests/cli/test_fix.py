"""``envdoctor fix`` as a process: plans, scripts for a real shell, real environments, exit
codes.
"""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.lock.closing.wheels import make_environment, make_wheel, offline, tree

from ..schemas import validate
from .conftest import environment

H100 = ("--assume", "gpu=H100", "--assume", "nvidia-driver=550.54.15", "--python-version", "3.11")


@pytest.fixture
def requirements(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text("vllm==0.20.0\ntorch==2.11.0\nray==2.50.0\n")
    return path


def test_the_plan_names_changes_rows_and_what_else_would_help(envdoctor, requirements):
    done = envdoctor("fix", "--requirements", requirements, *H100)
    text = " ".join(done.stdout.decode().split())
    assert done.returncode == 0, done.stderr
    assert "vllm 0.20.0 -> 0.19.1 (downgrade)" in text
    assert "[driver-for-cuda-13:vllm]" in text
    assert "source: https://docs.nvidia.com" in text
    assert (
        "with driver 580.65.06 or newer on the host (not changed by envdoctor): nothing has to change"
        in text
    )
    latest = envdoctor("fix", "--requirements", requirements, *H100, "--as-of", "latest")
    assert (latest.returncode, latest.stdout) == (0, done.stdout)


def test_the_script_is_one_for_a_posix_shell(envdoctor, requirements, tmp_path, prerequisite):
    prerequisite(shutil.which("shellcheck"), "shellcheck")
    requirements.write_text(
        "torch==2.6.0+cu124\nflash-attn==2.7.4.post1+cu12torch2.5cxx11abifalse\nnvidia-cublas-cu12==12.1.3.1\n"
    )
    assumed = (
        "--assume",
        "gpu=A100",
        "--assume",
        "nvidia-driver=470.82.01",
        "--python-version",
        "3.11",
    )
    for number, index in enumerate(
        ((), ("--allow-index", "pytorch"), ("--allow-index", "pytorch", "--allow-index", "github"))
    ):
        done = envdoctor(
            "fix", "--requirements", requirements, *assumed, *index, "--format", "script"
        )
        assert done.returncode == 0, done.stderr
        script = tmp_path / f"fix{number}.sh"
        script.write_bytes(done.stdout)
        for command in (["sh", "-n"], ["shellcheck", "--shell", "sh"]):
            judged = subprocess.run(
                [*command, str(script)], capture_output=True, text=True, check=False
            )
            assert judged.returncode == 0, judged.stdout + judged.stderr
        assert ("--extra-index-url" in script.read_text()) == bool(index)


def test_json(envdoctor, requirements):
    document = json.loads(
        envdoctor("fix", "--requirements", requirements, *H100, "--format", "json").stdout
    )
    validate(document, "fix")
    assert [(change["name"], change["after"]) for change in document["changes"]] == [
        ("vllm", "0.19.1"),
        ("torch", "2.10.0"),
    ]
    assert document["steps"] == [
        {"action": "install", "requirements": ["vllm==0.19.1", "torch==2.10.0"]}
    ]


def test_nothing_wrong(envdoctor, tmp_path):
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\n")
    done = envdoctor("fix", "--requirements", tmp_path / "requirements.txt", *H100)
    assert done.returncode == 0
    assert done.stdout.startswith(b"nothing to change")


def test_nothing_possible(envdoctor, tmp_path):
    (tmp_path / "requirements.txt").write_text("sgl-kernel==0.1.2\ntorch==2.6.0\n")
    old = (
        "--assume",
        "gpu=H100",
        "--assume",
        "nvidia-driver=418.40.04",
        "--python-version",
        "3.11",
    )
    done = envdoctor("fix", "--requirements", tmp_path / "requirements.txt", *old)
    assert done.returncode == 3
    assert b"driver" in done.stderr
    assert b"you asked for" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--apply", "--facts", "x.json"), "another environment"),
        (("--apply",), "give --yes"),
        (("--yes",), "--apply"),
        (("--apply", "--rollback"), "cannot be used together"),
        (("--as-of", "yesterday"), "expected a date"),
    ],
)
def test_usage(envdoctor, arguments, words):
    done = envdoctor("fix", *arguments)
    assert done.returncode == 2
    assert words in done.stderr.decode()


@pytest.fixture
def broken_environment(tmp_path):
    """vLLM 0.8 beside transformers 5, as tiny wheels."""
    wheels = tmp_path / "wheels"
    first = [
        make_wheel(wheels, "vllm", "0.8.5", ["transformers>=4.51"]),
        make_wheel(wheels, "transformers", "5.1.0"),
    ]
    python = make_environment(tmp_path / "environment", first)
    return python, wheels


def test_apply_in_a_real_environment(envdoctor, broken_environment):
    """The plan's own releases as tiny wheels; afterwards ``check`` finds nothing, and a second run
    has nothing to do.
    """
    python, wheels = broken_environment
    planned = json.loads(envdoctor("fix", "--python", python, "--format", "json").stdout)
    assert ("transformers", "5.1.0", "4.57.6") in [
        (change["name"], change["before"], change["after"]) for change in planned["changes"]
    ]
    own = environment(**offline(wheels))
    # Without the wheels it cannot be done, and nothing is.
    before = tree(python.parents[1])
    failed = envdoctor("fix", "--python", python, "--apply", "--yes", env=own)
    assert failed.returncode == 1
    assert b"is as it was" in failed.stderr
    assert tree(python.parents[1]) == before
    for change in planned["changes"]:
        make_wheel(wheels, change["name"], change["after"])
    done = envdoctor("fix", "--python", python, "--apply", "--yes", env=own)
    assert done.returncode == 0, done.stderr
    assert b"check finds nothing that fails" in done.stdout
    assert envdoctor("check", "--python", python, "--fail-on", "error").returncode == 0
    assert envdoctor("fix", "--python", python).stdout.startswith(b"nothing to change")


def test_an_unfinished_change_is_told_and_rolled_back(envdoctor, broken_environment):
    from envdoctor.fix.environment_snapshot import take_snapshot

    python, _ = broken_environment
    prefix = python.parents[1]
    before = tree(prefix)
    take_snapshot(str(prefix), [str(prefix)], {})
    shutil.rmtree(next(prefix.glob("lib/python*/site-packages/transformers")))
    told = envdoctor("fix", "--python", python)
    assert b"an earlier change was cut off" in told.stderr
    refused = envdoctor("fix", "--python", python, "--apply", "--yes")
    assert refused.returncode == 2
    done = envdoctor("fix", "--python", python, "--rollback")
    assert done.returncode == 0, done.stderr
    assert tree(prefix) == before


# --------------------------------------------------------------------------------------------------
# locks


@pytest.fixture(scope="session")
def made_lock(fork_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "lock"
    words = (
        *("lock", "--no-close", "--as-of", "latest", "vllm==0.6.3", "--assume", "gpu=H20"),
        *("nvidia-driver=535.129.03", "--python-version", "3.10", "-o", str(folder)),
    )
    done = fork_server.run(words, environment(), folder.parent, None, 60)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def lock(made_lock, tmp_path):
    return shutil.copytree(made_lock, tmp_path / "lock")


H20 = ("--assume", "gpu=H20", "--python-version", "3.10")


def test_check_compares_with_a_lock(envdoctor, lock, tmp_path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(
        (lock / "requirements.txt").read_text().replace("torch==2.4.0", "torch==2.5.1")
    )
    done = envdoctor(
        "check",
        "--lock",
        lock,
        "--requirements",
        requirements,
        *H20,
        "--assume",
        "nvidia-driver=515.1",
        "--format",
        "json",
    )
    findings = [
        finding
        for finding in json.loads(done.stdout)["findings"]
        if finding["code"] in ("ED306", "ED307")
    ]
    assert [
        (finding["code"], finding["component"], finding["severity"]) for finding in findings
    ] == [
        ("ED307", "nvidia-driver", "error"),
        ("ED306", "torch", "warning"),
    ]
    assert findings[1]["message"] == "torch 2.5.1 is installed, but the lock pins 2.4.0."


def test_a_machine_like_the_lock_passes(envdoctor, lock):
    driver = ("--assume", "nvidia-driver=535.129.03", "--assume", "os.platform=linux")
    done = envdoctor(
        "check",
        "--lock",
        lock,
        "--requirements",
        lock / "requirements.txt",
        *H20,
        *driver,
        "--format",
        "json",
        "--only",
        "ED3",
    )
    document = json.loads(done.stdout)["findings"]
    assert not [
        finding
        for finding in document
        if finding["code"] in ("ED306", "ED307") or finding["component"] == "nvidia-cublas-cu12"
    ]


def test_fix_makes_the_environment_like_the_lock(envdoctor, lock, tmp_path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(
        (lock / "requirements.txt").read_text().replace("torch==2.4.0", "torch==2.5.1")
    )
    done = envdoctor(
        "fix",
        "--lock",
        lock,
        "--requirements",
        requirements,
        *H20,
        "--assume",
        "nvidia-driver=535.129.03",
        "--format",
        "json",
    )
    document = json.loads(done.stdout)
    assert [
        (change["name"], change["before"], change["after"]) for change in document["changes"]
    ] == [("torch", "2.5.1", "2.4.0")]
    assert [step["requirements"] for step in document["steps"]] == [
        ["torch==2.4.0"],
        ["nvidia-cublas-cu12==12.3.4.1"],
    ]
    assert document["steps"][1]["no_deps"] is True


def test_explain_a_pin(envdoctor, lock):
    done = envdoctor("explain", "torch==2.4.0", "--lock", lock, env=environment(COLUMNS="110"))
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert "vllm 0.6.3 requires ==2.4.0" in text
    assert "not 2.4.1: vllm 0.6.3 needs torch 2.4.0" in text
    assert len(text.splitlines()) <= 14
    asked = envdoctor(
        "explain", "transformers==5.0.0", "--lock", lock, env=environment(COLUMNS="200")
    ).stdout.decode()
    assert "vllm-transformers-5" in asked


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lock: {**lock, "schema_version": 99}, "schema version 99"),
        (lambda lock: {**lock, "pins": [{"name": "torch"}]}, "pins[0].version"),
        (lambda lock: {**lock, "requires": None}, "requires: expected an object"),
        (lambda _: [], "expected an object"),
    ],
)
def test_a_lock_that_cannot_be_read(envdoctor, lock, change, words):
    path = lock / "envdoctor.lock.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    done = envdoctor("check", "--lock", lock)
    assert done.returncode == 2
    assert words in done.stderr.decode()
