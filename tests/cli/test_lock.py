"""``envdoctor lock`` as a process: files, refusals, exit codes."""

from __future__ import annotations

import json
import os

import pytest

from envdoctor.lock.emit import NAMES

H20 = ("--assume", "gpu=H20", "--assume", "nvidia-driver=535.129.03", "--python-version", "3.10")
H100 = ("--assume", "gpu=H100", "--assume", "nvidia-driver=550.54.15", "--python-version", "3.11")


def test_an_override_stands_in_every_file_with_its_row_and_source(envdoctor, tmp_path):
    done = envdoctor("lock", "--no-close", "vllm==0.6.3", *H20, "-o", tmp_path / "lock")
    assert done.returncode == 0, done.stderr
    files = {entry.name: entry.read_text() for entry in (tmp_path / "lock").iterdir()}
    assert set(files) == set(NAMES) - {"pylock.toml"}  # which takes a closed lock
    lines = files["requirements.txt"].splitlines()
    assert "torch==2.4.0" in lines
    place = lines.index("nvidia-cublas-cu12==12.3.4.1  # override")
    comment = "\n".join(lines[place - 4 : place])
    assert "[row cublas-12.1-sigfpe-h20]" in comment
    assert "source: https://github.com/vllm-project/vllm/issues/4392" in comment
    assert "core pins, not a full lock" in lines[0]
    assert "nvidia-cublas-cu12==12.3.4.1" in files["overrides.txt"].splitlines()
    assert "nvidia-cublas-cu12==12.3.4.1" not in files["constraints.txt"].splitlines()
    lock = json.loads(files["envdoctor.lock.json"])
    assert [entry["row"] for entry in lock["overrides"]] == ["cublas-12.1-sigfpe-h20"]
    assert lock["requires"]["driver"] == "525.60.13"
    # What was locked passes check on that machine.
    checked = envdoctor(
        "check",
        "--requirements",
        tmp_path / "lock" / "requirements.txt",
        *H20,
        "--format",
        "json",
        "--only",
        "ED2",
        "ED3",
    )
    document = json.loads(checked.stdout)["findings"]
    assert not [
        finding
        for finding in document
        if finding["severity"] == "error" or finding["component"] == "nvidia-cublas-cu12"
    ]


def test_a_refusal_names_driver_cuda_and_the_ways_out(envdoctor, tmp_path):
    done = envdoctor("lock", "--no-close", "vllm>=0.20", *H100, "-o", tmp_path / "lock")
    text = done.stderr.decode()
    assert done.returncode == 3
    assert done.stdout == b""
    for words in (
        "vllm>=0.20",
        "driver 550.54.15",
        "CUDA 13",
        "update the driver to 580.65.06",
        "ask for vllm without >=0.20",
    ):
        assert words in text
    assert not (tmp_path / "lock").exists()
    assert len(text.splitlines()) <= 15


def test_a_profile_says_which_request_it_is_and_what_comes_from_git(envdoctor, tmp_path):
    done = envdoctor("lock", "--no-close", "--profile", "verl", *H100, "-o", tmp_path / "verl")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "verl" / "requirements.txt").read_text()
    assert "# profile: verl:0.7-vllm" in text
    assert "# note: verl:0.9-vllm does not fit: " in text
    assert "# note: the maintainers of verl tested this as '0.7.0 vllm 0.12.0'" in text
    done = envdoctor("lock", "--no-close", "--profile", "tinyzero", *H20)
    assert (
        b"# then: python -m pip install --no-deps 'verl @ "
        b"git+https://github.com/Jiayi-Pan/TinyZero@95df88f2dcb05f33bd18da546531b52d0954c18b'"
    ) in done.stdout
    assert b"# set: VLLM_ATTENTION_BACKEND=XFORMERS" in done.stdout
    assert envdoctor("lock", *H100).returncode == 2


def test_a_dry_run_writes_nothing(envdoctor, tmp_path):
    done = envdoctor(
        "lock", "--no-close", "torch==2.6.0", *H100, "-o", tmp_path / "lock", "--dry-run"
    )
    assert done.returncode == 0
    assert b"torch==2.6.0" in done.stdout
    assert not (tmp_path / "lock").exists()


def test_without_a_directory_the_requirements_go_to_standard_output(envdoctor):
    done = envdoctor("lock", "--no-close", "torch==2.6.0", *H100)
    assert done.returncode == 0
    assert "torch==2.6.0" in done.stdout.decode().splitlines()


def test_a_mixed_cluster_gets_one_lock(envdoctor, tmp_path):
    for name, gpu, driver in (("a", "A100", "535.129.03"), ("b", "H20", "550.54.15")):
        evidence = {"source": "test"}
        facts = {
            "node.name": {"value": name, **evidence},
            "gpus": {"value": [{"name": gpu}], **evidence},
            "driver.release": {"value": driver, **evidence},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps({"schema_version": 1, "facts": facts}))
    done = envdoctor(
        "lock",
        "--no-close",
        "vllm==0.6.3",
        "--target",
        tmp_path / "a.json",
        tmp_path / "b.json",
        "--python-version",
        "3.10",
    )
    assert done.returncode == 0, done.stderr
    assert b"# target: A100, driver 535.129.03" in done.stdout
    assert b"# target: H20, driver 550.54.15" in done.stdout
    assert b"nvidia-cublas-cu12==12.3.4.1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no-such-package",), "no releases of no-such-package"),
        (("tranformers",), "did you mean transformers"),
        (("vllm==",), "expected a requirement"),
        (("vllm>=2,<1",), "exclude each other"),
        (("numpy", "vllm @ git+http://example.org/x"), "expected 'NAME @ git+ADDRESS@TAG'"),
        (("vllm", "--as-of", "yesterday"), "--as-of"),
        (("vllm", "--target", "/nonexistent.json"), "/nonexistent.json"),
    ],
)
def test_a_bad_request_is_one_clear_message(envdoctor, arguments, words):
    done = envdoctor("lock", "--no-close", *arguments, "--python-version", "3.11")
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert len(done.stderr.decode().splitlines()) <= 2


def test_an_unwritable_directory_leaves_files_as_they_are(envdoctor, tmp_path):
    folder = tmp_path / "lock"
    (folder / "overrides.txt").mkdir(parents=True)  # what cannot be replaced, for root too
    (folder / "requirements.txt").write_text("mine\n")
    done = envdoctor("lock", "--no-close", "torch==2.6.0", *H100, "-o", folder)
    assert done.returncode == 2
    assert (folder / "requirements.txt").read_text() == "mine\n"
    assert sorted(os.listdir(folder)) == ["overrides.txt", "requirements.txt"]
    done = envdoctor("lock", "--no-close", "torch==2.6.0", *H100, "-o", folder / "requirements.txt")
    assert done.returncode == 2


def test_the_packages_are_of_the_time_of_what_is_pinned(envdoctor):
    done = envdoctor("lock", "--no-close", "vllm==0.8.5", *H100, "--print", "envdoctor.lock.json")
    lock = json.loads(done.stdout)
    assert lock["request"]["as_of"] == "2025-05-28"  # released on 2025-04-28
    transformers = next(pin["version"] for pin in lock["pins"] if pin["name"] == "transformers")
    assert transformers.startswith("4.5")
    assert "time of vllm==0.8.5" in lock["notes"][0]
    # A range asks for nothing of a certain time.
    done = envdoctor("lock", "--no-close", "torch>=2.6", *H100, "--print", "envdoctor.lock.json")
    assert json.loads(done.stdout)["request"]["as_of"] is None


def test_much_newer_packages_are_named_where_no_date_binds(envdoctor):
    done = envdoctor("lock", "--no-close", "vllm==0.8.5", "--as-of", "latest", *H100, "--dry-run")
    assert "came more than a year later" in done.stdout.decode()
    assert "--as-of 2025-05-28" in done.stdout.decode()
    done = envdoctor(
        "lock",
        "--no-close",
        "vllm==0.8.5",
        "--as-of",
        "2025-05-15",
        *H100,
        "--print",
        "envdoctor.lock.json",
    )
    assert json.loads(done.stdout)["request"]["as_of"] == "2025-05-15"
    assert json.loads(done.stdout)["notes"] == []


def test_where_nothing_of_the_time_fits_the_lock_is_newer_and_says_so(envdoctor):
    done = envdoctor("lock", "--no-close", "torch==2.6.0", "numpy>=2.3.2", *H100, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "nothing of the time of torch==2.6.0" in done.stdout.decode()
    strict = envdoctor(
        "lock",
        "--no-close",
        "torch==2.6.0",
        "numpy>=2.3.2",
        "--as-of",
        "2025-02-28",
        *H100,
        "--dry-run",
    )
    assert strict.returncode == 3


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema_version": 1, "facts": {"gpus": 7}}', '{"schema_version": 99}']
)
def test_malformed_facts_are_one_message_and_change_nothing(envdoctor, tmp_path, text):
    (tmp_path / "node.json").write_text(text)
    (tmp_path / "lock").mkdir()
    (tmp_path / "lock" / "requirements.txt").write_text("mine\n")
    done = envdoctor(
        "lock",
        "torch",
        "--target",
        tmp_path / "node.json",
        "--python-version",
        "3.11",
        "-o",
        tmp_path / "lock",
    )
    assert done.returncode == 2
    assert str(tmp_path / "node.json") in done.stderr.decode()
    assert len(done.stderr.decode().splitlines()) == 1
    assert [entry.read_text() for entry in (tmp_path / "lock").iterdir()] == ["mine\n"]
