"""The committed matrix against pip: what pip itself takes from the index today for 50 random
(package, release, Python).

pip is the oracle because it says what it read: ``install --dry-run --report`` prints Requires-Dist
of the wheel that it chose for a Python and a platform, and ``--use-feature=fast-deps`` reads that
by ranges, so nothing is downloaded. uv has no such report. Releases without a wheel are left out:
pip would run their setup code. Their metadata is tested in test_refresh.py. So are those that pip
refuses to read since 24.1, for a requirement such as ``PyYAML>=5.1.*``.
"""

import json
import os
import random
import subprocess
import sys

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from envdoctor.matrix.loader import load_matrix

pytestmark = pytest.mark.slow

COUNT = 50
PYTHONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(40, 4, -1)] + [
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "manylinux1_x86_64",
    "linux_x86_64",
]


@pytest.fixture(scope="module")
def pip(tmp_path_factory, prerequisite):
    """Return a function: arguments of a fresh pip → its standard output; other indexes of this
    machine are out of its sight.
    """
    from matrix_refresh.errors import Refused, Unreachable, UsageFault
    from matrix_refresh.index import default_index
    from matrix_refresh.transport import Transport

    try:
        index = default_index()
        Transport(attempts=2).get(f"{index}/packaging/", 64 << 20)
    except (Refused, Unreachable, UsageFault) as fault:
        prerequisite(False, f"a package index that can be reached ({fault})")
    folder = tmp_path_factory.mktemp("pip")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PYTHONPATH")
    }
    environment["PIP_CONFIG_FILE"] = os.devnull

    def run(*arguments):
        command = [
            python,
            "-m",
            "pip",
            *arguments,
            "--index-url",
            index,
            "--disable-pip-version-check",
            "--quiet",
        ]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=180,
            check=True,
            env=environment,
            cwd=folder,
        ).stdout

    # Old ones download the whole wheel in the end, 0.8 GB for torch.
    run("install", "--upgrade", "pip>=25.1")
    return run


def draw(matrix, seed):
    """Yield (package, release, Python) that have a wheel for x86_64: packages first, so that those
    with many releases do not win.
    """
    source = random.Random(seed)
    names = [
        name
        for name in matrix.package_names
        if any(release.requires for release in releases_of(matrix, name))
    ]
    while True:
        name = source.choice(names)
        release = source.choice(releases_of(matrix, name))
        served = [python for python in PYTHONS if serves(release, python)]
        if served:
            yield name, release, source.choice(served)


def releases_of(matrix, name):
    package = matrix.package(name)
    return [package.release(version) for version in package.versions]


def serves(release, python):
    if not any(
        platform == "any"
        or ("linux" in platform and "x86_64" in platform and "musl" not in platform)
        for platform in release.platforms
    ):
        return False
    try:
        if python not in SpecifierSet(release.requires_python or ""):
            return False
    except InvalidSpecifier:
        return False
    minor = int(python.split(".")[1])
    tags = {
        f"cp3{minor}",
        "py3",
        f"py3{minor}",
        *(f"cp3{older}-abi3" for older in range(2, minor + 1)),
    }
    return bool(tags & set(release.pythons))


def normal(lines):
    return {normal_line(line) for line in lines}


def normal_line(line):
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return line
    # One wheel may write `liger_kernel` where another of the release writes `liger-kernel`.
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


def asked_by(release, file_name):
    """Return requirements and Requires-Python of one wheel of a release, as the matrix has them."""
    *_, python, abi, platform = file_name[:-4].split("-")
    tags = {
        f"{tag}-abi3" if "abi3" in abi and tag.startswith("cp") else tag
        for tag in python.split(".")
    }
    for item in release.differs:
        if platform in item.platforms and tags & set(item.pythons):
            return item.requires, item.requires_python or release.requires_python
    return release.requires, release.requires_python


def test_dependencies_are_those_that_pip_takes_from_the_index(pip, request, tmp_path):
    from matrix_refresh.selection import load_selection

    selection = load_selection()
    seed = request.config.getoption("--seed")
    wrong, refused = [], []
    for number, (name, release, python) in enumerate(draw(load_matrix(), seed)):
        if number - len(refused) == COUNT:
            break
        assert len(refused) < COUNT // 5, refused
        options = [word for platform in PLATFORMS for word in ("--platform", platform)]
        try:
            output = pip(
                *(
                    "install",
                    "--dry-run",
                    "--no-deps",
                    "--ignore-installed",
                    "--use-feature=fast-deps",
                    "--report",
                    "-",
                    "--no-cache-dir",
                ),
                *(
                    "--python-version",
                    python,
                    "--only-binary",
                    ":all:",
                    "--target",
                    str(tmp_path / "never"),
                    *options,
                    f"{name}=={release.version}",
                ),
            )
        except subprocess.CalledProcessError as error:
            if "has invalid metadata" in error.stderr:
                refused.append(f"{name} {release.version}")
                continue
            wrong.append(
                f"{name} {release.version}, Python {python}: pip found no wheel: "
                f"{error.stderr.strip().splitlines()[-1:]}"
            )
            continue
        (chosen,) = json.loads(output)["install"]
        metadata = chosen["metadata"]
        expected = normal(selection.prune(name, metadata.get("requires_dist", [])))
        requires, requires_python = asked_by(
            release, chosen["download_info"]["url"].rsplit("/", 1)[-1]
        )
        if (
            requires is None
            or normal(requires) != expected
            or (metadata.get("requires_python") or None) != requires_python
        ):
            difference = sorted(expected ^ normal(requires or ()))
            wrong.append(
                f"{name} {release.version}, Python {python}: {difference}, {requires_python} "
                f"against {metadata.get('requires_python')}"
            )
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)
    assert not (tmp_path / "never").exists()
