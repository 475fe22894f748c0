"""ED108, ED114, ED116 and ED117: fires, does not fire, is silent where something is not known."""

from __future__ import annotations

from typing import Optional

import pytest

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
    findings = [finding for finding in judged(facts) if finding.code == "ED114"]
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
