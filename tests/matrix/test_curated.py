"""Curated files: conda names, the schema that refuses everything wrong at once, the compiled form,
and that a check reads none of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from envdoctor.errors import MatrixError
from envdoctor.matrix.compiled_files import CompiledFiles
from envdoctor.matrix.loader import Matrix, load_matrix
from envdoctor.matrix.source import read_conda, read_models, read_profiles, write_compiled

MATRIX = load_matrix()


def test_names_that_differ() -> None:
    expected = {
        "torch": "pytorch",
        "nvidia-cublas-cu12": "libcublas",
        "nvidia-cublas": "libcublas",
        "ray": "ray-default",
        "huggingface-hub": "huggingface_hub",
        "vllm": "vllm",
        "verl": None,
    }
    assert {name: MATRIX.conda[name].package for name in expected} == expected
    assert "apex" not in MATRIX.conda  # not known is not none


def test_no_channel_was_read() -> None:
    assert {entry.trust for entry in MATRIX.conda.values()} == {"reported"}


DEFAULTS = '[defaults]\nsource = "us"\ndate = "2026-11-21"\ntrust = "established"\n'


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "models.toml",
            DEFAULTS
            + (
                '[[model]]\nname = "a"\nrepository = "a"\nparameters = -1\nlayers = "x"\nspeed = '
                "1\n[[model]]\n"
            ),
            [
                "'a': repository",
                "'a': parameters",
                "'a': layers",
                "'a': heads",
                "'a': intermediate",
                "'a': speed: no such key",
                "model 2: name",
            ],
        ),
        ("models.toml", "[other]\n", ["models.toml: other: no such table"]),
        ("models.toml", "=", ["models.toml: is not TOML"]),
        (
            "conda.toml",
            DEFAULTS
            + (
                '[[conda]]\ndistribution = "Flash_Attn"\npackage = "x"\n[[conda]]\ndistribution = '
                '"a"\n[[conda]]\ndistribution = "a"\n'
            ),
            [
                "expected 'flash-attn'",
                "package and channel come together",
                "'a': distribution: stands twice",
            ],
        ),
        (
            "profiles/p.toml",
            (
                'title = "p"\nsource = "us"\ndate = "yesterday"\ntrust = "sure"\nwhat = 1\n'
                '[layout]\nfiles = "x"\ncontains = [{ file = "a" }]\n'
                '[[request]]\nname = "r"\ntitle = "r"\nrequirements = ["torch >> 2"]\ntested = '
                '"none"\nvariables = { A = 1 }\n'
                '[[request]]\nname = "empty"\ntitle = "e"\n'
                '[[tested]]\nname = "t"\npackages = ["torch>=2", "vllm==0.8.5", '
                '"vllm==0.8.4"]\nverdict = "fine"\ncontradicts = ["a"]\ncuda = "?"\n'
            ),
            [
                "distribution: is missing",
                "repository: is missing",
                "date: found 'yesterday'",
                "trust: expected one of",
                "what: no such key",
                "layout: files",
                "contains[1]: text: is missing",
                "request 'r': requirements",
                "request 'r': variables",
                "request 'empty': requirements: a request asks for something",
                "tested 't': packages: expected an exact version",
                "vllm stands twice",
                "tested 't': verdict",
                "tested 't': contradicts",
                "tested 't': cuda",
            ],
        ),
    ],
)
def test_all_faults_are_named_at_once(
    tmp_path: Path, name: str, text: str, words: list[str]
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    read = {"models.toml": read_models, "conda.toml": read_conda}.get(name, read_profiles)
    with pytest.raises(MatrixError) as caught:
        read(str(tmp_path))
    found = "\n".join(caught.value.faults)
    assert [word for word in words if word not in found] == []


def test_a_request_for_a_set_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "p.toml").write_text(
        'title = "p"\ndistribution = "p"\nrepository = "p/p"\nsource = "us"\ndate = '
        '"2026-11-21"\ntrust = "reported"\n'
        '[[request]]\nname = "r"\ntitle = "r"\nrequirements = ["torch"]\ntested = "none"\n'
    )
    with pytest.raises(MatrixError, match="there is no tested set 'none'"):
        read_profiles(str(tmp_path))


def test_the_compiled_form_says_the_same(tmp_path: Path) -> None:
    """An installed envdoctor has no TOML: what it reads is what the folder says."""
    source = Path(__file__).parents[2] / "matrices"
    folder = tmp_path / "matrices"
    folder.mkdir()
    for name in ("models.toml", "conda.toml"):
        (folder / name).symlink_to(source / name)
    (folder / "profiles").symlink_to(source / "profiles")
    write_compiled(str(folder), str(tmp_path / "compiled"), False)
    installed = Matrix({"tables": {}}, CompiledFiles(str(tmp_path / "compiled"), ()))
    assert installed.models == MATRIX.models
    assert dict(installed.conda) == dict(MATRIX.conda)
    assert {name: installed.profile(name) for name in installed.profiles} == {
        name: MATRIX.profile(name) for name in MATRIX.profiles
    }


def test_a_check_reads_none_of_them(tmp_path: Path) -> None:
    """Loading the matrix opens neither models, profiles nor conda names."""
    import subprocess
    import sys

    code = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else "
        "None)\n"
        "from envdoctor.matrix.loader import load_matrix\n"
        "load_matrix().rows_about(['torch', 'vllm'])\n"
        "print([path for path in opened if any(word in path for word in ('models', 'profiles', "
        "'conda.'))])\n"
        "print([name for name in sys.modules if name == 'envdoctor.matrix.curated'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
