"""A run that asks for more never loses a warning."""

import pytest

from envdoctor.app import plan
from envdoctor.model.workload import WORKLOAD_FIELDS
from envdoctor.sources import Sources, gather

A100 = "gpu=A100-SXM4-80GB:8"
#: Runs, their machines, and what makes each of them need more.
SEEDS = {
    "simplerl_84.sh": (["memory=1TB", A100], "simplerl"),
    "easyr1_50.sh": (["memory=500GiB", A100], "easyr1"),
    "openrlhf_187.sh": (["memory=1TB", A100, "deepspeed==0.13.2"], None),
    "tinyzero_58.sh": (["memory=500GiB", "gpu=A100-SXM4-80GB:4"], "tinyzero"),
    "verl_lora.sh": (["memory=500GiB", A100], None),
    "trl_grpo.sh": (["memory=200GiB", A100], None),
    "prime_rl_wiki.sh": (["memory=500GiB", A100], None),
}
NUMBERS = {
    "data.max_response_length": [1024, 4096, 16384, 32768, 131072],
    "data.max_prompt_length": [1024, 16384, 131072],
    "actor.micro_batch": [1, 8, 64],
    "rollout.n": [1, 8, 64],
    "rollout.swap_space": [0, 4 << 30, 16 << 30, 64 << 30],
    "rollout.max_model_len": [2048, 32768, 10**6],
    "data.train_batch_size": [64, 1024, 65536],
    "data.rollout_batch_size": [64, 1024, 65536],
    "data.images_per_prompt": [1, 8, 64],
    "data.max_pixels": [10**5, 10**6, 10**8],
    "data.dataloader_workers": [0, 8, 128],
    "actor.max_tokens_per_gpu": [1024, 16384, 10**6],
    "actor.scored_batch": [1, 16, 256],
    "critic.micro_batch": [1, 8, 64],
    "ray.object_store": [1 << 30, 100 << 30, 1 << 40],
}
#: Machines that have less and less.
SMALLER = {
    "memory": [2000, 1000, 500, 200, 60],
    "shm": [512, 64, 8, 1],
    "gpu": ["B200:8", "H200:8", "H100-SXM5-80GB:8", "A100-SXM4-40GB:8", "T4:8"],
}
_RANK = {"fits": 0, "cannot tell": 0, "tight": 1, "does not fit": 2}


def sampled(names, others):
    """Return all pairs; each name and each of the others is among the fast tests, with every third
    of its partners.
    """
    return [
        pytest.param(name, other, marks=[pytest.mark.slow] if (row + column) % 3 else [])
        for row, name in enumerate(sorted(names))
        for column, other in enumerate(sorted(others))
    ]


@pytest.mark.parametrize(("name", "field"), sampled(SEEDS, NUMBERS))
def test_getting_worse_takes_no_warning_away(planned, name, field):
    machine, framework = SEEDS[name]
    worst = {}
    for value in NUMBERS[field]:
        result, _ = planned(name, machine, [f"{field}={value}"], framework)
        for pool in result.plan.pools:
            where = (pool.name, pool.subject)
            assert _RANK[pool.verdict] >= worst.get(where, 0), (where, field, value)
            worst[where] = _RANK[pool.verdict]


#: Numbers of which more takes less: what is spread over more, limits, and how deep engines sleep.
LESS = {
    "nodes",
    "sequence_parallel",
    "tensor_parallel",
    "pipeline_parallel",
    "shard_ranks",
    "expert_parallel",
    "loss_chunks",
    "sleep_level",
    "memory",
    "shm",
    "disk",
}
NUMERIC = [name for name, field in WORKLOAD_FIELDS.items() if field.type in ("int", "float")]


def tried(name, value):
    """Return values of a number from that of the run on, each worse than the one before."""
    if isinstance(value, float):
        return [value, min(1.0, value * 1.02), min(1.0, value * 1.05)]
    if name.rpartition(".")[2] in LESS and not name.startswith("rollout."):
        return [value * factor for factor in (16, 4, 2, 1)]
    # Without adapters the whole is trained, which takes more than any rank does.
    return [value * factor for factor in (1, 2, 4, 16, 64)] if value else [0]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SEEDS))
def test_no_number_of_a_run_takes_a_warning_away_by_getting_worse(planned, name):
    machine, framework = SEEDS[name]
    result, _ = planned(name, machine, (), framework)
    stated = {field: result.workload.value(field) for field in NUMERIC}
    compared = 0
    for field, value in stated.items():
        if value is None or field in ("rollout.sleep_level", "steps", "port"):
            continue
        worst = {}
        for number in tried(field, value):
            other, _ = planned(name, machine, [f"{field}={number}"], framework)
            for pool in other.plan.pools:
                where = (pool.name, pool.subject)
                assert _RANK[pool.verdict] >= worst.get(where, 0), (where, field, number)
                worst[where] = _RANK[pool.verdict]
                compared += 1
    assert compared > 50


@pytest.mark.parametrize(("name", "part"), sampled(SEEDS, SMALLER))
def test_a_smaller_machine_takes_no_warning_away(planned, name, part):
    machine, framework = SEEDS[name]
    others = [fact for fact in machine if not fact.startswith(part)]
    worst = {}
    for size in SMALLER[part]:
        fact = f"{part}={size}" if part == "gpu" else f"{part}={size}GiB"
        result, _ = planned(name, [*others, fact], (), framework)
        for pool in result.plan.pools:
            where = (pool.name, pool.subject)
            assert _RANK[pool.verdict] >= worst.get(where, 0), (where, size)
            worst[where] = _RANK[pool.verdict]


#: One run of each adapter that reads a command or a file of its own.
RUNS = {
    "ms-swift.sh": "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type full "
    "--torch_dtype bfloat16 --deepspeed zero3 --max_length 2048",
    "ms-swift-grpo.sh": "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B "
    "--use_vllm true --vllm_mode colocate --deepspeed zero3 --max_completion_length 1024",
    "openrlhf.sh": "deepspeed --module openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B "
    "--max_len 2048 --micro_train_batch_size 1 --zero_stage 3 --bf16",
    "llamafactory.yaml": "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\n"
    "cutoff_len: 2048\nper_device_train_batch_size: 1\npure_bf16: true\ntemplate: qwen\n",
    "axolotl.yaml": "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 1\n"
    "adapter: lora\nlora_r: 8\ngradient_accumulation_steps: 1\nbf16: true\n",
    "prime-rl.toml": "seq_len = 4096\n[model]\nname = 'Qwen/Qwen2.5-7B'\n[deployment]\n"
    "num_train_gpus = 2\nnum_infer_gpus = 6\n[orchestrator]\nbatch_size = 512\n[inference]\n"
    "[trainer.model.lora]\nrank = 8\n",
    "prime-rl-sft.sh": "uv run sft @ none.toml\ntorchrun --nproc-per-node 8 "
    "src/prime_rl/trainer/sft/train.py --model.name Qwen/Qwen2.5-7B --data.seq-len 4096 --model.ac",
    "megatron-bridge.sh": "torchrun --nproc_per_node 8 scripts/training/run_recipe.py --recipe r "
    "-tp 2 -mb 1 -sl 4096 model.from_hf=Qwen/Qwen2.5-7B",
    "serve.sh": "vllm serve Qwen/Qwen2.5-7B -tp 2 --max-model-len 4096",
}
WORSE = {
    "data.max_length": [1024, 16384, 131072],
    "actor.micro_batch": [1, 8, 64],
    "actor.scored_batch": [1, 16, 256],
    "rollout.max_model_len": [1024, 32768, 10**6],
    "actor.lora_rank": [8, 64, 0],  # none at all trains the whole
}


@pytest.mark.parametrize(("name", "field"), sampled(RUNS, WORSE))
def test_nor_of_any_adapter(matrix, tmp_path, name, field):
    path = tmp_path / name
    path.write_text(RUNS[name] + "\n")
    (facts,) = gather(Sources(assume=["memory=500GiB", A100], elsewhere=True))
    worst = {}
    for value in WORSE[field]:
        result, _ = plan([str(path)], facts, matrix, changes=[f"{field}={value}"])
        for pool in result.plan.pools:
            where = (pool.name, pool.subject)
            assert _RANK[pool.verdict] >= worst.get(where, 0), (where, field, value)
            worst[where] = _RANK[pool.verdict]
