"""ED110 to ED112: fires, does not fire, is silent where something is not known."""

from __future__ import annotations

from envdoctor.model.facts import Gpu

from .conftest import Judge, by_code, codes, facts_of


def test_device_faults(judged: Judge) -> None:
    findings = judged(
        facts_of(
            gpus=[
                Gpu(name="NVIDIA A100-SXM4-80GB", remapped_failed=True, uuid="GPU-1"),
                Gpu(name="NVIDIA A100-SXM4-80GB", uuid="GPU-2"),
            ]
        )
    )
    finding = by_code(findings, "ED110")
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


def test_settings(judged: Judge) -> None:
    facts = facts_of(
        gpus=[Gpu(name="NVIDIA H100 80GB HBM3", persistence_mode=False)], driver_release="580.65.06"
    )
    assert by_code(judged(facts), "ED111").severity == "advice"
    assert "ED111" not in codes(
        judged(facts_of(gpus=[Gpu(name="NVIDIA GeForce RTX 4090", persistence_mode=False)]))
    )
