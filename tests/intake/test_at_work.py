"""Whether a report tells of a run at work."""

import pytest

from envdoctor.app import judge
from envdoctor.intake.at_work import meant_for_cpu, meant_for_rocm, shown_at_work
from envdoctor.intake.pasted_report import parse_report
from envdoctor.matrix.loader import load_matrix

SET = "torch 2.6.0+cu124\nsgl_kernel: 0.0.4\nvllm 0.7.2\n"


@pytest.mark.parametrize(
    "text",
    [
        "decode throughput drops after an hour",
        "Avg generation throughput: 41.3 tokens/s",
        "we get 900 tok/s on one card",
        'INFO: 10.0.0.7:1234 - "POST /v1/completions HTTP/1.1" 200 OK',
        "{'loss': 1.93, 'grad_norm': 0.4}",
    ],
)
def test_what_a_run_at_work_prints(text):
    assert shown_at_work(text)


@pytest.mark.parametrize(
    "text",
    [
        "I want a higher throughput",
        "--max-throughput 100",
        "decode throughput drops\nImportError: /x/_C.so: undefined symbol: _ZN3c10",
        "it did 900 tok/s with the old image; now the server fails to start",
        'INFO: "GET /health HTTP/1.1" 503',
    ],
)
def test_what_proves_no_work(text):
    assert not shown_at_work(text)


def by_code(text):
    findings = judge(parse_report(text), load_matrix())
    return {(entry.code, entry.component): entry for entry in findings}


def test_a_run_at_work_refutes_that_what_it_uses_does_not_load():
    keys = [("ED304", "torch"), ("ED401", "vllm")]
    before, after = by_code(SET), by_code(f"{SET}decode throughput drops over the day\n")
    assert [before[key].severity for key in keys] == ["error", "error"]
    assert [after[key].severity for key in keys] == ["advice", "advice"]
    assert not any(after[key].remedies for key in keys)


NO_GPU = """PyTorch version: 2.4.0+cu121
Is CUDA available: False
GPU models and configuration: No CUDA
"""


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("python serve.py --device cpu\n", "advice"),
        ("VLLM_TARGET_DEVICE=cpu python setup.py install\n", "advice"),
        ("python serve.py --device cuda\n", "warning"),
        ("it falls back to the cpu\n", "warning"),
    ],
)
def test_what_is_meant_for_the_cpu_misses_no_gpu(text, severity):
    assert bool(meant_for_cpu(text)) == (severity == "advice")
    assert by_code(f"{NO_GPU}{text}")["ED108", "container-gpu"].severity == severity


@pytest.mark.parametrize(
    "text",
    [
        "I am using ROCm. It fails.",
        "It crashes on my MI300X",
        "docker run --device=/dev/kfd lmsysorg/sglang:v0.4.3-rocm630",
        "image: rocm/vllm:latest",
    ],
)
def test_what_tells_of_rocm(text):
    assert meant_for_rocm(text)


@pytest.mark.parametrize(
    "text",
    [
        "It works on ROCm but not here",
        "Is there ROCm support?",
        "I am using ROCm on one machine and CUDA 12.4 on the other",
        "torch 2.6.0",
    ],
)
def test_what_tells_nothing_of_rocm(text):
    assert not meant_for_rocm(text)
