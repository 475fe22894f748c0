"""Commands as values: a shell is the oracle for how they are worded."""

import shlex

import pytest

from envdoctor.model.calls import InstallerCall, OwnCall, parse_call, reinstall

CALL = InstallerCall(
    "install",
    ("torch==2.6.0", "a>=1; python_version < '3.13'", "numpy"),
    ("--no-deps",),
    ("https://index.example/a b",),
    (("X", "1 2"),),
    "/my env/bin/python",
)


@pytest.mark.parametrize("call", [CALL, CALL._replace(uv="/my tools/uv"), reinstall("a")])
def test_a_shell_reads_the_words(call):
    words = shlex.split(str(call))
    assert words[len(call.variables) :] == list(call.words())
    assert words[: len(call.variables)] == [f"{name}={value}" for name, value in call.variables]


def test_what_a_requirement_says_is_quoted():
    assert str(InstallerCall("install", ("numpy<2", "six"))) == (
        "python -m pip install 'numpy<2' six"
    )


def test_own_commands():
    assert str(OwnCall("fix")) == "envdoctor fix"
    assert shlex.split(str(OwnCall("fix", ("--lock", "a b"), "/c d"))) == [
        *("envdoctor", "fix", "--python", "/c d", "--lock", "a b")
    ]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("pip install 'numpy<2'", InstallerCall("install", ("numpy<2",))),
        ("python -m pip install -U a b", InstallerCall("install", ("a", "b"), ("-U",))),
        ("pip check", InstallerCall("check")),
        ("/usr/bin/pip list", "/usr/bin/pip list"),
        ("export PIP=pip now", "export PIP=pip now"),
        ("docker run -e X …", "docker run -e X …"),
    ],
)
def test_lines_of_tables(text, call):
    assert parse_call(text) == call
