"""What the solver may choose from."""

from __future__ import annotations

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import resolve
from envdoctor.lock.solver.candidates import Catalog
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Explanation, Resolution
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
    resolution = resolve(Request(tuple(map(parse_root, texts)), "3.12"), (facts,), matrix)
    assert isinstance(resolution, Resolution), [cause.text for cause in resolution.causes]
    pin = resolution.pin(name)
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


def test_a_release_that_pip_refuses_for_its_metadata_is_no_candidate(matrix: Matrix) -> None:
    """omegaconf 2.0.1 to 2.1.0 ask for ``PyYAML (>=5.1.*)``, which pip reads no more since 24.1."""
    assert _pin(matrix, "omegaconf", "omegaconf<2.1.1") == "2.0.0"
    request = Request((parse_root("omegaconf==2.0.1"),), "3.12")
    refused = resolve(request, (Facts(),), matrix)
    assert isinstance(refused, Explanation)
    assert [cause.kind for cause in refused.causes] == ["request", "metadata"]
    assert refused.causes[1].text == (
        "omegaconf 2.0.1 has a requirement that pip 24.1 and newer refuse: PyYAML (>=5.1.*)"
    )


def test_a_kernel_release_that_no_engine_pins_is_not_taken_for_fitting(matrix: Matrix) -> None:
    """sglang pins sgl-kernel 0.3.17.post1 with torch 2.8 and 0.3.18.post2 with torch 2.9."""
    assert _pin(matrix, "sgl-kernel", "sgl-kernel", "torch") == "0.3.21"
    assert _pin(matrix, "torch", "sgl-kernel", "torch") == "2.9.1"
    assert _pin(matrix, "torch", "sgl-kernel==0.3.18", "torch") == "2.9.1"
