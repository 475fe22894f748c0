"""Commands of a report that start an engine: whole, with what they refer to, and no advice."""

import pytest

from envdoctor.intake import parse_report
from envdoctor.intake.clean_text import clean_lines
from envdoctor.intake.launched_servers import launched_servers
from envdoctor.intake.model_names import named_models, serving_engine


def commands(text):
    return list(launched_servers(clean_lines(text)).values())


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
