"""The workflows before the schema that SchemaStore has for them, and their steps in bash as GitHub
starts it, on a checkout of its own: what they call is there, and what they publish is whole.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "refresh-matrix.yml"
STEPS = yaml.safe_load(WORKFLOW.read_text())["jobs"]["refresh"]["steps"]
FILES = ["matrix.tar.gz", "matrix.tar.gz.sha256", "matrix.tar.gz.sig"]
#: Stands for a program that would take hours, or the network: notes what it is called with.
STUB = '#!/bin/sh\nprintf "%s\\n" "$(basename "$0") $*" >>"$CALLS"\n'


def test_the_schema_of_workflows(prerequisite, tmp_path):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    command.append("vendor.github-workflows")

    def accepts(path):
        return subprocess.run([*command, path], capture_output=True, check=False).returncode == 0

    there = subprocess.run([*command[:3], "--version"], capture_output=True, check=False)
    prerequisite(there.returncode == 0, "check-jsonschema (pip)")
    assert accepts(WORKFLOW)
    for right, wrong in (("runs-on:", "run-on:"), ("cron:", "corn:"), ("contents: write", "x: y")):
        path = tmp_path / "wrong.yml"
        path.write_text(WORKFLOW.read_text().replace(right, wrong))
        assert not accepts(path), wrong


@pytest.fixture
def runner(tmp_path, prerequisite):
    """A checkout with a small matrix, and a function that runs the workflow's own steps there."""
    prerequisite(shutil.which("ssh-keygen") is not None, "ssh-keygen (openssh-client)")
    checkout, programs = tmp_path / "checkout", tmp_path / "programs"
    (checkout / "matrices").mkdir(parents=True)
    (checkout / "matrices" / "gpus.toml").write_text("x = 1\n")
    programs.mkdir()
    for path in (programs / "pip", programs / "gh", checkout / ".ci" / "run"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(STUB)
        path.chmod(0o755)
    (checkout / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "pack_matrix", checkout / "scripts")
    (checkout / "envdoctor").symlink_to(ROOT / "envdoctor")
    subprocess.run(["git", "init", "-q", checkout], check=True)
    subprocess.run(["git", "-C", checkout, "add", "matrices"], check=True)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "CALLS": str(tmp_path / "calls"),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_SERVER_URL": "https://example.org",
        "GITHUB_REPOSITORY": "somebody/envdoctor",
    }
    git = ["git", "-C", checkout, "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)

    def run(refresh, secret=None):
        refreshing = checkout / "scripts" / "refresh_matrix"
        refreshing.write_text(f"{STUB}{refresh}\n")
        refreshing.chmod(0o755)
        secrets = {"SIGNING_KEY": key.read_text() if secret is None else secret}
        for step in STEPS:
            if "run" in step:
                done = subprocess.run(
                    ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                    env={
                        **environment,
                        **{name: secrets.get(name, "x") for name in step.get("env", ())},
                    },
                    cwd=checkout,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode:
                    break
        calls = (tmp_path / "calls").read_text().splitlines()
        (tmp_path / "calls").unlink()
        return done, calls

    return run


def test_what_changed_becomes_a_release(runner, tmp_path):
    """Checked by sha256sum and ssh-keygen; exit code 1 of a refresh is no reason to stop."""
    done, calls = runner("echo x >matrices/new.toml; exit 1")
    assert done.returncode == 0, done.stderr
    assert [call.split()[0] for call in calls] == ["pip", "refresh_matrix", "run", "gh"]
    assert calls[1] == "refresh_matrix --whole"
    assert calls[-1].split()[-3:] == [str(tmp_path / name) for name in FILES]
    address = "https://example.org/somebody/envdoctor/releases/latest/download/matrix.tar.gz"
    assert f"--from {address}" in calls[-1]
    subprocess.run(["sha256sum", "--check", FILES[1]], cwd=tmp_path, check=True)
    (tmp_path / "signers").write_text(f"x@example.org {(tmp_path / 'key.pub').read_text()}")
    words = ["ssh-keygen", "-Y", "check-novalidate", "-n", "envdoctor-matrix", "-s", FILES[2]]
    with (tmp_path / FILES[0]).open("rb") as archive:
        subprocess.run(words, stdin=archive, cwd=tmp_path, check=True)
    members = subprocess.run(["tar", "tzf", tmp_path / FILES[0]], capture_output=True, check=True)
    assert members.stdout.decode().split() == ["matrices/gpus.toml", "matrices/new.toml"]


def test_nothing_new_and_what_fails(runner):
    done, calls = runner("exit 0")
    assert (done.returncode, calls[-1].split()[0]) == (0, "run")
    assert "Nothing new" in done.stdout
    done, calls = runner("exit 2")  # a fault of the refresh: neither tests nor a release
    assert (done.returncode, calls[-1]) == (1, "refresh_matrix --whole")
    done, calls = runner("echo x >matrices/new.toml", secret="")
    assert done.returncode != 0
    assert "MATRIX_SIGNING_KEY is not set" in done.stderr
    assert "gh" not in [call.split()[0] for call in calls]


def test_what_its_steps_call_is_there():
    """The stubs above stand for real ones, with options that they take."""
    texts = " ".join(step.get("run", "") for step in STEPS).split()
    paths = [word for word in texts if word.startswith(("scripts/", ".ci/"))]
    assert sorted(paths) == [".ci/run", "scripts/pack_matrix", "scripts/refresh_matrix"]
    assert all(os.access(ROOT / path, os.X_OK) for path in paths)
    for words in (["refresh_matrix", "--whole"], ["pack_matrix"]):
        command = [sys.executable, ROOT / "scripts" / words[0], *words[1:], "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "--only" in done.stdout or "--key" in done.stdout
