"""oat: its programs, and scripts that put its learner and actors together."""

from __future__ import annotations

import pytest

from envdoctor.errors import InputError

from .fields import values

RL = (
    "python -m oat.experiment.run_math_rl --gpus 8 --pretrain Qwen/Qwen2.5-1.5B --zero-stage 2 "
    "--vllm_gpu_ratio 0.35 --gradient-checkpointing --num_samples 8 --prompt_max_length 1024 "
    "--generate_max_length 3000 --train_batch_size_per_device 1 "
)


def test_learner_and_actors_share_their_gpus_where_they_are_told_to(read):
    workload = read(RL + "--collocate --vllm_sleep --beta 0 --critic_type drgrpo")
    assert values(workload, "framework", "algorithm", "colocated") == ["oat", "grpo", True]
    assert values(workload, "actor.gpus_per_node", "rollout.sleep_level") == [8, 1]
    assert values(workload, "ref.present", "critic.present") == [False, False]
    assert values(workload, "actor.strategy", "actor.loss_piece") == ["zero2", 512]
    assert not workload.unread


def test_apart_each_takes_one_half(read):
    workload = read(RL + "--beta 0.1 --critic_type ppo --num_gpus_per_actor 2")
    assert values(workload, "colocated", "actor.gpus_per_node", "rollout.engines") == [False, 4, 2]
    assert values(workload, "algorithm", "critic.present", "ref.present") == ["ppo", True, True]
    assert values(workload, "ref.beside_actor", "critic.beside_actor") == [True, True]


def test_a_switch_is_turned_off_by_its_name(read):
    workload = read(RL + "--collocate --no-use_fused_lm_head --no-flash_attn --rnd-seed")
    assert values(workload, "actor.loss_piece", "actor.attention") == [None, "eager"]


@pytest.mark.parametrize(
    ("options", "algorithm", "reference", "micro"),
    [
        ("run_offline --algo SFT --max_model_len 4096", "sft", False, 2),
        ("run_offline --algo DPO", "dpo", True, 2),
        ("run_offline --algo SimPO", "dpo", False, 2),
        ("main --algo DPO --oracle remote", "online_dpo", True, 4),
    ],
)
def test_pairs_count_twice_where_a_pass_takes_both(read, options, algorithm, reference, micro):
    workload = read(
        f"deepspeed --num_gpus 8 --module oat.experiment.{options} --pretrain Qwen/Qwen2.5-7B "
        "--train_batch_size_per_device 2"
    )
    assert values(workload, "algorithm", "ref.present", "actor.micro_batch") == [
        algorithm,
        reference,
        micro,
    ]


@pytest.mark.parametrize(("oracle", "is_known"), [("remote", True), ("llm-blender/Pair", False)])
def test_a_judge_in_the_actor_is_not_known(read, oracle, is_known):
    workload = read(f"python -m oat.experiment.main --pretrain Qwen/Qwen2.5-7B --oracle {oracle}")
    assert (workload.value("others") is None) is is_known


SOURCE = "from oat.interface import get_program, lp\nfrom oat.algorithms.ppo import PPOArgs\n"


def test_a_script_of_ones_own_is_sure_of_nothing(read):
    workload = read(
        "python tasks.py --gpus 4 --collocate --pretrain Qwen/Qwen2.5-7B --critic_type grpo",
        **{"tasks.py": SOURCE},
    )
    assert values(workload, "framework", "gpus_per_node") == ["oat", 4]
    assert any("tasks.py" in one for one in workload.unread)


def test_another_oat_is_nobodys(read):
    with pytest.raises(InputError, match="expected a command that starts training"):
        read("python tasks.py --gpus 4", **{"tasks.py": "from oat.grain import mill\n"})
