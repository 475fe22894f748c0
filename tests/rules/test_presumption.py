"""What a partial report implies: named, never an error, and nothing where the list is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdoctor.matrix.loader import Matrix, load_matrix

from .conftest import Judge, codes, distribution, errors, facts_of

_SITE = """
[[row]]
id = "site-math"
title = "mathlib 1 breaks"
effect = "{effect}"
trust = "established"
component = "mathlib"
kind = "too-old"
code = "{code}"
when = [{{ env = "mathlib", in = "<2" }}, {{ env = "frame", in = ">=1" }}{more}]
fix = "Install mathlib 2."
pins = ["mathlib>=2"]
sources = [{{ address = "https://example.org/1" }}]
established_by = "test"
date = "2026-01-01"
"""


@pytest.fixture
def site(tmp_path: Path):
    def load(effect: str = "blocks", more: str = "", code: str = "ED390") -> Matrix:
        (tmp_path / "rows.toml").write_text(_SITE.format(effect=effect, more=more, code=code))
        return load_matrix([str(tmp_path)])

    return load


def test_a_pin_implies_what_it_pins(judged: Judge, site) -> None:
    frame = distribution("frame 1.5", "mathlib==1.2")
    findings = [
        finding
        for finding in judged(facts_of([frame], complete=False), matrix=site())
        if finding.row == "site-math"
    ]
    assert [(finding.severity, finding.verdict) for finding in findings] == [
        ("warning", "violated")
    ]
    assert "presumed: mathlib 1.2, which frame 1.5 requires" in findings[0].message


def test_what_is_listed_or_complete_is_not_presumed(judged: Judge, site) -> None:
    frame = distribution("frame 1.5", "mathlib==1.2")
    assert "ED390" not in codes(
        judged(facts_of([frame, "mathlib 2.1"], complete=False), matrix=site())
    )
    assert "ED390" not in codes(judged(facts_of([frame], complete=True), matrix=site()))
    assert "ED390" not in codes(
        judged(facts_of([distribution("frame 1.5", "mathlib>=1")], complete=False), matrix=site())
    )


def test_notes_are_not_presumed(judged: Judge, site) -> None:
    frame = distribution("frame 1.5", "mathlib==1.2")
    assert "ED390" not in codes(
        judged(facts_of([frame], complete=False), matrix=site(effect="note"))
    )


def test_optional_paths_that_were_measured_are_not_presumed_to_be_taken(
    judged: Judge, site
) -> None:
    """Nobody said that mathlib is there, nor that frame's optional use of it is wanted."""
    frame = distribution("frame 1.5", "mathlib==1.2")
    partial, whole = facts_of([frame], complete=False), facts_of([frame, "mathlib 1.2"])
    for code, presumed in (("ED390", True), ("ED308", False), ("ED309", False)):
        matrix = site(effect="degrades", code=code)
        assert (code in codes(judged(partial, matrix=matrix))) == presumed
        assert code in codes(judged(whole, matrix=matrix))
    assert "ED308" in codes(judged(partial, matrix=site(code="ED308")))


def test_variables_that_nobody_mentions_are_not_set(judged: Judge, site) -> None:
    packages = ["frame 1.5", "mathlib 1.2"]
    unless = site(more=', { var = "MATH_FIX", present = false }')
    assert errors(judged(facts_of(packages), matrix=unless))
    assert not errors(judged(facts_of(packages, variables={"MATH_FIX": "1"}), matrix=unless))
    only_if = site(more=', { var = "MATH_FAST", any = ["1"] }')
    assert judged(facts_of(packages), matrix=only_if) == []
    assert errors(judged(facts_of(packages, variables={"MATH_FAST": "1"}), matrix=only_if))


def test_the_newest_of_a_range_is_what_an_installer_takes(judged: Judge) -> None:
    ranges = [
        distribution("vllm", constraint=">=0.16", location=""),
        distribution("openrlhf", constraint="<0.9.5", location=""),
    ]
    findings = [
        finding
        for finding in judged(facts_of(ranges, complete=False))
        if finding.component == "openrlhf" and finding.verdict == "violated"
    ]
    assert findings
    assert not [finding for finding in findings if finding.severity == "error"]
    assert all("<0.9.5" in finding.message for finding in findings if finding.row)


def test_a_range_is_read_together_with_what_the_pinned_releases_require(judged: Judge) -> None:
    """``vllm==0.8.5`` beside ``torch>=2.5``: an installer takes the torch 2.6.0 that vllm requires,
    not the newest of all.
    """
    file = [
        distribution("vllm 0.8.5", location="")._replace(requires=None),
        distribution("torch", constraint=">=2.5", location=""),
    ]
    findings = [
        finding
        for finding in judged(facts_of(file, complete=False, driver_release="535.129.03"))
        if finding.row
    ]
    assert not [
        finding
        for finding in findings
        if "2.15" in finding.message or finding.kind == "cuda-major-mismatch"
    ]
    alone = judged(facts_of(file[1:], complete=False, driver_release="535.129.03"))
    assert "ED101" in codes(alone)  # alone it is a torch for CUDA 13
    impossible = [
        distribution("vllm 0.8.5", location="")._replace(requires=None),
        distribution("torch", constraint=">=2.7", location=""),
    ]
    assert "ED101" not in codes(
        judged(facts_of(impossible, complete=False, driver_release="535.129.03"))
    )  # nothing fits both: nothing is presumed


def test_ranges_are_read_together(judged: Judge) -> None:
    """The newest vLLM in its range pins torch, and so an installer takes that one; where both
    cannot be, nothing is presumed.
    """

    def found(torch: str):
        ranges = [
            distribution("vllm", constraint=">=0.16,<0.20", location=""),
            distribution("torch", constraint=torch, location=""),
        ]
        return judged(
            facts_of(
                [entry._replace(requires=None) for entry in ranges],
                complete=False,
                driver_release="550.54.15",
            )
        )

    assert not {"ED101", "ED390", "ED490"}.intersection(
        codes([finding for finding in found(">=2.5") if finding.verdict == "violated"])
    )
    assert not [finding for finding in found(">=2.11") if "presumed" in finding.message]


def test_the_index_of_what_belongs_to_torch_is_torchs_too(judged: Judge) -> None:
    """A torch that is only presumed is of the build that torchvision's label names."""
    vision = distribution("torchvision 0.22.1+cu118")
    asking = distribution("xformers 0.0.31", "torch==2.7.1")
    row = "torchvision-cu11-torch-cu12"
    presumed = judged(facts_of([vision, asking], complete=False))
    assert row not in {finding.row for finding in presumed if finding.verdict == "violated"}
    stated = judged(facts_of([vision, distribution("torch 2.7.1")], complete=False))
    assert row in {finding.row for finding in stated if finding.verdict == "violated"}
