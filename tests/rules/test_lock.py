"""ED306 and ED307: fires, does not fire, is silent where something is not known."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import pytest

from envdoctor.model.calls import OwnCall
from envdoctor.model.evidence import Absent, Evidence, Fact, Known
from envdoctor.model.facts import LockOverride

from .conftest import Judge, by_code, codes, distribution, facts_of

LOCK = Evidence("lock/envdoctor.lock.json")


def locked(
    pins: str, asked: str = "vllm>=0.8", overrides: Tuple[LockOverride, ...] = (), **requires: str
) -> Dict[str, Fact[Any]]:
    return {
        "lock.asked": Known(tuple(asked.split()), LOCK),
        "lock.pins": Known(dict(line.split("==") for line in pins.split()), LOCK),
        "lock.requires": Known(requires, LOCK),
        "lock.overrides": Known(overrides, LOCK),
    }


@pytest.mark.parametrize(
    ("installed", "pinned", "fires"),
    [
        ("2.6.0", "2.6.0", False),
        ("2.6.0+cu124", "2.6.0", False),
        ("2.6.0", "2.6.0+cu118", True),
        ("2.5.1", "2.6.0", True),
    ],
)
def test_pins(judged: Judge, installed: str, pinned: str, fires: bool) -> None:
    findings = judged(facts_of([f"torch {installed}"]).updated(locked(f"torch=={pinned}")))
    assert ("ED306" in codes(findings)) == fires
    if fires:
        finding = by_code(findings, "ED306")
        assert (finding.component, finding.kind, finding.severity) == (
            "torch",
            "version-mismatch",
            "warning",
        )
        assert installed in finding.message
        assert pinned in finding.message


def test_what_was_asked_for_and_is_missing(judged: Judge) -> None:
    lock = locked("vllm==0.8.5 einops==0.8.0")
    findings = [
        finding
        for finding in judged(facts_of(["torch 2.6.0"]).updated(lock))
        if finding.code == "ED306"
    ]
    assert [(finding.component, finding.severity) for finding in findings] == [
        ("vllm", "error"),
        ("einops", "warning"),
    ]
    assert "ED306" not in codes(judged(facts_of(["torch 2.6.0"], complete=False).updated(lock)))


@pytest.mark.parametrize(
    ("field", "value", "requires", "fires"),
    [
        ("driver.release", "535.54.03", {"driver": "550.54.14"}, True),
        ("driver.release", "550.54.14", {"driver": "550.54.14"}, False),
        ("glibc.version", "2.17", {"glibc": "2.28"}, True),
        ("glibc.version", "2.35", {"glibc": "2.28"}, False),
        ("python.version", "3.10.12", {"python": "3.11"}, True),
        ("python.version", "3.11.1", {"python": "3.11"}, False),
        ("os.architecture", "aarch64", {"architecture": "x86_64"}, True),
        (
            "node.name",
            "nothing is known",
            {"driver": "550.54.14", "glibc": "2.28", "sm": "9.0"},
            False,
        ),
    ],
)
def test_machines(
    judged: Judge, field: str, value: str, requires: Dict[str, str], fires: bool
) -> None:
    facts = facts_of([], complete=False).updated(
        {**locked("torch==2.6.0", **requires), field: Known(value, Evidence("test"))}
    )
    assert ("ED307" in codes(judged(facts))) == fires


def test_a_contradiction_that_the_lock_means(judged: Judge) -> None:
    """Only the lock says so, no row: without it the metadata contradict each other."""
    listed = [distribution("torch 2.6.0", "triton==3.2.0"), "triton 3.3.1"]
    lock = locked(
        "torch==2.6.0 triton==3.3.1",
        overrides=(LockOverride("torch", "triton", "3.3.1", "a-row-that-went"),),
    )
    assert "ED301" in codes(judged(facts_of(listed)))
    assert "ED301" not in codes(judged(facts_of(listed).updated(lock)))
    other = locked(
        "torch==2.6.0 triton==3.4.0",
        overrides=(LockOverride("torch", "triton", "3.4.0", "a-row-that-went"),),
    )
    assert "ED301" in codes(judged(facts_of(listed).updated(other)))


def test_the_remedy_names_the_lock_that_was_given(judged: Judge) -> None:
    facts = facts_of(["torch 2.5.1"]).updated(locked("torch==2.6.0"))
    assert by_code(judged(facts), "ED306").remedies[0].commands == (
        OwnCall("fix", ("--lock", "lock")),
    )
    spaced = {
        **locked("torch==2.6.0"),
        "lock.pins": Known({"torch": "2.6.0"}, Evidence("my lock/envdoctor.lock.json")),
    }
    (command,) = by_code(judged(facts.updated(spaced)), "ED306").remedies[0].commands
    assert str(command) == "envdoctor fix --lock 'my lock'"


def test_a_machine_without_a_driver_is_warned_of(judged: Judge) -> None:
    """It may be where an image is built; a driver of which nothing is known gives no verdict."""
    lock = locked("torch==2.6.0", driver="550.54.14")
    nothing = facts_of([], complete=False).updated(lock)
    assert "ED307" not in codes(judged(nothing))
    without = nothing.updated({"driver.release": Absent(Evidence("/proc/driver/nvidia/version"))})
    finding = by_code(judged(without), "ED307")
    assert (finding.severity, finding.component, finding.kind) == (
        "warning",
        "nvidia-driver",
        "missing",
    )


@pytest.mark.parametrize("field", ["driver.release", "glibc.version"])
def test_what_is_not_known_is_undetermined(judged: Judge, field: str) -> None:
    floors = {"driver.release": {"driver": "550.54.14"}, "glibc.version": {"glibc": "2.28"}}
    findings = judged(facts_of([], complete=False).updated(locked("torch==2.6.0", **floors[field])))
    assert [str(finding.missing) for finding in findings if finding.code == "ED307"] == [field]
    assert codes(findings, "undetermined").count("ED307") == 1


def test_devices_of_one_capability_are_one_finding(judged: Judge) -> None:
    facts = facts_of(gpus=["V100", "Tesla V100-SXM2-16GB", "H100"])
    findings = judged(facts.updated(locked("torch==2.6.0", sm="8.0,9.0")))
    assert [finding.key for finding in findings if finding.code == "ED307"] == [
        "ED307:torch:arch-missing:7.0"
    ]
