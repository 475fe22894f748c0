"""No root falls years back because another is newest, and what has to is said."""

from __future__ import annotations

from typing import Sequence

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import resolve
from envdoctor.lock.solver.staleness import years
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Resolution

H100 = ("gpu=H100", "nvidia-driver=580.95.05")


def lock(
    matrix: Matrix, *roots: str, python: str = "3.12", assume: Sequence[str] = H100
) -> Resolution:
    request = Request(tuple(map(parse_root, roots)), python, as_of="2026-11-22")
    resolution = resolve(request, (Facts(parse_assumptions(assume)),), matrix)
    assert isinstance(resolution, Resolution)
    return resolution


def pins(found: Resolution, *names: str) -> list[str]:
    return [str(pin.version) for name in names for pin in [found.pin(name)] if pin is not None]


@pytest.mark.parametrize("roots", [("torch", "vllm"), ("vllm", "torch"), ("vllm",)])
def test_the_newest_engine_with_the_torch_that_it_pins(
    matrix: Matrix, roots: Sequence[str]
) -> None:
    resolution = lock(matrix, *roots)
    assert pins(resolution, "vllm", "torch") == ["0.33.0", "2.14.0"]
    assert not resolution.notes


def test_peers_share_what_it_costs(matrix: Matrix) -> None:
    """verl 0.9 caps transformers, which the newest vllm does not take: an older verl asks less."""
    resolution = lock(matrix, "torch", "transformers", "vllm", "verl")
    assert pins(resolution, "verl") == ["0.9.1"]
    assert pins(resolution, "vllm")[0].startswith("0.3")
    assert not resolution.notes


def test_a_root_more_than_a_year_behind_is_told_with_cause_and_alternative(matrix: Matrix) -> None:
    resolution = lock(matrix, "torch==2.4.0", "vllm")
    (note,) = resolution.notes
    assert note.startswith("vllm 0.6.3.post1 is of 2024-10-17, 24 months behind 0.33.0")
    assert "you asked for torch==2.4.0" in note
    assert "instead: vllm 0.33.0 with torch 2.14.0, asked for without torch==2.4.0" in note


def test_a_root_of_which_only_old_releases_fit_says_why_and_where_new_ones_do(
    matrix: Matrix,
) -> None:
    resolution = lock(matrix, "vllm", python="3.9")
    (note,) = resolution.notes
    newest = "vllm 0.11.0, the newest that fits here, is 13 months older than 0.33.0: "
    assert note.startswith(f"{newest}vllm 0.33.0 needs Python <3.15,>=3.11, not 3.9; instead: ")
    assert note.endswith("use Python 3.12: vllm 0.33.0, torch 2.14.0")


def test_a_root_that_works_badly_is_told_with_the_set_in_which_it_does_not(matrix: Matrix) -> None:
    """The newest engine stands: what spares xformers the fault is half a year older."""
    resolution = lock(matrix, "vllm", "xformers")
    assert "xformers-0.0.34-cuda-12" in [reason.row for reason in resolution.warnings]
    (note,) = resolution.notes
    assert note.endswith(
        "; instead: vllm 0.19.1 with xformers 0.0.35, torch 2.10.0 (vllm is 6 months behind)"
    )
    other = lock(matrix, "vllm==0.19.1", "xformers==0.0.35")
    assert pins(other, "torch") == ["2.10.0"]
    assert not [reason for reason in other.warnings if reason.row == "xformers-0.0.34-cuda-12"]


def test_what_cannot_stand_together_is_offered_apart(matrix: Matrix) -> None:
    resolution = lock(matrix, "sglang", "outlines")
    (note,) = resolution.notes
    assert "need outlines 0.1.11" in note
    assert note.endswith("without sglang")


def test_a_release_of_a_root_that_cannot_be_imported_is_worth_going_back_for(
    matrix: Matrix,
) -> None:
    assert pins(lock(matrix, "torch==2.9.1", "torchao"), "torchao") == ["0.17.0"]
    assert pins(lock(matrix, "torch==2.10.0", "torchao"), "torchao") == ["0.18.0"]


def test_a_year_to_the_day_is_none() -> None:
    assert [years(days) for days in (0, 1, 365, 366, 730, 731)] == [0, 0, 0, 1, 1, 2]


def test_a_root_that_is_behind_has_a_reason(matrix: Matrix) -> None:
    resolution = lock(matrix, "vllm", "verl")
    pin = resolution.pin("vllm")
    assert pin is not None
    if str(pin.version) != "0.33.0":
        texts = [reason.text for reason in pin.reasons if reason.kind == "refused"]
        assert any("verl" in text and "transformers" in text for text in texts), texts


def test_a_row_that_only_degrades_is_named_where_it_holds_a_root_back(matrix: Matrix) -> None:
    """Nothing forbids verl 0.9.1 beside this sglang, but its rollout does not start there."""
    assume = ("gpu=T4:8", "nvidia-driver=550.54.15", "glibc=2.35")
    pin = lock(matrix, "verl", "deepspeed", "sglang", python="3.11", assume=assume).pin("verl")
    assert pin is not None
    if str(pin.version) != "0.9.1":
        said = [reason for reason in pin.reasons if reason.text.startswith("not 0.9.1: ")]
        assert said, pin.reasons
        assert matrix.row(said[0].row) is not None
        assert said[0].sources
