"""``--since``: what changed since a file was written, of one machine and of a cluster."""

from __future__ import annotations

import copy
import json

import pytest

from tests.cli.test_nodes import run as nodes
from tests.cli.test_nodes import write
from tests.rules.test_node_table import BASE, GIB, cluster, entry, setting, without_gpu
from tests.schemas import unproduced, validate
from tests.started import run


def check(*arguments):
    return run("check", *arguments)


@pytest.fixture
def machine(tmp_path):
    """Return a function that writes the facts of a machine, changed."""

    def facts(file, change=None, name="gpu01"):
        table = copy.deepcopy(BASE)
        table["node.name"] = entry(name)
        if change is not None:
            change(table)
        path = tmp_path / file
        path.write_text(json.dumps({"schema_version": 1, "facts": table}, indent=1))
        return path

    return facts


def other(table):
    """Another driver, a GPU less, a package more, half of the memory."""
    without_gpu(table)
    table["driver.release"] = entry("535.54.03")
    table["memory.total"] = entry(500 * GIB)
    packages = table["distributions"]["value"]
    table["distributions"] = entry([*packages, {"name": "vllm", "version": "0.8.4"}])


def test_one_machine_is_compared_whatever_it_is_called(machine):
    then, now = machine("then.json", name="4f2a"), machine("now.json", other, name="77b1")
    code, text, _ = check("--facts", now, "--since", then)
    words = " ".join(text.split())
    assert code == 1
    assert "driver.release 535.54.03 (was 570.86.15)" in words
    assert "vllm 0.8.4 (was none)" in words
    assert "GPUs 7 x NVIDIA H100 80GB HBM3 (was 8 x NVIDIA H100 80GB HBM3)" in words
    assert "ED713 error: GPUs (NVIDIA H100 80GB HBM3): 7 here, 8 before" in words
    assert "ED713 warning: memory: 500 GiB here, 1000 GiB before" in words
    assert "findings that are new: " in words


def test_the_other_way_round_they_are_gone(machine):
    then, now = machine("then.json", other), machine("now.json")
    code, text, _ = check("--facts", now, "--since", then, "--format", "json")
    document = json.loads(text)
    validate(document, "report")
    assert not unproduced("report", [document]) & {"#/properties/since"}
    since = document["since"]
    assert code == 0
    assert since["unchanged"] == 0
    assert {finding["code"] for finding in since["cured"]} >= {"ED102", "ED301"}
    assert since["appeared"] == []
    assert "ED713" not in [finding["code"] for finding in document["findings"]]


def test_nothing_changed(machine):
    """What is in use at the moment, and memory within 1 %, is no change."""
    now = machine(
        "now.json",
        lambda table: table.update(
            {"memory.available": entry(3 * GIB), "memory.total": entry(1000 * GIB + 5)}
        ),
    )
    code, text, _ = check("--facts", now, "--since", machine("then.json"))
    assert "nothing that is compared has changed" in " ".join(text.split())
    assert code == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "found no facts in it"),
        ("no facts\n", "line 1"),
        ('{"schema_version": 1, "node": "a", "failed": "x"}\n', "found no facts in it"),
        (None, "cannot be read"),
    ],
)
@pytest.mark.parametrize("command", ["check", "nodes"])
def test_a_file_that_is_none(tmp_path, machine, command, content, words):
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    arguments = ("--facts", machine("now.json"), "--since", file)
    code, text, error = check(*arguments) if command == "check" else nodes(*arguments)
    assert (code, text) == (2, ""), text + error
    assert words in error


def test_a_machine_that_a_file_of_many_does_not_have(tmp_path, machine):
    file = write(tmp_path / "cluster.jsonl", *cluster(3))
    code, _, error = check("--facts", machine("now.json", name="login"), "--since", file)
    assert code == 2
    assert "3 nodes, and none is called login" in error
    code, text, _ = check("--facts", machine("now.json", name="gpu02"), "--since", file)
    assert code == 0
    assert "nothing that is compared has changed" in " ".join(text.split())


@pytest.fixture
def two(tmp_path):
    """Answers of a cluster, and of the same later: an odd one, one gone, one new, one silent."""
    then = write(tmp_path / "then.jsonl", *cluster(8))
    driver = setting("driver.release", "535.54.03")
    store, answers = cluster(9, {3: without_gpu, 4: driver, 5: driver})
    answers[7] = answers[7]._replace(host=None, environment="", failed="no answer within 30 s")
    now = write(tmp_path / "now.jsonl", store, [one for one in answers if one.node != "gpu07"])
    return then, now


def test_each_node_is_compared_with_itself(two):
    then, now = two
    code, text, _ = nodes("diff", then, now, "--format", "json")
    document = json.loads(text)
    validate(document, "nodes")
    since = document["since"]
    assert code == 1
    assert [entry["nodes"] for entry in since["changed"]] == [["gpu04", "gpu05"], ["gpu03"]]
    assert since["changed"][0]["differences"] == [
        {"name": "driver.release", "value": "535.54.03", "was": "570.86.15"}
    ]
    assert (since["added"], since["gone"], since["unchanged"]) == (["gpu09"], ["gpu07"], 3)
    assert document["failed"][0]["node"] == "gpu08"
    less = [one for one in since["appeared"] if one["code"] == "ED713"]
    assert [finding["nodes"] for finding in less] == [["gpu03"]]


def test_in_words(two):
    then, now = two
    code, text, _ = nodes("--facts", now, "--baseline", then)
    words = " ".join(text.split())
    assert code == 1
    assert words.startswith("envdoctor: 3 of 6 nodes changed, 1 new, 1 gone, 1 silent since ")
    assert "silent now: gpu08" in words
    assert "gpu[04-05]: driver.release 535.54.03 (was 570.86.15)" in words
    assert "new: gpu09 gone: gpu07" in words


def test_a_file_is_equal_to_itself(two):
    code, text, _ = nodes("diff", two[0], two[0])
    assert code == 0
    assert "8 nodes unchanged since" in " ".join(text.split())
    code, text, _ = nodes("diff", two[1], two[1])  # with errors in it, and a silent node
    assert code == 0
    assert "7 nodes unchanged since" in " ".join(text.split())


def test_what_all_nodes_lost_is_seen_though_all_are_alike(tmp_path):
    """Where all changed alike, nothing but the past tells."""
    then = write(tmp_path / "then.jsonl", *cluster(4))
    now = write(tmp_path / "now.jsonl", *cluster(4, dict.fromkeys(range(1, 5), without_gpu)))
    assert nodes("--facts", now)[0] == 0
    code, text, _ = nodes("--facts", now, "--since", then)
    assert code == 1
    assert "ED713" in text
    assert "gpu[01-04]" in text


def test_parts_are_compared_with_their_own_past(two):
    then, now = two
    _, text, _ = nodes("diff", then, now, "--part", "a=gpu[01-04]", "--format", "json")
    since = json.loads(text)["since"]
    changed = sorted(name for entry in since["changed"] for name in entry["nodes"])
    assert changed == ["gpu03", "gpu04", "gpu05"]
    assert (since["added"], since["gone"]) == (["gpu09"], ["gpu07"])


@pytest.mark.parametrize(
    "words", [["diff"], ["diff", "a"], ["same", "a", "b"], ["diff", "a", "b", "--since", "c"]]
)
def test_wrong_arguments(words):
    code, text, error = nodes(*words)
    assert (code, text) == (2, "")
    assert "diff A B" in error
