"""What was not read is inferred from neighbours, and processor builds are none for a GPU."""

from __future__ import annotations

from typing import Sequence

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import resolve
from envdoctor.lock.solver.candidates import Catalog, Limits
from envdoctor.lock.solver.inference import Inference
from envdoctor.lock.solver.misfit import HAVE, Misfit
from envdoctor.matrix.derive import build_attributes, find_builds
from envdoctor.matrix.loader import Matrix, load_matrix
from envdoctor.matrix.tables import Build, Release
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Explanation, Resolution
from envdoctor.model.versions import parse_version


def releases(*entries: tuple[str, str, Sequence[Build]]) -> Inference:
    return Inference(
        [
            (parse_version(version), Release(version, day, builds=tuple(builds)))
            for version, day, builds in entries
        ],
        "x86_64",
        ("cuda", "code", "glibc"),
    )


def read(*sass: str, cuda: str = "12.4", glibc: str = "2.28", **others: str) -> Build:
    return Build(sass=sass, cuda=cuda, glibc=glibc, ptx_read=True, **others)  # type: ignore[arg-type]


def words(inference: Inference, place: int) -> dict[str, str]:
    return {
        item.attribute: ",".join(sorted(item.value))
        if isinstance(item.value, frozenset)
        else str(item.value)
        for item in inference.missing(place, {})
    }


def test_between_two_releases_only_what_both_have_counts() -> None:
    inference = releases(
        ("1.0", "2025-01-01", [read("7.0", "8.0", glibc="2.17")]),
        ("1.1", "2025-02-01", []),
        ("1.2", "2025-02-20", [read("8.0", "9.0", cuda="12.8")]),
    )
    assert words(inference, 1) == {"cuda": "12.8", "code": "sass:8.0", "glibc": "2.28"}


def test_neighbours_come_before_the_other_architecture() -> None:
    inference = releases(
        ("1.0", "2025-01-01", [read("7.0")]),
        ("1.1", "2025-02-01", [read("9.0", architecture="aarch64")]),
    )
    assert words(inference, 1)["code"] == "sass:7.0"


def test_without_neighbours_the_same_release_for_another_architecture_counts() -> None:
    inference = releases(
        ("1.0", "2023-01-01", [read("7.0")]),
        ("1.1", "2025-02-01", [read("9.0", architecture="aarch64")]),
    )
    (code,) = [item for item in inference.missing(1, {}) if item.attribute == "code"]
    assert (
        code.text == "its GPU code was not read, and is taken to be that of the wheel for aarch64"
    )


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_neighbours_seldom_promise_more_than_a_wheel_has(architecture: str, matrix: Matrix) -> None:
    """Each wheel that was read, held against what its neighbours say of what a lock asks them for.
    The same release for the other architecture says something else of 210 of the 252 wheels of
    which both were known.
    """
    right, judged, too_much = 0, 0, 0
    for package in filter(None, map(matrix.package, matrix.package_names)):
        entries = list(package.releases())
        wanted = ("code", "glibc") if package.name in matrix.code_demands else ("glibc",)
        inference = Inference(entries, architecture, wanted)
        for place, (version, release) in enumerate(entries):
            wheels = [
                build_attributes(build) for build in find_builds(release, version, architecture)
            ]
            for inferred in inference.missing(place, {}):
                known = {wheel.get(inferred.attribute) for wheel in wheels} - {None}
                if len(known) != 1 or inferred.origin.startswith("the wheel for"):
                    continue
                judged, value = judged + 1, known.pop()
                right += inferred.value == value
                too_much += inferred.attribute == "code" and not inferred.value <= value
    assert right / judged >= 0.85  # 542 of 601 and 152 of 158 on 2026-11-28
    assert too_much / judged <= 0.01  # vLLM 0.4.0 alone left out what came before and after it


def test_what_is_older_than_all_that_was_read_has_no_later_code() -> None:
    inference = releases(("1.0", "2020-01-01", []), ("2.0", "2025-01-01", [read("8.0")]))
    assert words(inference, 0) == {"code": "sass:8.0"}


def test_what_is_newer_by_years_stays_unknown() -> None:
    inference = releases(("1.0", "2020-01-01", [read("8.0")]), ("2.0", "2025-01-01", []))
    assert words(inference, 1) == {}


@pytest.mark.parametrize("version", ["2.6.0", "1.12.1"])
def test_torch_for_arm_has_no_cuda_before_2_11(version: str, matrix: Matrix) -> None:
    catalog = Catalog(matrix, Request((), "3.10", architecture="aarch64"))
    table = catalog.table("torch")
    (candidate,) = [
        table.at(1 << n)
        for n, entry in enumerate(table.candidates)
        if str(entry.version) == version
    ]
    assert catalog.refusal("torch", candidate, Limits()) is None
    refusal = catalog.refusal("torch", candidate, Limits(cuda=True))
    assert refusal == Misfit("cuda", HAVE, "no build for CUDA on aarch64 on PyPI")


def test_no_processor_build_for_a_gpu_but_the_driver_that_it_takes(matrix: Matrix) -> None:
    request = Request((parse_root("torch"),), "3.12", architecture="aarch64")
    machine = Facts(parse_assumptions(["gpu=GH200", "nvidia-driver=535.129.03"]))
    resolution = resolve(request, (machine,), matrix)
    assert isinstance(resolution, Explanation)
    assert any("no build for CUDA on aarch64" in cause.text for cause in resolution.causes)
    assert resolution.ways_out == ("update the driver to 580.65.06 or newer: torch 2.15.0",)
    bare = resolve(request, (Facts(),), matrix)
    assert isinstance(bare, Resolution)


def test_what_is_inferred_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = load_matrix()
    vllm = matrix.package("vllm")
    assert vllm is not None
    unread = [
        (version, release._replace(builds=()) if str(version) == "0.30.0" else release)
        for version, release in vllm.releases()
    ]
    monkeypatch.setattr(vllm, "_releases", tuple(unread))
    request = Request((parse_root("vllm==0.30.0"),), "3.12", architecture="aarch64")
    machine = Facts(parse_assumptions(["gpu=GH200", "nvidia-driver=580.95.05"]))
    resolution = resolve(request, (machine,), matrix)
    assert isinstance(resolution, Resolution)
    pin = resolution.pin("vllm")
    assert pin is not None
    assert [reason.text for reason in pin.reasons if reason.kind == "inferred"] == [
        "its CUDA version was not read, and is taken to be that of 0.29.0",
        "its GPU code was not read, and is taken to be that of 0.29.0 and 0.31.0",
        "its glibc was not read, and is taken to be that of 0.29.0 and 0.31.0",
    ]
