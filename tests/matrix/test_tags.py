"""Which wheel of a release a target gets, as pip chooses it, and what follows for the solver and
for check.
"""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Callable, Sequence

import pytest

from envdoctor.lock.solver import resolve
from envdoctor.matrix.loader import Matrix, load_matrix
from envdoctor.matrix.tables import Difference, Release
from envdoctor.matrix.tags import served_release, serves_python
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Resolution
from envdoctor.model.versions import parse_version
from envdoctor.rules.requirement_lines import requirements_of

MATRIX: Matrix = load_matrix()
RunPip = Callable[..., "subprocess.CompletedProcess[str]"]

#: Requires-Dist of published wheels, in our names, as pip 26.3 reports it (pip install --dry-run
#: --no-deps --report -).
PUBLISHED = [
    ("torchvision", "0.15.0", "3.8", "aarch64", "torch", ""),
    ("torchvision", "0.12.0", "3.8", "x86_64", "torch", "==1.11.0"),
    ("torchaudio", "0.13.1", "3.8", "aarch64", "torch", ""),
    ("torchaudio", "0.13.1", "3.8", "x86_64", "torch", "==1.13.1"),
    (
        "torch",
        "2.4.0",
        "3.12",
        "x86_64",
        "setuptools",
        "",
    ),  # with uv pip compile: its wheels are too large for pip
    ("torch", "2.4.0", "3.11", "x86_64", "setuptools", None),
    ("torch", "2.4.0", "3.12", "aarch64", "setuptools", ""),
]


def asked_of(lines: Sequence[str], name: str) -> object:
    """What requirement lines ask of a package, or None."""
    return next(
        (
            parse_root(line.partition(";")[0]).specifier
            for line in lines
            if line.startswith(name) and "extra" not in line
        ),
        None,
    )


@pytest.mark.parametrize(
    ("name", "version", "python", "architecture", "wanted", "asked"), PUBLISHED
)
def test_the_solver_and_check_read_the_wheel_that_installers_get(
    name: str, version: str, python: str, architecture: str, wanted: str, asked: object
) -> None:
    package = MATRIX.package(name)
    assert package is not None
    release = package.release(parse_version(version))
    assert release is not None
    served = served_release(release, parse_version(python), "linux", architecture)
    assert asked_of(served.requires or (), wanted) == asked
    here = Evidence("test")
    facts = Facts(
        {
            "python.version": Known(f"{python}.1", here),
            "os.architecture": Known(architecture, here),
            "os.platform": Known("linux", here),
        }
    )
    lines, own = requirements_of(
        Distribution(name, version), facts, MATRIX, frozenset(MATRIX.package_names)
    )
    assert not own
    assert asked_of(lines, wanted) == asked


@pytest.mark.parametrize(("python", "there"), [("3.12", True), ("3.11", False)])
def test_a_lock_has_what_the_wheel_of_its_python_asks_for(python: str, there: bool) -> None:
    resolution = resolve(Request((parse_root("torch==2.4.0"),), python), (Facts({}),), MATRIX)
    assert isinstance(resolution, Resolution)
    pin = resolution.pin("setuptools")  # a row may ask for it too
    assert (
        any(
            reason.text.startswith("torch 2.4.0 requires")
            for reason in (pin.reasons if pin is not None else ())
        )
        is there
    )


_ARM = "manylinux_2_17_aarch64.manylinux2014_aarch64"
WHEELS = {
    "cp39-cp39-manylinux2014_x86_64": "old-python",
    "cp310-cp310-manylinux2014_x86_64": "plain",
    "cp311-cp311-manylinux2014_x86_64": "plain",
    "cp312-abi3-manylinux2014_x86_64": "plain",
    f"cp39-cp39-{_ARM}": "arm",
    f"cp310-cp310-{_ARM}": "arm",
    f"cp311-cp311-{_ARM}": "arm",
    f"cp312-abi3-{_ARM}": "arm",
    "py3-none-any": "pure",
}
RELEASE = Release(
    "1.0",
    "2026-01-01",
    requires=("plain",),
    pythons=("cp39", "cp310", "cp311", "cp312-abi3", "py3"),
    platforms=("any", "manylinux2014_x86_64", _ARM),
    differs=(
        Difference(("cp39",), ("manylinux2014_x86_64",), ("old-python",)),
        Difference(("cp39", "cp310", "cp311", "cp312-abi3"), (_ARM,), ("arm",)),
        Difference(("py3",), ("any",), ("pure",)),
    ),
)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("wheels")
    for tags, wanted in WHEELS.items():
        listed = [
            f"Tag: {'-'.join(tags.split('-')[:2])}-{platform}"
            for platform in tags.split("-")[2].split(".")
        ]
        with zipfile.ZipFile(folder / f"thing-1.0-{tags}.whl", "w") as wheel:
            wheel.writestr(
                "thing-1.0.dist-info/METADATA",
                f"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\nRequires-Dist: {wanted}\n",
            )
            wheel.writestr(
                "thing-1.0.dist-info/WHEEL",
                "\n".join(["Wheel-Version: 1.0", "Root-Is-Purelib: false", *listed, ""]),
            )
            wheel.writestr("thing-1.0.dist-info/RECORD", "")
    return folder


@pytest.mark.parametrize(
    "python",
    [
        pytest.param("3.8", marks=pytest.mark.slow),
        "3.9",
        pytest.param("3.10", marks=pytest.mark.slow),
        pytest.param("3.11", marks=pytest.mark.slow),
        "3.12",  # has a wheel for its stable interface
        pytest.param("3.13", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_pip_takes_the_same_wheel(
    run_pip: RunPip, shelf: Path, tmp_path: Path, python: str, architecture: str
) -> None:
    options = [
        "--dry-run",
        "--quiet",
        "--no-deps",
        "--ignore-installed",
        "--no-index",
        "--find-links",
        str(shelf),
        "--only-binary",
        ":all:",
    ]
    target = [
        "--python-version",
        python,
        "--implementation",
        "cp",
        "--platform",
        f"manylinux2014_{architecture}",
        "--target",
        str(tmp_path),
    ]
    done = run_pip("--isolated", "install", *options, *target, "--report", "-", "thing==1.0")
    assert done.returncode == 0, done.stderr
    expected = json.loads(done.stdout)["install"][0]["metadata"]["requires_dist"]
    assert (
        list(served_release(RELEASE, parse_version(python), "linux", architecture).requires or ())
        == expected
    )


def test_of_an_unknown_python_only_what_all_wheels_say_counts() -> None:
    assert served_release(RELEASE, None, "linux", "x86_64").requires == ("plain",)
    everywhere = RELEASE._replace(pythons=("cp310", "cp311"))
    assert served_release(everywhere, None, "linux", "aarch64").requires == ("arm",)


@pytest.mark.parametrize(
    ("tag", "python", "serves"),
    [
        ("cp310", "3.10.2", True),
        ("cp310", "3.11.0", False),
        ("cp38-abi3", "3.12.0", True),
        ("py3", "3.13.0", True),
        ("cp312", "3.8.1", False),
    ],
)
def test_the_python_of_a_tag(tag: str, python: str, serves: bool) -> None:
    assert serves_python(tag, parse_version(python)) is serves
