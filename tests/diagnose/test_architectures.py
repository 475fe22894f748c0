"""Architectures that a compiler refuses: since which CUDA it knows them, and names of no GPU."""

import pytest

from envdoctor.matrix.loader import load_matrix

NVCC = "nvcc fatal   : Unsupported gpu architecture '{}'\n"
PTXAS = "ptxas fatal   : Value '{}' is not defined for option 'gpu-name'\n"


@pytest.mark.parametrize(
    ("line", "name", "sentence"),
    [
        (NVCC, "compute_89", "CUDA 11.8 is the first that knows it."),
        (NVCC, "compute_120", "CUDA 12.8 is the first that knows it."),
        (NVCC, "compute_120a", "CUDA 12.8 is the first that knows it."),
        (PTXAS, "sm_103a", "CUDA 12.9 is the first that knows it."),
        (PTXAS, "sm_52", "is the first that knows it, and 12.9 the last."),
        (NVCC, "compute_77", None),
        (NVCC, "compute_9999", None),
        (NVCC, "compute_1.", "No GPU has it"),
    ],
)
def test_which_toolkit_knows_an_architecture(said, line, name, sentence):
    message = said(line.format(name)).traces[0].finding.message
    assert (sentence or "") in message
    assert ("knows it." in message or "No GPU" in message or "the last." in message) is bool(
        sentence
    )


def test_a_name_that_was_cut_is_cured_by_no_toolkit(said):
    """DeepSpeed joined the first and the third character of "12.0"."""
    capability = "12.0"
    name = f"compute_{capability[0]}{capability[2]}"
    (remedy,) = said(NVCC.format(name)).traces[0].finding.remedies
    assert "deepspeed>=0.16.4" in remedy.text


def test_the_table_has_every_architecture_that_gpus_have():
    matrix = load_matrix()
    assert {gpu.compute_capability for gpu in matrix.gpus if gpu.compute_capability} <= set(
        matrix.capabilities
    )


@pytest.mark.parametrize("version", ["11.6", "11.7", "12.3"])
def test_the_nvcc_of_a_build_is_not_the_cuda_of_torch(said, version):
    line = (
        f"RuntimeError: FlashAttention is only supported on CUDA {version} and above.  Note: make "
        "sure nvcc has a supported version by running nvcc -V.\n"
    )
    finding = said(line, assume=["torch==2.3.1+cu121"]).traces[0].finding
    assert f"older than CUDA {version}" in finding.message
    assert "CUDA_HOME" in finding.remedies[0].text
