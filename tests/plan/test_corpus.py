"""``scripts/plan_corpus`` over a repository made here."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "scripts" / "plan_corpus"
TRAINS = """python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B \\
  actor_rollout_ref.rollout.gpu_memory_utilization=1.4 trainer.n_gpus_per_node=8
"""


def git(folder, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    made = subprocess.run(
        ["git", "-C", str(folder), *identity, *words], capture_output=True, text=True, check=True
    )
    return made.stdout.strip()


@pytest.fixture
def corpus(tmp_path, prerequisite):
    prerequisite(shutil.which("git"), "git")
    clone = tmp_path / "clones" / "one"
    (clone / "examples").mkdir(parents=True)
    (clone / "examples" / "train.sh").write_text(TRAINS)
    (clone / "examples" / "list.sh").write_text("ls -l\n")
    git(clone, "init", "-q")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "one")
    commit = git(clone, "rev-parse", "HEAD")
    (clone / "examples" / "train.sh").write_text("what is checked out does not count\n")
    script = tmp_path / "plan_corpus"
    script.write_text(
        SCRIPT.read_text().replace("Path(__file__).resolve().parent.parent", repr(str(ROOT)))
    )
    script.with_suffix(".toml").write_text(
        f'[[project]]\nname = "one"\nrepository = "x"\ncommit = "{commit}"\npaths = ["examples/*.sh"]\n'
    )
    return script, tmp_path


def run(script, *words):
    return subprocess.run(
        [sys.executable, str(script), *map(str, words)], capture_output=True, text=True
    )


def test_every_script_of_the_pinned_commit_is_planned_and_every_error_listed(corpus):
    script, folder = corpus
    ran = run(script, folder / "clones", "--errors", "--json", folder / "out.json")
    assert ran.returncode == 0, ran.stderr
    states = {row["path"]: row["state"] for row in json.loads((folder / "out.json").read_text())}
    assert states["examples/list.sh"] == "refused"
    assert states["examples/train.sh"] in ("fits", "tight", "likely not", "cannot tell")
    assert "one examples/train.sh: ED607" in ran.stdout
    assert "found 1.4" in ran.stdout


def test_a_project_that_is_not_at_hand_is_said(corpus, tmp_path):
    script, _ = corpus
    (tmp_path / "empty").mkdir()
    ran = run(script, tmp_path / "empty")
    assert ran.returncode == 1
    assert "not at hand at its commit: one" in ran.stdout


def test_every_project_is_pinned_to_a_commit():
    try:
        import tomllib
    except ModuleNotFoundError:
        import tomli as tomllib
    projects = tomllib.loads(SCRIPT.with_suffix(".toml").read_text())["project"]
    assert len(projects) >= 25
    for project in projects:
        assert len(project["commit"]) == 40, project["name"]
        assert project["paths"], project["name"]
