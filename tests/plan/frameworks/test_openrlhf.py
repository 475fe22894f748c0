"""OpenRLHF: its options and their defaults, of its releases and of a checkout."""

from __future__ import annotations

import pytest

from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.memory.setting_change import setting_text

from .fields import values


def test_openrlhf_trains_without_generating(read):
    workload = read(
        "deepspeed --module openrlhf.cli.train_sft --model.model_name_or_path "
        "meta-llama/Meta-Llama-3-8B --data.max_len 2048 --train.micro_batch_size 2 "
        "--ds.zero_stage 2"
    )
    assert values(workload, "algorithm", "actor.model", "data.max_length") == [
        "sft",
        "meta-llama/Meta-Llama-3-8B",
        2048,
    ]


def test_openrlhf_without_its_switch_is_eager_in_the_releases_that_have_one():
    command = ["deepspeed", "--module", "openrlhf.cli.train_sft", "--zero_stage", "2"]
    old, new = (
        read_workload(command, framework=f"openrlhf=={version}", environ={}).value(
            "actor.attention"
        )
        for version in ("0.5.3", "0.9.5")
    )
    assert (old, new) == ("eager", "fused")


OF_A_CHECKOUT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--train.micro_batch_size", type=int, default=3)
parser.add_argument("--train.batch_size", type=int, default=96)
parser.add_argument("--ds.zero_stage", type=int, default=1)
parser.add_argument("--ds.packing_samples", action="store_true")
parser.add_argument("--model.model_name_or_path", type=str)
parser.add_argument("--of_this_fork_alone", type=int, default=5)
args = parser.parse_args()
"""


def test_openrlhf_takes_options_and_defaults_from_the_parser_of_its_checkout(tmp_path):
    folder = tmp_path / "openrlhf" / "cli"
    folder.mkdir(parents=True)
    (folder / "train_sft.py").write_text(OF_A_CHECKOUT)
    (folder / "train_ppo_ray.py").write_text("")
    script = tmp_path / "run.sh"
    script.write_text(
        "deepspeed --module openrlhf.cli.train_sft --ds.packing_samples --of_this 1 \\\n"
        "  --model.model_name_or_path Qwen/Qwen2.5-7B --ds.adam_offload --train.batch 64\n"
    )
    run = read_workload([str(script)], environ={})
    assert run.value("actor.micro_batch") == 3
    assert run.value("actor.strategy") == "zero1"
    assert run.value("actor.padding_free") is True
    assert run.value("actor.mini_batch") == 64  # argparse takes what can only be one option
    unknown = [problem for problem in run.problems if problem.kind == "unknown-key"]
    assert [problem.key for problem in unknown] == ["--ds.adam_offload"]
    assert "openrlhf/cli/train_sft.py of this checkout" in unknown[0].message
    assert unknown[0].certain  # its parser refuses it


@pytest.mark.parametrize(("tool", "certain"), [("train_sft", True), ("train_sft_mine", False)])
def test_a_program_of_a_fork_that_is_not_at_hand_may_have_any_option(tool, certain):
    command = ["deepspeed", f"openrlhf/cli/{tool}.py", "--zero_stage", "2", "--num_of_mine", "6"]
    run = read_workload(command, framework="openrlhf==0.9.5", environ={})
    (problem,) = (one for one in run.problems if one.kind == "unknown-key")
    assert problem.certain == certain


def test_a_switch_for_sleep_mode_takes_no_value():
    command = ["python3", "-m", "openrlhf.cli.train_ppo_ray", "--vllm_num_engines", "4"]
    run = read_workload(command, framework="openrlhf==0.9.5", environ={})
    assert setting_text(run, "rollout.sleep_level", 1) == "--vllm_enable_sleep"
