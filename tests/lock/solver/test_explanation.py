"""Explanations are true as they are printed, and ways out no greater than they have to be."""

from __future__ import annotations

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import resolve
from envdoctor.lock.solver.candidates import Catalog
from envdoctor.lock.solver.explanation import release_words
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Explanation


@pytest.mark.parametrize(
    ("specifier", "words"),
    [
        ("==2.6.0", "2.6.0"),
        (">=2.9,<2.10", "2.9.0 and 2.9.1"),
        (">=2.7,<2.10", "2.7.0 to 2.9.1"),
        (">=2.7,<2.10,!=2.8.0", "2.7.0 to 2.9.1 but 2.8.0"),
        ("==2.2.*||==2.5.1", "2.2.0 to 2.2.2, 2.5.1"),
        ("==2.0.0||==2.2.0||==2.4.0||==2.6.0||==2.8.0", "5 releases from 2.0.0 to 2.8.0"),
    ],
)
def test_what_is_not_one_range_is_not_printed_as_one(
    specifier: str, words: str, matrix: Matrix
) -> None:
    table = Catalog(matrix, Request((), "3.11")).table("torch")
    bits = 0
    for part in specifier.split("||"):
        bits |= table.mask(part)
    assert release_words(table, bits) == words


def test_of_several_targets_only_those_change_that_have_to(matrix: Matrix) -> None:
    targets = tuple(
        Facts(parse_assumptions(["gpu=H100", f"nvidia-driver={driver}"]))
        for driver in ("580.95.05", "550.54.15")
    )
    request = Request((parse_root("vllm>=0.20"),), "3.11", as_of="2026-11-22")
    found = resolve(request, targets, matrix)
    assert isinstance(found, Explanation)
    assert any(
        way.startswith("update the driver to 580.65.06 or newer on H100, driver 550.54.15: ")
        for way in found.ways_out
    ), found.ways_out


def test_a_way_out_on_which_a_root_is_years_behind_comes_last_and_says_so(matrix: Matrix) -> None:
    roots = ("openrlhf[vllm]>=0.9", "ray>=2.50", "transformers<5")
    request = Request(tuple(map(parse_root, roots)), "3.11", as_of="2026-11-22")
    found = resolve(request, (Facts(),), matrix)
    assert isinstance(found, Explanation)
    late = ["months behind" in way for way in found.ways_out]
    assert late == sorted(late)
    assert not late[0]
