"""What starts an engine that serves, in each of its forms."""

from __future__ import annotations

import pytest

from envdoctor.errors import InputError
from envdoctor.plan.frameworks import read_workload

SCRIPT = """
from vllm import LLM, SamplingParams
MODEL = "Qwen/Qwen2.5-7B-Instruct"
LENGTH = 1
LENGTH = 8192
llm = LLM(MODEL, tensor_parallel_size=2, max_model_len=LENGTH, gpu_memory_utilization=0.8, **more)
"""


def read(*words):
    return read_workload(list(words), environ={})


def values(workload, *fields):
    return [workload.value(field) for field in fields]


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve Qwen/Qwen2.5-7B -tp 2 --max-model-len 32k --gpu-memory-utilization 0.8",
        (
            "nohup ./.venv/bin/vllm serve Qwen/Qwen2.5-7B -tp 2 --max-model-len 32k "
            "--gpu-memory-utilization 0.8"
        ),
        (
            "vllm serve --trust-remote-code --enable-lora --max_model_len=32000 "
            "--gpu_memory_utilization=0.8 --tensor_parallel_size=2 Qwen/Qwen2.5-7B"
        ),
        (
            "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-7B "
            "--tensor-parallel-size 2 --max-model-len 32000 --gpu-memory-utilization 0.8"
        ),
        (
            "python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B --tp 2 "
            "--context-length 32000 --mem-fraction-static 0.8"
        ),
    ],
)
def test_forms_of_one_server(command):
    workload = read(*command.split())
    assert values(
        workload,
        "algorithm",
        "actor.model",
        "rollout.tensor_parallel",
        "rollout.max_model_len",
        "rollout.gpu_memory_utilization",
        "gpus_per_node",
    ) == ["serve", "Qwen/Qwen2.5-7B", 2, 32000, 0.8, 2]
    assert workload.value("rollout.engine") == ("sglang" if "sglang" in command else "vllm")


@pytest.mark.parametrize(
    ("length", "tokens"), [("32k", 32000), ("32K", 32768), ("1.5k", 1500), ("4096", 4096)]
)
def test_lengths_as_vllm_takes_them(length, tokens):
    workload = read("vllm", "serve", "m", "--max-model-len", length)
    assert workload.value("rollout.max_model_len") == tokens


@pytest.mark.parametrize(
    ("model", "options", "packed"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "", "none"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "", "int4"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "", "int8"),
        ("TheBloke/SOLAR-10.7B-GPTQ", "", "unknown"),
        ("Qwen/Qwen2.5-7B-Instruct", "--quantization fp8", "fp8"),
        ("Qwen/Qwen2.5-7B-Instruct", "-q compressed-tensors", "unknown"),
        ("deepseek-ai/DeepSeek-R1", "", "fp8"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "", "none"),
        ("openai/gpt-oss-20b", "", "fp4"),
    ],
)
def test_what_weights_are_packed_in(model, options, packed):
    workload = read("vllm", "serve", model, *options.split())
    assert workload.value("rollout.quantization") == packed


def test_a_call_in_a_script_is_read_and_not_run(tmp_path):
    (tmp_path / "serve.py").write_text(SCRIPT + "raise SystemExit('it was run')\n")
    script = tmp_path / "run.sh"
    script.write_text("python serve.py\n")
    workload = read(str(script))
    assert values(workload, "actor.model", "rollout.tensor_parallel") == [
        "Qwen/Qwen2.5-7B-Instruct",
        2,
    ]
    assert workload.value("rollout.max_model_len") is None  # it is bound twice
    assert str(workload.place("rollout.tensor_parallel")).startswith("serve.py:6")
    assert workload.unread == ("--max-model-len", "--**more")


@pytest.mark.parametrize(
    "text",
    ["LLM(model='x')", "from vllm import SamplingParams\n", "from vllm import LLM\nLLM(", "\0LLM("],
)
def test_a_script_that_makes_no_engine_of_vllm_is_none(tmp_path, text):
    (tmp_path / "serve.py").write_text(text)
    script = tmp_path / "run.sh"
    script.write_text("python serve.py\n")
    with pytest.raises(InputError):
        read(str(script))


def test_the_file_of_config_is_read(tmp_path):
    (tmp_path / "serve.yaml").write_text("max-model-len: 4096\nport: 8000\nenforce-eager: true\n")
    script = tmp_path / "run.sh"
    script.write_text("vllm serve Qwen/Qwen2.5-7B --config serve.yaml\n")
    workload = read(str(script))
    assert values(workload, "rollout.max_model_len", "rollout.enforce_eager") == [4096, True]
    assert workload.unread == ()


def test_training_comes_before_a_server_of_the_same_script(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text(
        "vllm serve Qwen/Qwen2.5-7B &\n"
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B\n"
    )
    assert read(str(script)).value("algorithm") != "serve"


def test_what_is_not_understood_is_named():
    workload = read(
        *["vllm", "serve", "m", "--port", "1", "--num-gpu-blocks-override", "9", "--enable-dbo"]
    )
    assert workload.unread == ("--num-gpu-blocks-override", "--enable-dbo")
