"""Defaults read from source, held against what Python itself makes of the same source."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import sys
import types

import pytest

from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.frameworks.declared import class_defaults, nested_defaults
from envdoctor.plan.frameworks.parser_options import option_defaults, parser_options

CLASSES = """
from dataclasses import dataclass, field
from typing import List, Optional

@dataclass
class Base:
    rank: int = 8
    rate: float = 1e-4
    dtype: Optional[str] = None
    names: List[str] = field(default_factory=list)
    size: int = field(default=4, metadata={"help": "x"})

@dataclass
class Own(Base):
    rank: int = 64
    many: int = 2 * 8
"""
OPTIONS = """
import argparse

def add(parser):
    group = parser.add_argument_group("g")
    group.add_argument("--micro-batch-size", type=int, default=1)
    group.add_argument("--bf16", action="store_true")
    group.add_argument("--no-save-optim", action="store_false", dest="save_optim")
    group.add_argument("-t", "--tensor-parallel", type=int, default=2)
    group.add_argument("--model", type=str)
"""


def test_fields_of_dataclasses_are_what_an_instance_has():
    module = types.ModuleType("declared_sample")
    sys.modules["declared_sample"] = module
    try:
        exec(CLASSES, module.__dict__)
        made = dataclasses.asdict(module.Own())
    finally:
        del sys.modules["declared_sample"]
    values = class_defaults(CLASSES, ("Base", "Own"))
    assert values == {name: made[name] for name in values}
    # A factory, and an expression that is no constant, give nothing.
    assert set(made) - set(values) == {"names", "many"}


def test_options_are_what_the_parser_gives():
    scope: dict = {}
    exec(OPTIONS, scope)
    parser = argparse.ArgumentParser()
    scope["add"](parser)
    made = vars(parser.parse_args([]))
    values = option_defaults(OPTIONS)
    assert values == {name: made[name] for name in values}
    assert values == made


def test_what_is_no_python_declares_nothing():
    assert class_defaults("class (", ("Own",)) == {}
    assert option_defaults("add_argument(") == {}


CHECKOUTS = {
    "trl": (
        {
            "trl/trainer/grpo_trainer.py": "",
            "trl/trainer/grpo_config.py": "class GRPOConfig(_BaseConfig):\n"
            "    num_generations: int = field(default=5)\n    brand_new: int = 1\n",
        },
        "trl grpo --model_name_or_path Qwen/Qwen3-8B --use_vllm true --brand_new 2\n",
        "rollout.n",
        8,
    ),
    "easyr1": (
        {
            "verl/trainer/main.py": "",
            "verl/workers/rollout/config.py": "class RolloutConfig:\n    n: int = 5\n",
        },
        "python3 -m verl.trainer.main worker.actor.model.model_path=Qwen/Qwen3-8B\n",
        "rollout.n",
        1,
    ),
}


@pytest.mark.parametrize("name", sorted(CHECKOUTS))
def test_a_checkout_comes_before_the_defaults_of_releases(tmp_path, name):
    files, script, field, released = CHECKOUTS[name]
    alone = tmp_path / "alone.sh"
    alone.write_text(script)
    assert read_workload([str(alone)], environ={}).value(field) == released
    for path, text in files.items():
        (tmp_path / "checkout" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkout" / path).write_text(text)
    inside = tmp_path / "checkout" / "run.sh"
    inside.write_text(script)
    run = read_workload([str(inside)], environ={})
    assert run.value(field) == 5
    assert not [problem for problem in run.problems if problem.key == "brand_new"]


MODELS = {
    "shared_models": """
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Common:
    name: str = "m"
    seed: int = field(default=1)
@dataclass(frozen=True)
class Offload:
    pin: bool = True
""",
    "own_models": """
from dataclasses import dataclass, field
from typing import Annotated, List, Optional
from shared_models import Common, Offload as Away
@dataclass(frozen=True)
class Head:
    chunk: int = 8
    split: bool = False
@dataclass(frozen=True)
class Model(Common):
    seed: int = 2
    length: Annotated[int, "tokens"] = 1024
    head: Head = Head(chunk=16)
    away: Optional[Away] = None
    other: "Away | None" = Away()
    made: Head = field(default_factory=Head)
    path: Optional[str] = None
@dataclass(frozen=True)
class Config:
    model: Model
    required: int
    again: Model = Model()
""",
}


def flat(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def test_models_inside_of_models_are_what_python_makes_of_them(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in MODELS.items():
        (tmp_path / f"{name}.py").write_text(text)
    try:
        own = importlib.import_module("own_models")
        made = dict(flat(dataclasses.asdict(own.Config(own.Model(), 3))))
    finally:
        for name in MODELS:
            sys.modules.pop(name, None)
    read = nested_defaults(MODELS.get, "own_models", "Config")
    # A section that may be left out has its keys beside None; what has no default is no key.
    extra = {key: read[key] for key in set(read) - set(made)}
    assert extra == {"model.away.pin": True, "again.away.pin": True}
    assert set(made) - set(read) == {"required"}
    assert {key: read[key] for key in made if key != "required"} == {
        key: value for key, value in made.items() if key != "required"
    }


def test_models_that_hold_each_other_end():
    text = "class A(B):\n    b: 'C'\nclass B(A):\n    x: int = 1\nclass C(M):\n    a: A = A()\n"
    assert nested_defaults({"m": text}.get, "m", "A")["x"] == 1
    assert nested_defaults({}.get, "m", "A") == {}


PARSER = """
import argparse, os
def more(group):
    for role in ("actor", "ref"):
        group.add_argument(f"--{role}.num_nodes", type=int, default=1)
parser = argparse.ArgumentParser()
parser.add_argument("--zero-stage", "--stage", type=int, default=2, help="DeepSpeed")
parser.add_argument("--packing_samples", action="store_true", default=False)
parser.add_argument("--no_shuffle", dest="shuffle", action="store_false")
parser.add_argument("--pretrain", type=str)
parser.add_argument("--betas", type=float, nargs=2, default=(0.9, 0.95))
parser.add_argument("--home", default=os.environ.get("HOME"))
more(parser.add_argument_group("roles"))
"""


def test_the_options_of_a_parser_are_those_that_argparse_itself_has():
    scope = {}
    exec(PARSER, scope)
    actions = [
        action for action in scope["parser"]._actions if "--help" not in action.option_strings
    ]
    options = parser_options(PARSER)
    keys = {
        name[2:].replace("-", "_"): action for action in actions for name in action.option_strings
    }
    assert options.complete
    assert set(options.defaults) == set(keys)
    assert options.switches == {key for key, action in keys.items() if action.nargs == 0}
    for key, action in keys.items():
        expected = "${os.environ.get('HOME')}" if key == "home" else action.default
        assert options.defaults[key] == expected, key
    stated = vars(scope["parser"].parse_args([]))
    assert options.constants == {name: value for name, value in stated.items() if name != "home"}


@pytest.mark.parametrize(
    "line",
    [
        "deepspeed.add_config_arguments(parser)",
        "parser.add_argument(name_of_option())",
        "parser.add_argument('--x', **more)",
        "other = argparse.ArgumentParser(parents=[parser])",
        "def broken(:",
    ],
)
def test_options_that_may_come_from_elsewhere_are_not_all(line):
    assert not parser_options(f"{PARSER}\n{line}\n").complete
