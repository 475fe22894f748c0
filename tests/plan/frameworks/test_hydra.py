"""Configurations as Hydra composes them. The oracle is Hydra itself, where it can be installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.frameworks.adapter import Run
from envdoctor.plan.frameworks.hydra import compose_run
from envdoctor.plan.shell.reader import Word

FILES = {
    "pkg/train/main_ppo.py": (
        "import hydra\n@hydra.main(config_path='config', config_name='top', version_base=None)\n"
        "def main(config):\n    raise SystemExit('nothing is run')\n"
    ),
    "pkg/train/config/top.yaml": (
        "defaults:\n  - engine: dp\n  - actor@roles.actor: ${engine}_actor\n"
        "  - optional nothing@here: at_all\n  - extra@extra\n  - headed\n  - _self_\n"
        "roles:\n  hybrid: true\n  actor:\n    lr: 3\nempty: {}\nlist: [1, {a: b}]\n"
    ),
    "pkg/train/config/engine/dp.yaml": "name: dp\nshare: 0.5\n",
    "pkg/train/config/engine/mega.yaml": "name: mega\n",
    "pkg/train/config/actor/base.yaml": "lr: 1\nclip: 0.2\nopt:\n  kind: none\n",
    "pkg/train/config/actor/dp_actor.yaml": (
        "defaults:\n  - ../optim@opt: adam\n  - base\n  - _self_\nworkers: ${roles.hybrid}\n"
    ),
    "pkg/train/config/actor/mega_actor.yaml": "defaults:\n  - base\n  - /optim/adam@opt.deep\ntp: 8\n",
    "pkg/train/config/optim/adam.yaml": "kind: adam\nbetas: [0.9, 0.99]\n",
    "pkg/train/config/extra.yaml": "# @package over.there\nvalue: 7\n",
    "pkg/train/config/headed.yaml": "# @package by.header\nvalue: 8\n",
    "pkg/train/config/child.yaml": (
        "defaults:\n  - top\n  - override engine: mega\n  - _self_\nlist: []\nempty: null\n"
    ),
    "pkg/train/config/early.yaml": "defaults:\n  - _self_\n  - engine@: dp\nshare: 2\nown: 1\n",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".git").mkdir()
    (tmp_path / "scripts").mkdir()
    return tmp_path


def composed(tree, *words):
    arguments = tuple(Word(word, 1) for word in words)
    run = Run("r.sh", "pkg.train.main_ppo", arguments, (), str(tree / "scripts"), {}, {}, {})
    return compose_run(run)


def values(composition):
    return {key: setting.value for key, setting in composition.keys.items()}


def flat(tree, prefix=""):
    if isinstance(tree, dict) and tree:
        return {
            leaf: value
            for key, below in tree.items()
            for leaf, value in flat(below, f"{prefix}.{key}" if prefix else key).items()
        }
    return {prefix: tree} if prefix else {}


CASES = [
    [],
    ["engine=mega"],
    ["actor@roles.actor=mega_actor"],
    ["--config-name", "child"],
    ["--config-name=early"],
]


@pytest.mark.slow
@pytest.mark.parametrize("words", CASES, ids=" ".join)
def test_hydra_itself_composes_the_same(tree, tmp_path, prerequisite, words):
    uv = shutil.which("uv")
    prerequisite(uv, "uv")
    folder = tmp_path / "venv"
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, str(folder)], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([uv, "pip", "install", "-q", "-p", python, "hydra-core==1.3.2"], check=True)
    code = (
        "import sys, json\nfrom hydra import compose, initialize_config_dir\n"
        "from omegaconf import OmegaConf\n"
        "with initialize_config_dir(sys.argv[1], version_base=None):\n"
        "    made = compose(sys.argv[2], sys.argv[3:])\n"
        "print(json.dumps(OmegaConf.to_container(made)))"
    )
    name = words[-1].rpartition("=")[2] if words and "config-name" in words[0] else "top"
    choices = [] if words and "config-name" in words[0] else words
    ran = subprocess.run(
        [python, "-c", code, str(tree / "pkg/train/config"), name, *choices],
        capture_output=True,
        text=True,
        check=True,
    )
    assert values(composed(tree, *words)) == flat(json.loads(ran.stdout))


def test_groups_packages_and_own_values(tree):
    made = composed(tree)
    assert made.missing == ()
    assert values(made) == {
        "engine.name": "dp",
        "engine.share": 0.5,
        "roles.hybrid": True,
        "roles.actor.lr": 3,
        "roles.actor.clip": 0.2,
        "roles.actor.opt.kind": "none",
        "roles.actor.opt.betas": [0.9, 0.99],
        "roles.actor.workers": "${roles.hybrid}",
        "extra.value": 7,
        "by.header.value": 8,
        "empty": {},
        "list": [1, {"a": "b"}],
    }
    assert str(made.keys["roles.actor.clip"].place).startswith("actor/base.yaml:2")


@pytest.mark.parametrize("words", [["engine=mega"], ["--config-name", "child"]])
def test_what_is_chosen_on_the_command_line_or_in_a_child_counts(tree, words):
    made = values(composed(tree, *words))
    assert made["engine.name"] == "mega"
    assert made["roles.actor.tp"] == 8
    assert made["roles.actor.opt.deep.kind"] == "adam"


def test_a_file_that_is_not_at_hand_is_named(tree):
    (tree / "pkg/train/config/optim/adam.yaml").unlink()
    assert composed(tree).missing == ("optim/adam.yaml",)


def test_what_is_beside_the_repository_is_not_its_own(tree):
    inner = tree / "pkg" / "other"
    (inner / "scripts").mkdir(parents=True)
    (inner / ".git").mkdir()
    run = Run("r.sh", "pkg.train.main_ppo", (), (), str(inner / "scripts"), {}, {}, {})
    assert compose_run(run) is None


VERL = Path("verl/trainer")


@pytest.fixture
def checkout(tmp_path):
    """A fork of verl with a key of its own and a default of its own."""
    folder = tmp_path / VERL
    (folder / "config").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (folder / "main_ppo.py").write_text(
        "@hydra.main(config_path='config', config_name='ppo_trainer')\ndef main(c): ...\n"
    )
    (folder / "config" / "ppo_trainer.yaml").write_text(
        "actor_rollout_ref:\n  model: {path: x}\n  rollout:\n    name: vllm\n"
        "    gpu_memory_utilization: 0.31\n    our_own: 1\ntrainer: {n_gpus_per_node: 4}\n"
    )
    return tmp_path


def read(checkout, *settings):
    script = checkout / "train.sh"
    script.write_text(f"python3 -m verl.trainer.main_ppo {' '.join(settings)}\n")
    return read_workload([str(script)], environ={})


def test_the_checkouts_defaults_come_before_those_of_releases(checkout):
    workload = read(checkout, "actor_rollout_ref.rollout.our_own=2")
    assert workload.value("rollout.gpu_memory_utilization") == 0.31
    assert workload.value("gpus_per_node") == 4
    assert workload.place("gpus_per_node").source == (
        "default of verl/trainer/config/ppo_trainer.yaml"
    )
    assert not workload.problems


def test_a_key_that_the_checkout_does_not_have_is_an_error(checkout):
    (problem,) = read(checkout, "actor_rollout_ref.rollout.n=8").problems
    assert problem.certain
    assert problem.message == (
        "verl/trainer/config/ppo_trainer.yaml of this checkout has no key actor_rollout_ref.rollout.n"
    )


def test_it_is_none_where_part_of_the_configuration_is_missing(checkout):
    path = checkout / VERL / "config" / "ppo_trainer.yaml"
    path.write_text("defaults: [elsewhere, _self_]\n" + path.read_text())
    problems = read(checkout, "actor_rollout_ref.rollout.nobodys=8").problems
    assert [problem.certain for problem in problems] == [False]


@pytest.mark.parametrize(
    "text",
    ["@hydra.main(", "\0", "(" * 3000, "defaults: [top]\n", "@hydra.main()\ndef main(): ...\n"],
)
def test_an_entry_that_is_no_python_or_names_nothing_has_no_configuration(tree, text):
    (tree / "pkg/train/main_ppo.py").write_text(text)
    assert composed(tree) is None


def test_defaults_that_name_each_other_come_to_an_end(tree):
    (tree / "pkg/train/config/extra.yaml").write_text("defaults:\n  - top\n")
    (tree / "pkg/train/config/top.yaml").write_text("defaults:\n  - extra\n")
    assert composed(tree) is not None


RECIPE_MAIN = """
import hydra
@hydra.main(config_path="{folder}", config_name="{name}", version_base=None)
def main(config):
    pass
"""


def test_an_entry_that_loads_verls_own_has_the_defaults_of_releases(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "rollouts").mkdir()
    main = tmp_path / "rollouts/main_ppo.py"
    script = tmp_path / "rollouts/run.sh"
    script.write_text(
        "python3 -m recipe.rollouts.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-8B "
        "actor_rollout_ref.rollout.name=vllm\n"
    )
    main.write_text(RECIPE_MAIN.format(folder="../../verl/trainer/config", name="ppo_trainer"))
    workload = read_workload([str(script)], environ={})
    assert workload.value("actor.strategy") == "fsdp"
    assert "default of verl" in str(workload.place("actor.strategy"))
    # One of its own that is not at hand may set anything.
    for folder, name in (("config", "ppo_trainer"), ("../../verl/trainer/config", "own")):
        main.write_text(RECIPE_MAIN.format(folder=folder, name=name))
        workload = read_workload([str(script)], environ={})
        assert "not at hand" in workload.get("actor.strategy").reason


def test_a_module_beside_the_script(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "config").mkdir()
    (tmp_path / "main_own.py").write_text(RECIPE_MAIN.format(folder="config", name="own"))
    (tmp_path / "config/own.yaml").write_text(
        "actor_rollout_ref:\n  actor: {strategy: megatron}\n  model: {path: x}\n"
    )
    script = tmp_path / "run.sh"
    script.write_text("python3 -m main_own actor_rollout_ref.model.path=Qwen/Qwen3-8B\n")
    workload = read_workload([str(script)], environ={})
    assert workload.value("actor.strategy") == "megatron"
    assert "own.yaml" in str(workload.place("actor.strategy"))


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ('"$PWD/own"', 96),
        ('"$(git rev-parse --show-toplevel)/own"', 96),
        ('"$PWD/none"', None),
        ("own", None),  # beside the program, which lies elsewhere
    ],
)
def test_a_configuration_in_the_tree_for_a_program_that_is_installed(tmp_path, path, step):
    (tmp_path / ".git").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.yaml").write_text(
        "hydra:\n  searchpath: [pkg://verl.trainer.config]\n"
        "defaults: [ppo_trainer, _self_]\ndata:\n  train_batch_size: 96\n"
    )
    (tmp_path / "jobs").mkdir()
    script = tmp_path / "jobs" / "go.sh"
    script.write_text(
        f"cd ..\npython -m verl.trainer.main_ppo --config-path={path} --config-name=mine\n"
    )
    workload = read_workload([str(script)], environ={})
    assert workload.value("data.train_batch_size") == step
