"""No error of memory where a setting of the run was not understood, or its framework is not known.

Runs that cannot fit (a 72B model on one small machine) get one more setting each: every key of the
framework's own tables, drawn by a seed, and keys of nobody.
"""

from __future__ import annotations

import random
import shlex

import pytest

from envdoctor.app import plan
from envdoctor.matrix.loader import load_matrix
from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.frameworks.key_tables import load_table
from envdoctor.sources import Sources, gather

MODEL = "Qwen/Qwen2.5-72B"
_VERL = (
    f"actor_rollout_ref.model.path={MODEL} trainer.n_gpus_per_node=8 trainer.nnodes=1 "
    "actor_rollout_ref.rollout.name=vllm actor_rollout_ref.actor.{}=8"
)
RUNS = {
    "verl": (
        f"python3 -m verl.trainer.main_ppo {_VERL.format('ppo_micro_batch_size_per_gpu')}",
        "verl==0.4.1",
        "{}={}",
    ),
    "tinyzero": (
        f"python3 -m verl.trainer.main_ppo {_VERL.format('ppo_micro_batch_size')}",
        "tinyzero",
        "{}={}",
    ),
    "easyr1": (
        (
            "python3 -m verl.trainer.main config=examples/config.yaml trainer.n_gpus_per_node=8 "
            f"worker.actor.model.model_path={MODEL}"
        ),
        "easyr1==0.3.2",
        "{}={}",
    ),
    "openrlhf": (
        (
            f"deepspeed --module openrlhf.cli.train_ppo_ray --pretrain {MODEL} --zero_stage 3 "
            "--actor_num_nodes 1 --actor_num_gpus_per_node 8 --ref_num_nodes 1 "
            "--ref_num_gpus_per_node 8 --colocate_all_models --micro_train_batch_size 1"
        ),
        "openrlhf==0.8.0",
        "--{} {}",
    ),
    "trl": (
        (
            f"accelerate launch --num_processes 8 -m trl.scripts.sft --model_name_or_path {MODEL} "
            "--per_device_train_batch_size 1 --max_length 1024"
        ),
        "trl==0.24.0",
        "--{} {}",
    ),
}
RUNS["llamafactory"] = (
    (
        f"llamafactory-cli train --stage sft --finetuning_type full --model_name_or_path {MODEL} "
        "--cutoff_len 1024 --per_device_train_batch_size 1 --bf16"
    ),
    "llamafactory",
    "--{} {}",
)
VALUES = ("7", "some-text", "true")
NOBODYS = ("our_own.sharding", "zero_memory_mode", "a.b.c.quantize")


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    empty = tmp_path_factory.mktemp("facts") / "facts.json"
    empty.write_text('{"schema_version": 1, "facts": {}}')
    (facts,) = gather(Sources(facts=[str(empty)], assume=["memory=64GB", "gpu=A100-SXM4-40GB:8"]))
    matrix = load_matrix()

    def run(words, framework):
        result, _ = plan(shlex.split(words), facts, matrix, framework=framework)
        return [finding for finding in result.findings if finding.code in ("ED601", "ED602")]

    return run


def keys_of(framework, count=12):
    tool = "train_ppo_ray" if framework == "openrlhf" else "sft" if framework == "trl" else None
    if framework == "llamafactory":
        return NOBODYS  # no table of its keys is carried
    table = load_table(framework, tool)
    return [*random.Random(framework).sample(sorted(table.rows), count), *NOBODYS]


@pytest.mark.parametrize("framework", RUNS)
def test_a_run_that_is_wholly_understood_gets_the_error(planned, framework):
    words, stated, _ = RUNS[framework]
    assert "error" in {finding.severity for finding in planned(words, stated)}


@pytest.mark.parametrize("framework", RUNS)
def test_a_setting_that_is_not_understood_makes_it_a_warning_that_names_it(planned, framework):
    words, stated, form = RUNS[framework]
    doubted = 0
    for number, key in enumerate(keys_of(framework)):
        one_more = f"{words} {form.format(key, VALUES[number % len(VALUES)])}"
        unread = read_workload(shlex.split(one_more), framework=stated, environ={}).unread
        findings = planned(one_more, stated)
        if any(name.lstrip("-") == key for name in unread) or key in NOBODYS:
            doubted += 1
            assert "error" not in {finding.severity for finding in findings}, key
            assert any(key in finding.message for finding in findings), key
    assert doubted >= len(NOBODYS)


@pytest.mark.parametrize(
    ("framework", "program"),
    [
        ("verl", "python3 train_our_way.py"),
        ("verl", "torchrun --nproc-per-node 8 our/trainer.py"),
        ("trl", "torchrun --nproc-per-node 8 our/trainer.py"),
    ],
)
def test_a_program_of_ones_own_gets_no_error(planned, framework, program):
    words, stated, _ = RUNS[framework]
    options = words.partition("main_ppo" if framework == "verl" else "sft")[2]
    options += " --num_generations 8 --max_completion_length 512" * (framework == "trl")
    findings = planned(program + options, stated)
    assert findings
    assert "error" not in {finding.severity for finding in findings}


def test_keys_that_change_nothing_do_not_take_the_error_away(planned):
    words, stated, _ = RUNS["verl"]
    harmless = (
        "trainer.project_name=x trainer.experiment_name=y data.train_files=z.parquet "
        "actor_rollout_ref.actor.optim.lr=1e-6 actor_rollout_ref.actor.kl_loss_coef=0.001 "
        "algorithm.kl_ctrl.kl_coef=0.001 trainer.logger=[console] trainer.total_epochs=3"
    )
    assert "error" in {finding.severity for finding in planned(f"{words} {harmless}", stated)}
