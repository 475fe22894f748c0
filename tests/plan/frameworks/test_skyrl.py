"""SkyRL: its programs, scripts that take up its trainers, and the classes of a checkout."""

from __future__ import annotations

import pytest

from envdoctor.errors import InputError
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.plan.memory.estimate import make_plan, sizes_of

from .fields import values

TRAIN = (
    "uv run --isolated --extra {strategy} -m skyrl.train.entrypoints.main_base "
    "trainer.strategy={strategy} trainer.policy.model.path=Qwen/Qwen3-8B "
    "trainer.placement.policy_num_gpus_per_node=4 trainer.placement.ref_num_gpus_per_node=4 "
    "trainer.micro_train_batch_size_per_gpu=2 trainer.policy_mini_batch_size=16 "
    "trainer.max_prompt_length=512 generator.sampling_params.max_generate_length=1024 "
    "generator.inference_engine.backend=vllm generator.inference_engine.num_engines=2 "
    "generator.inference_engine.tensor_parallel_size=2 generator.n_samples_per_prompt=4 "
    "generator.inference_engine.gpu_memory_utilization=0.6 "
)
CONFIG = """
import copy
from dataclasses import dataclass, field
from typing import Optional

@dataclass
class Lora:
    rank: int = 0

@dataclass
class Model:
    path: Optional[str] = None
    lora: Lora = field(default_factory=Lora)

@dataclass
class Policy:
    model: Model = field(default_factory=lambda: copy.deepcopy(Model(path="Qwen/Qwen3-4B")))

@dataclass
class Placement:
    colocate_all: bool = True
    policy_num_nodes: int = 1
    policy_num_gpus_per_node: int = 2

@dataclass
class Trainer:
    strategy: str = "fsdp"
    policy: Policy = field(default_factory=Policy)
    placement: Placement = field(default_factory=Placement)

@dataclass
class SkyRLTrainConfig:
    trainer: Trainer = field(default_factory=Trainer)
"""


def test_a_shared_run_with_fsdp(read):
    workload = read(TRAIN.format(strategy="fsdp") + "trainer.placement.colocate_all=true")
    assert values(workload, "framework", "actor.strategy", "actor.param_dtype") == [
        "skyrl",
        "fsdp",
        "fp32",
    ]
    assert values(workload, "colocated", "actor.offload_optimizer", "rollout.sleep_level") == [
        True,
        True,
        2,
    ]
    assert values(workload, "nodes", "gpus_per_node", "rollout.n") == [None, 4, 4]
    assert values(workload, "ref.present", "rollout.tensor_parallel") == [None, 2]


def test_megatron_splits_the_sequence_with_its_layers(read):
    workload = read(
        TRAIN.format(strategy="megatron")
        + "trainer.policy.megatron_config.tensor_model_parallel_size=4 "
        "trainer.policy.megatron_config.expert_model_parallel_size=2 "
        "trainer.policy.megatron_config.expert_tensor_parallel_size=1 "
        "trainer.gradient_checkpointing=true"
    )
    assert values(workload, "actor.tensor_parallel", "actor.sequence_split") == [4, True]
    assert values(workload, "actor.expert_parallel", "actor.gradient_checkpointing") == [2, True]
    assert values(workload, "actor.optimizer", "actor.grad_dtype") == ["adamw", "fp32"]


@pytest.mark.parametrize("kwargs", ["recompute_granularity=selective", "recompute_num_layers=4"])
def test_what_is_recomputed_in_part_is_not_known(read, kwargs):
    workload = read(
        TRAIN.format(strategy="megatron")
        + f"trainer.policy.megatron_config.transformer_config_kwargs.{kwargs}"
    )
    assert workload.value("actor.gradient_checkpointing") is None


def test_a_reference_beside_the_policy_counts_on_its_gpus(read):
    matrix = load_matrix()
    command = TRAIN.format(strategy="fsdp") + (
        "trainer.placement.colocate_all=false trainer.algorithm.use_kl_loss=true "
        "trainer.placement.policy_num_nodes=1 trainer.placement.ref_num_nodes=1 "
        "trainer.placement.colocate_policy_ref={}"
    )
    gpus = {}
    for beside in ("true", "false"):
        workload = read(command.format(beside))
        made = make_plan(workload, sizes_of(workload, matrix), Facts())
        gpus[beside] = {pool.subject: pool.low for pool in made.pools if pool.name == "gpu"}
    assert set(gpus["true"]) == {"actor", "rollout"}
    assert set(gpus["false"]) == {"actor", "ref", "rollout"}
    assert gpus["true"]["actor"] > gpus["false"]["actor"]


def test_a_checkout_declares_its_defaults(read):
    workload = read(
        "python -m skyrl.train.entrypoints.main_base trainer.max_prompt_length=256",
        **{"skyrl__train__config__config.py": CONFIG},
        **{"skyrl__train__entrypoints__main_base.py": ""},
    )
    assert values(workload, "actor.model", "actor.gpus_per_node", "actor.lora_rank") == [
        "Qwen/Qwen3-4B",
        2,
        0,
    ]


def test_the_yaml_of_before_there_were_classes(read):
    workload = read(
        "python -m skyrl_train.entrypoints.main_base generator.num_inference_engines=4 "
        "trainer.placement.colocate_all=false",
        skyrl_train__config__ppo_base_config_yaml=(
            "trainer:\n  strategy: fsdp2\n  policy: {model: {path: Qwen/Qwen2.5-7B}}\n"
            "  algorithm: {use_kl_loss: true}\ngenerator: {backend: vllm}\n"
        ),
        **{"skyrl_train__entrypoints__main_base.py": ""},
    )
    assert values(workload, "actor.model", "actor.strategy", "rollout.engine") == [
        "Qwen/Qwen2.5-7B",
        "fsdp2",
        "vllm",
    ]
    assert values(workload, "rollout.engines", "ref.present") == [4, True]


def test_fine_tuning_has_no_engine(read):
    workload = read(
        "python -m skyrl.train.main_sft strategy=fsdp model.path=Qwen/Qwen3-8B max_length=2048 "
        "placement.num_nodes=1 placement.num_gpus_per_node=8 micro_train_batch_size_per_gpu=2"
    )
    assert values(workload, "algorithm", "actor.gpus_per_node", "data.max_length") == [
        "sft",
        8,
        2048,
    ]
    assert workload.value("rollout.engine") is None


OWN = "from skyrl.train.entrypoints.main_base import BasePPOExp\n\nclass Mine(BasePPOExp):\n"


def test_a_script_of_ones_own_is_sure_of_nothing(read):
    source = OWN + "    def get_trainer(self):\n        return None\n"
    workload = read(
        "python -m tasks.maze.train trainer.strategy=fsdp", **{"tasks__maze__train.py": source}
    )
    assert workload.value("framework") == "skyrl"
    assert any("tasks.maze.train" in one for one in workload.unread)


def test_what_only_answers_is_no_training(read):
    source = OWN + "    async def run(self):\n        return None\n"
    with pytest.raises(InputError, match="expected a command that starts training"):
        read(
            "python -m tasks.maze.answer trainer.strategy=fsdp",
            **{"tasks__maze__answer.py": source},
        )


def test_another_trainer_in_place_is_not_known(read):
    workload = read(TRAIN.format(strategy="fsdp") + "trainer.override_entrypoint=other.place")
    assert workload.value("actor.strategy") is None
    assert workload.value("rollout.engine") is None
