"""What is wanted of a lock. uv says what the same files ask for."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from packaging.requirements import Requirement as Oracle

from envdoctor.errors import InputError
from envdoctor.intake import wanted
from envdoctor.intake.wanted import read_wanted
from envdoctor.lock.asked import read_roots
from envdoctor.model.request import Request, parse_source
from tests.lock.closing.synthetic_index import Index, wheel

PROJECT = """\
[project]
name = "my-app"
version = "1"
requires-python = ">= 3.10"
dependencies = ["numpy>=1.20", "torch ; sys_platform == 'win32'"]

[project.optional-dependencies]
gpu = ["flash-attn>=2", "my_app[Ray]"]
ray = ["ray[default]"]

[dependency-groups]
test = ["pytest", {include-group = "lint"}]
lint = ["ruff>=0.1"]
"""
FILES = {
    "requirements.txt": """\
# the engine
vllm==0.9.2 --hash=sha256:0123 \\
    --hash=sha256:4567    # and why
-r more/base.txt
-c bounds.txt
--extra-index-url https://one.example/simple
triton ; sys_platform == 'win32'
Ray [default] >= 2.40 ; python_version >= "3.9"
--pre
""",
    "more/base.txt": "numpy<2\n-r ../requirements.txt\n--find-links wheels\n",
    "bounds.txt": "transformers<5\npandas==2.2.3 ; python_version < '3'\n",
    "pyproject.toml": PROJECT,
}


@pytest.fixture
def files(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _roots(wanted, python="3.12"):
    return [root.text for root in read_roots(wanted.requirements, Request((), python))]


def test_a_requirements_file_is_read_with_what_it_names(files):
    wanted = read_wanted(["torch"], [str(files / "requirements.txt")])
    assert _roots(wanted) == ["torch", "vllm==0.9.2", "numpy<2", "ray[default]>=2.40"]
    assert _roots(wanted, "3.8") == ["torch", "vllm==0.9.2", "numpy<2"]
    assert [line.partition(";")[0].strip() for line in wanted.constraints] == [
        "transformers<5",
        "pandas==2.2.3",
    ]
    assert wanted.extra_index_url == ("https://one.example/simple",)
    assert wanted.find_links == (str(files / "more" / "wheels"),)
    assert wanted.notes == ("--pre of requirements.txt:9 is passed over",)


def test_a_project_is_read_with_extras_and_groups(files):
    project = str(files / "pyproject.toml")
    assert _roots(read_wanted(files=[project])) == ["numpy>=1.20"]
    assert read_wanted(files=[project]).pythons == (">=3.10",)
    assert _roots(read_wanted(files=[project], extras=["GPU"])) == [
        "numpy>=1.20",
        "flash-attn>=2",
        "ray[default]",
    ]
    assert _roots(read_wanted(files=[project], groups=["test"])) == [
        "numpy>=1.20",
        "pytest",
        "ruff>=0.1",
    ]
    editable = files / "editable.txt"
    editable.write_text("-e .[ray]\n")
    assert _roots(read_wanted(files=[str(editable)])) == ["numpy>=1.20", "ray[default]"]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"files": ["requirements.txt"]}, ["requirements.txt"]),
        ({"files": ["pyproject.toml"]}, ["pyproject.toml"]),
        ({"files": ["pyproject.toml"], "extras": ["gpu"]}, ["pyproject.toml", "--extra", "gpu"]),
        ({"files": ["pyproject.toml"], "groups": ["test"]}, ["pyproject.toml", "--group", "test"]),
    ],
)
def test_uv_reads_the_same(files, options, arguments, monkeypatch, prerequisite):
    uv = shutil.which("uv", path=f"{sys.prefix}/bin") or shutil.which("uv")
    prerequisite(uv, "uv")
    monkeypatch.chdir(files)
    index = Index()
    versions = {"vllm": "0.9.2", "numpy": "1.26", "ray": "2.50", "flash-attn": "2.8"}
    for name in ("vllm", "numpy", "ray", "flash-attn", "pytest", "ruff", "torch", "triton"):
        index.add(name, versions.get(name, "1.0"))
    index.write(files / "wheels")
    (files / "more" / "wheels").mkdir()
    text = (files / "requirements.txt").read_text()
    (files / "requirements.txt").write_text(text.replace("--hash=sha256:", "# "))
    done = subprocess.run(
        [
            *(
                uv,
                "pip",
                "compile",
                *arguments,
                "--no-deps",
                "--no-index",
                "--find-links",
                "wheels",
            ),
            *("--no-header", "--no-annotate", "--python-version", "3.12", "-q"),
            *("--python-platform", "linux", "--python", sys.executable),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = {line.partition("==")[0].partition("[")[0] for line in done.stdout.split()}
    asked = {root.partition("[")[0] for root in _roots(read_wanted(**options))}
    assert {name.rstrip("<>=0123456789.") for name in asked} == names


def test_a_wheel_says_what_it_is_and_what_it_requires(tmp_path):
    name, content, _ = wheel("my-tool", "1.0+cu126", ["torch==2.6.0", "rich ; extra == 'x'"])
    (tmp_path / name).write_bytes(content)
    for word in (str(tmp_path / name), f"my-tool @ file://{tmp_path / name}"):
        wanted = read_wanted([word])
        assert wanted.requirements == ("my-tool==1.0+cu126", "torch==2.6.0")
        assert wanted.find_links == (str(tmp_path),)
        assert str(tmp_path) not in " ".join(wanted.notes)
        assert wanted.wheels == (name,)
    for word in (f"{tmp_path / name}[x]", f"my-tool[x] @ file://{tmp_path / name}"):
        own, *required = read_wanted([word]).requirements
        assert own == "my-tool[x]==1.0+cu126"
        assert [Oracle(line).name for line in required if Oracle(line).marker is None] == ["torch"]
        (marker,) = [
            mark for mark in (Oracle(line).marker for line in required) if mark is not None
        ]
        assert marker.evaluate()


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        ("git+https://one.example/x@v1#egg=my_tool", "my_tool @ git+https://one.example/x@v1"),
        ("-e git+https://one.example/x#egg=x[a]", "x[a] @ git+https://one.example/x"),
        (
            "git+ssh://git@one.example/x.git@v1#egg=x&subdirectory=y ; python_version > '3'",
            "x @ git+ssh://git@one.example/x.git@v1#subdirectory=y ; python_version > '3'",
        ),
        ("x @ git+https://one.example/x", "x @ git+https://one.example/x"),
    ],
)
def test_a_repository_is_named_before_it_or_behind_it(tmp_path, text, requirement):
    (tmp_path / "requirements.txt").write_text(f"{text}\n")
    wanted = read_wanted(files=[str(tmp_path / "requirements.txt")])
    assert wanted.direct == (requirement,)
    (note,) = wanted.notes
    assert ("no tag or commit is named" in note) == ("@v1" not in text)
    step = parse_source(requirement.partition(" ; ")[0])
    assert step.reference == ("v1" if "@v1" in text else "")
    assert "git+" + step.url in str(Oracle(requirement).url)


@pytest.mark.parametrize("form", ["{}", "my-tool @ {}"])
def test_the_address_of_a_wheel_gives_its_version(form):
    address = "https://one.example/1/my_tool-1.0%2Bcu126-cp312-cp312-linux_x86_64.whl#sha256=00"
    wanted = read_wanted([form.format(address)])
    assert wanted.requirements == ("my-tool==1.0+cu126",)
    assert wanted.wheels == ("my_tool-1.0+cu126-cp312-cp312-linux_x86_64.whl",)
    assert wanted.addresses == (f"my-tool @ {address}",)
    signed = read_wanted([form.format(address.replace("https://", "https://me:word@"))])
    assert "word" not in signed.addresses[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("numpy\nnot a line\n", "requirements.txt:2: expected a requirement"),
        ("-r none.txt\n", "requirements.txt:1: expected a file, found nothing"),
        ("x @ https://one.example/x.tar.gz\n", "expected a wheel or git+ADDRESS"),
        ("./none.whl\n", "No such file"),
        ("git+https://one.example/x@v1\n", "found no name in 'git+https://one.example/x@v1'"),
        ("-e ./none\n", "expected a requirement"),
    ],
)
def test_faults_name_file_and_line(tmp_path, text, words):
    (tmp_path / "requirements.txt").write_text(text)
    with pytest.raises(InputError, match=r"requirements\.txt") as caught:
        read_wanted(files=[str(tmp_path / "requirements.txt")])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("[tool.poetry]\n", {}, r"expected a table \[project\]"),
        ('[project]\nname = "x"\ndynamic = ["dependencies"]\n', {}, "are dynamic"),
        (PROJECT, {"extras": ["gpus"]}, r"found 'gpus' \(did you mean gpu\?\)"),
        (PROJECT, {"groups": ["tests"]}, r"found 'tests' \(did you mean test\?\)"),
        (PROJECT + 'loop = [{include-group = "loop"}]\n', {"groups": ["loop"]}, "includes itself"),
    ],
)
def test_a_project_that_does_not_tell_is_one_message(tmp_path, text, options, words):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        read_wanted(files=[str(tmp_path / "pyproject.toml")], **options)


@pytest.mark.parametrize(
    "word",
    [
        "https://[a/a-1-py3-none-any.whl",
        "a @ https://[a/a-1-py3-none-any.whl",
        "a @ git+https://[a/b",
    ],
)
def test_an_address_that_is_none_is_a_fault_of_the_input(word):
    with pytest.raises(InputError, match="address that cannot be read"):
        read_wanted([word])


def test_a_line_is_taken_apart_once(tmp_path, monkeypatch):
    """A file may have a hundred thousand lines of one letter."""
    lines = []
    for name in ("try_requirement", "parse_requirement"):
        whole = getattr(wanted, name)
        monkeypatch.setattr(
            wanted, name, lambda line, whole=whole: lines.append(line) or whole(line)
        )
    path = tmp_path / "requirements.txt"
    path.write_text("a\nb>=2\n")
    assert list(wanted.read_wanted((), [str(path)], []).requirements) == ["a", "b>=2"]
    assert lines == ["a", "b>=2"]
