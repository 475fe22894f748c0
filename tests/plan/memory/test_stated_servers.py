"""A report's command that starts an engine is read as ``plan`` reads it, and stays a warning."""

import pytest

from envdoctor.app import judge
from envdoctor.intake import parse_report
from envdoctor.model.facts import Facts
from envdoctor.plan.frameworks.reading import read_server

TWO_A100 = "GPU 0: NVIDIA A100-SXM4-40GB\nGPU 1: NVIDIA A100-SXM4-40GB\n"


def said(matrix, text):
    return {
        finding.code: finding
        for finding in judge(parse_report(text), matrix)
        if finding.code.startswith("ED6") and finding.severity != "advice"
    }


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("vllm serve Qwen/Qwen2.5-7B-Instruct -tp 2", []),
        ("vllm serve Qwen/Qwen2.5-72B-Instruct -tp 2", ["ED617"]),
        ("vllm serve Qwen/Qwen2.5-72B-Instruct -tp 2 --quantization awq", []),
        ("vllm serve Qwen/Qwen2.5-72B-Instruct -tp 2 --cpu-offload-gb 60", []),
        ("docker run vllm/vllm-openai:v0.8.0 --model Qwen/Qwen2.5-32B-Instruct", ["ED617"]),
        ("vllm serve Qwen/Qwen2.5-14B-Instruct --max-model-len 131072 -tp 1", ["ED603"]),
        ("vllm serve Qwen/Qwen2.5-7B-Instruct -tp 3", ["ED615", "ED618"]),
        ("vllm serve Qwen/Qwen2.5-7B-Instruct -tp 4", ["ED615"]),
        ("python -m sglang.launch_server --model a/b --tp 4 --nnodes 2 --node-rank 0", []),
        ("python -m sglang.launch_server --model a/b --tp 8 --nnodes 2 --node-rank 0", ["ED615"]),
        ("python -m sglang.launch_server --model a/b --tp 2 --dp 2", ["ED615"]),
        ("python -m sglang.launch_server --model a/b --tp 2 --dp 2 --enable-dp-attention", []),
        ("vllm serve Qwen/Qwen2.5-7B-Instruct --config settings.yaml", []),
    ],
)
def test_what_a_command_asks_of_the_gpus_of_its_report(matrix, command, codes):
    findings = said(matrix, TWO_A100 + command)
    assert sorted(findings) == codes
    assert {finding.severity for finding in findings.values()} <= {"warning"}


def test_of_two_commands_what_holds_of_both(matrix):
    large = "vllm serve Qwen/Qwen2.5-7B-Instruct -tp 4\n"
    assert sorted(said(matrix, TWO_A100 + large + large.replace("4", "8"))) == ["ED615"]
    assert not said(matrix, TWO_A100 + large + large.replace("4", "2"))


def test_a_run_at_work_takes_it_back(matrix):
    text = (
        TWO_A100 + "vllm serve Qwen/Qwen2.5-72B-Instruct -tp 2\n"
        "INFO: Application startup complete.\n"
        'INFO: 127.0.0.1:5000 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    )
    assert parse_report(text).value("report.at_work")
    assert not said(matrix, text)


def test_a_kind_that_a_sentence_names_is_no_count(matrix):
    command = "vllm serve Qwen/Qwen2.5-7B-Instruct -tp 4\n"
    assert not said(matrix, "We run it on an H100.\n" + command)
    assert sorted(said(matrix, "GPU 0: NVIDIA H100\n" + command)) == ["ED615"]


def test_weights_that_are_packed_by_nature(matrix):
    """DeepSeek-R1 is published in fp8, and 671 GB fit onto eight H20 of 141 GB."""
    gpus = "".join(f"GPU {number}: NVIDIA H200\n" for number in range(8))
    for command in (
        "python -m sglang.launch_server --model-path /data/DeepSeek-R1 --tp 8",
        "vllm serve deepseek-ai/DeepSeek-R1 -tp 8",
    ):
        assert not said(matrix, gpus + command)


def test_nothing_of_this_machine_is_read(tmp_path, monkeypatch):
    """A report names files of another machine, also where one of that name lies here."""
    (tmp_path / "settings.yaml").write_text("tensor-parallel-size: 7\n")
    (tmp_path / "serve.py").write_text("from vllm import LLM\nLLM('a/b', tensor_parallel_size=7)\n")
    monkeypatch.chdir(tmp_path)
    for command in (
        f"vllm serve a/b --config {tmp_path}/settings.yaml",
        "vllm serve a/b --config settings.yaml",
        f"python {tmp_path}/serve.py",
        "python serve.py",
    ):
        assert read_server(command, "report", 1, Facts()) is None


@pytest.mark.parametrize("text", ["vllm serve 'a", "vllm serve a/b && (", "", "\x00"])
def test_what_no_shell_reads_is_no_command(text):
    assert read_server(text, "report", 1, Facts()) is None
