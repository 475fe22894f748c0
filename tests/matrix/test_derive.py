"""What candidates get from their wheels: which devices the ptxas of triton assembles for, and what
the rows make of it.
"""

import pytest

from envdoctor.matrix.bind import bind
from envdoctor.matrix.derive import build_attributes, derive_target
from envdoctor.matrix.loader import load_builtin
from envdoctor.matrix.tables import Build
from envdoctor.model.facts import Gpu

from ..rules.conftest import facts_of

MATRIX = load_builtin()
ROWS = [
    row
    for row in map(MATRIX.complete, MATRIX.rows())
    if row.code == "ED122" and row.kind == "arch-missing"
]


def outcomes(triton, sm, architecture=None, **variables):
    facts = facts_of(
        [f"triton {triton}"],
        gpus=[Gpu(name="", compute_capability=sm)],
        variables=variables,
        os_architecture=architecture or "x86_64",
    )
    target = derive_target(facts, MATRIX)
    return {bind(row, target).outcome for row in ROWS} - {"satisfied"}


#: What others measured by assembling (triton-lang/triton issue 10331 for 12.1, pytorch/pytorch
#: issue 170117 for 11.0).
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("triton", "sm", "assembles"),
    [
        ("3.5.0", "12.1", False),
        ("3.6.0", "12.1", True),
        ("3.7.0", "12.1", True),
        ("3.6.0", "11.0", False),
        ("3.5.0", "9.0", True),
    ],
)
def test_triton_and_devices(triton, sm, assembles, architecture):
    assert outcomes(triton, sm, architecture) == (set() if assembles else {"violated"})


def test_a_named_ptxas_is_taken_instead():
    assert outcomes("3.5.0", "12.1", TRITON_PTXAS_PATH="/usr/local/cuda/bin/ptxas") == set()
    assert (
        outcomes("3.6.0", "11.0", TRITON_PTXAS_BLACKWELL_PATH="/usr/local/cuda/bin/ptxas") == set()
    )


@pytest.mark.parametrize(
    ("triton", "sm"), [("3.3.1", "12.1"), ("3.5.0", "10.3"), ("3.4.0", "11.0"), ("3.6.0", "11.0")]
)
def test_a_named_ptxas_that_triton_cannot_take_changes_nothing(triton, sm):
    assert outcomes(triton, sm, TRITON_PTXAS_PATH="/usr/local/cuda/bin/ptxas") == {"violated"}


@pytest.mark.parametrize(("triton", "sm"), [("3.5.0+git7416ffcb", "12.1"), ("99.0", "12.0")])
def test_a_wheel_that_nobody_read_gives_no_verdict(triton, sm):
    assert outcomes(triton, sm) == {"undetermined"}


def test_blackwell_devices_go_to_the_second_assembler():
    usual, newer = (
        "ptxas=12.8.93;sm=9.0,9.0a,10.0,12.0",
        "ptxas-blackwell=13.1.80;sm=9.0,10.0,12.1,12.1a",
    )
    assert build_attributes(Build(tools=(usual,)))["ptxas"] == {"9.0", "9.0a", "10.0", "12.0"}
    assert build_attributes(Build(tools=(usual, newer)))["ptxas"] == {
        "9.0",
        "9.0a",
        "10.0",
        "12.1",
        "12.1a",
    }
    assert "ptxas" not in build_attributes(Build())


def cuda_of_torch(*installed):
    target = derive_target(facts_of(list(installed)), MATRIX)
    cuda = target.environment("torch").attributes.get("cuda")
    return None if cuda is None else str(cuda)


def test_a_wheel_of_the_runtime_tells_the_build_of_torch():
    """On x86_64 the index's torch 2.2.1 is for CUDA 12.1 and requires that, on ARM it is for CPUs."""
    assert cuda_of_torch("torch 2.2.1") is None
    assert cuda_of_torch("torch 2.2.1", "nvidia-cuda-runtime-cu12 12.1.105") == "12.1"
    assert cuda_of_torch("torch 2.2.1", "nvidia-cuda-runtime-cu11 11.8.89") is None


@pytest.mark.parametrize(
    ("version", "is_known"), [("0.1.dev1+g46876dff3", False), ("0+unknown", False), ("0.1.0", True)]
)
def test_what_a_build_could_not_find_out_is_no_version(version, is_known):
    target = derive_target(facts_of([f"vllm {version}"]), MATRIX)
    assert ("version" in target.environment("vllm").attributes) == is_known
