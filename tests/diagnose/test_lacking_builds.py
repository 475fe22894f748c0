"""What is missing because of the build that is here: programs that really ask a torch for the
processor for CUDA, and lines of the others.
"""

from __future__ import annotations

import subprocess

import pytest

from envdoctor.app import diagnose
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts

ALONE = "is a build for the processor alone"
NMS = """Traceback (most recent call last):
  File "/w/t.py", line 3, in <module>
    torchvision.ops.nms(boxes.cuda(), scores.cuda(), 0.5)
  File "/v/lib/python3.11/site-packages/torch/_ops.py", line 1123, in __call__
    return self._op(*args, **(kwargs or {}))
NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.
"""
SET_DEVICE = """Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/torch/cuda/__init__.py", line 476, in set_device
    torch._C._cuda_setDevice(device)
AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'
"""
OUT_OF_MEMORY = """Traceback (most recent call last):
  File "/w/t.py", line 3, in <module>
    x = torch.zeros(1)
our.Error: CUDA out of memory: 3 bytes wanted
"""
OPERATOR = """Traceback (most recent call last):
  File "/v/lib/python3.12/site-packages/vllm/_custom_ops.py", line 30, in x
    torch.ops._C.awq_dequantize(a)
AttributeError: '_OpNamespace' '_C' object has no attribute 'awq_dequantize'
"""
TRITON = """Traceback (most recent call last):
  File "C:\\\\w\\\\train.py", line 3, in <module>
    import triton
ModuleNotFoundError: No module named 'triton'
"""


@pytest.fixture
def first(tmp_path):
    """Return a function: text of a log, and facts -> the finding that is said first."""

    def run(text, *assume):
        path = tmp_path / "run.log"
        path.write_text(text, encoding="utf-8")
        facts = with_assumptions(Facts(), dict(parse_assumptions(assume)))
        return diagnose([str(path)], facts, load_matrix()).traces[0].finding

    return run


_ASKING = (
    "torch.cuda.set_device(0)",
    "torch.empty(2, pin_memory=True)",
    "torch.cuda.Stream()",
    "torch.zeros(1, device='cuda')",
)
_ASK_ALL = """
import sys, traceback, torch
print(torch.__version__.split("+")[0])
for asks in sys.argv[1:]:
    try:
        exec(compile(asks, "/w/train.py", "exec"))
    except Exception:
        print("\\0" + traceback.format_exc())
"""


def test_a_real_torch_for_the_processor(torch_python, first):
    done = subprocess.run(
        [torch_python, "-c", _ASK_ALL, *_ASKING],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    version, *failures = done.stdout.split("\0")
    assert len(failures) == len(_ASKING)
    for text in failures:
        finding = first(text, f"torch=={version.strip()}+cpu")
        # What torch says itself is known by its words; of all else the build is the reason.
        assert ALONE in finding.message or "Torch not compiled" in text, text
        assert finding.component == "torch"
        assert any("CUDA" in remedy.text for remedy in finding.remedies), finding


def test_an_operator_of_another_package(first):
    finding = first(NMS, "torch==2.6.0+cu124", "torchvision==0.21.0+cpu")
    assert f"torchvision 0.21.0+cpu {ALONE}" in finding.message
    assert finding.component == "torchvision"


@pytest.mark.parametrize("name", ["torch==2.6.0+cu124", "torch==2.6.0"])
def test_of_another_build_or_an_unknown_one_nothing_is_said(first, name):
    assert ALONE not in first(SET_DEVICE, name).message
    assert ALONE not in first(NMS, name, "torchvision==0.21.0").message
    assert ALONE not in first(OPERATOR, name, "vllm==0.8.5").message


def test_what_had_cuda_is_not_without_it(first):
    assert ALONE not in first(OUT_OF_MEMORY, "torch==2.6.0+cpu").message


def test_compiled_operators(first):
    finding = first(OPERATOR, "torch==2.6.0+cpu", "vllm==0.8.5")
    assert "has no compiled operator awq_dequantize" in finding.message
    assert f"torch 2.6.0+cpu {ALONE}" in finding.message


def test_a_platform_without_wheels(first):
    finding = first(TRITON, "os.platform=win32", "os.architecture=x86_64")
    assert finding.message.endswith("no release of triton has a wheel for Windows.")
    assert "triton-windows" in finding.remedies[0].text
    elsewhere = first(TRITON, "os.platform=linux", "os.architecture=x86_64")
    assert "wheel" not in elsewhere.message
    there = first(TRITON, "os.platform=win32", "triton==3.1.0")
    assert "has a wheel" not in there.message


GGML = """ggml_cuda_compute_forward: RMS_NORM failed
CUDA error: no kernel image is available for execution on the device
  current device: 0, in function ggml_cuda_compute_forward at ggml/src/ggml-cuda/ggml-cuda.cu:2366
"""
OF_TORCH = """Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/torch/nn/functional.py", line 1, in x
    return torch.cuda.x()
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""


def test_who_printed_the_message_decides_whose_build_lacks_the_gpu(first):
    finding = first(GGML)
    assert (finding.component, finding.kind) == ("ggml", "arch-missing")
    assert "CMAKE_CUDA_ARCHITECTURES" in finding.remedies[0].text
    assert first(OF_TORCH).component != "ggml"
    assert first(GGML + OF_TORCH).component != "ggml"  # both ran: the line does not say whose
    assert first(GGML, "torch==2.6.0").component != "ggml"


@pytest.mark.parametrize(
    ("library", "assume", "says"),
    [
        ("libbitsandbytes_cuda128.so", (), "bitsandbytes before 0.45.3 holds no library for CUDA"),
        ("libbitsandbytes_cuda128.so", ("bitsandbytes==0.45.2",), "bitsandbytes 0.45.2 holds no"),
        ("libbitsandbytes_cuda128.dll", ("bitsandbytes==0.45.2",), "This bitsandbytes brings no"),
        ("libbitsandbytes_cuda128.so", ("bitsandbytes==0.45.3",), "This bitsandbytes brings no"),
        ("libbitsandbytes_cuda999.so", (), "This bitsandbytes brings no"),
    ],
)
def test_the_first_release_with_a_library_for_this_cuda(first, library, assume, says):
    """By the wheels of 0.45.2 and 0.45.3: the second is the first that holds one for CUDA 12.8."""
    place = f"PosixPath('/v/site-packages/bitsandbytes/{library}')"
    finding = first(f"Could not find the bitsandbytes CUDA binary at {place}\n", *assume)
    assert finding.message.startswith(says)
    assert ("Install bitsandbytes>=0.45.3." in [remedy.text for remedy in finding.remedies]) == (
        "12.8" in finding.message
    )
