"""The files of a resolution, read by packaging and by JSON Schema: whole, closed, partly closed,
refused.
"""

from __future__ import annotations

import json

import jsonschema
import pytest
from packaging.requirements import Requirement

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.emit import NAMES, render, state_words
from envdoctor.lock.emit.requirements_txt import install_commands
from envdoctor.lock.locking import lock
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.model.resolution import ClosedLine, Closure

from ...schemas import unproduced, validate

DIGEST = "sha256:" + "0" * 64


@pytest.fixture(scope="module")
def core():
    """Return torch 2.4.0 on an H20, with the override that takes, and flash-attn, which has no
    wheel.
    """
    facts = Facts(parse_assumptions(["gpu=H20", "nvidia-driver=535.129.03", "glibc=2.31"]))
    return lock(
        ["torch==2.4.0", "flash-attn==2.6.3", "unheard-of>=1"],
        [facts],
        load_matrix(),
        python="3.11",
        others=True,
    )


def closed(core, state="closed", *unhashed):
    lines = [
        ClosedLine(pin.name, str(pin.version), () if pin.name in unhashed else (DIGEST,))
        for pin in core.pins
    ]
    lines.append(ClosedLine("unheard-of", "1.0", (DIGEST,)))
    lines.append(
        ClosedLine("filelock", "3.20.0", (DIGEST,), ("torch",), "https://index.example/simple")
    )
    return core._replace(
        closure=Closure(
            state,
            "why",
            lines=tuple(lines),
            tool="uv 1",
            platform="x86_64-manylinux_2_31",
            pylock='lock-version = "1.0"\n',
        )
    )


def states(core):
    return {
        "core": core,
        "closed": closed(core),
        "partial": closed(core, "partial", "torch")._replace(),
        "refused": core._replace(
            closure=Closure("refused", "why", "No solution found", ("a<1",), tool="uv 1")
        ),
    }


@pytest.mark.parametrize("state", ["core", "closed", "partial", "refused"])
def test_the_lock_file_meets_its_published_schema(core, state):
    document = json.loads(render(states(core)[state], "1.0", load_matrix())["envdoctor.lock.json"])
    validate(document, "lock")
    assert document["closed"] == {"closed": True, "partial": "partial"}.get(state, False)
    document["closed"] = "perhaps"
    with pytest.raises(jsonschema.ValidationError):
        validate(document, "lock")


def test_locks_have_all_of_their_published_schema_and_no_more(core):
    facts = Facts(parse_assumptions(["gpu=H20", "nvidia-driver=535.129.03", "glibc=2.31"]))
    profile = lock([], [facts], load_matrix(), python="3.10", profile="tinyzero")
    profiled, closed_one = (
        json.loads(render(resolution, "1.0", load_matrix())["envdoctor.lock.json"])
        for resolution in (profile, closed(core))
    )
    assert [step["name"] for step in profiled["sources"]] == ["verl"]
    assert unproduced("lock", [profiled, closed_one]) == set()


def requirements(text):
    joined = text.replace("\\\n", "")
    return [
        line.split(" --hash")[0].split(" #")[0].strip()
        for line in joined.splitlines()
        if line and not line.startswith("#")
    ]


@pytest.mark.parametrize("state", ["closed", "partial"])
def test_every_line_of_a_closed_lock_is_pinned(core, state):
    found = [
        Requirement(line)
        for line in requirements(
            render(states(core)[state], "1.0", load_matrix())["requirements.txt"]
        )
    ]
    assert {entry.name for entry in found} == {
        *(pin.name for pin in core.pins),
        "filelock",
        "unheard-of",
    }
    assert all(str(entry.specifier).startswith("==") for entry in found)


def test_without_closing_what_is_not_judged_is_there_and_not_pinned(core):
    lines = requirements(render(core, "1.0", load_matrix())["requirements.txt"])
    assert "unheard-of>=1" in lines
    assert "torch==2.4.0" in lines


def test_constraints_have_everything_but_what_contradicts_metadata(core):
    lines = requirements(render(closed(core), "1.0", load_matrix())["constraints.txt"])
    assert "filelock==3.20.0" in lines
    assert "nvidia-cublas-cu12==12.3.4.1" not in lines
    assert requirements(render(closed(core), "1.0", load_matrix())["overrides.txt"]) == [
        "nvidia-cublas-cu12==12.3.4.1"
    ]


def test_the_first_line_says_how_complete_it_is(core):
    first = {
        state: render(found, "1.0", load_matrix())["requirements.txt"].splitlines()[0]
        for state, found in states(core).items()
    }
    assert first["closed"].startswith("# a full lock")
    assert first["partial"].startswith("# partially closed")
    assert first["core"].startswith("# core pins, not a full lock")
    assert first["refused"].startswith("# core pins, not a full lock")
    assert "why" in first["refused"]
    assert state_words(core) in first["core"]


def test_only_a_closed_lock_has_a_pylock(core):
    assert "pylock.toml" in render(closed(core), "1.0", load_matrix())
    assert set(NAMES) - set(render(core, "1.0", load_matrix())) == {"pylock.toml"}


def test_steps_part_the_lines_and_leave_none_out(core):
    """What needs torch for its build comes after torch, what has no hash after what has; awk is the
    one that the command names.
    """
    import subprocess

    found = closed(core, "partial", "triton")
    text = render(found, "1.0", load_matrix())["requirements.txt"]
    for tool, command in install_commands(found):
        parts = [step.split(" | ") for step in command.split(" && ")]
        assert all(
            f"{tool if tool == 'pip' else 'uv pip'} install" in installing
            for _, installing in parts
        )
        chosen = []
        for select, _ in parts:
            done = subprocess.run(
                ["bash", "-c", select.replace("requirements.txt", "-")],
                input=text,
                capture_output=True,
                text=True,
                check=True,
            )
            chosen.append(requirements(done.stdout))
        assert [name.split("==")[0] for name in chosen[1]] == ["flash-attn"]
        assert [name.split("==")[0] for name in chosen[2]] == ["triton"]
        assert sorted(line for part in chosen for line in part) == sorted(requirements(text))
