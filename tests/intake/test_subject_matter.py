"""What a report is about."""

import pytest

from envdoctor.app import judge
from envdoctor.intake.pasted_report import parse_report
from envdoctor.intake.subject_matter import engines_run
from envdoctor.matrix.loader import load_matrix

NO_GPU = """PyTorch version: 2.4.0+cu121
Is CUDA available: False
GPU models and configuration: No CUDA
"""


def severities(text):
    findings = judge(parse_report(text), load_matrix())
    return [entry.severity for entry in findings if entry.code == "ED108"]


@pytest.mark.parametrize("text", ["", "it falls back to the cpu\n", "my GPU is not used\n"])
def test_a_report_of_an_environment_alone_or_of_its_gpu_misses_one(text):
    assert severities(f"{NO_GPU}{text}") == ["warning"]


def test_a_report_that_speaks_of_no_gpu_misses_none():
    text = f"{NO_GPU}nvidia-cublas-cu12==12.1.3.1\nThe tokenizer fails at a zero byte.\n"
    assert severities(text) == ["advice"]


@pytest.mark.parametrize(
    ("text", "engines"),
    [
        ("$ vllm serve Qwen/Qwen3-8B -tp 2", {"vllm"}),
        ("python -m sglang.launch_server --model-path /m", {"sglang"}),
        ("from vllm import LLM", {"vllm"}),
        ('File "/e/site-packages/sglang/srt/server.py", line 3, in main', {"sglang"}),
        ("python3 -m sglang.check_env\nvllm: 0.6.4\nsglang: 0.4.1", set()),
        ("I run vllm with flashinfer", set()),
    ],
)
def test_which_engines_commands_and_tracebacks_run(text, engines):
    assert engines_run(text) == engines
