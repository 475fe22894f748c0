"""``signatures.toml``: what it may hold, that it means something, and that no line makes its
expressions slow.
"""

from __future__ import annotations

import re
from functools import partial

import pytest

from envdoctor.matrix.entries import Faults
from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.signatures import (
    distribution_of,
    packages_of,
    parse_signatures,
    symptom_patterns,
)

from ..time_taken import least_seconds

GOOD = {
    "id": "made",
    "layer": "ray",
    "role": "cause",
    "title": "{who} is broken",
    "anchors": ["broken thing"],
    "expression": "(?P<who>\\w+) broken thing",
    "component": "ray",
    "kind": "missing",
    "certainty": "likely",
    "source": "https://example.org/x",
    "date": "2026-11-21",
    "trust": "established",
}


def faults_of(**changes):
    faults = Faults()
    entry = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    parse_signatures({"signature": [entry]}, "signatures.toml", faults)
    return faults.found


def test_a_good_one_has_no_fault():
    assert faults_of() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layer": "moon"}, "expected one of kernel"),
        ({"anchors": []}, "is missing or empty"),
        ({"anchors": ["Xid"]}, "shorter than"),
        ({"expression": "("}, "is no regular expression"),
        ({"title": "{other} is broken"}, "no group 'other'"),
        ({"certainty": None}, "a cause has component, kind and certainty"),
        ({"role": "effect"}, "an effect has none"),
        (
            {"role": "effect", "component": None, "kind": None, "certainty": None},
            "says what may stand behind it",
        ),
        ({"codes": ["E1"]}, "expected a code"),
        ({"after": ["nothing-of-that-name"]}, "there is no signature"),
        (
            {
                "causes": [
                    {
                        "text": "x",
                        "component": "ray",
                        "kind": "missing",
                        "confidence": "low",
                        "facts": ["memory.oom_kills many"],
                    }
                ]
            },
            "expected a field",
        ),
        (
            {
                "causes": [
                    {"text": "x", "component": "ray", "kind": "missing", "confidence": "sure"}
                ]
            },
            "expected one of high",
        ),
        ({"surprise": 1}, "no such key"),
        ({"source": None}, "is missing"),
    ],
)
def test_what_is_wrong_is_said(changes, words):
    assert any(words in fault for fault in faults_of(**changes)), faults_of(**changes)


def test_every_expression_can_match_a_line_with_one_of_its_anchors():
    """An anchor that is no part of what the expression asks for would never find anything."""
    for signature in load_matrix().signatures:
        if signature.expression:
            literal = re.sub(r"[^a-z]", "", signature.expression.lower())
            words = {
                word
                for anchor in signature.anchors
                for word in re.findall(r"[a-z]{4,}", anchor.lower())
            }
            assert any(word in literal for word in words) or not words, signature.id


#: Lines as the programs print them, and the signature that says what each means.
PRINTED = [
    ("Unable to load any of {libcudnn_cnn.so.9.1.0, libcudnn_cnn.so.9}", "cudnn-part-not-found"),
    (
        "Found Tesla P40 which is too old to be supported by the triton GPU compiler, which is",
        "triton-gpu-too-old",
    ),
    ("RuntimeError: Distributed package doesn't have NCCL built in", "torch-without-nccl"),
    (
        "Configured CUDA binary not found at /x/bitsandbytes/libbitsandbytes_cuda129.so",
        "bitsandbytes-no-binary",
    ),
    ("Because a-b==2.5.9 has no wheels with a matching Python ABI tag", "wheel-no-python"),
    ("ERROR: Package 'v' requires a different Python: 3.13.1 not in '<3.13'", "pip-other-python"),
    (
        (
            "quantization method fp8 is not supported for the current GPU. "
            "Minimum capability: 89. Current capability: 80."
        ),
        "quantization-gpu-too-old",
    ),
    ("ValueError: Your setup doesn't support bf16/gpu.", "bf16-setup"),
    ("AttributeError: module 'numpy' has no attribute 'float'.", "numpy-name-removed"),
    (
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
        "operators-not-registered",
    ),
    ("AttributeError: module 'torch' has no attribute 'float8_e4m3fn'", "module-attribute"),
    (
        "'KernelMetadata' object has no attribute 'cluster_dims'",
        "inductor-triton-metadata",
    ),
    (
        "Exception: data did not match any variant of untagged enum ModelWrapper at line 1",
        "tokenizer-file-newer",
    ),
    (
        "X requires the SentencePiece library but it was not found in your environment.",
        "library-not-found-hf",
    ),
    (
        "output_partition_size = 576 is not divisible by weight quantization block_n = 128.",
        "fp8-blocks-not-divisible",
    ),
    (
        "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'max_seq_length'",
        "trl-argument-moved",
    ),
    (
        "TypeError: Seq2SeqTrainer.__init__() got an unexpected keyword argument 'tokenizer'",
        "transformers-argument-gone",
    ),
    ("AttributeError: 'DynamicCache' object has no attribute 'seen_tokens'", "cache-class-changed"),
    ("Failed to initialize NVML: Unknown Error", "nvml-unknown-error"),
    ("Due to a serious vulnerability issue in `torch.load`, even with", "torch-load-refused"),
    (
        "Detected kernel version 5.4.250, which is below the recommended minimum of 5.5.0; this",
        "kernel-below-recommended",
    ),
    (
        "TypeError: EngineArgs.__init__() got an unexpected keyword argument 'worker_cls'",
        "engine-argument-unknown",
    ),
    (
        "TypeError: DPOTrainer.log() takes 2 positional arguments but 3 were given",
        "trainer-log-arguments",
    ),
    ("To fix: pip install accelerate>=0.30.1,<=0.33.0", "require-version-hint"),
]
#: What looks alike and means something else.
OTHERWISE = [
    "AttributeError: module 'numpy' has no attribute 'my_own'",
    "AttributeError: module 'torch' has no attribute 'x' (consider renaming 'torch.py')",
    "AttributeError: '_OpNamespace' 'mine' object has no attribute 'op'",
    "TypeError: MyTrainer.__init__() got an unexpected keyword argument 'tokenizer'",
    "AttributeError: 'DynamicCache' object has no attribute 'mine'",
]


@pytest.fixture(scope="module")
def ids_of():
    expressions = {
        signature.id: (signature.anchors, re.compile(signature.expression or ""))
        for signature in load_matrix().signatures
    }
    recent = {name for _, name in PRINTED}

    def ids(line):
        return {
            name
            for name, (anchors, expression) in expressions.items()
            if name in recent
            and any(anchor in line for anchor in anchors)
            and expression.search(line)
        }

    return ids


@pytest.mark.parametrize(("line", "signature"), PRINTED)
def test_what_programs_print_is_known(ids_of, line, signature):
    assert ids_of(line) == {signature}


@pytest.mark.parametrize("line", OTHERWISE)
def test_what_looks_alike_is_not(ids_of, line):
    assert not ids_of(line)


@pytest.mark.parametrize(
    "hostile",
    [
        "A" * 2000,
        "a b " * 500,
        "/x/y.so" * 280,
        "_ZN" * 660,
        "0" * 2000,
        "undefined symbol: " + "_" * 1900,
        "(" * 2000,
    ],
)
def test_no_line_makes_an_expression_slow(hostile):
    for signature in load_matrix().signatures:
        if signature.expression:
            search = re.compile(signature.expression).search
            for text in (hostile, signature.anchors[0] + hostile):
                seconds = least_seconds(partial(search, text[:2000]), 0.25)
                assert seconds < 0.25, signature.id


def test_prose_is_no_symptom():
    matrix = load_matrix()
    patterns, rows = symptom_patterns(
        (matrix.complete(row) for row in matrix.rows()), matrix.modules
    )
    texts = {pattern.id[len("symptom:") :] for pattern in patterns}
    assert "a collective hangs" not in texts
    assert "cannot import name 'ForkingPickler' from 'torch.multiprocessing.reductions'" in texts
    assert all(matrix.row(name) is not None for names in rows.values() for name in names)


def test_a_package_that_has_to_be_absent_need_not_be_named():
    row = load_matrix().row("sglang-0.4.9-sgl-kernel")
    assert "verl" in {
        term.component for term in row.terms
    }  # verl replaces the check of the version, so it must not be there
    assert packages_of(row) == {"sglang", "sgl-kernel", "torch"}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (
            "/venv/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so",
            "flash-attn",
        ),
        ("/venv/lib/python3.10/site-packages/vllm/_C.abi3.so", "vllm"),
        ("/src/vllm/_C.abi3.so", "vllm"),
        ("/opt/conda/lib/libfoo.so.1", "libfoo"),
        ("transformers.models.auto", "transformers"),
        ("cv2", "opencv-python"),
    ],
)
def test_what_installs_a_module(module, name):
    assert distribution_of(module, load_matrix().modules) == name
