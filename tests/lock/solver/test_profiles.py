"""Profiles as requests: what maintainers tested comes out where the metadata allows it, and another
request where the first does not fit.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence, Tuple

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from envdoctor.errors import InputError
from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.locking import lock
from envdoctor.matrix import curated
from envdoctor.matrix.curated import NamedRequest, Profile, make_profile
from envdoctor.matrix.loader import Matrix, load_matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import parse_root, parse_source
from envdoctor.model.resolution import Explanation, Resolution

MATRIX = load_matrix()
PROFILES = [make_profile(name, document) for name, document in sorted(MATRIX.profiles.items())]
REQUESTS = [
    pytest.param(
        profile,
        named,
        id=f"{profile.name}:{named.name}",
        # The newest of each profile: the others are slow tests.
        marks=[] if named == profile.requests[0] else [pytest.mark.slow],
    )
    for profile in PROFILES
    for named in profile.requests
]


def machine(*assumed: str) -> Tuple[Facts, ...]:
    return (Facts(parse_assumptions(assumed)),)


def resolved(
    profile: str, facts: Sequence[Facts], *requirements: str, python: Optional[str] = None
) -> Resolution:
    resolution = lock(requirements, facts, MATRIX, python=python, profile=profile, as_of="release")
    assert isinstance(resolution, Resolution), [cause.text for cause in resolution.causes]
    return resolution


def refused(profile: str, facts: Sequence[Facts], python: Optional[str] = None) -> Explanation:
    resolution = lock((), facts, MATRIX, python=python, profile=profile)
    assert isinstance(resolution, Explanation), resolution.pins
    return resolution


def excluded(name: str, version: str, found: Resolution, matrix: Matrix) -> Iterator[str]:
    """Yield the metadata lines of what was chosen that exclude a version, as packaging reads
    them.
    """
    environment = {
        "python_version": found.requires.python,
        "python_full_version": f"{found.requires.python}.0",
        "extra": "",
    }
    for pin in found.pins:
        package = matrix.package(pin.name)
        release = package.release(pin.version) if package is not None else None
        for line in (release.requires or ()) if release is not None else ():
            requirement = Requirement(line)
            applies = any(
                requirement.marker is None
                or requirement.marker.evaluate({**environment, "extra": extra})
                for extra in ("", *pin.extras)
            )
            if (
                applies
                and requirement.name.lower().replace("_", "-") == name
                and not requirement.specifier.contains(version, prereleases=True)
            ):
                yield f"{pin.name}: {line}"


@pytest.mark.parametrize(("profile", "named"), REQUESTS)
def test_what_maintainers_tested_is_preferred(profile: Profile, named: NamedRequest) -> None:
    tested: Optional[curated.TestedSet] = next(
        (tested for tested in profile.tested if tested.name == named.tested), None
    )
    facts = machine(
        f"gpu={(tested and tested.gpu) or 'H100'}:8", "nvidia-driver=615.71.09", "glibc=2.35"
    )
    # ``lock`` itself lets check judge the outcome.
    resolution = resolved(f"{profile.name}:{named.name}", facts)
    assert resolution.request.profile == f"{profile.name}:{named.name}"
    assert SpecifierSet(named.python).contains(resolution.request.python)
    assert resolution.settings.items() >= named.variables.items()
    assert [step.requirement for step in resolution.sources] == list(named.direct)
    assert not {step.name for step in resolution.sources} & {pin.name for pin in resolution.pins}
    for root in map(parse_root, named.overrides):
        pin = resolution.pin(root.name)
        assert pin is not None
        assert f"=={pin.version}" == root.specifier
    own = {root.name: root.specifier for root in map(parse_root, named.requirements)}
    for root in map(parse_root, tested.packages if tested is not None else ()):
        pin = resolution.pin(root.name)
        version = root.specifier[2:]
        if (
            pin is None or str(pin.version) == version or "+" in version
        ):  # not needed, so, or a build of another index
            continue
        ruled_out = not SpecifierSet(own.get(root.name, "")).contains(version, prereleases=True)
        assert ruled_out or list(excluded(root.name, version, resolution, MATRIX)), (
            f"{root.text} was tested, {pin.version} was chosen"
        )


def test_only_a_profile_that_asks_gets_pre_releases() -> None:
    resolution = resolved("simplerl-reason", machine("gpu=H100", "nvidia-driver=535.129.03"))
    early = {pin.name for pin in resolution.pins if pin.version.is_prerelease}
    assert early == {"hydra-core", "omegaconf"}


def test_another_request_is_tried_and_said_so() -> None:
    resolution = resolved("verl", machine("gpu=H100", "nvidia-driver=550.54.15"))
    assert resolution.request.profile == "verl:0.7-vllm"
    assert [reason.text.partition(" does")[0] for reason in resolution.passed] == ["verl:0.9-vllm"]
    assert all(
        "CUDA 13" in reason.text and "550.54.15" in reason.text for reason in resolution.passed
    )
    newest = resolved("verl", machine("gpu=H100", "nvidia-driver=595.45.04"))
    assert newest.passed == ()
    # verl:latest is newer, and nobody tested it
    assert newest.request.profile == "verl:0.9-vllm"
    assert any("tested this as '0.9 vllm 0.24.0'" in note for note in newest.notes)


def test_what_is_asked_for_besides_chooses_the_request_and_names_its_bounds() -> None:
    resolution = resolved("verl", machine("gpu=H100", "nvidia-driver=580.95.05"), "torch==2.6.0")
    assert resolution.request.profile == "verl:0.4-vllm"
    assert [reason.text.partition(": ")[2] for reason in resolution.passed] == [
        "verl:0.9-vllm itself asks for torch==2.11.0, and you for torch==2.6.0",
        "verl:0.7-vllm itself asks for torch==2.9.0, and you for torch==2.6.0",
    ]
    impossible = lock(["torch==2.3.1"], machine(), MATRIX, profile="verl:0.9-vllm")
    assert isinstance(impossible, Explanation)
    assert [cause.text for cause in impossible.causes] == [
        "verl:0.9-vllm itself asks for torch==2.11.0, and you for torch==2.3.1"
    ]


def test_a_request_by_name_is_that_one_or_nothing() -> None:
    refusal = refused("verl:latest", machine("gpu=H100", "nvidia-driver=550.54.15"))
    assert any("CUDA 13" in cause.text for cause in refusal.causes)
    assert refusal.ways_out[0].startswith("ask for --profile verl:0.7-vllm")


def test_where_none_fits_all_are_named() -> None:
    refusal = refused("verl", machine("gpu=V100", "nvidia-driver=470.82.01"))
    said = {cause.text.partition(" does")[0]: cause.text for cause in refusal.causes}
    for name in ("0.7-vllm", "0.4-vllm", "0.2", "latest"):  # and the causes of 0.9-vllm before
        assert "470.82.01" in said[f"verl:{name}"], name


@pytest.mark.parametrize(("python", "minor"), [(None, "3.11"), ("3.9", "3.9")])
def test_the_python_is_the_newest_that_the_profile_allows(
    python: Optional[str], minor: str
) -> None:
    assert (
        resolved(
            "tinyzero", machine("gpu=H100", "nvidia-driver=535.129.03"), python=python
        ).requires.python
        == minor
    )


def test_a_python_outside_is_refused_with_the_one_that_fits() -> None:
    refusal = refused(
        "simplerl-reason", machine("gpu=H100", "nvidia-driver=550.54.15"), python="3.12"
    )
    assert "not 3.12" in refusal.causes[0].text
    assert "--python-version 3.11" in refusal.ways_out[0]


def test_further_requirements_hold_besides() -> None:
    facts = machine("gpu=H100", "nvidia-driver=535.129.03")
    resolution = resolved("easyr1", facts, "peft==0.15.2", "transformers<4.57")
    pins = {pin.name: str(pin.version) for pin in resolution.pins}
    assert pins["peft"] == "0.15.2"
    assert pins["transformers"].startswith("4.56.")
    with pytest.raises(InputError, match=r"comes from .*EasyR1"):
        lock(["verl"], facts, MATRIX, profile="easyr1")


@pytest.mark.parametrize(
    ("name", "words"),
    [("verll", ["openrlhf", "tinyzero"]), ("verl:1", ["verl:latest", "verl:0.2"])],
)
def test_a_wrong_name_lists_what_there_is(name: str, words: List[str]) -> None:
    with pytest.raises(InputError) as caught:
        lock((), machine("gpu=H100"), MATRIX, profile=name)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "text", [line for profile in PROFILES for named in profile.requests for line in named.direct]
)
def test_what_comes_from_git_is_read_as_packaging_reads_it(text: str) -> None:
    step, requirement = parse_source(text), Requirement(text)
    assert step.name == requirement.name
    assert set(step.extras) == requirement.extras
    assert requirement.url == f"git+{step.url}@{step.reference}"
    with pytest.raises(InputError):
        parse_source(text.partition("@git")[0] + " git+ssh://x")


def test_what_a_fork_needs_and_the_matrix_does_not_know_is_passed_on() -> None:
    resolution = resolved("easyr1:0.3.2", machine("nvidia-driver=580.95.05", "gpu=H100:8"))
    assert {"codetiming", "mathruler", "pylatexenc"} <= {
        root.name for root in resolution.request.others
    }
    assert not {root.name for root in resolution.request.others} & {
        root.name for root in resolution.request.roots
    }
    assert resolution.pin("omegaconf") is not None
    assert resolution.pin("qwen-vl-utils") is not None  # the matrix knows it
    assert resolution.pin("codetiming") is None


@pytest.mark.parametrize("gpu", ["V100", pytest.param("T4", marks=pytest.mark.slow)])
def test_an_older_device_gets_an_sglang_that_serves(gpu: str) -> None:
    facts = machine("nvidia-driver=550.54.15", f"gpu={gpu}")
    resolution = resolved("sglang", facts, python="3.11")
    assert resolution.request.profile == "sglang:srt"
    assert resolution.pin("torch") is not None
    plain = lock(["sglang"], facts, MATRIX, python="3.11")
    assert isinstance(plain, Resolution)
    pin = plain.pin("sglang")
    assert pin is not None
    assert "srt" in pin.extras
    assert plain.pin("torch") is not None
    (note,) = [note for note in plain.notes if "only with an extra" in note]
    assert note.endswith("taken as sglang[srt]")
    exact = lock(["sglang==0.5.2"], facts, MATRIX, python="3.11")
    assert isinstance(exact, Resolution)
    (note,) = [note for note in exact.notes if "asks for no torch" in note]
    assert "srt" in note


def test_a_row_that_misses_what_the_matrix_does_not_know_binds_the_solver() -> None:
    """sglang refuses an old sgl-kernel unless verl, skyrl-train or rlinf is there, of which the
    matrix knows only the first.
    """
    facts = machine("nvidia-driver=550.54.15", "gpu=T4")
    assert isinstance(lock(["sglang[blackwell]"], facts, MATRIX, python="3.11"), Resolution)
