"""Defaults read from source, held against what Python itself makes of the same source."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import types

import pytest

from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.frameworks.declared import class_defaults, option_defaults

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
