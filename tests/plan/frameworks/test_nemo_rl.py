"""NeMo RL: its files, the recipes laid over them, and its engines."""

from __future__ import annotations

import pytest

from envdoctor.errors import InputError
from envdoctor.matrix.loader import load_matrix
from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.memory.estimate import make_plan, sizes_of

from .fields import values

NEMO = """
policy:
  model_name: Qwen/Qwen2.5-1.5B
  train_global_batch_size: 512
  train_micro_batch_size: 4
  max_total_sequence_length: 512
  dtensor_cfg: {enabled: true, cpu_offload: false, tensor_parallel_size: 1,
                activation_checkpointing: false, lora_cfg: {enabled: false, dim: 8}}
  megatron_cfg: {enabled: false, tensor_model_parallel_size: 1}
  sequence_packing: {enabled: true,
    train_mb_tokens: "${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}"}
  optimizer: {name: torch.optim.AdamW}
  generation:
    backend: vllm
    colocated: {enabled: true}
    vllm_cfg: {tensor_parallel_size: 1, gpu_memory_utilization: 0.6}
grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16}
loss_fn: {reference_policy_kl_penalty: 0.01}
cluster: {gpus_per_node: 1, num_nodes: 1}
"""


RECIPE = """
defaults: base.yaml
policy:
  model_name: Qwen/Qwen3-30B-A3B
  dtensor_cfg: {enabled: false}
  megatron_cfg: {enabled: true, tensor_model_parallel_size: 4, pipeline_model_parallel_size: 2,
                 expert_model_parallel_size: 8}
cluster: {gpus_per_node: 8, num_nodes: 2}
"""


def test_nemo_rl_is_read_from_its_file_alone(read):
    workload = read("train.yaml", train_yaml=NEMO)
    assert values(workload, "framework", "algorithm", "actor.strategy", "actor.model") == [
        "nemo-rl",
        "grpo",
        "fsdp2",
        "Qwen/Qwen2.5-1.5B",
    ]
    # ${mul:…}: four sequences of 512 tokens
    assert workload.value("actor.max_tokens_per_gpu") == 2048
    assert values(workload, "rollout.n", "rollout.sleep_level", "ref.present") == [16, 1, True]
    assert values(workload, "actor.lora_rank", "actor.param_dtype") == [0, "fp32"]


def test_nemo_rl_lays_a_recipe_over_the_file_that_it_names(read):
    workload = read("recipe.yaml", recipe_yaml=RECIPE, base_yaml=NEMO)
    assert values(workload, "actor.model", "actor.strategy", "nodes") == [
        "Qwen/Qwen3-30B-A3B",
        "megatron",
        2,
    ]
    assert values(workload, "actor.tensor_parallel", "actor.expert_parallel") == [4, 8]
    assert workload.value("data.max_length") == 512


def test_nemo_rl_without_the_file_that_a_recipe_names_is_not_recognised(read):
    with pytest.raises(InputError, match="nothing here belongs to a framework"):
        read("lone.yaml", lone_yaml=RECIPE.replace("model_name: Qwen/Qwen3-30B-A3B", "x: 1"))


def test_nemo_rl_takes_overrides_and_the_recipe_of_a_suite(read, tmp_path):
    entry = {"examples__run_grpo.py": "from nemo_rl.algorithms.grpo import setup\n"}
    workload = read(
        "uv run examples/run_grpo.py --config train.yaml cluster.gpus_per_node=8",
        train_yaml=NEMO,
        **entry,
    )
    assert values(workload, "framework", "gpus_per_node") == ["nemo-rl", 8]
    (tmp_path / ".git").mkdir()
    suite = tmp_path / "tests" / "test_suites" / "llm" / "one.sh"
    recipe = tmp_path / "examples" / "configs" / "recipes" / "llm" / "one.yaml"
    for path, text in (
        (suite, "source ./common.env\nuv run examples/run_grpo.py --config $CONFIG_PATH\n"),
        (recipe, NEMO),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert read_workload([str(suite)], environ={}).value("actor.model") == "Qwen/Qwen2.5-1.5B"


MEGATRON_ENGINE = """
defaults: base.yaml
policy:
  dtensor_cfg: {enabled: false}
  megatron_cfg: {enabled: true}
  generation:
    backend: megatron
    mcore_generation_config: {buffer_size_gb: 10, max_tokens: 16384,
                              kv_cache_management_mode: persist, num_cuda_graphs: 4}
"""


def test_nemo_rl_generates_with_the_trainers_weights(read):
    matrix = load_matrix()
    workload = read("own.yaml", own_yaml=MEGATRON_ENGINE, base_yaml=NEMO)
    assert values(workload, "rollout.engine", "rollout.cache_size") == ["megatron", 10 << 30]
    assert workload.value("rollout.free_cache_engine") is False
    off = ("policy.generation.", "policy.dtensor_cfg.", "policy.megatron_cfg.")
    assert not [key for key in workload.unread if key.startswith(off)]
    plan = make_plan(workload, sizes_of(workload, matrix), None, matrix)
    gpu = plan.pool("gpu")
    assert not gpu.missing
    for phase in ("rollout", "update"):
        held = [term for term in gpu.terms if term.name == "KV cache" and phase in term.phases]
        assert [(term.low, term.high) for term in held] == [(10 << 30, 10 << 30)]
    given_back = MEGATRON_ENGINE.replace("persist", "offload")
    workload = read("own.yaml", own_yaml=given_back, base_yaml=NEMO)
    gpu = make_plan(workload, sizes_of(workload, matrix), None, matrix).pool("gpu")
    assert [term.phases for term in gpu.terms if term.name == "KV cache"] == [("rollout",)]


@pytest.mark.parametrize(
    "change", [("backend: megatron", "backend: trtllm"), ("buffer_size_gb: 10, ", "")]
)
def test_nemo_rl_of_another_engine_nothing_is_known(read, change):
    workload = read("own.yaml", own_yaml=MEGATRON_ENGINE.replace(*change), base_yaml=NEMO)
    assert "is not known" in workload.get("rollout.engine").reason
