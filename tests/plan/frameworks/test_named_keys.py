"""The key that a lever or --what-if names is one that this version of the framework has."""

import pytest

from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.frameworks.key_tables import load_table

VERL = [
    "python3",
    "-m",
    "verl.trainer.main_ppo",
    "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct",
    "trainer.n_gpus_per_node=8",
]
EASYR1 = [
    "python3",
    "-m",
    "verl.trainer.main",
    "config=examples/config.yaml",
    "worker.actor.model.model_path=Qwen/Qwen2.5-7B-Instruct",
]
OPENRLHF = ["python3", "-m", "openrlhf.cli.train_ppo_ray"]
_VLLM = "actor_rollout_ref.rollout.engine_kwargs.vllm"


def keys(words, framework):
    return read_workload(words, framework=framework).keys


@pytest.mark.parametrize(
    ("version", "swap", "cache"),
    [
        ("0.2", "", ""),
        ("0.3.0.post1", "", ""),
        ("0.4.0", f"{_VLLM}.swap_space", ""),
        ("0.5.0", f"{_VLLM}.swap_space", f"{_VLLM}.disable_mm_preprocessor_cache"),
        ("0.6.1", f"+{_VLLM}.swap_space", f"+{_VLLM}.mm_processor_cache_gb"),
        ("0.9.0", "", f"+{_VLLM}.mm_processor_cache_gb"),
    ],
)
def test_settings_of_the_engine_in_verl(version, swap, cache):
    key_table = keys(VERL, f"verl=={version}")
    assert (key_table["rollout.swap_space"], key_table["rollout.mm_cache"]) == (swap, cache)


def test_a_key_that_is_given_is_the_one_that_is_named():
    key_table = keys(
        [*VERL, "+actor_rollout_ref.rollout.engine_kwargs.swap_space=8"], "verl==0.3.0.post1"
    )
    assert key_table["rollout.swap_space"] == "actor_rollout_ref.rollout.engine_kwargs.swap_space"


@pytest.mark.parametrize(
    ("version", "name"),
    [("b3d72a7", "param_offload"), ("90a634b", "offload_params"), ("0.3.2", "offload_params")],
)
def test_offload_in_easyr1(version, name):
    assert (
        keys(EASYR1, f"easyr1=={version}")["actor.offload_params"] == f"worker.actor.offload.{name}"
    )


@pytest.mark.parametrize(
    ("version", "gradients", "asleep", "adam"),
    [
        ("0.1.1", "", "", "--adam_offload"),
        ("0.1.5", "--grad_accum_dtype", "", "--adam_offload"),
        ("0.10.1.post2", "--grad_accum_dtype", "--vllm_enable_sleep", "--adam_offload"),
        ("0.10.2", "--ds.grad_accum_dtype", "--vllm.enable_sleep", "--ds.adam_offload"),
    ],
)
def test_options_of_openrlhf(version, gradients, asleep, adam):
    key_table = keys(OPENRLHF, f"openrlhf=={version}")
    assert (
        key_table["actor.grad_dtype"],
        key_table["rollout.sleep_level"],
        key_table["actor.offload_optimizer"],
    ) == (gradients, asleep, adam)


@pytest.mark.parametrize(("name", "words"), [("verl", VERL), ("openrlhf", OPENRLHF)])
def test_every_key_is_in_the_table_of_its_version(name, words):
    """Derived keys too; those of EasyR1 lie in two tables."""
    table = load_table(name, "train_ppo_ray" if name == "openrlhf" else None)
    for version in table.versions[2::9]:
        if name == "openrlhf" and version not in table.versions_of(
            "pretrain"
            if "pretrain" in table and version in table.versions_of("pretrain")
            else "actor.model_name_or_path"
        ):
            continue
        for field, key in keys(words, f"{name}=={version}").items():
            plain = key.lstrip("-+")
            if not key or key.startswith("+"):
                continue
            assert version in table.versions_of(plain), (version, field, key)
