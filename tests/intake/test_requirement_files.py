"""Requirements, locks and conda environments as the patient; and broken ones."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.errors import InputError
from envdoctor.intake import parse_requirements
from envdoctor.model.facts import Facts
from envdoctor.model.serde import dump_facts, load_facts

DATA = Path(__file__).resolve().parent.parent / "data" / "requirements"


def read(name):
    return parse_requirements((DATA / name).read_text(encoding="utf-8"), name)


def versions(facts):
    return {name: found.version for name, found in facts.value("distributions").items()}


def test_requirements():
    facts = read("requirements.txt")
    found = facts.value("distributions")
    assert versions(facts) == {
        "flash-attn": "2.7.4.post1+cu12torch2.6cxx11abiFALSE",
        "numpy": None,
        "ray": None,
        "torch": "2.6.0+cu124",  # the extra index decides which build is installed
        "torchvision": "0.21.0+cu124",
        "verl": None,
        "vllm": "0.8.5",
        "xformers": None,
    }
    assert (found["ray"].constraint, found["numpy"].constraint, found["xformers"].constraint) == (
        ">=2.40",
        "~=1.26",
        "==0.0.29.*",
    )
    assert facts.value("requirements.unpinned") == (
        "numpy",
        "ray",
        "xformers",
    )  # verl is pinned by its address
    assert found["flash-attn"].tags == ("cp311-cp311-linux_x86_64",)
    assert "secret" not in found["verl"].direct_url
    assert facts.value("distributions.complete") is False
    assert facts.value("python.version") == "3.11"
    assert facts.evidence("python.version").source == "requirements.txt, line 1"


def test_requirements_with_a_hash_for_each_are_a_lock():
    text = "torch==2.6.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\nnumpy==1.26.4 --hash=sha256:02\n"
    assert parse_requirements(text, "r.txt").value("distributions.complete") is True
    assert (
        parse_requirements(text + "ray==2.43.0\n", "r.txt").value("distributions.complete") is False
    )
    assert (
        parse_requirements("-r other.txt\n" + text, "r.txt").value("distributions.complete")
        is False
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pylock.toml", {"torch": "2.6.0+cu124", "verl": None}),
        (
            "uv.lock",
            {"torch": "2.6.0+cu124", "numpy": None},
        ),  # two versions for two Pythons: not known which
        ("poetry.lock", {"ray": "2.43.0"}),
        ("Pipfile.lock", {"torch": "2.4.0", "verl": None}),
        ("explicit.txt", {"torch": "2.3.1"}),
    ],
)
def test_locks(name, expected):
    facts = read(name)
    assert versions(facts) == expected
    assert facts.value("distributions.complete") is True
    assert "token" not in str(facts.value("distributions"))


@pytest.mark.parametrize(
    ("name", "python"),
    [
        ("pylock.toml", "3.11"),
        ("uv.lock", None),
        ("poetry.lock", "3.10"),
        ("Pipfile.lock", "3.10"),
        ("explicit.txt", "3.10.14"),
    ],
)
def test_python_of_a_lock(name, python):
    assert read(name).value("python.version") == python


def test_conda_environment():
    facts = read("environment.yml")
    found = facts.value("distributions")
    assert versions(facts) == {
        "torch": "2.3.1",
        "numpy": None,
        "ninja": "1.11.1",
        "vllm": "0.5.1",
        "ray": None,
        "torchvision": "0.18.1+cu121",
    }
    assert found["torch"].installer == "conda"
    assert found["torch"].build == "py3.10_cuda12.1_cudnn8.9.2_0"
    assert found["numpy"].constraint == "==1.26.*"
    assert facts.value("torch.cuda") == "12.1"
    assert facts.value("python.version") == "3.10"
    assert facts.value("distributions.complete") is False


def test_conda_export_is_complete():
    text = "name: x\ndependencies:\n  - python=3.10.14=h1_0\n  - numpy=1.26.4=py310_0\nprefix: /opt/conda/envs/x\n"
    assert parse_requirements(text, "environment.yml").value("distributions.complete") is True


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("torch=2.6.0\n", "r.txt", ["r.txt:1", "torch=2.6.0"]),
        ("torch==2.6.0\n\nnot a requirement at all\n", "r.txt", ["r.txt:3"]),
        ("\n# nothing\n", "r.txt", ["r.txt", "no requirement"]),
        ("[[packages]]\nname = \n", "pylock.toml", ["pylock.toml", "line 2"]),
        ("a = 1\n", "uv.lock", ["uv.lock", "[[package]]"]),
        ("[[packages]]\nversion = '1'\n", "pylock.toml", ["package 1", "name"]),
        ('{"default": {\n', "Pipfile.lock", ["Pipfile.lock:2:1"]),
        ('{"lock": 1}', "Pipfile.lock", ["'default'", "lock"]),
        ('{"default": {"torch": 1}}', "Pipfile.lock", ["default.torch"]),
        ("name: x\n", "environment.yml", ["dependencies"]),
        ("dependencies:\n  - a\n  b\n", "environment.yml", ["environment.yml:3"]),
        ("dependencies:\n\t- a\n", "environment.yml", ["environment.yml:2", "tabs"]),
        ("@EXPLICIT\nhello\n", "e.txt", ["e.txt:2"]),
    ],
)
def test_broken_files_say_where(text, name, words):
    with pytest.raises(InputError) as caught:
        parse_requirements(text, name)
    message = str(caught.value)
    assert all(word in message for word in words), message


FRAGMENTS = ["torch==2.6.0", "torch>=2", "[[package]]", "[[packages]]", 'name = "a"', 'version = "1"', "dependencies:", "  - pip:",
             "    - ray==2.1", "  - python=3.10", "@EXPLICIT",
             "{", "}", '"default": {', "-r x", "--hash=sha256:0", "a @ b",
             "; python_version < '3'", "\\", "\t", "é", "", "-e git+x#egg=y", "=="]  # fmt: skip


@given(
    st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=20), max_size=12),
    st.sampled_from(["r.txt", "uv.lock", "environment.yml", "Pipfile.lock", "pylock.toml"]),
)
@settings(max_examples=300, deadline=None)
def test_never_raises_anything_else(parts, name):
    for joined in ("\n".join(parts), " ".join(parts)):
        try:
            facts = parse_requirements(joined, name)
        except InputError:
            continue
        assert isinstance(facts, Facts)
        import json

        text = json.dumps(dump_facts(facts))
        assert dict(load_facts(text, "t")) == dict(facts)
