"""What the solver may choose from."""

from __future__ import annotations

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import resolve
from envdoctor.lock.solver.candidates import Catalog
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Resolution
from envdoctor.model.versions import parse_version


def test_a_build_that_only_nightlies_have_is_no_candidate(matrix: Matrix) -> None:
    package = matrix.package("torch")
    assert package is not None
    nightly = {
        f"{version}+{build.variant}"
        for version, release in package.releases()
        for build in release.builds
        if build.nightly
    }
    request = Request((parse_root("torch"),), "3.12", allow_index=("pytorch",))
    offered = {str(entry.version) for entry in Catalog(matrix, request).table("torch").candidates}
    assert nightly
    assert not nightly & offered
    assert any("+" in version for version in offered)


def _pin(matrix: Matrix, name: str, *texts: str) -> str:
    facts = Facts(parse_assumptions(("gpu=H100", "nvidia-driver=580.95.05")))
    found = resolve(Request(tuple(map(parse_root, texts)), "3.12"), (facts,), matrix)
    assert isinstance(found, Resolution), [cause.text for cause in found.causes]
    pin = found.pin(name)
    return str(pin.version) if pin is not None else ""


def test_pre_releases_are_judged_over_all_requirements_together(matrix: Matrix) -> None:
    """sglang 0.5.20 pins cuda-tile==1.6.0rc5, flashinfer asks for >=1.4.0 beside it: uv takes
    both.
    """
    assert _pin(matrix, "cuda-tile", "sglang==0.5.20") == "1.6.0rc5"
    for texts in (("cuda-tile",), ("cuda-tile", "flashinfer-python"), ("cuda-tile<1.7",)):
        assert not parse_version(_pin(matrix, "cuda-tile", *texts)).is_prerelease
    assert _pin(matrix, "cuda-tile", "cuda-tile>=1.6.0rc1,<=1.6.0rc5") == "1.6.0rc5"


def test_a_package_whose_final_releases_are_withdrawn_is_taken_as_it_is(matrix: Matrix) -> None:
    assert parse_version(_pin(matrix, "flash-attn-4", "flash-attn-4")).is_prerelease
