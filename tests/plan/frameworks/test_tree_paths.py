"""Whole paths of another machine whose end lies in the repository around a script."""

from __future__ import annotations

import pytest

from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.frameworks.tree_paths import path_in_tree


@pytest.fixture
def tree(tmp_path):
    """Return a repository with two parts that have files of the same names."""
    (tmp_path / ".git").mkdir()
    for path in ("a/run/x.sh", "a/conf/z3.json", "b/conf/z3.json", "a/src/fit/go.py", "c/one.json"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('{"zero_optimization": {"stage": 3}}' if path[0] == "a" else "{}")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/conf/z3.json", "a/conf/z3.json"),  # the nearer of two
        ("/home/u/project/b/conf/z3.json", "b/conf/z3.json"),  # the longer end
        ("/workspace/src/fit/go.py", "a/src/fit/go.py"),
        ("/elsewhere/one.json", ""),  # one part alone is anybody's
        ("/conf/z2.json", ""),
        ("/conf/\0", ""),
    ],
)
def test_the_longest_end_that_the_tree_has(tree, path, expected):
    held = path_in_tree(str(tree / "a" / "run"), path)
    assert held == (str(tree / expected) if expected else "")


def test_two_files_that_are_as_near_are_none(tree):
    (tree / "d").mkdir()
    assert path_in_tree(str(tree / "d"), "/conf/z3.json") == ""


def test_without_a_repository_nothing_is_looked_for(tree):
    (tree / ".git").rmdir()
    assert path_in_tree(str(tree / "a" / "run"), "/workspace/src/fit/go.py") == ""


def test_a_script_and_its_file_are_read_there(tree):
    (tree / "a" / "src" / "fit" / "go.py").write_text(
        "from transformers import Trainer, TrainingArguments\n"
    )
    script = tree / "a" / "run" / "x.sh"
    script.write_text(
        "torchrun --nproc_per_node 8 /src/fit/go.py --deepspeed /conf/z3.json "
        "--model_name_or_path Qwen/Qwen2.5-7B\n"
    )
    workload = read_workload([str(script)], environ={})
    assert workload.value("framework") == "transformers"
    assert workload.value("actor.strategy") == "zero3"
