"""What a script's code gives its trainer's arguments."""

from __future__ import annotations

import pytest

from envdoctor.plan.frameworks import read_workload

from .fields import values

SCRIPT = """
import argparse
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

STEPS = 4

def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", default="Qwen/Qwen2.5-7B")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--zero")
    parser.add_argument("--window", type=int, default=1024)
    return parser.parse_args()

def main():
    given = options()
    model = AutoModelForCausalLM.from_pretrained(given.weights)
    tokenizer = AutoTokenizer.from_pretrained(given.weights)
    rows = tokenizer(text, max_length=given.window, truncation=True)
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=given.batch,
        gradient_accumulation_steps=STEPS,
        gradient_checkpointing=True,
        deepspeed=given.zero,
        optim="paged_adamw_8bit",
    )
    Trainer(model, arguments).train()
"""


@pytest.fixture
def planned(tmp_path):
    """Return a function: the code and the options of its command -> workload."""

    def run(code, options=""):
        (tmp_path / "fit.py").write_text(code)
        (tmp_path / "z2.json").write_text('{"zero_optimization": {"stage": 2}}')
        script = tmp_path / "run.sh"
        script.write_text(f"torchrun --nproc_per_node 4 fit.py {options}\n")
        return read_workload([str(script)], environ={})

    return run


def test_values_options_and_their_defaults(planned):
    workload = planned(SCRIPT)
    assert values(workload, "actor.model", "actor.micro_batch") == ["Qwen/Qwen2.5-7B", 2]
    assert values(workload, "actor.gradient_checkpointing", "actor.optimizer") == [
        True,
        "paged_adamw_8bit",
    ]
    assert values(workload, "data.max_prompt_length", "actor.mini_batch") == [1024, 32]
    assert workload.value("actor.strategy") == "ddp"


def test_the_command_comes_before_the_code(planned):
    workload = planned(SCRIPT, "--weights Qwen/Qwen3-4B --batch 8 --zero z2.json --window 512")
    assert values(workload, "actor.model", "actor.micro_batch") == ["Qwen/Qwen3-4B", 8]
    assert values(workload, "actor.strategy", "data.max_prompt_length") == ["zero2", 512]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("=given.batch", "=given.batch // 2", "actor.micro_batch"),
        ("=given.batch", "=batch_of(model)", "actor.micro_batch"),
        ("STEPS = 4", "STEPS = 4\nSTEPS = STEPS * 2", "actor.mini_batch"),
        ("checkpointing=True", "checkpointing=bool(model)", "actor.gradient_checkpointing"),
        ("(given.weights)\n    tok", "(best(given.weights))\n    tok", "actor.model"),
    ],
)
def test_what_the_code_computes_is_not_known(planned, old, new, field):
    assert old in SCRIPT
    assert planned(SCRIPT).value(field) is not None
    assert planned(SCRIPT.replace(old, new)).value(field) is None


def test_of_several_arguments_counts_what_all_are_given(planned):
    code = SCRIPT.replace(
        "    Trainer(",
        "    other = TrainingArguments(per_device_train_batch_size=given.batch, optim=None,\n"
        "        gradient_checkpointing=False)\n    Trainer(",
    )
    workload = planned(code, "--batch 4")
    assert values(workload, "actor.micro_batch", "actor.gradient_checkpointing") == [4, None]
    assert workload.value("actor.mini_batch") is None  # one of them leaves it to the default


TRL = """
from trl import SFTConfig, SFTTrainer

def main():
    config = SFTConfig(per_device_train_batch_size=2, max_length=4096, output_dir="out")
    SFTTrainer(model="Qwen/Qwen2.5-7B", args=config).train()
"""


def test_a_script_of_trl_without_options(planned):
    workload = planned(TRL)
    assert values(workload, "framework", "algorithm", "actor.model") == [
        "trl",
        "sft",
        "Qwen/Qwen2.5-7B",
    ]
    assert values(workload, "actor.micro_batch", "data.max_prompt_length") == [2, 4096]
    assert not workload.problems
