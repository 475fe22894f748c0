"""Requirements, locks and conda environments as the patient; and broken ones."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.errors import InputError
from envdoctor.intake import parse_requirements
from envdoctor.model.facts import Facts
from envdoctor.model.serde import dump_facts, load_facts
from envdoctor.text_files import read_text

from ..time_taken import within

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


def included(tmp_path, **files):
    """Read r.txt of a folder with these files."""
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/").replace("_txt", ".txt")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    path = str(tmp_path / "r.txt")
    return parse_requirements(read_text(path), path, read_text)


def test_a_comment_that_ends_in_a_backslash_swallows_nothing():
    """pip's join_lines: what stands below a comment is a line of its own."""
    facts = parse_requirements("# a note \\\ntorch==2.6.0\nnumpy \\\n# another\n", "r.txt")
    assert sorted(facts.value("distributions")) == ["numpy", "torch"]


def test_files_that_a_file_includes_are_read(tmp_path):
    """As pip reads them: relative to the file that names them, each once, constraints apart."""
    facts = included(
        tmp_path,
        r_txt="-r sub/base.txt\n--constraint=c.txt\n-r r.txt\nvllm\nray>=2.40\nflash-attn==2.7.4\n",
        sub__base_txt="-rmore.txt\nnumpy==1.26.4\n",
        sub__more_txt="--extra-index-url https://download.pytorch.org/whl/cu124\ntorch==2.6.0\n",
        c_txt="vllm==0.8.5\nray<2.44\nflash-attn==2.6.3\nxformers==0.0.29\n"
        "vllm==0.8.4; sys_platform == 'win32'\n",
    )
    pins = facts.value("distributions")
    assert {name: pins[name].version for name in pins} == {
        "torch": "2.6.0+cu124",
        "numpy": "1.26.4",
        "vllm": "0.8.5",
        "ray": None,
        "flash-attn": "2.7.4",
    }
    assert pins["ray"].constraint == ">=2.40,<2.44"
    assert "base.txt" in facts.evidence("distributions").detail
    assert facts.value("distributions.complete") is False


def test_hashes_in_included_files_make_a_lock(tmp_path):
    hashed = "torch==2.6.0 --hash=sha256:00\n"
    facts = included(tmp_path, r_txt="-r b.txt\n" + hashed, b_txt=hashed.replace("torch", "numpy"))
    assert facts.value("distributions.complete") is True
    facts = included(tmp_path, r_txt="-r https://h/b.txt\n" + hashed)
    assert facts.value("distributions.complete") is False


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("missing.txt", "r.txt:2: -r missing.txt: expected a file, found no such file"),
        (".", "found something else"),
        ("/dev/zero", "found something else"),
        ("-", "found no such file"),
        ("other.txt", "other.txt:1: expected a requirement.*found something else"),
    ],
)
def test_what_cannot_be_included_is_said(tmp_path, target, words):
    """No line of a file that nobody named is quoted: it may be any file of the machine."""
    with pytest.raises(InputError, match=words) as caught:
        included(tmp_path, r_txt=f"torch\n-r {target}\n", other_txt="root:$6$abc:19000:0:99999\n")
    assert "root" not in str(caught.value).replace(str(tmp_path), "")


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


def test_the_number_of_requirements_is_bounded():
    with pytest.raises(InputError, match=r"r\.txt:50001: more than 50000 requirements"):
        parse_requirements("e\n" * 1_000_000, "r.txt")


FRAGMENTS = ["torch==2.6.0", "torch>=2", "[[package]]", "[[packages]]", 'name = "a"', 'version = "1"', "dependencies:", "  - pip:",
             "    - ray==2.1", "  - python=3.10", "@EXPLICIT",
             "{", "}", '"default": {', "-r x", "--hash=sha256:0", "a @ b",
             "; python_version < '3'", "\\", "\t", "é", "", "-e git+x#egg=y", "=="]  # fmt: skip


@given(
    st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=20), max_size=12),
    st.sampled_from(["r.txt", "uv.lock", "environment.yml", "Pipfile.lock", "pylock.toml"]),
)
@settings(max_examples=300)
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


def test_a_long_line_of_hashes_takes_no_longer_than_its_length():
    """Searched from each of them, these took 74 s."""
    within(2, lambda: parse_requirements("torch\n" + " #" * 100_000, "r.txt"))
