"""What the hardware lacks that a message is about."""

import pytest

from envdoctor.app import check
from envdoctor.errors import InputError
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts

MATRIX = load_matrix()
FLAGS = (
    "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse "
    "sse2 ss ht syscall nx lm ssse3 sse4_1 sse4_2 avx f16c fma avx2"
)


def finding(text, tmp_path):
    path = tmp_path / "report.txt"
    path.write_text(text, encoding="utf-8")
    try:
        facts = parse_report(text, MATRIX.package)
    except InputError:  # a message alone tells nothing of an environment
        facts = Facts()
    report = check(facts, MATRIX, logs=[str(path)])
    entries = (*report.findings, *report.undetermined)
    return next(entry for entry in entries if entry.code.endswith("95"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            f"Model name: Acme CPU 1\nFlags:          {FLAGS}\nIllegal instruction (core dumped)\n",
            "Acme CPU 1 has AVX2 and no AVX-512, AVX-512 BF16, AMX",
        ),
        (
            (
                f"Flags: {FLAGS.replace(' avx2', '').replace(' avx ', ' ')}\nprocess ended by SIGILL, "
                "exitcode: -4\n"
            ),
            "The processor has FMA and no AVX, AVX2",
        ),
        (
            "GPU 0: Tesla V100-SXM2-16GB\ntorch 2.7.0\nRuntimeError: PassManager::run failed\n",
            (
                "Tesla V100-SXM2-16GB is of compute capability 7.0, and what Triton supports "
                "begins at 8.0"
            ),
        ),
        (
            (
                "GPU 0: NVIDIA GeForce RTX 4090\nvllm 0.9.2\nRuntimeError: AoT scheduling is required "
                "for full cuda graph.\n"
            ),
            "and FlashAttention 3 begins at 9.0",
        ),
        (
            (
                "GPU: Intel Data Center GPU Max 1550\nRuntimeError: Sub-group size 8 is not supported "
                "on the device\n"
            ),
            "Intel GPU Max has no sub-groups of that size",
        ),
        (
            (
                "image acme/serve:1.0-310p\nEZ1001: input dtype or format is not supported, get "
                "x(DT_BFLOAT16, ND)\n"
            ),
            "Ascend 310P has no bfloat16",
        ),
        (
            (
                "vllm serve acme/Thing-AWQ\nvllm 0.8.5\nRuntimeError: expected scalar type Half but "
                "found BFloat16\n"
            ),
            "The kernels of AWQ take float16 alone",
        ),
    ],
)
def test_a_feature_that_the_device_lacks(text, sentence, tmp_path):
    assert sentence in finding(text, tmp_path).message


@pytest.mark.parametrize(
    "text",
    [
        "GPU 0: NVIDIA H100 80GB HBM3\ntorch 2.7.0\nRuntimeError: PassManager::run failed\n",
        # vLLM's builds of 2025 have FlashAttention 3 for 8.0, too.
        "GPU 0: NVIDIA A100-SXM4-80GB\nvllm 0.9.2\nRuntimeError: AoT scheduling is required\n",
        "torch 2.7.0\nRuntimeError: PassManager::run failed\n",
        "GPU 0: Tesla T4\nvllm 0.8.5\nKeyError: 'layers.0.fp8_scale'\n",
        "vllm serve acme/Thing\nRuntimeError: expected scalar type Half but found BFloat16\n",
        f"Flags: {FLAGS} avx512f avx512_bf16 amx_tile\nIllegal instruction (core dumped)\n",
    ],
)
def test_a_device_that_has_it_or_is_not_known(text, tmp_path):
    message = finding(text, tmp_path).message
    assert "begins at" not in message
    assert "alone" not in message
    assert " and no " not in message


def test_a_feature_that_a_text_tells_of_is_a_claim_only_of_a_device_that_lacks_it(tmp_path):
    text = "[Bug]: the server cannot run with flash attention\n\nvllm 0.6.3 on a Tesla V100\n"
    entry = finding(text, tmp_path)
    assert "Tesla V100 is of compute capability 7.0" in entry.message
    assert entry.severity == "warning"
    with pytest.raises(StopIteration):
        finding(text.replace("Tesla V100", "H100"), tmp_path)
