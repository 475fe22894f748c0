"""Releases without a wheel: which of them are candidates, and beside what.

That these sdists build, and with what, was run: matrices/sdists.toml says on which Pythons.
"""

from __future__ import annotations

from typing import Dict, Sequence, Union

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import resolve
from envdoctor.lock.solver.candidates import Catalog, Limits
from envdoctor.lock.solver.source_builds import build_of
from envdoctor.matrix.loader import Matrix
from envdoctor.model.evidence import Absent, Evidence
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Explanation, Resolution
from envdoctor.model.versions import parse_version

H100 = Facts(parse_assumptions(("gpu=H100", "nvidia-driver=580.95.05")))
NO_NVCC = H100.updated({"toolkit.version": Absent(Evidence("PATH", "no nvcc"))})


def _with_nvcc(version: str) -> Facts:
    return Facts(
        parse_assumptions(("gpu=H100", "nvidia-driver=580.95.05", f"cuda-toolkit={version}"))
    )


def _resolved(
    matrix: Matrix, *texts: str, python: str = "3.12", facts: Facts = H100
) -> Union[Resolution, Explanation]:
    return resolve(Request(tuple(map(parse_root, texts)), python), (facts,), matrix)


def _pins(found: Union[Resolution, Explanation], names: Sequence[str]) -> Dict[str, str]:
    assert isinstance(found, Resolution), [cause.text for cause in found.causes]
    return {name: str(pin.version) for name in names for pin in [found.pin(name)] if pin}


def test_no_source_archive_of_years_ago_frees_torch(matrix: Matrix) -> None:
    """vllm 0.1.3 asks for next to nothing, and has no wheel."""
    pins = _pins(_resolved(matrix, "torch", "vllm"), ["vllm"])
    assert parse_version(pins["vllm"]) >= parse_version("0.32")


def test_wheels_for_python_2_serve_no_python_3(matrix: Matrix) -> None:
    resolution = _resolved(matrix, "numpy<2", "transformers", python="3.13")
    assert isinstance(resolution, Explanation), resolution.pins
    assert any("Python 3.13" in cause.text for cause in resolution.causes)
    assert any(way.startswith("use Python 3.12: numpy 1.26.4") for way in resolution.ways_out)


@pytest.mark.parametrize("python", ["3.9", "3.12", "3.14"])
def test_what_is_built_is_known_to_build(matrix: Matrix, python: str) -> None:
    catalog = Catalog(matrix, Request((), python))
    for name in matrix.package_names:
        for candidate in catalog.table(name).candidates:
            if candidate.from_source and catalog.refusal(name, candidate, Limits()) is None:
                build = candidate.build
                assert build is not None
                assert set(build.needs) <= set(candidate.release.requires or ())


@pytest.mark.parametrize(
    ("name", "version", "python", "known"),
    [
        ("antlr4-python3-runtime", "4.9.3", "3.14", True),  # run there
        ("deepspeed", "0.9.5", "3.11", True),
        ("deepspeed", "0.9.5", "3.13", False),  # of 2023-06, more than a year before
        ("flash-attn", "2.8.3", "3.14", True),  # of 2025-08, two months before
        ("flash-attn", "2.8.3", "3.16", False),  # not out
        ("vllm", "0.1.3", "3.10", False),
    ],
)
def test_a_build_is_for_the_pythons_of_its_time(
    matrix: Matrix, name: str, version: str, python: str, known: bool
) -> None:
    package = matrix.package(name)
    assert package is not None
    number = parse_version(version)
    release = package.release(number)
    assert release is not None
    found = build_of(name, number, release, parse_version(python), matrix)
    assert (found is not None) is known


def test_what_cannot_be_built_for_a_torch_is_not_beside_it(matrix: Matrix) -> None:
    resolution = _resolved(matrix, "flash-attn", "torch==2.14.0")
    assert isinstance(resolution, Explanation), resolution.pins
    assert "flash-attn-2-build-torch-2.14" in {cause.row for cause in resolution.causes}
    pins = _pins(_resolved(matrix, "openrlhf"), ["openrlhf", "flash-attn", "torch"])
    assert parse_version(pins["torch"]) < parse_version("2.14")


def test_the_toolkit_of_the_target_decides_the_cuda_of_torch(matrix: Matrix) -> None:
    """The CUDA majors are those of torch's own wheels: 12 up to 2.10, 13 from 2.11 on."""
    at_will = _pins(_resolved(matrix, "flash-attn", "torch"), ["torch"])
    of_12 = _resolved(matrix, "flash-attn", "torch", facts=_with_nvcc("12.8"))
    assert parse_version(at_will["torch"]) >= parse_version("2.11")
    assert parse_version(_pins(of_12, ["torch"])["torch"]) < parse_version("2.11")


def test_without_nvcc_its_project_has_to_have_a_wheel(matrix: Matrix) -> None:
    resolution = _resolved(matrix, "flash-attn", "torch", facts=NO_NVCC)
    assert isinstance(resolution, Resolution), [cause.text for cause in resolution.causes]
    flash, torch = resolution.pin("flash-attn"), resolution.pin("torch")
    assert flash is not None
    assert torch is not None
    assert flash.build is not None
    assert flash.build.fetched
    package = matrix.package("flash-attn")
    assert package is not None
    release = package.release(flash.version)
    assert release is not None
    minor = ".".join(map(str, torch.version.release[:2]))
    assert minor in {
        build.torch
        for build in release.builds
        if build.index_name == "github" and (not build.pythons or "cp312" in build.pythons)
    }
    asked = _resolved(matrix, "flash-attn", "torch==2.13.0", facts=NO_NVCC)
    assert isinstance(asked, Explanation)
    assert any("toolkit none" in cause.text for cause in asked.causes)
