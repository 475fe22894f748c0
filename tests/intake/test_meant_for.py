"""What a report's run is meant for: the CPU, ROCm, Intel's GPUs, Ascend's NPUs."""

import pytest

from envdoctor.app import judge
from envdoctor.intake.meant_for import VENDORS, meant_for_cpu, meant_for_vendor
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
        "On ROCm 6.2, torch.compile crashes at once",
        "[ROCm] rccl hangs on all ranks",
        "[Bug][AMD] the server stops",
        "The run on our MI250 GPUs crashes in hipBLASLt.",
        "It crashes on an RX 7900 XTX.",
        "We train on 8x MI300X, it hangs.",
        "It fails on two MI210",
    ],
)
def test_what_tells_of_rocm(text):
    assert meant_for_vendor(text, "report.for_rocm")


@pytest.mark.parametrize(
    "text",
    [
        "It works on ROCm but not here",
        "Is there ROCm support?",
        "It crashes on an RTX 7900 of the future",
        "The MI250 is said to be faster",
        "I am using ROCm on one machine and CUDA 12.4 on the other",
        # vllm 0.4.2 config.py
        (
            "scaling is only supported on newer releases. On ROCm (AMD GPU), FP8_E4M3 is instead "
            "supported for common inference criteria."
        ),
        "torch 2.6.0",
    ],
)
def test_what_tells_nothing_of_rocm(text):
    assert not meant_for_vendor(text, "report.for_rocm")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('model = model.to("xpu")', "report.for_xpu"),
        ("from ipex_llm.vllm.xpu.engine import IPEXLLMClass as LLM", "report.for_xpu"),
        ("I run it on an Intel Arc A770. It crashes.", "report.for_xpu"),
        ("on Intel Max Series 1100", "report.for_xpu"),
        ("[Bug] it crashes with Intel Arc 140V Xe2 iGPU", "report.for_xpu"),
        ("GPU: Intel Iris Xe", "report.for_xpu"),
        ("Device 0: Intel(R) Arc(TM) A770 Graphics", "report.for_xpu"),
        ("It fails on our Data Center GPU Flex 170.", "report.for_xpu"),
        ("I use an Intel iGPU, and the model does not load.", "report.for_xpu"),
        ('File "/usr/lib/python3/site-packages/torch_npu/__init__.py", line 3', "report.for_npu"),
        ("docker run --device=/dev/davinci0 quay.io/ascend/vllm-ascend:v0.9.1", "report.for_npu"),
        ("It fails on my Ascend 910B.", "report.for_npu"),
        ("PJRT_DEVICE=TPU python serve.py", "report.for_tpu"),
        ("It crashes with larger contexts on a TPU v5e.", "report.for_tpu"),
        ("This notebook, when I connect it to the GOOGLE TPU, stops.", "report.for_tpu"),
    ],
)
def test_what_tells_of_one_other_vendor(text, field):
    assert [entry for entry in VENDORS if meant_for_vendor(text, entry)] == [field]


@pytest.mark.parametrize(
    "text",
    [
        "Is there Ascend NPU support?",
        "It works on an Intel Arc A770 but not here.",
        "The README speaks of XPU support.",
        "GPU: Intel Arc A770 beside an NVIDIA RTX 3090",
        "Does it have Intel GPU support?",
        "It runs on a Max of 1550 tokens",
        "CPU: Intel(R) Xeon(R) Platinum 8480",
        "device='xpu' fails, and with CUDA 12.4 it works",
        "nvidia-smi\nASCEND_HOME_PATH=/usr/local/Ascend",
        "The arc of the story is 910 lines long.",
        # engines that ask each platform in turn
        "TPU platform is not available because: No module named 'libtpu'",
        "DEBUG rocm-smi: command not found",
        # one branch of code that is for several devices
        'streams = torch.cuda.Stream() if kind == "cuda" else torch.xpu.Stream()',
    ],
)
def test_what_tells_of_no_other_vendor(text):
    assert not [entry for entry in VENDORS if meant_for_vendor(text, entry)]


def test_whose_devices_it_is_about_is_something_stated():
    facts = parse_report("[ROCm] rccl hangs on 8x MI300X")
    assert facts.value("report.for_rocm")
    assert facts.value("report.named") is None
    assert parse_report("vllm fails on my machine").value("report.named") == ("vllm",)
