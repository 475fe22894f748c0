"""verl: what it offers against memory, and what follows from several of its settings."""

from __future__ import annotations

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.memory.estimate import make_plan, sizes_of

from .fields import values


def test_verl_without_reinforcement(read):
    workload = read(
        "torchrun --standalone --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
        "model.partial_pretrain=google/gemma-2b-it data.micro_batch_size_per_gpu=2 "
        "data.max_length=2048"
    )
    assert values(workload, "framework", "algorithm", "actor.strategy", "actor.micro_batch") == [
        "verl-sft",
        "sft",
        "fsdp2",
        2,
    ]


VERL = ["python3", "-m", "verl.trainer.main_ppo", "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B"]


@pytest.mark.parametrize(
    ("setting", "field", "value"),
    [
        ("actor_rollout_ref.model.use_fused_kernels=True", "actor.loss_piece", 512),
        (
            "actor_rollout_ref.model.enable_activation_offload=True",
            "actor.activation_offload",
            True,
        ),
        ("actor_rollout_ref.actor.freeze_vision_tower=True", "actor.frozen_vision", True),
        ("actor_rollout_ref.rollout.quantization=fp8", "rollout.quantization", "fp8"),
        ("actor_rollout_ref.rollout.quantization=of-my-own", "rollout.quantization", "unknown"),
        ("actor_rollout_ref.actor.fsdp_config.offload_policy=True", "actor.cpu_offload", False),
        ("actor_rollout_ref.model.lora_rank=40", "rollout.adapter_rank", 64),
        ("actor_rollout_ref.model.lora_rank=40", "rollout.adapters", 1),
    ],
)
def test_what_verl_offers_against_memory_is_understood(setting, field, value):
    run = read_workload([*VERL, setting], framework="verl==0.7.0", environ={})
    assert run.value(field) == value
    assert setting.partition("=")[0] not in run.unread


@pytest.mark.parametrize(
    ("version", "settings", "in_place"),
    [
        ("0.4.0", (), True),  # entropy_coeff is 0 by default
        ("0.3.0.post1", (), None),  # and was 0.001
        ("0.3.0.post1", ("actor_rollout_ref.actor.entropy_coeff=0",), None),  # taken all the same
        ("0.7.0", ("actor_rollout_ref.actor.entropy_coeff=0.001",), None),
        ("0.7.0", ("actor_rollout_ref.actor.calculate_entropy=True",), None),
        ("0.7.0", ("trainer.device=npu",), None),
        ("0.7.0", ("--config-name=ppo_megatron_trainer",), None),
    ],
)
def test_verl_s_loss_is_in_place_where_no_step_takes_the_entropy(version, settings, in_place):
    """As the wheels' dp_actor.py has it: inplace_backward unless calculate_entropy."""
    run = read_workload([*VERL, *settings], framework=f"verl=={version}", environ={})
    assert run.value("actor.loss_in_place") is in_place


def test_verl_with_fsdp_2_keeps_parameters_on_the_host():
    settings = [
        "actor_rollout_ref.actor.strategy=fsdp2",
        "actor_rollout_ref.actor.fsdp_config.offload_policy=True",
    ]
    run = read_workload([*VERL, *settings], framework="verl==0.7.0", environ={})
    assert run.value("actor.cpu_offload") is True


def test_the_reference_of_megatron_has_the_parallel_state_of_the_actor():
    settings = [
        "--config-name=ppo_megatron_trainer.yaml",
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4",
        "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2",
        "actor_rollout_ref.ref.megatron.param_offload=True",
        "actor_rollout_ref.actor.use_kl_loss=True",
        "trainer.n_gpus_per_node=8",
        "+actor_rollout_ref.actor.megatron.override_transformer_config.recompute_method=uniform",
        "+actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full",
        "+actor_rollout_ref.actor.megatron.override_transformer_config.recompute_num_layers=1",
    ]
    run = read_workload([*VERL, *settings], framework="verl==0.6.1", environ={})
    assert (run.value("ref.tensor_parallel"), run.value("ref.pipeline_parallel")) == (4, 2)
    assert run.value("actor.gradient_checkpointing") is True
    assert run.value("actor.sequence_split") is True
    matrix = load_matrix()
    gpu = make_plan(run, sizes_of(run, matrix), None, matrix).pool("gpu")
    weights = [term for term in gpu.terms if (term.name, term.role) == ("weights", "ref")]
    # They visit the GPU for a pass, an eighth of them each, and are on the host otherwise.
    assert all(term.low == 0 and "rollout" not in term.phases for term in weights)
    assert all(term.high <= 2 * 7.7e9 / 8 for term in weights)
    host = make_plan(run, sizes_of(run, matrix), None, matrix).pool("host")
    assert any(term.name == "reference model" and term.low > 0 for term in host.terms)
