"""CUDA versions that do not belong together."""

from __future__ import annotations

from .conftest import Judge, by_code, codes, facts_of


def test_cuda_majors(judged: Judge) -> None:
    finding = by_code(
        judged(facts_of(["torch 2.9.0+cu130", "torchvision 0.24.0+cu129"], torch_cuda="13.0")),
        "ED203",
    )
    assert (finding.component, finding.kind, finding.severity) == (
        "torchvision",
        "cuda-major-mismatch",
        "error",
    )
    assert "ED203" not in codes(
        judged(facts_of(["torch 2.9.0+cu126", "torchvision 0.24.0+cu129"], torch_cuda="12.6"))
    )
    assert "ED203" not in codes(judged(facts_of(["torchvision 0.24.0+cu129"])))


def test_compiler_minor(judged: Judge) -> None:
    facts = facts_of(
        [
            "torch 2.11.0+cu130",
            "flashinfer-python 0.6.12",
            "nvidia-cuda-nvcc 13.3.33",
            "nvidia-cuda-runtime 13.0.96",
        ],
        torch_cuda="13.0",
    )
    finding = by_code(judged(facts), "ED204")
    assert (finding.component, finding.kind, finding.severity) == (
        "nvidia-cuda-nvcc",
        "cuda-minor-mixed",
        "warning",
    )
    even = facts_of(
        ["torch 2.11.0+cu130", "nvidia-cuda-nvcc 13.0.88", "nvidia-cuda-runtime 13.0.96"],
        torch_cuda="13.0",
    )
    assert "ED204" not in codes(judged(even))


def test_toolkit_of_another_major(judged: Judge) -> None:
    facts = facts_of(
        ["torch 2.4.0+cu121", "deepspeed 0.15.0"], torch_cuda="12.1", toolkit_version="11.7"
    )
    finding = by_code(judged(facts), "ED206")
    assert (finding.component, finding.kind, finding.severity) == (
        "cuda-toolkit",
        "cuda-major-mismatch",
        "warning",
    )
    assert "ED206" not in codes(
        judged(
            facts_of(
                ["torch 2.4.0+cu121", "deepspeed 0.15.0"], torch_cuda="12.1", toolkit_version="12.6"
            )
        )
    )
    assert "ED206" not in codes(
        judged(facts_of(["torch 2.4.0+cu121"], torch_cuda="12.1", toolkit_version="11.7"))
    )
    assert "ED206" not in codes(
        judged(facts_of(["torch 2.4.0+cu121", "deepspeed 0.15.0"], torch_cuda="12.1"))
    )
