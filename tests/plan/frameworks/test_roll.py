"""ROLL: pipelines whose roles have strategies and lists of devices."""

from __future__ import annotations

import pytest

from .fields import values

STARTER = "from roll.pipeline.{0}.{0}_pipeline import Pipeline\n"
RLVR = """
num_gpus_per_node: 8
pretrain: Qwen/Qwen3-8B
rollout_batch_size: 64
prompt_length: 1024
response_length: 2048
num_return_sequences_in_group: 8
adv_estimator: reinforce
actor_train:
  training_args: {per_device_train_batch_size: 2}
  strategy_args:
    strategy_name: megatron_train
    strategy_config:
      tensor_model_parallel_size: 2
      expert_model_parallel_size: 1
      use_distributed_optimizer: true
      recompute_granularity: full
  device_mapping: list(range(0,8))
actor_infer:
  strategy_args:
    strategy_name: vllm
    strategy_config: {gpu_memory_utilization: 0.7, max_model_len: 4000, tensor_parallel_size: 2}
  device_mapping: list(range(0,8))
reference:
  strategy_args: {strategy_name: megatron_infer}
  device_mapping: list(range(0,8))
"""
COMMAND = "python examples/start_{0}_pipeline.py --config_path runs --config_name one"


@pytest.fixture
def planned(read):
    """Return a function: text of a configuration and the pipeline -> workload."""

    def run(text, kind="rlvr"):
        files = {
            "examples__runs__one_yaml": text,
            f"examples/start_{kind}_pipeline.py": STARTER.format(kind),
        }
        return read(COMMAND.format(kind), **files)

    return run


def test_roles_in_one_list_take_turns(planned):
    workload = planned(RLVR)
    assert values(workload, "framework", "colocated", "gpus_per_node") == ["roll", True, 8]
    assert values(workload, "actor.strategy", "actor.tensor_parallel") == ["megatron", 2]
    assert values(workload, "actor.gradient_checkpointing", "actor.grad_dtype") == [True, "fp32"]
    assert values(workload, "rollout.engine", "rollout.tensor_parallel", "rollout.n") == [
        "vllm",
        2,
        8,
    ]
    assert values(workload, "critic.present", "ref.present") == [False, False]
    assert not workload.unread


@pytest.mark.parametrize(
    ("devices", "nodes", "each"),
    [("list(range(8,16))", 2, 8), ("[8, 9]", 2, 2), ("list(range(8,10)) + [12]", 2, 3)],
)
def test_roles_apart_have_gpus_of_their_own(planned, devices, nodes, each):
    head, mark, rest = RLVR.partition("actor_infer:")
    workload = planned(head + mark + rest.replace("list(range(0,8))", f'"{devices}"', 1))
    assert values(workload, "colocated", "nodes", "actor.gpus_per_node") == [False, nodes, 8]
    assert workload.value("rollout.engines") == max(each // 2, 1)


@pytest.mark.parametrize("devices", ["list(range(0,every))", "open('gpus')", "list(range(0,1e9))"])
def test_a_list_that_is_none_is_not_known(planned, devices):
    workload = planned(RLVR.replace("list(range(0,8))", f'"{devices}"', 1))
    assert workload.value("gpus_per_node") is None


def test_a_reference_that_a_term_asks_for(planned):
    assert planned(RLVR + "use_kl_loss: true\n").value("ref.present") is True
    adapters = RLVR.replace(
        "actor_train:\n", "actor_train:\n  model_args: {lora_target: all-linear, lora_rank: 32}\n"
    )
    workload = planned(adapters + "use_kl_loss: true\n")
    assert values(workload, "actor.lora_rank", "ref.present") == [32, False]


def test_fsdp_keeps_what_it_is_told(planned):
    config = (
        "      param_dtype: bf16\n      fsdp_size: 4\n      offload_policy: true\n"
        "      reshard_after_forward: false\n"
    )
    text = RLVR.replace(
        "megatron_train\n    strategy_config:\n", f"fsdp2_train\n    strategy_config:\n{config}"
    )
    workload = planned(text)
    assert values(workload, "actor.strategy", "actor.param_dtype") == ["fsdp2", "bf16"]
    assert values(workload, "actor.cpu_offload", "actor.keeps_gathered") == [True, True]
    assert workload.value("actor.shard_ranks") == 4


def test_a_judge_with_gpus_of_its_own_is_not_known(planned):
    judge = (
        "rewards:\n  rule: {worker_cls: a.B}\n  judge:\n    model_args: {model_name_or_path: o/J-7B}\n"
        "    strategy_args: {strategy_name: vllm}\n    device_mapping: list(range(0,2))\n"
    )
    assert planned(RLVR + judge).value("others") is not None
    assert planned(RLVR + "rewards:\n  rule: {worker_cls: a.B}\n").value("others") is None


def test_fine_tuning_has_no_engine(planned):
    text = RLVR.replace("actor_train", "sft_train").replace(
        "prompt_length: 1024", "sequence_length: 4096"
    )
    workload = planned(text, "sft")
    assert values(workload, "algorithm", "data.max_length", "actor.micro_batch") == ["sft", 4096, 2]
    assert workload.value("rollout.engine") is None
