"""NVIDIA's libraries that a text names by their own names, without the wheel that brings them."""

import pytest

from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix

MATRIX = load_matrix()


def wheels(text):
    """The wheels of libraries that are read in a text, with release or constraint."""
    there = parse_report(text, MATRIX.package).value("distributions", {})
    return {
        name: entry.version or entry.constraint
        for name, entry in there.items()
        if name.startswith("nvidia-")
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NCCL version 2.21.5+cuda12.4", {"nvidia-nccl-cu12": "2.21.5"}),
        ("NCCL: 2.26.2\nPyTorch 2.7.0+cu126", {"nvidia-nccl-cu12": "2.26.2"}),
        ("cuBLAS 12.1.0", {"nvidia-cublas-cu12": "12.1.0.26"}),
        ("cuBLAS 13.0.0", {"nvidia-cublas": "13.0.0"}),
        ("cuDNN 9.14.0 with CUDA 12.8", {"nvidia-cudnn-cu12": "9.14.0.64"}),
    ],
)
def test_a_library_is_its_wheel(text, expected):
    assert wheels(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch 2.7.0+cu128\nNCCL 2.27.3", {}),  # this torch asks for 2.26.2
        (
            "torch 2.9.0+cu128\nNCCL 2.27.5\nnvidia-nccl-cu12==2.26.2",
            {"nvidia-nccl-cu12": "2.26.2"},
        ),
        ("torch 2.7.0\nNCCL 2.26.2 is in /usr/lib", {}),  # for which CUDA is not said
    ],
)
def test_another_copy_of_a_library_is_not_the_wheel(text, expected):
    assert wheels(text) == expected


def test_the_release_of_nccl_states_no_version_of_cuda_of_the_report():
    facts = parse_report("torch 2.8.0\nNCCL 2.26.2+cuda12.2", MATRIX.package)
    assert facts.value("report.cuda") is None


@pytest.mark.parametrize(
    ("stated", "version", "constraint"),
    [("12.8.5", "12.8.5.5", ""), ("12.9", None, "==12.9.*"), ("12.8.5.5", "12.8.5.5", "")],
)
def test_the_last_part_of_a_release_may_be_left_out(stated, version, constraint):
    facts = parse_report(f"nvidia-cublas-cu12 {stated}", MATRIX.package)
    entry = facts.value("distributions")["nvidia-cublas-cu12"]
    assert (entry.version, entry.constraint) == (version, constraint)
