"""Facts from wherever they are: what is joined, what wins, and what cannot go together."""

import json

import pytest

from envdoctor.errors import InputError
from envdoctor.sources import Sources, gather


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
