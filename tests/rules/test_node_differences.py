"""ED7xx: several nodes, and the cluster that a process wants to join."""

from __future__ import annotations

import pytest

from envdoctor.model.evidence import Evidence, Known

from .conftest import Judge, by_code, codes, facts_of


def test_ray_of_another_version_than_the_cluster(judged: Judge) -> None:
    facts = facts_of(
        ray_cluster_version="2.43.0",
        ray_process_version="2.44.1",
        ray_cluster_python="3.11.10",
        ray_process_python="3.11.10",
    )
    finding = by_code(judged(facts), "ED709")
    assert (finding.component, finding.kind, finding.severity) == (
        "ray",
        "version-mismatch-across-nodes",
        "error",
    )
    assert codes(judged(facts)) == ["ED709"]


def test_python_patch_of_another_version_than_the_cluster(judged: Judge) -> None:
    facts = facts_of(
        ray_cluster_version="2.39.0",
        ray_process_version="2.39.0",
        ray_cluster_python="3.10.14",
        ray_process_python="3.10.15",
    )
    assert by_code(judged(facts), "ED709").component == "python"
    assert codes(judged(facts)) == ["ED709"]


def test_cluster_of_which_one_side_is_unknown(judged: Judge) -> None:
    assert not codes(judged(facts_of(ray_cluster_version="2.39.0")))


def _node(name: str, *packages: str, **fields: object):
    return facts_of(list(packages), **fields).updated({"node.name": Known(name, Evidence("test"))})


def test_what_differs_between_nodes(judged: Judge) -> None:
    first = _node(
        "a",
        "ray 2.40.0",
        "torch 2.6.0",
        python_version="3.10.14",
        driver_release="550.54.15",
        gpus=["NVIDIA H100 80GB HBM3"],
    )
    second = _node(
        "b",
        "ray 2.41.0",
        "torch 2.6.0",
        python_version="3.10.15",
        driver_release="570.86.15",
        gpus=["NVIDIA H100 80GB HBM3"],
    )
    findings = judged(first, nodes=(first, second))
    assert {"ED701", "ED702", "ED703"} <= set(codes(findings))
    assert not {"ED704", "ED707"} & set(codes(findings))
    ray = by_code(findings, "ED703")
    assert ray.severity == "error"
    assert ray.nodes == ("a", "b")
    assert "2.40.0 on a" in ray.message
    assert by_code(findings, "ED701").severity == "warning"


def test_python_patch_matters_for_ray_alone(judged: Judge) -> None:
    first, second = (
        _node("a", "torch 2.6.0", python_version="3.10.14"),
        _node("b", "torch 2.6.0", python_version="3.10.15"),
    )
    assert by_code(judged(first, nodes=(first, second)), "ED702").severity == "advice"


def test_equal_or_unknown_nodes(judged: Judge) -> None:
    first, second = _node("a", "ray 2.40.0", python_version="3.10.14"), _node("b", "ray 2.40.0")
    assert not [
        code for code in codes(judged(first, nodes=(first, second))) if code.startswith("ED7")
    ]


@pytest.mark.parametrize(
    ("first", "second", "severity"),
    [
        ("2.27.3", "2.27.5", "error"),  # from 2.23.4 on NCCL compares the patch number, too
        ("2.21.5", "2.27.5", "warning"),
        ("2.21.4", "2.21.5", "advice"),
    ],
)
def test_nccl_releases(judged: Judge, first: str, second: str, severity: str) -> None:
    nodes = [
        _node(name, f"nvidia-nccl-cu12 {release}", gpus=["NVIDIA H100"])
        for name, release in (("a", first), ("b", second))
    ]
    (finding,) = [
        finding for finding in judged(nodes[0], nodes=tuple(nodes)) if finding.code == "ED706"
    ]
    assert finding.severity == severity


def test_a_node_without_a_gpu_has_no_rank_of_nccl(judged: Judge) -> None:
    nodes = (
        _node("head", "nvidia-nccl-cu12 2.27.3", gpus=[]),
        _node("gpu", "nvidia-nccl-cu12 2.27.5", gpus=["NVIDIA H100"]),
    )
    assert "ED706" not in codes(judged(nodes[0], nodes=nodes))


def test_differences_that_matter_less(judged: Judge) -> None:
    first = _node(
        "a",
        "torch 2.6.0",
        "nvidia-nccl-cu12 2.21.5",
        "vllm 0.8.5",
        glibc_version="2.31",
        gpus=["NVIDIA A10"],
    )
    second = _node(
        "b",
        "torch 2.7.0",
        "nvidia-nccl-cu12 2.26.2",
        "vllm 0.9.0",
        glibc_version="2.35",
        gpus=["NVIDIA A10", "NVIDIA A10"],
    )
    found = {
        finding.code: finding.severity
        for finding in judged(first, nodes=(first, second))
        if finding.code.startswith("ED7")
    }
    assert found == {
        "ED704": "warning",
        "ED705": "warning",
        "ED706": "warning",
        "ED707": "advice",
        "ED708": "advice",
    }
