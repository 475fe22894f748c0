"""Profiles on kinds of machines: each cell has a lock that check accepts, or a reason; what
maintainers tested has a lock.
"""

from __future__ import annotations

import pytest

from envdoctor.matrix import curated
from envdoctor.matrix.curated import Profile
from envdoctor.matrix.loader import load_matrix

from .grid import PYTHONS, Cell, cells_of, judge_cells, judge_set, own_machine, profiles_of

MATRIX = load_matrix()
PROFILES = profiles_of(MATRIX)
#: Sets that nobody can install from an index any more, or never could, and why.
GONE = {
    (
        "easyr1",
        "vllm 0.8.2",
    ): "xgrammar 0.1.16, which the index does not have",  # uv says so as well
    ("openrlhf", "0.6.4"): "xgrammar 0.1.16, which the index does not have",
    # uv says so as well: their opencv wants numpy 2, and verl an older one.
    ("rllm", "0.3.0-pre"): "verl 0.7.1 needs numpy <2.0.0",
    ("verl", "0.7.1 vllm 0.17.0"): "verl 0.7.1 needs numpy <2.0.0",
    (
        "vllm",
        "0.5.4",
    ): (
        "cannot be imported with pyairports 0.0.1, an unrelated placeholder"
    ),  # the index has no other, and import vllm ends there
    (
        "slime",
        "head",
    ): (
        "sglang-kernel 0.4.4: The driver is too old for CUDA 13"
    ),  # its image holds sglang's own build for CUDA 12.9
}
SETS = [
    pytest.param(
        profile,
        tested,
        id=f"{profile.name}-{tested.name}",
        # The newest of each profile, and those that are gone: the others are slow tests.
        marks=[]
        if tested == profile.tested[0] or (profile.name, tested.name) in GONE
        else [pytest.mark.slow],
    )
    for profile in PROFILES.values()
    for tested in profile.tested
    if tested.good
]


@pytest.mark.parametrize(("profile", "tested"), SETS)
def test_what_maintainers_tested_has_a_lock(profile: Profile, tested: curated.TestedSet) -> None:
    found = judge_set(tested, *own_machine(tested), MATRIX)
    gone = GONE.get((profile.name, tested.name), "")
    assert gone in found if gone else not found


@pytest.mark.parametrize(
    ("profile", "python", "drivers", "gpus", "locked"),
    [
        (
            "tinyzero",
            "3.10",
            ("470.82.01", "535.129.03", "580.95.05"),
            ("V100", "H20", "B200"),
            {("535.129.03", "V100"), ("535.129.03", "H20")},
        ),
        (
            "verl",
            "3.12",
            ("470.82.01", "550.54.15", "615.71.09"),
            ("T4", "H100"),
            {("550.54.15", "H100"), ("615.71.09", "H100")},
        ),
        ("tinyzero", "3.12", ("535.129.03",), ("A100",), set()),
    ],
)
def test_a_part_of_the_grid(
    profile: str,
    python: str,
    drivers: tuple[str, ...],
    gpus: tuple[str, ...],
    locked: set[tuple[str, str]],
) -> None:
    outcomes = judge_cells(cells_of(profile, python, drivers, gpus), PROFILES[profile], MATRIX)
    assert not [outcome for outcome in outcomes if outcome.fault]
    assert locked <= {
        (outcome.cell.driver, outcome.cell.gpu) for outcome in outcomes if outcome.request
    }
    for outcome in outcomes:
        assert bool(outcome.reason) is not bool(outcome.request)
        if outcome.cell.driver.startswith("470") and outcome.reason:
            assert "driver" in outcome.reason
    if python == "3.12" and profile == "tinyzero":
        assert "Python" in outcomes[0].reason


@pytest.mark.slow
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_the_grid(profile: str, python: str) -> None:
    outcomes = judge_cells(cells_of(profile, python), PROFILES[profile], MATRIX)
    assert not [outcome for outcome in outcomes if outcome.fault]


def test_a_cell_can_fail() -> None:
    """The grid's own judgement: a set that was tested and has no lock is a fault."""
    profile = PROFILES["tinyzero"]
    tested = profile.tested[0]._replace(
        packages=(*profile.tested[0].packages, "torch==2.5.1"), python="3.10"
    )
    assert judge_set(tested, "535.129.03", "A100", MATRIX)
    broken = profile._replace(
        requests=(profile.requests[0]._replace(requirements=("torch==2.4.0", "vllm==0.8.5")),),
        tested=(tested,),
    )
    assert (
        "maintainers tested"
        in judge_cells([Cell("tinyzero", "535.129.03", "A100", "3.10")], broken, MATRIX)[0].fault
    )
