"""ED108 to ED123: fires, does not fire, is silent where something is not known."""

from __future__ import annotations

from typing import Optional

import pytest

from envdoctor.model.facts import Gpu

from .conftest import Judge, by_code, codes, facts_of

TORCH = "torch 2.6.0+cu124"


def test_gpus_not_exposed(judged: Judge) -> None:
    facts = facts_of([TORCH], gpus=[], torch_cuda="12.4", torch_cuda_available=False)
    finding = by_code(judged(facts), "ED108")
    assert (finding.component, finding.kind, finding.severity) == (
        "container-gpu",
        "not-exposed",
        "warning",
    )
    on_host = facts_of(
        [TORCH],
        gpus=[],
        torch_cuda="12.4",
        torch_cuda_available=False,
        driver_loaded=True,
        container_runtime="docker",
    )
    assert by_code(judged(on_host), "ED108").severity == "error"


def test_gpus_exposed_or_not_known(judged: Judge) -> None:
    assert "ED108" not in codes(
        judged(
            facts_of(
                [TORCH],
                gpus=["NVIDIA H100 80GB HBM3"],
                torch_cuda="12.4",
                torch_cuda_available=True,
            )
        )
    )
    assert "ED108" not in codes(
        judged(facts_of([TORCH], torch_cuda="12.4", torch_cuda_available=False))
    )
    assert "ED108" not in codes(
        judged(facts_of(["torch 2.6.0+cpu"], gpus=[], torch_cuda=None, torch_cuda_available=False))
    )


def test_driver_capabilities(judged: Judge) -> None:
    lacking = facts_of(
        [TORCH], torch_cuda="12.4", variables={"NVIDIA_DRIVER_CAPABILITIES": "graphics,utility"}
    )
    assert "compute" in by_code(judged(lacking), "ED116").message
    assert "ED116" not in codes(
        judged(
            facts_of(
                [TORCH],
                torch_cuda="12.4",
                variables={"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
            )
        )
    )


def test_nvml_missing_while_cuda_works(judged: Judge) -> None:
    facts = facts_of(
        [TORCH],
        torch_cuda="12.4",
        torch_cuda_available=True,
        kubernetes_pod=True,
        variables={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"},
    )
    finding = by_code(judged(facts), "ED117")
    assert (finding.component, finding.kind) == ("libnvidia-ml", "missing")
    whole = facts.updated(
        {
            "variables": facts_of(
                variables={"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64:/usr/local/cuda/lib64"}
            ).get("variables")
        }
    )
    assert "ED117" not in codes(judged(whole))


@pytest.mark.parametrize("loaded", [True, False, None])
def test_nvml_is_missed_only_where_a_driver_was_seen(judged: Judge, loaded: Optional[bool]) -> None:
    facts = facts_of(
        [TORCH],
        kubernetes_pod=True,
        driver_loaded=loaded,
        driver_nvml_error="libnvidia-ml.so.1: no such library in the loader's folders",
        variables={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"},
    )
    assert ("ED117" in codes(judged(facts))) is (loaded is True)


def test_device_faults(judged: Judge) -> None:
    found = judged(
        facts_of(
            gpus=[
                Gpu(name="NVIDIA A100-SXM4-80GB", remapped_failed=True, uuid="GPU-1"),
                Gpu(name="NVIDIA A100-SXM4-80GB", uuid="GPU-2"),
            ]
        )
    )
    finding = by_code(found, "ED110")
    assert finding.subject == "GPU-1"
    lost = by_code(judged(facts_of(gpus=[Gpu(uuid="GPU-3", fault="GPU is lost")])), "ED110")
    assert "GPU is lost" in lost.message
    assert finding.severity == "error"
    assert "ED110" not in codes(
        judged(facts_of(gpus=[Gpu(name="NVIDIA A100-SXM4-80GB", ecc_uncorrected=0)]))
    )


def test_peer_traffic(judged: Judge) -> None:
    two = facts_of(gpus=["NVIDIA RTX A6000", "NVIDIA RTX A6000"], pcie_acs_iommu=True)
    assert by_code(judged(two), "ED112").kind == "p2p-blocked"
    assert "ED112" not in codes(judged(facts_of(gpus=["NVIDIA RTX A6000"], pcie_acs_iommu=True)))
    assert "ED112" not in codes(judged(facts_of(gpus=["NVIDIA RTX A6000", "NVIDIA RTX A6000"])))


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        ("0,1", None),
        ("0", None),
        ("2", "error"),
        ("0,5", "warning"),
        ("0,0", "warning"),
        ("", "warning"),
        ("-1", "warning"),
    ],
)
def test_visible_devices(judged: Judge, value: str, severity: str) -> None:
    facts = facts_of(
        [TORCH],
        gpus=["NVIDIA RTX A6000", "NVIDIA RTX A6000"],
        torch_cuda="12.4",
        variables={"CUDA_VISIBLE_DEVICES": value},
    )
    found = [finding for finding in judged(facts) if finding.code == "ED114"]
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_cpu_build_on_a_gpu_machine(judged: Judge) -> None:
    facts = facts_of(
        ["torch 2.6.0+cpu", "vllm 0.8.5"],
        gpus=["NVIDIA H100 80GB HBM3"],
        torch_cuda=None,
        torch_version="2.6.0+cpu",
    )
    found = [finding for finding in judged(facts) if finding.code == "ED123"]
    assert [finding.severity for finding in found] == ["error"]
    rocm = facts_of(
        ["torch 2.6.0+rocm6.2"],
        gpus=["AMD Instinct MI300X"],
        torch_cuda=None,
        torch_hip="6.2",
        torch_version="2.6.0+rocm6.2",
    )
    assert codes(judged(rocm)) == ["ED903"]


def test_settings(judged: Judge) -> None:
    facts = facts_of(
        gpus=[Gpu(name="NVIDIA H100 80GB HBM3", persistence_mode=False)], driver_release="580.65.06"
    )
    assert by_code(judged(facts), "ED111").severity == "advice"
    assert "ED111" not in codes(
        judged(facts_of(gpus=[Gpu(name="NVIDIA GeForce RTX 4090", persistence_mode=False)]))
    )


def test_generation_that_cuda_dropped(judged: Judge) -> None:
    finding = by_code(judged(facts_of(gpus=["Tesla V100-SXM2-16GB"], torch_cuda="13.0")), "ED120")
    assert (finding.component, finding.kind, finding.severity) == ("torch", "arch-missing", "error")
    assert "sm_70" in finding.message
    assert "ED120" not in codes(judged(facts_of(gpus=["Tesla V100-SXM2-16GB"], torch_cuda="12.8")))
    assert "ED120" not in codes(judged(facts_of(gpus=["NVIDIA A100-SXM4-80GB"], torch_cuda="13.0")))
