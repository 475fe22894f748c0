"""ED2xx: fires, does not fire, is silent where something is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.facts import Library

from .conftest import Judge, by_code, codes, distribution, errors, facts_of


def test_two_nccl_wheels(judged: Judge) -> None:
    findings = judged(facts_of(["nvidia-nccl-cu12 2.29.3", "nvidia-nccl-cu13 2.29.7"]))
    finding = by_code(findings, "ED201")
    assert (finding.component, finding.kind, finding.severity) == (
        "nvidia-nccl",
        "two-copies",
        "warning",
    )
    assert "nvidia/nccl/lib" in finding.message


def test_two_nccl_wheels_and_the_older_one_won(judged: Judge) -> None:
    library = Library(
        "libnccl",
        "libnccl.so.2",
        "/s/nvidia/nccl/lib/libnccl.so.2",
        "2.19.3",
        "wheel",
        distribution="nvidia-nccl-cu13",
    )
    facts = facts_of(
        ["torch 2.11.0", "nvidia-nccl-cu12 2.19.3", "nvidia-nccl-cu13 2.29.7"],
        torch_cuda="13.0",
        libraries=(library,),
    )
    assert by_code(judged(facts), "ED201").severity == "error"


def test_one_nccl_wheel(judged: Judge) -> None:
    assert "ED201" not in codes(
        judged(
            facts_of(
                [
                    "nvidia-nccl-cu12 2.29.3",
                    "nvidia-cublas-cu12 12.4.5.8",
                    "nvidia-cublas-cu11 11.11.3.6",
                ]
            )
        )
    )


def test_cudnn_of_two_majors_have_different_names(judged: Judge) -> None:
    assert "ED201" not in codes(
        judged(facts_of(["nvidia-cudnn-cu11 8.9.6.50", "nvidia-cudnn-cu12 9.1.0.70"]))
    )
    assert "ED201" in codes(
        judged(facts_of(["nvidia-cudnn-cu13 9.20.0.48", "nvidia-cudnn-cu12 9.1.0.70"]))
    )


@pytest.mark.parametrize(
    ("system", "fires"), [("9.23.0", True), ("9.20.1", False), ("9.10.0", False), ("8.9.7", False)]
)
def test_system_cudnn(judged: Judge, system: str, fires: bool) -> None:
    findings = judged(facts_of(["nvidia-cudnn-cu13 9.20.0.48"], cudnn_system_version=system))
    assert ("ED207" in codes(findings)) is fires
    assert not errors(findings)


def _copies(version: str, origin: str) -> tuple[Library, ...]:
    return (
        Library(
            "libnvJitLink",
            "libnvJitLink.so.12",
            "/opt/cuda/lib64/libnvJitLink.so.12",
            version,
            origin,
        ),
        Library(
            "libnvJitLink",
            "libnvJitLink.so.12",
            "/s/nvidia/nvjitlink/lib/libnvJitLink.so.12",
            "12.4.127",
            "wheel",
            False,
        ),
    )


def test_older_copy_is_loaded(judged: Judge) -> None:
    finding = by_code(
        judged(facts_of(["torch 2.6.0"], libraries=_copies("12.0.140", "LD_LIBRARY_PATH"))), "ED202"
    )
    assert (finding.component, finding.kind, finding.severity) == (
        "libnvJitLink",
        "shadowed",
        "error",
    )
    assert "/opt/cuda/lib64" in finding.remedies[0].commands[0]


def test_own_copy_is_loaded(judged: Judge) -> None:
    assert "ED202" not in codes(
        judged(facts_of(["torch 2.6.0"], libraries=_copies("12.4.127", "wheel")[:1]))
    )
    assert "ED202" not in codes(
        judged(facts_of(["torch 2.6.0"], libraries=_copies("12.4.127", "LD_LIBRARY_PATH")))
    )


@pytest.mark.parametrize(
    ("path", "torch_cuda", "component"),
    [
        ("/usr/local/cuda-12.0/lib64", "12.4", "libnvJitLink"),
        ("/usr/local/cuda-12.4/lib64", "12.4", None),
        ("/usr/local/cuda-12.9/lib64", "12.4", None),
        ("/usr/local/cuda-11.8/lib64", "12.4", None),
        ("/usr/local/cuda/lib64", "12.4", None),
        ("/usr/local/nvidia/lib64", "12.4", None),
        ("/opt/cudnn/v8.0.3.33-cuda.11.0/lib64", "11.3", "libcudnn"),
        ("/s/lib/python3.10/site-packages/nvidia/cudnn/lib", "12.4", None),
    ],
)
def test_library_path(judged: Judge, path: str, torch_cuda: str, component: str) -> None:
    facts = facts_of(["torch 2.6.0"], torch_cuda=torch_cuda, variables={"LD_LIBRARY_PATH": path})
    findings = [finding for finding in judged(facts) if finding.code == "ED208"]
    assert [finding.component for finding in findings] == ([component] if component else [])
    assert not errors(findings)


def test_a_copy_that_is_listed_does_not_tell_which_one_is_loaded(judged: Judge) -> None:
    copy = Library("libnccl", "libnccl.so.2", "libnccl.so.2", "2.25.1", "ld.so.cache", False)
    variables = {"LD_LIBRARY_PATH": "/usr/local/cuda-12.0/lib64"}
    for libraries, fires in (((copy,), True), ((copy._replace(loaded=True),), False)):
        facts = facts_of(
            ["torch 2.6.0"], torch_cuda="12.4", variables=variables, libraries=libraries
        )
        assert ("ED208" in codes(judged(facts))) is fires


def test_conda_toolkit_on_the_library_path(judged: Judge) -> None:
    variables = {"LD_LIBRARY_PATH": "/opt/conda/lib", "CUDA_HOME": "/opt/conda"}
    assert (
        by_code(
            judged(facts_of(variables=variables, toolkit_version="12.4.131")), "ED208"
        ).component
        == "libnvJitLink"
    )
    assert "ED208" not in codes(judged(facts_of(variables={"LD_LIBRARY_PATH": "/opt/conda/lib"})))
    conda = distribution("torch 2.4.0", build="py3.11_cuda12.4_0")
    assert "ED208" not in codes(judged(facts_of([conda], variables=variables, torch_cuda="12.6")))


def test_library_older_than_the_pin(judged: Judge) -> None:
    torch = distribution(
        "torch 2.5.1",
        'nvidia-nvjitlink-cu12 (==12.4.127) ; platform_system == "Linux"',
        "nvidia-nccl-cu12 (==2.21.5)",
    )
    findings = judged(
        facts_of([torch, "nvidia-nvjitlink-cu12 12.1.105", "nvidia-nccl-cu12 2.21.5"])
    )
    finding = by_code(findings, "ED205")
    assert (finding.component, finding.kind, finding.severity) == (
        "nvidia-nvjitlink-cu12",
        "too-old",
        "error",
    )
    newer = judged(facts_of([torch, "nvidia-nvjitlink-cu12 12.8.61", "nvidia-nccl-cu12 2.27.3"]))
    assert {finding.severity for finding in newer if finding.code == "ED205"} == {"advice"}
    assert "ED301" not in codes(newer)


def test_established_override_is_accepted(judged: Judge, tmp_path: Path) -> None:
    (tmp_path / "rows.toml").write_text(
        """
[[row]]
id = "site-cublas"
title = "cuBLAS 12.1 divides by zero on an H20"
effect = "blocks"
trust = "established"
component = "nvidia-cublas-cu12"
kind = "too-old"
when = [{ env = "nvidia-cublas-cu12", in = "<12.3.4.1" }, { gpu = "model", any = ["H20"] }]
fix = "Install cuBLAS 12.3.4.1 or newer."
pins = ["nvidia-cublas-cu12>=12.3.4.1,<13"]
overrides = ["torch -> nvidia-cublas-cu12"]
sources = [{ address = "https://example.org/1" }]
established_by = "test"
date = "2026-01-01"
"""
    )
    torch = distribution("torch 2.4.0", "nvidia-cublas-cu12==12.1.3.1")
    matrix = load_matrix([str(tmp_path)])
    accepted = judged(
        facts_of([torch, "nvidia-cublas-cu12 12.3.4.1"], gpus=["NVIDIA H20"]), matrix=matrix
    )
    assert not {"ED205", "ED301"} & set(codes(accepted))
    assert not errors(accepted)
    old = judged(
        facts_of([torch, "nvidia-cublas-cu12 12.1.3.1"], gpus=["NVIDIA H20"]), matrix=matrix
    )
    finding = next(finding for finding in old if finding.row == "site-cublas")
    assert finding.severity == "error"
    assert finding.remedies[0].commands == (
        InstallerCall("install", ("nvidia-cublas-cu12>=12.3.4.1,<13",)),
    )
    assert "12.1.3.1" in finding.message
    assert "H20" in finding.message
