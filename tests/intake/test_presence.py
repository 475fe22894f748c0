"""Settings and boxes: what is advised, asked about or not ticked is none of this run."""

import pytest

from .pasted import read


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("For debugging consider passing CUDA_LAUNCH_BLOCKING=1", {}),
        ("You can set VLLM_USE_V1=0 to avoid it", {}),
        (
            "Maybe NCCL_P2P_DISABLE=1 should be set, or try setting NCCL_IB_DISABLE=1.",
            {"NCCL_P2P_DISABLE": "1"},
        ),
        (
            "If reserved memory is large try setting PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64",
            {},
        ),
        ("It is recommended to run with OMP_NUM_THREADS=1", {}),
        ("Hint: CUDA_VISIBLE_DEVICES=0 hides the others", {}),
        ("Would it help if I set VLLM_USE_V1=0?", {}),
        ("It works with VLLM_USE_V1=0", {}),
        ("I set NCCL_P2P_DISABLE=1 but it still hangs", {"NCCL_P2P_DISABLE": "1"}),
        ("export VLLM_USE_V1=0", {"VLLM_USE_V1": "0"}),
        ("VLLM_USE_V1=1 vllm serve a/b", {"VLLM_USE_V1": "1"}),
        ("With NCCL_DEBUG=INFO it prints this", {"NCCL_DEBUG": "INFO"}),
    ],
)
def test_variables(text, variables):
    assert (read(f"peft 0.10.0\n{text}").value("variables") or {}) == variables


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("The command to run: vllm serve a/b --tensor-parallel-size 2", 2),
        ("We start it with tensor_parallel_size=4", 4),
        ("You could use tensor_parallel_size=4 instead", None),
        ("Please try tensor_parallel_size=2", None),
    ],
)
def test_settings(text, size):
    stated = read(f"vllm 0.8.5\n{text}").value("request")
    value = stated.setting("tensor_parallel_size") if stated else None
    assert (int(value) if value else None) == size


@pytest.mark.parametrize(
    ("boxes", "platform"),
    [
        ("- [ ] Windows\n- [x] Linux", "linux"),
        ("- [x] Windows 11\n- [ ] Linux", "win32"),
        ("* [X] macOS\n* [ ] Windows", "darwin"),
        ("[ ] I run it on Windows 11", None),
        ("- [x] Windows\n- [x] Linux", None),
    ],
)
def test_boxes(boxes, platform):
    assert read(f"peft 0.10.0\n{boxes}").value("os.platform") == platform


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("I have a Tesla T4 GPU (NVIDIA T4)", 1),
        ("GPU: 2x A100 80GB\nGPU type: NVIDIA A100", 2),
        ("GPU: RTX 4090\nDriver: 550.54.14\nGPU: 4x RTX 4090", 4),
        ("GPU: A100\nGPU: A100 + A100", 2),
        ("GPU: RTX 4090 + RTX 3090", 2),
        ("* GPU:\n    - NVIDIA A100-SXM4-80GB\n    - NVIDIA A100-SXM4-80GB", 2),
    ],
)
def test_devices_are_counted_once(text, count):
    assert len(read(text).value("gpus")) == count
