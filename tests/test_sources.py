"""Facts from wherever they are: what is joined, what wins, and what cannot go together."""

import json

import pytest

from envdoctor.errors import InputError
from envdoctor.sources import Sources, gather
from tests.rules.test_node_table import cluster


def written(tmp_path, name, **facts):
    path = tmp_path / name
    table = {
        key.replace("__", "."): {"value": value, "source": "x"} for key, value in facts.items()
    }
    path.write_text(json.dumps({"schema_version": 1, "facts": table}))
    return str(path)


def test_assumptions_win_over_what_was_read(tmp_path):
    path = written(tmp_path, "a.json", driver__release="535.54.03", glibc__version="2.35")
    (facts,) = gather(Sources(facts=[path], assume=["nvidia-driver=550.54.14"]))
    assert facts.value("driver.release") == "550.54.14"
    assert facts.value("glibc.version") == "2.35"


def test_several_files_are_several_machines_with_names_that_differ(tmp_path):
    paths = [written(tmp_path, name, driver__release="535.54.03") for name in ("a.json", "b.json")]
    nodes = gather(Sources(facts=paths))
    assert len({node.value("node.name") for node in nodes}) == 2


def test_requirements_are_no_whole_environment(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.6.0\n")
    (facts,) = gather(Sources(requirements=str(path), assume=["gpu=H100"]))
    assert facts.version_of("torch") == "2.6.0"
    assert not facts.value("distributions.complete")


def test_a_report(tmp_path):
    path = tmp_path / "report.txt"
    path.write_text("PyTorch version: 2.6.0+cu124\nNvidia driver version: 550.54.14\n")
    (facts,) = gather(Sources(report=str(path)))
    assert facts.value("driver.release") == "550.54.14"


@pytest.mark.parametrize(
    "sources",
    [
        Sources(report="-", requirements="-"),
        Sources(python="/nonexistent/python"),
        Sources(facts=["/nonexistent.json"]),
        Sources(root="/nonexistent"),
        Sources(python_version="three"),
        Sources(assume=["no-such-fact=1"]),
    ],
)
def test_refusals_say_which(sources):
    with pytest.raises(InputError) as refused:
        gather(sources)
    named = [value for value in sources if value]
    words = [word for value in named for word in ([value] if isinstance(value, str) else value)]
    assert any(word in str(refused.value) or word == "-" for word in words)


@pytest.fixture
def cluster_file(tmp_path):
    """Return a function that writes answers of two nodes, and these lines behind them."""
    store, answers = cluster(2)
    written = {}
    lines = [line for one in answers for line in store.lines_of(one, written)]

    def write(*others):
        path = tmp_path / "cluster.jsonl"
        path.write_text("".join([*lines, *[json.dumps(other) + "\n" for other in others]]))
        return str(path)

    return write


def test_answers_of_nodes_are_facts_of_each(cluster_file):
    first, second = gather(Sources(facts=[cluster_file()]))
    assert [facts.value("node.name") for facts in (first, second)] == ["gpu01", "gpu02"]
    assert first.value("driver.release") == second.value("driver.release") == "570.86.15"
    assert first.value("distributions")  # which stands in the file once


def test_a_node_without_an_answer_is_not_passed_over(cluster_file):
    failed = {"schema_version": 1, "node": "gpu03", "failed": "no answer within 30 s"}
    with pytest.raises(InputError, match=r"gpu03 gave no answer \(no answer within 30 s\)"):
        gather(Sources(facts=[cluster_file(failed)]))
    again = {"schema_version": 1, "node": "gpu03", "facts": {}}
    assert len(gather(Sources(facts=[cluster_file(failed, again)]))) == 3
