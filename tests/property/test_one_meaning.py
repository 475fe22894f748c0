"""Check and the solver's constraints are one: the blocking rows that check finds are the nogoods
that the solver builds.

The solver's side works as an engine would: env terms become bit masks over the candidates of a
package, an assignment picks one bit of each package ("absent" is a bit too), and a nogood is
violated where all its masks hold that bit.
"""

from __future__ import annotations

import random
from typing import Dict, List, Mapping, Optional, Tuple

import pytest

from envdoctor.matrix.bind import Subject, bind, truth
from envdoctor.matrix.derive import build_attributes, derive_target
from envdoctor.matrix.loader import Matrix, load_matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts, Gpu
from envdoctor.model.versions import parse_version
from envdoctor.rules import judge

HERE = Evidence("random assignment")
DRIVERS = (
    "450.80.02",
    "470.82.01",
    "525.60.13",
    "535.129.03",
    "550.54.15",
    "570.86.15",
    "580.65.06",
    "595.45.04",
    "615.71.09",
)
GPUS = (
    "Tesla V100-SXM2-16GB",
    "Tesla T4",
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA GeForce RTX 4090",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA H20",
    "NVIDIA B200",
    "NVIDIA GeForce RTX 5090",
)
#: What is measured of two packages, from their sources or their builds.
MEASURED = ("ED308", "ED309", "ED313", "ED407", "ED409", "ED410", "ED411")
Candidate = Tuple[Optional[str], Subject]  # installed version (None: absent) and what terms see


def candidates_of(matrix: Matrix, name: str, chance: random.Random) -> List[Candidate]:
    """A dozen candidates of a package, each build of a release one, and absence."""
    package = matrix.package(name)
    assert package is not None
    found: List[Candidate] = [(None, Subject(False))]
    versions = list(package.versions)
    for version in chance.sample(versions, min(6, len(versions))):
        release = package.release(version)
        assert release is not None
        builds = [build for build in release.builds if build.architecture == "x86_64"]
        labels = [build.variant for build in builds]
        for build in builds:
            if (
                build.variant is not None
                and build.index_name != "pypi"
                and labels.count(build.variant) == 1
            ):
                text = f"{version}+{build.variant}"
                found.append(
                    (
                        text,
                        Subject(True, {**build_attributes(build), "version": parse_version(text)}),
                    )
                )
        default = [build for build in builds if build.index_name == "pypi"]
        attributes = build_attributes(default[0]) if len(default) == 1 else {}
        found.append((str(version), Subject(True, {**attributes, "version": version})))
    return found


def facts_of(
    assignment: Mapping[str, Candidate], driver: str, gpu: str, glibc: str, python: str
) -> Facts:
    """The same assignment as an installed environment."""
    installed = {
        name: Distribution(name, version)
        for name, (version, _) in assignment.items()
        if version is not None
    }
    return Facts(
        {
            "os.platform": Known("linux", HERE),
            "os.architecture": Known("x86_64", HERE),
            "glibc.version": Known(glibc, HERE),
            "python.version": Known(python, HERE),
            "driver.release": Known(driver, HERE),
            "gpus": Known((Gpu(name=gpu),), HERE),
            "variables": Known({}, HERE),
            "distributions": Known(installed, HERE),
            "distributions.complete": Known(True, HERE),
        }
    )


def violated_nogoods(
    matrix: Matrix,
    facts: Facts,
    choices: Mapping[str, List[Candidate]],
    assignment: Mapping[str, Candidate],
) -> set[str]:
    """What an engine finds: masks over candidates, one bit assigned per package."""
    target = derive_target(facts, matrix)._replace(environment=None)
    chosen = {name: 1 << choices[name].index(candidate) for name, candidate in assignment.items()}
    violated = set()
    for row in matrix.rows_about(choices):
        if row.effect != "blocks" or row.trust != "established":
            continue
        binding = bind(row, target)
        if binding.outcome not in ("residual", "violated"):
            continue
        masks: Dict[str, int] = {}
        for term in binding.residual:
            subjects = (
                [subject for _, subject in choices[term.component]]
                if term.component in choices
                else [Subject(False)]
            )
            mask = sum(1 << bit for bit, subject in enumerate(subjects) if truth(term, subject))
            masks[term.component] = masks.get(term.component, -1) & mask
        if all(mask & chosen.get(name, 1) for name, mask in masks.items()):
            violated.add(row.id)
    return violated


def is_said_of_the_pair(name: str, found: set[str], matrix: Matrix) -> bool:
    """Tell whether a measured row is silent since check refuses its two packages already: of the
    names that one release misses in another it says the first.
    """
    row = matrix.row(name)
    assert row is not None
    pair = {term.component for term in row.terms[:2]}
    others = [matrix.row(other) for other in found]
    return row.code in MEASURED and any(
        other is not None and pair <= set(other.packages) for other in others
    )


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        (100, 20261121),
        pytest.param(500, 20261121, marks=pytest.mark.slow),
        pytest.param(3000, 20261122, marks=pytest.mark.slow),
    ],
)
def test_blocking_errors_of_check_are_the_violated_nogoods_of_the_solver(
    count: int, seed: int
) -> None:
    chance = random.Random(seed)
    matrix = load_matrix()
    names = [name for name in matrix.package_names if len(matrix.package(name).versions) > 1]  # type: ignore[union-attr]
    seen = 0
    for _ in range(count):
        asked = [*chance.sample(names, 8), "torch", "vllm"]
        choices = {name: candidates_of(matrix, name, chance) for name in dict.fromkeys(asked)}
        assignment = {name: chance.choice(found) for name, found in choices.items()}
        facts = facts_of(
            assignment,
            chance.choice(DRIVERS),
            chance.choice(GPUS),
            chance.choice(("2.17", "2.28", "2.31", "2.35", "2.39")),
            chance.choice(("3.9.18", "3.10.12", "3.12.3")),
        )
        expected = violated_nogoods(matrix, facts, choices, assignment)
        found, built_for_another = set(), set()
        for finding in judge(facts, matrix, propagate=True):
            if finding.verdict != "violated":
                continue
            # What a release is built for says as much, of sgl-kernel as a warning: servers ran
            # with builds of the same number from elsewhere. A lock takes none of these.
            is_error = finding.severity == "error"
            if finding.code == "ED401" and (is_error or finding.component == "sgl-kernel"):
                built_for_another.add(finding.component)
            if is_error:
                found.update(part for part in (finding.row, *finding.rows) if part)
        missed = {
            name
            for name in expected - found
            if not is_said_of_the_pair(name, found, matrix)
            and not (name.startswith("links-") and name.partition(":")[2] in built_for_another)
        }
        invented = {row for row in found - expected if matrix.row(row) is not None}
        assert not missed, f"the solver would refuse {sorted(missed)}, check does not: {assignment}"
        assert not invented, f"check refuses {sorted(invented)}, the solver would not: {assignment}"
        seen += bool(expected)
    assert seen > count // 10, "the assignments hardly ever violate a row, so they prove little"
