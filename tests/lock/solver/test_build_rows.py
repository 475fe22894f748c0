"""What follows from code and no metadata says: twins of one release, floors of transformers."""

from __future__ import annotations

from typing import Sequence

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import resolve
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Explanation, Resolution


def answer(matrix: Matrix, roots: Sequence[str], *assumed: str) -> Resolution | Explanation:
    request = Request(tuple(map(parse_root, roots)), "3.11", as_of="2026-11-22")
    return resolve(request, (Facts(parse_assumptions(assumed)),), matrix)


def test_flashinfer_and_its_cubins_are_of_one_release(matrix: Matrix) -> None:
    resolution = answer(matrix, ["flashinfer-python", "flashinfer-cubin"])
    assert isinstance(resolution, Resolution)
    versions = {str(pin.version) for pin in resolution.pins if pin.name.startswith("flashinfer")}
    assert versions == {"0.6.13"}
    apart = answer(matrix, ["flashinfer-python==0.7.2", "flashinfer-cubin==0.6.13"])
    assert isinstance(apart, Explanation)
    assert any("cannot be imported beside" in cause.text for cause in apart.causes)


@pytest.mark.parametrize(
    ("transformers", "torch", "fits"),
    [
        ("5.23.0", "2.5.1", False),
        ("5.23.0", "2.6.0", True),
        ("4.57.6", "2.0.1", False),
        ("4.57.6", "2.2.2", True),
        ("4.51.3", "2.0.1", True),
    ],
)
def test_transformers_switches_an_older_torch_off(
    transformers: str, torch: str, fits: bool, matrix: Matrix
) -> None:
    resolution = answer(matrix, [f"transformers=={transformers}", f"torch=={torch}"])
    assert isinstance(resolution, Resolution) is fits
    if isinstance(resolution, Explanation):
        assert any("switches a torch before" in cause.text for cause in resolution.causes)


def test_an_old_driver_gets_the_transformers_that_takes_its_torch(matrix: Matrix) -> None:
    resolution = answer(
        matrix, ["torch", "transformers"], "gpu=RTX 3090", "nvidia-driver=470.82.01"
    )
    assert isinstance(resolution, Resolution)
    pins = {pin.name: str(pin.version) for pin in resolution.pins}
    assert (pins["torch"], pins["transformers"]) == ("2.0.1", "4.49.0")
    behind, oldest = resolution.notes
    assert "too old for CUDA" in behind.partition(";")[0]
    assert oldest.startswith("torch 2.0.1, the newest that fits here, is ")
    assert "; instead: update the driver to 580.65.06 or newer: torch 2." in oldest


def test_what_nobody_measured_is_no_better_choice(matrix: Matrix) -> None:
    """torch is measured from 2.0 on: that 2.0 lacks what transformers uses makes 1.13 none that
    has it.
    """
    resolution = answer(
        matrix,
        ["torch<2.1", "transformers"],
        "gpu=RTX 3090",
        "nvidia-driver=470.82.01",
        "python=3.11",
    )
    assert isinstance(resolution, Resolution)
    pins = {pin.name: str(pin.version) for pin in resolution.pins}
    assert pins["torch"] == "2.0.1"
