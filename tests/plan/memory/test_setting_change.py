"""``--what-if``: the framework's words and ours, and what is refused."""

import pytest

from envdoctor.errors import InputError
from envdoctor.model.sizes import GIB
from envdoctor.model.workload import Workload
from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.memory.setting_change import (
    change_workload,
    setting_text,
    spelled,
)

from .conftest import workload

KEYS = {
    "rollout.swap_space": "actor_rollout_ref.rollout.swap_space",
    "rollout.free_cache_engine": "actor_rollout_ref.rollout.free_cache_engine",
    "rollout.sleep_level": "actor_rollout_ref.rollout.free_cache_engine",
    "rollout.gpu_memory_utilization": "actor_rollout_ref.rollout.gpu_memory_utilization",
    "actor.strategy": "--zero_stage",
    "actor.grad_dtype": "--grad_accum_dtype",
    "critic.grad_dtype": "--grad_accum_dtype",
    "rollout.mm_cache": "",
}
RUN = Workload({}, KEYS)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("actor_rollout_ref.rollout.swap_space=4", "rollout.swap_space", 4 * GIB),
        ("+actor_rollout_ref.rollout.swap_space=4", "rollout.swap_space", 4 * GIB),
        ("rollout.swap_space=4GiB", "rollout.swap_space", 4 * GIB),
        ("rollout.swap_space=4294967296", "rollout.swap_space", 4 * GIB),
        ("ray.object_store=60000000000", "ray.object_store", 60_000_000_000),
        ("--zero_stage=3", "actor.strategy", "zero3"),
        ("--grad-accum-dtype=bf16", "critic.grad_dtype", "bf16"),
        ("actor_rollout_ref.rollout.free_cache_engine=False", "rollout.free_cache_engine", False),
        ("actor_rollout_ref.rollout.free_cache_engine=False", "rollout.sleep_level", 0),
    ],
)
def test_change(text, field, value):
    changed, _ = change_workload(RUN, text)
    assert changed.value(field) == value
    assert str(changed.place(field)).startswith("--what-if")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("export a.b.c=0.6", "not a valid identifier"),
        (
            "actor_rollout_ref.rollout.swap_spac=4",
            "did you mean actor_rollout_ref.rollout.swap_space",
        ),
        ("rollout.swap_space", "expected KEY=VALUE"),
        ("rollout.swap_space=much", "expected a number"),
        ("rollout.gpu_memory_utilization=60", "up to 1"),
        ("actor_rollout_ref.rollout.free_cache_engine=maybe", "expected"),
        ("--zero_stage=7", "expected one of"),
        ("=4", "expected KEY=VALUE"),
    ],
)
def test_refused(text, says):
    with pytest.raises(InputError, match=says):
        change_workload(RUN, text)


def test_words():
    assert RUN.key_of("rollout.swap_space") == "actor_rollout_ref.rollout.swap_space"
    assert RUN.key_of("ray.object_store") == "ray start --object-store-memory"
    assert spelled("--swap-space", "rollout.swap_space", 4 * GIB) == "4"
    assert not RUN.can_set("rollout.mm_cache")
    assert not RUN.can_set("rollout.sleep_level")  # its key is a flag
    assert Workload().can_set("rollout.mm_cache")


@pytest.mark.parametrize(
    ("key", "field", "value", "text"),
    [
        ("--zero_stage", "actor.strategy", "zero3", "--zero_stage=3"),
        ("zero_optimization.stage", "actor.strategy", "zero3", "zero_optimization.stage=3"),
        ("--deepspeed", "actor.strategy", "zero3", "--deepspeed=zero3"),  # ms-swift's files
        (
            "zero_optimization.offload_optimizer.device",
            "actor.offload_optimizer",
            True,
            "zero_optimization.offload_optimizer.device=cpu",
        ),
        (
            "deepspeed_config.offload_param_device",
            "actor.offload_params",
            False,
            "deepspeed_config.offload_param_device=none",
        ),
    ],
)
def test_deepspeeds_settings_are_spelled_as_they_are_read(key, field, value, text):
    run = Workload({}, {field: key})
    assert setting_text(run, field, value) == text
    changed, _ = change_workload(run, text)
    assert changed.value(field) == value


def test_switches_of_argparse_are_there_or_left_out():
    run = Workload(
        dict(iter(workload(framework="openrlhf"))),
        {"actor.offload_optimizer": "--adam_offload", "actor.grad_dtype": "--grad_accum_dtype"},
    )
    assert setting_text(run, "actor.offload_optimizer", True) == "--adam_offload"
    assert setting_text(run, "actor.offload_optimizer", False) == "no --adam_offload"
    assert setting_text(run, "actor.grad_dtype", "bf16") == "--grad_accum_dtype=bf16"


def test_a_key_that_disables_says_the_opposite():
    key = "actor_rollout_ref.rollout.engine_kwargs.vllm.disable_mm_preprocessor_cache"
    run = Workload({}, {"rollout.mm_cache": key})
    assert setting_text(run, "rollout.mm_cache", 0) == f"{key}=True"
    assert change_workload(run, f"{key}=True")[0].value("rollout.mm_cache") == 0
    assert change_workload(run, f"{key}=False")[0].value("rollout.mm_cache") == 4 * GIB


@pytest.mark.parametrize(
    ("name", "text", "field", "inverse"),
    [
        (
            "run.yaml",
            (
                "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\n"
                "cutoff_len: 2048\ntemplate: qwen\ndisable_gradient_checkpointing: true\n"
            ),
            "actor.gradient_checkpointing",
            "disable_gradient_checkpointing",
        ),
        (
            "run.sh",
            (
                "accelerate launch --use_fsdp --fsdp_version 2 --fsdp_reshard_after_forward false "
                "--num_processes 8 -m trl.scripts.sft --model_name_or_path Qwen/Qwen2.5-7B --bf16\n"
            ),
            "actor.keeps_gathered",
            "fsdp_config.fsdp_reshard_after_forward",
        ),
    ],
)
def test_a_key_that_says_the_opposite_of_its_field(tmp_path, name, text, field, inverse):
    (tmp_path / name).write_text(text)
    run = read_workload([str(tmp_path / name)], environ={})
    before = run.value(field)
    assert setting_text(run, field, not before) == f"{inverse}={before}"
    changed, which = change_workload(run, f"{inverse}={str(before).lower()}")
    assert (which, changed.value(field)) == (field, not before)
