"""``envdoctor nodes``: what it says of answers, and what it refuses."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys

import pytest

from envdoctor.model.node_answers import NodeAnswer
from tests.rules.test_node_table import cluster, entry, setting, without_gpu
from tests.schemas import validate


def run(*arguments, environment=None, **options):
    done = subprocess.run(
        [sys.executable, "-m", "envdoctor", "nodes", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80", **(environment or {})},
        check=False,
        **{"timeout": 120, **options},
    )
    return done.returncode, done.stdout, done.stderr


def write(path, store, answers):
    """Write a file as ``-o`` does."""
    written = {}
    path.write_text("".join(line for one in answers for line in store.lines_of(one, written)))
    return path


@pytest.fixture
def odd(tmp_path):
    def change(table):
        without_gpu(table)
        table["driver.release"] = entry("550.54.15")

    store, answers = cluster(32, {17: change})
    answers.append(NodeAnswer("gpu33", failed="no answer within 30 s"))
    return write(tmp_path / "cluster.jsonl", store, answers)


def test_the_first_line_is_the_verdict(odd):
    code, text, _ = run("--facts", odd)
    first = " ".join(text.split("\n\n")[0].split())
    assert code == 1
    assert first.startswith("envdoctor: 31 of 32 nodes are alike; gpu17: GPUs 7 x")
    assert "no answer from 1 (gpu33)" in first
    assert "driver.release 550.54.15 (others 570.86.15)" in " ".join(text.split())
    assert max(map(len, text.split("\n"))) <= 80


def test_json_is_as_the_schema_says(odd):
    code, text, _ = run("--facts", odd, "--format", "json")
    document = json.loads(text)
    validate(document, "nodes")
    assert document["exit_code"] == code == 1
    assert [kind["list"] for kind in document["parts"][0]["kinds"]] == ["gpu[01-16,18-32]", "gpu17"]
    assert document["failed"] == [{"node": "gpu33", "reason": "no answer within 30 s"}]


def test_markdown_and_parts(odd):
    _, text, _ = run("--facts", odd, "--format", "markdown", "--part", "a=gpu[01-16]")
    assert "all 16 nodes of a are alike; 15 of 16 nodes of no part are alike" in text


def test_a_part_without_a_node_is_named(odd):
    _, text, _ = run("--facts", odd, "--part", "typo=gpv[01-16]", "--quiet")
    assert "; no node of typo answered; no answer from 1 (gpu33)" in " ".join(text.split())


def test_a_verdict_shows_whole_differences_and_counts_the_others(tmp_path):
    def change(table):
        without_gpu(table)
        table["driver.release"] = entry("550.54.15")
        table["python.version"] = entry("3.11.9")

    store, answers = cluster(8, {3: change})
    _, text, _ = run("--facts", write(tmp_path / "cluster.jsonl", store, answers), "--quiet")
    words = " ".join(text.split())
    assert "(others 8 x NVIDIA H100 80GB HBM3) and 2 more, " in words


def test_files_of_probe_are_nodes_too(tmp_path):
    paths = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.json"
        subprocess.run([sys.executable, "-m", "envdoctor", "probe", "-o", str(path)], check=True)
        document = json.loads(path.read_text())
        document["facts"]["node.name"]["value"] = name
        path.write_text(json.dumps(document, indent=1))
        paths.append(path)
    code, text, _ = run("--facts", *paths)
    assert text.startswith("envdoctor: all 2 nodes are alike"), text
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no nodes to ask"),
        (["--ssh=-oProxyCommand=id"], "expected names of hosts"),
        (["--ssh", "a", "--mpi", "b"], "--mpi and --ssh"),
        (["--ssh", "a", "--deadline", "0"], "--deadline"),
        (["--ssh", "a", "--at-once", "0"], "--at-once"),
        (["--resume", "--ssh", "a"], "expected -o FILE"),
        (["--facts", "/nonexistent"], "cannot be read"),
        (["--facts", "FILE"], "line 1"),
        (["--part", "x", "--facts", "FILE"], "--part"),
    ],
)
def test_wrong_arguments(tmp_path, arguments, words):
    file = tmp_path / "file"
    file.write_text("no facts\n")
    arguments = [str(file) if word == "FILE" else word for word in arguments]
    environment = {"SLURM_JOB_ID": "", "RAY_ADDRESS": ""}
    code, text, error = run(*arguments, environment=environment)
    assert (code, text) == (2, "")
    assert words in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "line",
    [
        '{"schema_version": 2, "facts": {}}',
        '{"schema_version": 1, "facts": []}',
        '{"schema_version": 1, "facts": {"nonesuch": {"value": 1, "source": "x"}}}',
        '{"schema_version": 1, "node": "a", "environment": "ab", "facts": {}}',
        '{"schema_version": 1, "node": "a", "facts": {"gpus": {"value": "x", "source": "y"}}}',
        '{"schema_version": 1, "node": "a", "facts": {"gpus": 3}}',
        '{"schema_version": 1, "node": "a", "facts": {"variables": {"value": [1], "source": "y"}}}',
        "[]",
        '"x"',
    ],
)
def test_lines_that_are_no_answers(tmp_path, line):
    file = tmp_path / "cluster.jsonl"
    file.write_text(line + "\n")
    code, text, error = run("--facts", file)
    assert (code, text) == (2, ""), text + error
    assert "Traceback" not in error


def test_a_secret_in_an_answer_is_in_no_output(tmp_path):
    secret = "hf_" + "a1B2" * 9
    store, answers = cluster(
        3, {2: setting("variables", {"NCCL_ALGO": "Ring", "VLLM_ARGS": f"--api-key {secret}"})}
    )
    answers.append(NodeAnswer("gpu09", failed=f"token={secret}"))
    file = write(tmp_path / "cluster.jsonl", store, answers)
    for form in ("text", "plain", "markdown", "html", "json"):
        _, text, error = run("--facts", file, "--format", form, "--verbose")
        assert secret not in text + error
        assert "ARGS" in text


def test_answers_that_nobody_can_be_asked_for_again_are_kept(tmp_path):
    """Where nobody can be reached, --resume keeps what the file had."""
    store, answers = cluster(3)
    file = write(tmp_path / "cluster.jsonl", store, answers)
    before = file.read_text()
    code, _, error = run(
        "--ssh", "gpu[01-03]", "-o", file, "--resume", environment={"PATH": str(tmp_path)}
    )
    assert code == 0, error
    assert file.read_text() == before


@pytest.mark.slow
def test_a_full_disk_costs_the_file_and_no_answer(tmp_path, prerequisite):
    command = ["unshare", "-m", "true"]
    prerequisite(subprocess.run(command, check=False).returncode == 0, "unshare -m (root)")
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o size=16k none "$1"; shift; exec "$@"'
    done = subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-ec",
            script,
            "sh",
            str(tmp_path / "small"),
            sys.executable,
            "-m",
            "envdoctor",
            "nodes",
            "--ssh",
            "n[1-3]",
            "--deadline",
            "60",
            "-o",
            str(tmp_path / "small/a.jsonl"),
            "--format",
            "json",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{ssh.parent}:{os.environ['PATH']}"},
        timeout=120,
        check=False,
    )
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    (part,) = json.loads(done.stdout)["parts"]
    assert [sorted(kind["nodes"]) for kind in part["kinds"]] == [["n1", "n2", "n3"]]


#: The kibibytes of one child, in a process that has no other.
MEMORY = """import resource, subprocess, sys
command = [sys.executable, "-m", "envdoctor", "nodes", "--facts", sys.argv[1]]
subprocess.run(command, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.slow
def test_ten_thousand_nodes(tmp_path):
    """20 s and 500 MB, and linear: what a node costs does not grow from 100 to 10,000."""
    seconds = {}
    for count in (100, 1_000, 10_000):
        file = write_many(tmp_path / f"{count}.jsonl", count)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        code, text, _ = run("--facts", file)
        seconds[count] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        assert code == 1
        assert f"{count - 1} of {count} nodes are alike" in text
    assert seconds[10_000] < 20
    each = (seconds[1_000] - seconds[100]) / 900
    assert (seconds[10_000] - seconds[1_000]) / 9_000 < 2 * each + 0.0005
    own = subprocess.run(
        [sys.executable, "-c", MEMORY, str(file)], capture_output=True, text=True, check=True
    )
    assert int(own.stdout) < 500 << 10


def write_many(path, count):
    """Write answers of that many nodes, one of which has lost a GPU."""
    rng = random.Random(1)
    store, answers = cluster(40, {17: without_gpu})
    written = {}
    with path.open("w") as output:
        for number in range(count):
            one = answers[number] if number < 40 else answers[0]
            host = {
                **one.host,
                "node.name": entry(f"gpu{number:05d}"),
                "memory.available": entry(rng.randrange(1 << 35, 1 << 39)),
            }
            output.writelines(
                store.lines_of(one._replace(node=f"gpu{number:05d}", host=host), written)
            )
    return path


@pytest.mark.slow
def test_five_hundred_processes(tmp_path):
    """Each is a process that runs all probes: none is lost, and what each costs the one who asks
    stays small.
    """
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    _code, text, error = run(
        *["--ssh", "n[001-500]", "--deadline", 600],
        *["--python", sys.executable, "--format", "json"],
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        timeout=700,
    )
    document = json.loads(text)
    assert document["failed"] == [], error
    (part,) = document["parts"]
    assert sum(len(kind["nodes"]) for kind in part["kinds"]) == 500
