"""Requests of people and what has to come of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import resolve
from envdoctor.lock.solver.objective import applied
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Explanation, Resolution
from envdoctor.rules import judge

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).parents[2] / "data" / "scenarios" / "solver.toml"
SCENARIOS: List[Dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))["scenario"]
LINES = 12


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["name"] for scenario in SCENARIOS])
def test_scenario(scenario: Dict[str, Any], matrix: Matrix) -> None:
    request = Request(
        tuple(map(parse_root, scenario["requests"])),
        scenario["python"],
        as_of=scenario.get("as_of"),
        allow_index=tuple(scenario.get("allow_index", ())),
    )
    targets = tuple(Facts(parse_assumptions(assumed)) for assumed in scenario.get("targets", [[]]))
    resolution = resolve(request, targets, matrix)
    if "causes" in scenario:
        assert isinstance(resolution, Explanation), f"it has a solution: {resolution.pins}"
        causes = [cause.text for cause in resolution.causes]
        for words in scenario["causes"]:
            assert any(words in cause for cause in causes), f"{words!r} is not among {causes}"
        for words in scenario["ways_out"]:
            assert any(words in way for way in resolution.ways_out), (
                f"{words!r} is not among {resolution.ways_out}"
            )
        assert len(causes) <= LINES
        assert all(
            cause.sources
            for cause in resolution.causes
            if cause.kind in ("hardware", "row") and cause.row
        )
        return
    assert isinstance(resolution, Resolution), [cause.text for cause in resolution.causes]
    pins = {pin.name: str(pin.version) for pin in resolution.pins}
    expected = scenario.get("pins", {})
    assert {name: pins.get(name) for name in expected} == expected
    for name, start in scenario.get("prefix", {}).items():
        assert pins[name].startswith(start)
    assert [override.row for override in resolution.overrides] == scenario.get("overrides", [])
    if "driver" in scenario:
        assert resolution.requires.driver == scenario["driver"]
    assert all(pin.reasons for pin in resolution.pins), "a pin without a reason"
    for target in targets:
        errors = [
            finding
            for finding in judge(applied(resolution, target), matrix, today=matrix.date)
            if finding.severity == "error" and finding.verdict == "violated"
        ]
        assert not errors


def test_what_nothing_requires_is_absent(matrix: Matrix) -> None:
    resolution = resolve(Request((parse_root("einops"),), "3.11"), (Facts({}),), matrix)
    assert isinstance(resolution, Resolution)
    assert [pin.name for pin in resolution.pins] == ["einops"]


def test_what_is_installed_is_kept_where_nothing_speaks_against_it(matrix: Matrix) -> None:
    installed = {"vllm": "0.8.5", "torch": "2.6.0", "transformers": "4.51.3"}
    resolution = resolve(
        Request(tuple(map(parse_root, ("vllm", "transformers"))), "3.11", prefer=installed),
        (Facts({}),),
        matrix,
    )
    assert isinstance(resolution, Resolution)
    assert {
        pin.name: str(pin.version) for pin in resolution.pins if pin.name in installed
    } == installed


def test_a_yanked_release_is_the_last_resort_and_said_so(matrix: Matrix) -> None:
    resolution = resolve(
        Request(tuple(map(parse_root, ("openrlhf==0.9.0",))), "3.11"), (Facts({}),), matrix
    )
    assert isinstance(resolution, Resolution)
    pin = resolution.pin("transformers")
    assert pin is not None
    assert (str(pin.version), pin.yanked) == ("4.57.0", True)
    assert any(reason.kind == "yanked" for reason in pin.reasons)
    free = resolve(Request((parse_root("transformers<=4.57.0"),), "3.11"), (Facts({}),), matrix)
    assert isinstance(free, Resolution)
    assert str(free.pins[0].version) != "4.57.0"


def test_unknown_hardware_does_not_constrain_but_is_required(matrix: Matrix) -> None:
    resolution = resolve(Request((parse_root("torch==2.11.0"),), "3.11"), (Facts({}),), matrix)
    assert isinstance(resolution, Resolution)
    assert resolution.requires.driver == "580.65.06"
    assert resolution.requires.cuda == "13.0"
    assert "9.0" in resolution.requires.sm
    assert "7.0" not in resolution.requires.sm
    assert resolution.requires.glibc == "2.28"


def test_two_targets_that_cannot_share_a_lock_are_told_apart(matrix: Matrix) -> None:
    targets = tuple(
        Facts(parse_assumptions(assumed))
        for assumed in (
            ["gpu=V100", "nvidia-driver=470.82.01"],
            ["gpu=RTX 5090", "nvidia-driver=580.65.06"],
        )
    )
    resolution = resolve(Request((parse_root("torch"),), "3.11"), targets, matrix)
    assert isinstance(resolution, Explanation)
    assert any("one lock for each kind of machine" in way for way in resolution.ways_out), (
        resolution.ways_out
    )


def test_a_row_that_does_not_block_costs_a_dependency_but_no_root(matrix: Matrix) -> None:
    row = "vllm-lm-format-enforcer-transformers-4.49"
    assert matrix.row(row) is not None
    resolution = resolve(Request((parse_root("vllm==0.6.3"),), "3.10"), (Facts({}),), matrix)
    assert isinstance(resolution, Resolution)
    pin = resolution.pin("transformers")
    assert pin is not None
    assert str(pin.version) == "4.48.3"
    assert [reason.row for reason in pin.reasons if reason.kind == "refused"] == [
        "vllm-transformers-5",
        row,
    ]
    assert row not in [reason.row for reason in resolution.warnings]
    asked = resolve(
        Request(tuple(map(parse_root, ("vllm==0.6.3", "transformers"))), "3.10"),
        (Facts({}),),
        matrix,
    )
    assert isinstance(asked, Resolution)
    root = asked.pin("transformers")
    assert root is not None
    assert str(root.version).startswith("4.57.")
    assert row in [reason.row for reason in asked.warnings]
