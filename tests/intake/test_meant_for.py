"""What a report's run is meant for: the CPU, or ROCm."""

import pytest

from envdoctor.app import judge
from envdoctor.intake.meant_for import meant_for_cpu, meant_for_rocm
from envdoctor.intake.pasted_report import parse_report
from envdoctor.matrix.loader import load_matrix


def by_code(text):
    findings = judge(parse_report(text), load_matrix())
    return {(entry.code, entry.component): entry for entry in findings}


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
