"""Explanations are true as they are printed, and ways out no greater than they have to be."""

from __future__ import annotations

import re

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver import explanation, resolve
from envdoctor.lock.solver.candidates import Catalog
from envdoctor.lock.solver.explanation import explain, refusal_of, release_words
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
    resolution = resolve(request, targets, matrix)
    assert isinstance(resolution, Explanation)
    assert any(
        way.startswith("update the driver to 580.65.06 or newer on H100, driver 550.54.15: ")
        for way in resolution.ways_out
    ), resolution.ways_out


def test_a_way_out_on_which_a_root_is_years_behind_comes_last_and_says_so(matrix: Matrix) -> None:
    roots = ("openrlhf[vllm]>=0.9", "ray>=2.50", "transformers<5")
    request = Request(tuple(map(parse_root, roots)), "3.11", as_of="2026-11-22")
    resolution = resolve(request, (Facts(),), matrix)
    assert isinstance(resolution, Explanation)
    late = ["months behind" in way for way in resolution.ways_out]
    assert late == sorted(late)
    assert not late[0]


@pytest.mark.parametrize("place", [("darwin", "arm64"), ("win32", "AMD64")])
def test_what_has_wheels_for_linux_alone_is_offered_there_and_not_left_out(
    place: tuple[str, str], matrix: Matrix
) -> None:
    roots = tuple(map(parse_root, ("torch", "vllm")))
    resolution = resolve(Request(roots, "3.11", *place), (Facts(),), matrix)
    assert isinstance(resolution, Explanation)
    words, _, promised = resolution.ways_out[0].rpartition(": ")
    assert words == (
        "lock for Linux (--assume os.platform=linux os.architecture=x86_64 --python-version 3.11)"
    )
    assert not any(way.startswith("leave out") for way in resolution.ways_out)
    stated = Facts(parse_assumptions(["os.platform=linux", "os.architecture=x86_64"]))
    there = resolve(Request(roots, "3.11"), (stated,), matrix)
    assert not isinstance(there, Explanation)
    assert promised == ", ".join(f"{name} {there.pin(name).version}" for name in ("torch", "vllm"))


def test_a_gpu_that_was_said_is_that_of_the_linux_machine_too(matrix: Matrix) -> None:
    gpu = ["gpu=H20", "nvidia-driver=535.129.03"]
    request = Request((parse_root("vllm"),), "3.11", "darwin", "arm64")
    resolution = resolve(request, (Facts(parse_assumptions(gpu)),), matrix)
    assert isinstance(resolution, Explanation)
    assert resolution.ways_out[0].startswith("lock for Linux (")
    assert resolution.ways_out[0].endswith(": vllm 0.19.1, torch 2.10.0")


def test_one_release_needs(matrix: Matrix) -> None:
    request = Request(tuple(map(parse_root, ("vllm==0.6.3", "torch==2.6.0"))), "3.11")
    resolution = resolve(request, (Facts(),), matrix)
    assert isinstance(resolution, Explanation)
    assert "vllm 0.6.3 needs torch 2.4.0" in [cause.text for cause in resolution.causes]


@pytest.mark.slow
def test_many_releases_need(matrix: Matrix) -> None:
    request = Request(tuple(map(parse_root, ("sglang>=0.5.10", "outlines>=1"))), "3.11")
    resolution = resolve(request, (Facts(),), matrix)
    assert isinstance(resolution, Explanation)
    texts = [cause.text for cause in resolution.causes]
    assert any(re.fullmatch(r"sglang 0\.5\.10 to \S+ need outlines 0\.1\.11", t) for t in texts)


def test_of_many_causes_those_are_shown_that_exclude_what_is_young(matrix: Matrix) -> None:
    gpu = Facts(parse_assumptions(["gpu=H100", "nvidia-driver=580.95.05"]))
    request = Request((parse_root("xformers"), parse_root("sglang")), "3.13", as_of="2026-11-22")
    resolution = resolve(request, (gpu,), matrix)
    assert isinstance(resolution, Explanation)
    *causes, rest = resolution.causes
    assert [cause.kind for cause in causes] == ["request", "metadata", "metadata", "python"]
    assert causes[-1].text.startswith("outlines-core ")
    assert causes[-1].text.endswith(" have no wheel for Python 3.13")
    assert re.fullmatch(r"and \d+ more, without which older releases would do", rest.text)


def test_of_too_many_causes_that_exclude_what_is_young_the_rest_is_counted_apart(
    matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Facts(parse_assumptions(["gpu=H100", "nvidia-driver=580.95.05"]))
    request = Request((parse_root("xformers"), parse_root("sglang")), "3.13", as_of="2026-11-22")
    catalog = Catalog(matrix, request)
    refusal = refusal_of(catalog, (gpu,))
    against_young = explain(catalog, (gpu,), refusal, ()).causes[:4]
    monkeypatch.setattr(explanation, "_LINES", 3)
    *causes, rest = explain(catalog, (gpu,), refusal, ()).causes
    assert causes == [cause for cause in against_young if cause in causes]
    assert [cause.kind for cause in causes] == ["request", "metadata", "python"]
    older = len(refusal.causes) - len(against_young)
    assert rest.text == (
        f"and 1 more against young releases, and {older} without which older releases would do"
    )
