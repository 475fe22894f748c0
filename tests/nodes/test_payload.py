"""The probes without an installation, against the installed ones."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys

import pytest

from envdoctor.model.node_answers import Answers
from envdoctor.nodes.collection import Job, collect
from envdoctor.nodes.payload import LAUNCH, program_text, trial_text


def run(command, program, environment=None):
    job = Job(tuple(command), "n", environment)
    answers = Answers()
    (reply,) = collect([job], program, answers, deadline=60)
    assert not reply.failed
    return {**answers.environments[reply.environment], **reply.host}


def test_it_reads_what_probe_reads():
    table = run([sys.executable, "-I", "-"], program_text())
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "envdoctor",
            "probe",
            "--python",
            sys.executable,
            "--format",
            "json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = json.loads(done.stdout)["facts"]
    for name in ("distributions", "python.version", "glibc.version", "os.kernel", "memory.total"):
        assert table[name] == expected[name]


def test_a_bare_python_is_enough(tmp_path):
    """A fresh environment without any package, in an empty folder."""
    folder = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    before = sorted(folder.rglob("*"))
    python = str(folder / "bin/python")
    table = run([python, "-I", "-"], program_text(), {"PATH": os.environ["PATH"]})
    assert table["distributions"]["value"] == []
    assert table["python.prefix"]["value"] == str(folder)
    assert sorted(folder.rglob("*")) == before  # nothing was written


def test_a_trial_needs_no_more(tmp_path):
    """What ``prove`` sends to a node, in a fresh environment: a step that works, one that fails."""
    folder = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name, text in (("works", ""), ("raises", "import nonesuch_module")):
        (site / f"{name}.py").write_text(text)
    info = site / "planted-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    (info / "RECORD").write_text("works.py,,\nraises.py,,\n")
    program = trial_text(None, "imports", {"distribution": "planted"}, 30, "planted")
    python = str(folder / "bin/python")
    job = Job((python, "-I", "-", "[0, 1, 1]"), "n", {"PATH": os.environ["PATH"]})
    (reply,) = collect([job], program, Answers(), deadline=60)
    assert not reply.failed
    steps = {step["name"]: step for step in reply.said["steps"]}
    assert {name: step["outcome"] for name, step in steps.items()} == {
        "works": "works",
        "raises": "fails",
    }
    assert "nonesuch_module" in steps["raises"]["error"]


def test_the_environment_that_is_named_is_the_one_that_is_read(tmp_path):
    folder = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    table = run([sys.executable, "-I", "-"], program_text(str(folder / "bin/python")))
    assert table["python.prefix"]["value"] == str(folder)


@pytest.mark.parametrize("first", ["missing", "too old", "broken"])
def test_another_python_is_looked_for_where_the_first_cannot(tmp_path, first):
    texts = {"too old": "exit 1", "broken": "kill -9 $$"}
    python = tmp_path / "python3"
    if first != "missing":
        python.write_text(f"#!/bin/sh\n{texts[first]}\n")
        python.chmod(0o755)
    (tmp_path / "python3.11").symlink_to(sys.executable)
    environment = {"PATH": str(tmp_path)}
    table = run([shutil.which("sh"), "-c", LAUNCH, "sh", ""], program_text(), environment)
    assert "python.version" in table


def test_an_old_python_reads_as_far_as_the_refusal():
    """What Python 3.6 cannot parse it could not refuse; ``ast`` knows the grammar of 3.6."""
    ast.parse(program_text(), feature_version=(3, 6))
    done = subprocess.run(
        [sys.executable, "-I", "-"],
        input=program_text().replace("version_info < (3, 9)", "version_info < (9, 9)", 1),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("expected Python 3.9 or newer, found 3.")


def test_a_node_without_python_says_so(tmp_path):
    job = Job((shutil.which("sh"), "-c", LAUNCH, "sh", ""), "n", {"PATH": str(tmp_path)})
    (reply,) = collect([job], program_text(), Answers(), deadline=20)
    assert "no Python 3.9 or newer was found" in reply.failed
