"""prime-rl: files of TOML that share settings, and the models of its checkout."""

from __future__ import annotations

import pytest

from envdoctor.model.evidence import Absent
from envdoctor.plan.frameworks import read_workload
from envdoctor.plan.memory.setting_change import change_workload, setting_text


def values(workload, *fields):
    return [workload.value(field) for field in fields]


PRIME = """
seq_len = 4096
max_steps = 200
[model]
name = "Qwen/Qwen3-4B-Instruct-2507"
[deployment]
num_train_gpus = 2
num_infer_gpus = 6
[trainer.model.lora]
rank = 8
[trainer.model.ac]
[orchestrator]
batch_size = 512
group_size = 16
[ckpt]
[inference.vllm]
tensor_parallel_size = 2
"""
PRIME_MODELS = """
from pydantic import Field
from prime_rl.configs.shared import BaseModelConfig, Deployment as OneNode
class Offload(BaseConfig):
    pin: bool = True
class ModelConfig(BaseModelConfig):
    seq_len: int = Field(1024, ge=1)
    ac: "Offload | None" = Offload()
    optim_cpu_offload: Annotated[bool, Field(description="x")] = True
class SGD(BaseConfig):
    type: Literal["sgd"] = "sgd"
class SFTConfig(BaseConfig):
    model: ModelConfig = ModelConfig()
    optim: SGD | AdamW = SGD()
    deployment: OneNode = Field(default_factory=OneNode)
"""


def prime(tmp_path, command, **files):
    for name, text in files.items():
        (tmp_path / name.replace("__", "/").replace("_toml", ".toml")).write_text(text)
    script = tmp_path / "run.sh"
    script.write_text(command + "\n")
    return read_workload([str(script)], environ={})


def test_prime_rl_shares_settings_among_its_parts(tmp_path):
    path = tmp_path / "rl.toml"
    path.write_text(PRIME)
    workload = read_workload([str(path)], environ={})
    assert values(workload, "framework", "algorithm", "actor.strategy", "data.max_length") == [
        "prime-rl",
        "grpo",
        "fsdp2",
        4096,
    ]
    assert values(workload, "actor.model", "actor.lora_rank", "steps") == [
        "Qwen/Qwen3-4B-Instruct-2507",
        8,
        200,
    ]
    assert values(workload, "gpus_per_node", "actor.gpus_per_node", "rollout.engines") == [8, 2, 3]
    assert values(workload, "actor.gradient_checkpointing", "colocated") == [True, False]
    # inference.vllm is a key of the newest release alone, where moments go to the host.
    assert workload.value("actor.offload_optimizer") is True
    path.write_text(PRIME.replace("vllm]\ntensor_parallel_size", "parallel]\ntp"))
    older = read_workload([str(path)], environ={}).get("actor.offload_optimizer").reason
    assert "depends on the version" in older
    assert "0.6.0 False" in older


def test_prime_rl_lays_files_options_and_sections_over_each_other(tmp_path):
    workload = prime(
        tmp_path,
        "uv run rl @ rl.toml @ more.toml --trainer @ trainer.toml --inference.vllm.enforce-eager "
        "--ckpt --no-trainer.model.ac --no-trainer.model.ac-offloading "
        "--deployment.num-infer-gpus 4",
        rl_toml=PRIME,
        more_toml="[ckpt]\ninterval = 50\n[deployment]\nnum_infer_gpus = 2\n",
        trainer_toml='[model]\nlora = "None"\noptimization_dtype = "bfloat16"\n',
    )
    assert values(workload, "checkpoint.save_freq", "rollout.enforce_eager") == [50, True]
    assert values(workload, "actor.gradient_checkpointing", "rollout.engines") == [False, 2]
    assert values(workload, "actor.lora_rank", "actor.param_dtype") == [0, "bf16"]


def test_prime_rl_reads_a_file_alone_as_its_program_does(tmp_path):
    """Files that it names lie below it (before 0.5), and "None" is nothing."""
    (tmp_path / "base.toml").write_text(PRIME)
    own = 'toml_files = ["base.toml"]\n[trainer.model]\nac = "None"\nac_offloading = "None"\n'
    (tmp_path / "own.toml").write_text(own)
    alone = read_workload([str(tmp_path / "own.toml")], environ={})
    named = prime(tmp_path, "uv run rl @ own.toml")
    for workload in (alone, named):
        assert values(workload, "actor.gradient_checkpointing", "data.max_length") == [False, 4096]
        assert workload.value("actor.activation_offload") is False
    (tmp_path / "base.toml").unlink()
    lone = read_workload([str(tmp_path / "own.toml")], environ={}).get("data.max_length")
    assert "toml_files" in lone.reason


def test_prime_rl_has_switches_in_its_own_words(tmp_path):
    path = tmp_path / "rl.toml"
    path.write_text(PRIME)
    workload = read_workload([str(path)], environ={})
    for value, text in ((True, "--trainer.model.ac"), (False, "--no-trainer.model.ac")):
        assert setting_text(workload, "actor.gradient_checkpointing", value) == text
        changed, field = change_workload(workload, text)
        assert (field, changed.value(field)) == ("actor.gradient_checkpointing", value)


def test_prime_rl_without_its_file_says_which(tmp_path):
    workload = prime(tmp_path, "uv run rl @ gone.toml --trainer.model.cp 2")
    assert workload.value("actor.sequence_parallel") == 2
    assert "gone.toml" in workload.get("actor.model").reason


def test_prime_rl_without_inference_generates_elsewhere(tmp_path):
    path = tmp_path / "rl.toml"
    path.write_text(PRIME.replace("[inference.vllm]\ntensor_parallel_size = 2\n", ""))
    workload = read_workload([str(path)], environ={})
    assert isinstance(workload.get("rollout.engine"), Absent)
    assert workload.value("colocated") is True


def test_prime_rl_takes_the_models_of_its_checkout(tmp_path):
    folder = tmp_path / "packages/prime-rl-configs/src/prime_rl/configs"
    folder.mkdir(parents=True)
    (tmp_path / "src/prime_rl/trainer").mkdir(parents=True)
    (tmp_path / "src/prime_rl/trainer/model.py").write_text("")
    (folder / "sft.py").write_text(PRIME_MODELS)
    (folder / "shared.py").write_text(
        'class BaseModelConfig(BaseConfig):\n    name: str = "Qwen/Qwen3-0.6B"\n'
        "class Deployment(BaseConfig):\n    num_train_gpus: int = 4\n"
    )
    workload = prime(tmp_path, "uv run sft @ sft.toml", sft_toml="[data]\nseq_len = 512\n")
    assert values(workload, "actor.model", "gpus_per_node", "actor.offload_optimizer") == [
        "Qwen/Qwen3-0.6B",
        4,
        True,
    ]
    assert values(workload, "actor.gradient_checkpointing", "data.max_length") == [True, 512]
    assert workload.get("actor.optimizer").reason == "sgd is not AdamW"
    assert "of this checkout" in str(workload.place("actor.model"))


@pytest.mark.parametrize(
    ("version", "chunks", "fused"),
    [("0.2", None, None), ("0.3.0", 15, True), ("0.6.0", None, None), ("0.8.0", 4, True)],
)
def test_prime_rl_makes_logits_by_pieces_as_its_release_does(version, chunks, fused):
    words = "torchrun --nproc-per-node=8 src/prime_rl/trainer/rl/train.py --model.seq-len 4096"
    workload = read_workload(words.split(), framework=f"prime-rl=={version}", environ={})
    assert values(workload, "actor.loss_chunks", "actor.fused_head") == [chunks, fused]
    assert values(workload, "gpus_per_node", "actor.padding_free") == [8, True]
