"""Machines that no packages cure: the resolver says of them what check says."""

from __future__ import annotations

from itertools import product

import pytest

from envdoctor.fix.repair import plan
from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.locking import lock
from envdoctor.lock.solver import resolve
from envdoctor.matrix.loader import Matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Explanation, Resolution
from envdoctor.rules import judge

from .grid import DRIVERS, GPUS

REQUEST = Request((parse_root("einops"),), "3.11")  # asks nothing of a machine


def machine(driver: str, gpu: str) -> Facts:
    return Facts(parse_assumptions([f"nvidia-driver={driver}", f"gpu={gpu}"]))


@pytest.mark.parametrize(("driver", "gpu"), list(product(DRIVERS, GPUS)))
def test_a_machine_that_check_refuses_gets_no_lock(driver: str, gpu: str, matrix: Matrix) -> None:
    facts = machine(driver, gpu)
    refused = [
        finding.row
        for finding in judge(facts, matrix, today=matrix.date)
        if finding.severity == "error"
    ]
    resolution = resolve(REQUEST, (facts,), matrix)
    if not refused:
        assert isinstance(resolution, Resolution)
        return
    assert isinstance(resolution, Explanation)
    assert [cause.row for cause in resolution.causes] == refused
    assert {cause.kind for cause in resolution.causes} == {"hardware"}
    assert driver in resolution.causes[0].text
    assert gpu in resolution.causes[0].text


@pytest.mark.parametrize(
    ("driver", "gpu", "way"),
    [
        ("615.71.09", "V100", "install driver R580"),
        ("550.54.15", "B200", "update the driver to 570 or newer"),
    ],
)
def test_the_way_out_is_a_driver_that_knows_the_device(
    driver: str, gpu: str, way: str, matrix: Matrix
) -> None:
    resolution = resolve(REQUEST, (machine(driver, gpu),), matrix)
    assert isinstance(resolution, Explanation)
    assert any(line.startswith(way) for line in resolution.ways_out), resolution.ways_out


def test_one_such_target_among_several_is_named(matrix: Matrix) -> None:
    resolution = resolve(
        REQUEST, (machine("550.54.15", "H100"), machine("550.54.15", "B200")), matrix
    )
    assert isinstance(resolution, Explanation)
    assert "B200" in resolution.causes[0].text
    assert "H100" not in resolution.causes[0].text


def test_what_packages_can_cure_on_such_a_machine_is_cured(matrix: Matrix) -> None:
    installed = {
        "vllm": Distribution("vllm", "0.8.5"),
        "torch": Distribution("torch", "2.7.1"),
        "transformers": Distribution("transformers", "4.51.3"),
    }
    here = Evidence("test")
    facts = machine("615.71.09", "V100").updated(
        {"distributions": Known(installed, here), "python.version": Known("3.11.9", here)}
    )
    assert errors(facts, matrix) >= {"ED109", "ED304"}
    change_plan = plan(facts, matrix, alternatives=False)
    assert not isinstance(change_plan, Explanation)
    assert change_plan.changes
    assert {finding.code for finding in change_plan.remaining} == {"ED109"}


def errors(facts: Facts, matrix: Matrix) -> frozenset[str]:
    return frozenset(
        finding.code
        for finding in judge(facts, matrix, today=matrix.date)
        if finding.severity == "error"
    )


def test_a_board_takes_builds_for_servers_from_some_system_on(matrix: Matrix) -> None:
    torch = Request((parse_root("torch"),), "3.10", architecture="aarch64")
    refused = resolve(torch, (machine("540.4.0", "Orin"),), matrix)
    assert isinstance(refused, Explanation)
    assert "JetPack 7.2" in refused.causes[-1].text
    assert "https://pypi.jetson-ai-lab.io" in refused.causes[-1].text
    (way,) = refused.ways_out
    assert way.startswith("update the driver to 580.65.06 or newer, with JetPack 7.2 or newer: ")
    for gpu, is_named in (("Orin", True), ("Thor", False), ("GH200", False)):
        stated = ["nvidia-driver=595.58.03", f"gpu={gpu}", "os.architecture=aarch64"]
        resolution = lock(["torch"], (Facts(parse_assumptions(stated)),), matrix, python="3.12")
        assert isinstance(resolution, Resolution)
        assert any("JetPack 7.2" in note for note in resolution.notes) is is_named


def test_a_board_is_named_for_the_driver_of_its_own_target_alone(matrix: Matrix) -> None:
    torch = Request((parse_root("torch"),), "3.12", architecture="aarch64")
    drivers = {"Orin": "595.58.03", "GH200": "595.58.03"}
    for old, system in (("Orin", ", with JetPack 7.2 or newer"), ("GH200", "")):
        there = {**drivers, old: "540.4.0"}
        refused = resolve(torch, [machine(driver, gpu) for gpu, driver in there.items()], matrix)
        assert isinstance(refused, Explanation)
        assert refused.ways_out[0].startswith(
            f"update the driver to 580.65.06 or newer{system} on {old}, driver 540.4.0: "
        ), refused.ways_out


def test_no_build_for_the_processor_is_a_way_out_where_a_gpu_was_named(matrix: Matrix) -> None:
    """PyPI's torch 2.8.0 for aarch64 is without CUDA, on whatever driver and GPU."""
    torch = Request((parse_root("torch==2.8.0"),), "3.10", architecture="aarch64")
    for driver, words in (
        ("580.95.05", "ask for torch without ==2.8.0"),
        ("550.54.15", "update the driver to 580.65.06 or newer and ask for torch without ==2.8.0"),
    ):
        refused = resolve(torch, (machine(driver, "GH200"),), matrix)
        assert isinstance(refused, Explanation)
        assert refused.ways_out == (f"{words}: torch 2.14.1",)
