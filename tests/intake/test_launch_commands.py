"""Commands of a report that start a run: whole, with what they refer to, and no advice."""

import pytest

from envdoctor.intake import parse_report
from envdoctor.intake.clean_text import clean_lines
from envdoctor.intake.launch_commands import launched_runs
from envdoctor.intake.model_names import named_models, serving_engine


def commands(text):
    return list(launched_runs(clean_lines(text)).values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm serve Qwen/Qwen3-8B -tp 2", ["vllm serve Qwen/Qwen3-8B -tp 2"]),
        ("```sh\n$ vllm serve a/b \\\n  --port 80\n```", ["vllm serve a/b --port 80"]),
        ("CUDA_VISIBLE_DEVICES=0 vllm serve a/b", ["CUDA_VISIBLE_DEVICES=0 vllm serve a/b"]),
        (
            "export MODEL=a/b\nN=3\npython3 -m sglang.launch_server --model $MODEL",
            ["MODEL=a/b; python3 -m sglang.launch_server --model $MODEL"],
        ),
        (
            "I start it with `vllm serve a/b --enforce-eager`, and it crashes.",
            ["vllm serve a/b --enforce-eager"],
        ),
        ("vllm serve a/b > server.log 2>&1 &", ["vllm serve a/b"]),
        (
            "docker run --gpus all vllm/vllm-openai:v0.8.0 --model a/b",
            ["docker run --gpus all vllm/vllm-openai:v0.8.0 --model a/b"],
        ),
        ("docker run --gpus all ubuntu nvidia-smi", []),
        ("You can try `vllm serve a/b --enforce-eager`", []),
        ("vllm serve a/b --max-model-len ...", []),  # nobody knows what was left out
        ("pip install vllm", []),
    ],
)
def test_commands_that_start_an_engine(text, expected):
    assert commands(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "torchrun --nproc_per_node=8 train.py --a b",
            ["torchrun --nproc_per_node=8 train.py --a b"],
        ),
        (
            "!sudo python3 -m verl.trainer.main_ppo a.b=c",
            ["sudo python3 -m verl.trainer.main_ppo a.b=c"],
        ),
        ("/opt/bin/llamafactory-cli train a.yaml", ["/opt/bin/llamafactory-cli train a.yaml"]),
        ("I ran `axolotl train a.yml` on two nodes", ["axolotl train a.yml"]),
        (
            'ray job submit --runtime-env-json=\'{"a": "b"}\' -- python3 -m openrlhf.cli.train_sft --a b',
            [
                'ray job submit --runtime-env-json=\'{"a": "b"}\' -- python3 -m openrlhf.cli.train_sft --a b'
            ],
        ),
        ("deepspeed train.py --deepspeed ds.json", ["deepspeed train.py --deepspeed ds.json"]),
        (
            "ROOT=/data\nexport MODEL=$ROOT/m\nNPROC_PER_NODE=2 swift sft --model $MODEL | tee log",
            ["ROOT=/data; MODEL=$ROOT/m; NPROC_PER_NODE=2 swift sft --model $MODEL"],
        ),
        (
            'ARGS=(\n  --model a/b\n  --bf16 True\n)\npython train.py "${ARGS[@]}" --lr 1',
            ['ARGS=( --model a/b --bf16 True ); python train.py "${ARGS[@]}" --lr 1'],
        ),
        (
            "export CUDA_VISIBLE_DEVICES=0,1\nexport OTHER=1\ntrl sft --model a/b",
            ["CUDA_VISIBLE_DEVICES=0,1; export CUDA_VISIBLE_DEVICES; trl sft --model a/b"],
        ),
        ("N=2\nN=4\ntrl sft --model a/b --n $N", ['N="$N"; trl sft --model a/b --n $N']),
        ("You should use torchrun train.py --a b", []),
        ("python setup.py install", []),
        ("deepspeed 0.15.3", []),
        ("accelerate launch fails", []),
        ("TRL sft is broken", []),
    ],
)
def test_commands_that_start_a_training_run(text, expected):
    assert commands(text) == expected


def test_a_token_in_a_command_is_hidden():
    text = (
        "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789 vllm serve a/b --api-key sk-Zk3jd82hs9a"
    )
    said = str(commands(text))
    assert "vllm serve a/b" in said
    assert "hf_abcdef" not in said
    assert "Zk3jd82hs9a" not in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("serving Qwen/Qwen2.5-72B-Instruct here", {"Qwen/Qwen2.5-72B-Instruct"}),
        ("my Llama 3 70B on it", {"Llama-3-70B"}),
        ("DeepSeek-R1-Distill-Qwen-32B.", {"DeepSeek-R1-Distill-Qwen-32B"}),
        ("see https://host.example/Qwen-7B or ./models/Qwen-7B", set()),
        ("it takes 40GB, about 7B tokens", set()),
    ],
)
def test_models_that_a_line_names_with_their_size(text, expected):
    assert named_models(text) == expected


def test_engine_that_a_sentence_serves_with():
    assert serving_engine("Running a model with vLLM 0.6") == "vllm"
    assert serving_engine("sglang fails to load it") == "sglang"
    assert serving_engine("vllm/model_executor/loader.py") == ""


def test_a_model_is_named_once_or_not_at_all():
    one = parse_report("GPU 0: NVIDIA L4\nserving Qwen2.5-72B with vllm, Qwen2.5-72B is large\n")
    assert one.value("request").settings()["model"] == "Qwen2.5-72B"
    assert one.value("request").settings()["served_by"] == "vllm"
    two = parse_report("GPU 0: NVIDIA L4\ncomparing Phi-2-3B and Yi-34B with vllm\n")
    assert two.value("request") is None
    stated = parse_report("vllm serve a/b\nas with Yi-34B\nGPU 0: NVIDIA L4\n")
    assert stated.value("request").value("actor.model") == "a/b"


@pytest.mark.parametrize(
    ("command", "engine", "model"),
    [
        ("lmdeploy serve api_server Qwen/Qwen2.5-32B-Instruct --server-port 23333", "lmdeploy",
         "Qwen/Qwen2.5-32B-Instruct"),
        ("text-generation-launcher --model-id a/b-70b --port 80", "tgi", "a/b-70b"),
        ("docker run --gpus all ghcr.io/huggingface/text-generation-inference:2.0 --model-id a/b-7b",
         "tgi", "a/b-7b"),
        ("python3 -m fastchat.serve.cli --model-path a/b-33b-v1.3", "fastchat", "a/b-33b-v1.3"),
    ],
)  # fmt: skip
def test_engines_that_no_plan_reads(command, engine, model):
    settings = parse_report(f"GPU 0: NVIDIA L4\n{command}\n").value("request").settings()
    assert (settings["served_by"], settings["model"]) == (engine, model)


def test_an_engine_that_is_only_advised_or_installed_serves_nothing():
    for text in (
        "You should try `lmdeploy serve api_server a/b-7b` instead",
        "pip install lmdeploy",
        "docker pull ghcr.io/huggingface/text-generation-inference:2.0",
    ):
        request = parse_report(f"GPU 0: NVIDIA L4\npeft 0.12.0\n{text}\n").value("request")
        assert request is None or "served_by" not in request.settings()
