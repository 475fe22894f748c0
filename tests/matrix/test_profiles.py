"""Framework profiles: their sets are healthy, their requests can be read, and installed trees are
told apart.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import tomllib

from envdoctor.intake import parse_assumptions, parse_requirements
from envdoctor.matrix import curated
from envdoctor.matrix.curated import Profile, make_profile
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.finding import Finding
from envdoctor.model.versions import VersionSet, parse_version
from envdoctor.rules import judge

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MATRIX = load_matrix()
PROFILES = {name: make_profile(name, document) for name, document in MATRIX.profiles.items()}
SETS = [
    pytest.param(profile, tested, id=f"{profile.name}-{tested.name}")
    for profile in PROFILES.values()
    for tested in profile.tested
]
GOOD = [param for param in SETS if param.values[1].good]
LAYOUTS = tomllib.loads((Path(__file__).parents[1] / "data" / "layouts.toml").read_text("utf-8"))[
    "tree"
]


def judge_set(tested: curated.TestedSet, driver: str) -> list[Finding]:
    """Return the findings of a set as a requirements file, on a machine with its GPU (H100 where it
    names none) and this driver.
    """
    facts = parse_requirements("\n".join(tested.packages) + "\n", "tested.txt")
    assumed = [
        f"nvidia-driver={driver}",
        f"gpu={tested.gpu or 'NVIDIA H100 80GB HBM3'}:8",
        "glibc=2.35",
        "os.platform=linux",
        "os.architecture=x86_64",
    ]
    return judge(
        facts.updated(
            parse_assumptions([*assumed, *([f"python={tested.python}"] if tested.python else [])])
        ),
        MATRIX,
    )


def meant(finding: Finding, tested: curated.TestedSet) -> bool:
    """Tell whether a finding is one of the metadata edges that the maintainers break, and say
    so.
    """
    return finding.code in ("ED301", "ED304") and any(
        edge.split(" -> ")[1] == finding.component for edge in tested.contradicts
    )


def test_the_frameworks_of_the_plan_are_there() -> None:
    assert {
        "verl",
        "easyr1",
        "tinyzero",
        "simplerl-reason",
        "openrlhf",
        "nemo-rl",
        "slime",
        "trl",
        "rllm",
    } <= set(PROFILES)
    assert all(profile.requests for profile in PROFILES.values())
    assert all(profile.tested for profile in PROFILES.values())
    assert MATRIX.profile("EasyR1") is not None
    assert MATRIX.profile("nope") is None


@pytest.mark.parametrize(("profile", "tested"), GOOD)
def test_what_maintainers_tested_has_no_error(profile: Profile, tested: curated.TestedSet) -> None:
    # The oldest driver of the set's CUDA major that NVIDIA still supports, and the newest of the
    # table.
    floor = (
        "580.65.06"
        if tested.driver >= "580"
        else "570.86.15"
        if "RTX 50" in tested.gpu
        else "535.129.03"
    )
    for driver in (floor, "580.95.05", "615.71.09"):
        findings = [
            finding
            for finding in judge_set(tested, driver)
            if finding.severity == "error" and finding.verdict == "violated"
        ]
        errors = [finding for finding in findings if not meant(finding, tested)]
        assert not errors, f"{driver}: " + "; ".join(
            f"{finding.key}: {finding.message}" for finding in errors
        )


def _says_a_floor(tested: curated.TestedSet) -> bool:
    return bool(tested.driver) and any(package.startswith("torch==") for package in tested.packages)


@pytest.mark.parametrize(
    ("profile", "tested"), [param for param in GOOD if _says_a_floor(param.values[1])]
)
def test_a_driver_below_the_floor_of_a_set_is_refused(
    profile: Profile, tested: curated.TestedSet
) -> None:
    """The calibration can fail: the stated floor is the one that the rules find."""
    below = "570.86.15" if parse_version(tested.driver).release[0] >= 580 else "515.105.01"
    assert any(
        finding.severity == "error" and finding.code.startswith("ED1")
        for finding in judge_set(tested, below)
    )


@pytest.mark.parametrize(
    ("profile", "tested"), [param for param in GOOD if param.values[1].contradicts]
)
def test_edges_that_a_set_breaks_are_broken(profile: Profile, tested: curated.TestedSet) -> None:
    """A stale ``contradicts`` would hide an error: the metadata of the upper package must exclude
    what the set has.
    """
    versions = {
        name: parse_version(version)
        for name, _, version in (package.partition("==") for package in tested.packages)
    }
    for edge in tested.contradicts:
        upper, lower = edge.split(" -> ")
        if upper not in versions:
            continue  # comes with another package (cuda-toolkit of torch)
        package = MATRIX.package(upper)
        release = package.release(versions[upper]) if package is not None else None
        assert release is not None, upper
        lines = [line.split(";")[0].strip() for line in release.requires or ()]
        bounds = [
            line[len(lower) :].partition("]")[2] or line[len(lower) :]
            for line in lines
            if re.match(rf"{re.escape(lower)}(?![\w-])", line)
        ]
        assert any(versions[lower] not in VersionSet.parse(bound) for bound in bounds), (
            edge,
            bounds,
        )


def test_rows_named_by_profiles_exist() -> None:
    for profile in PROFILES.values():
        for bad in profile.bad:
            assert all(MATRIX.row(row) is not None for row in bad.rows), (profile.name, bad.rows)


def test_the_sets_are_on_the_index() -> None:
    for profile in PROFILES.values():
        for tested in profile.tested:
            for text in tested.packages:
                name, _, version = text.partition("==")
                package = MATRIX.package(name)
                if package is not None:
                    assert package.release(parse_version(version)) is not None, (
                        f"{profile.name} {tested.name}: {text}"
                    )


@pytest.mark.parametrize("tree", LAYOUTS, ids=[tree["name"] for tree in LAYOUTS])
def test_trees_of_one_distribution_name_are_told_apart(tree: dict[str, object]) -> None:
    files = set(tree["files"])
    texts = {(item["file"], item["text"]) for item in tree.get("contains", ())}

    def exists(path: str) -> bool:
        return path in files

    def contains(path: str, text: str) -> bool:
        return (path, text) in texts

    fitting = [
        profile.name for profile in PROFILES.values() if profile.layout.fits(exists, contains)
    ]
    assert fitting == [tree["profile"]]
