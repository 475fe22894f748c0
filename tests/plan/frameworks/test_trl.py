"""Which runs are TRL's."""

from __future__ import annotations

import pytest

from envdoctor.errors import InputError
from envdoctor.plan.frameworks import read_workload

OPTIONS = "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --learning_rate 1e-6"
GRPO = "--num_generations 8 --max_completion_length 512"


def framework_of(tmp_path, command, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/bash\n{command} --model_name_or_path Qwen/Qwen2.5-7B\n")
    try:
        return read_workload([str(script)], environ={}).value("framework")
    except InputError:
        return None


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (f"trl sft {OPTIONS}", "trl"),
        (f"accelerate launch -m trl.scripts.dpo {OPTIONS}", "trl"),
        (f"torchrun --nproc-per-node 8 grpo.py {GRPO}", "trl"),
        (f"torchrun --nproc-per-node 8 src/train.py {OPTIONS}", None),
        (f"deepspeed train_sft.py {OPTIONS}", None),
        (f"llamafactory-cli train {OPTIONS}", "llamafactory"),
        (f"swift sft {OPTIONS}", "ms-swift"),
    ],
)
def test_the_options_of_every_trainer_are_no_sign(tmp_path, command, expected):
    assert framework_of(tmp_path, command) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from trl import SFTTrainer\n", "trl"),
        ("import torch\nimport trl.trainer as t\n", "trl"),
        ("from transformers import Trainer  # as trl does\n", None),
        ("from trlx import train\n", None),
    ],
)
def test_a_script_at_hand_is_told_by_what_it_imports(tmp_path, source, expected):
    command = f"torchrun train_grpo.py {OPTIONS} {GRPO}"
    assert framework_of(tmp_path, command, train_grpo=source) == expected
