"""What the index has of releases that pip did not find, of what pip itself says of such files."""

import re

import pytest

from envdoctor.app import diagnose
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.model.versions import parse_version

MATRIX = load_matrix()


@pytest.fixture
def finding(tmp_path):
    """The finding of a log, with assumed facts."""

    def run(text, *assume):
        log = tmp_path / "pip.log"
        log.write_text(text, encoding="utf-8")
        facts = with_assumptions(Facts(), dict(parse_assumptions(assume))) if assume else None
        return next(
            trace.finding
            for trace in diagnose([str(log)], facts, MATRIX).traces
            if trace.role == "cause"
        )

    return run


@pytest.fixture
def asked_of_pip(run_pip, tmp_path):
    """What pip prints where a folder has the wheels of a package, by name, and another Python than
    its own is meant.
    """

    def run(requirement, python):
        name = re.match(r"[\w-]+", requirement).group()
        folder = tmp_path / "files"
        folder.mkdir()
        for version, release in MATRIX.package(name).releases():
            for tag in release.pythons:
                abi = tag.split("-")[-1]
                file = f"{name}-{version}-{tag.split('-')[0]}-{abi}-manylinux1_x86_64.whl"
                if version.pre is None and not release.yanked:
                    (folder / file).touch()
        done = run_pip(
            *("download", "--disable-pip-version-check", "--no-index", "--find-links", folder),
            *("--no-deps", "--only-binary=:all:", "--python-version", python),
            *("--platform", "manylinux1_x86_64", "-d", tmp_path / "out", requirement),
        )
        assert done.returncode == 1
        return done.stderr

    return run


@pytest.mark.parametrize(("python", "nearest"), [("3.12", "3.11"), ("3.13", "3.11")])
def test_the_python_of_pip_follows_from_the_releases_that_it_lists(
    asked_of_pip, finding, python, nearest
):
    said = finding(asked_of_pip("torch==2.0.1", python))
    assert f"it ran with Python {python}. torch 2.0.1 has wheels for Python 3.8 to" in said.message
    assert f"Use Python {nearest} or install torch" in said.remedies[0].text
    other = re.search(r"install torch (\S+?),", said.remedies[0].text).group(1)
    tags = MATRIX.package("torch").release(parse_version(other)).pythons
    assert f"cp{python.replace('.', '')}" in tags


def test_a_stated_python_that_fits_the_list_is_the_one(asked_of_pip, finding):
    text = asked_of_pip("torch<2.0", "3.12")
    stated = finding(text, "python=3.12.3")
    assert "and this is Python 3.12" in stated.message
    assert "it lists" not in stated.message
    other = finding(text, "python=3.10.1")
    assert "By the releases that it lists it ran with Python 3.12" in other.message


NONE = "ERROR: Could not find a version that satisfies the requirement {} (from versions: none)\n"


@pytest.mark.parametrize(
    ("requirement", "assume", "sentence"),
    [
        ("torch==2.0.1", ("python=3.12.1",), "torch 2.0.1 has no wheel for Python 3.12.1"),
        ("torch<2.0", ("python=3.12.1",), "torch<2.0 has wheels for Python"),
        ("torch==2.0.1", ("python=3.10.1",), "on Linux (aarch64, x86_64), some for Windows and"),
        ("numpy<1.22,>=1.21.2", ("python=3.12.1",), "has files for Python 3.7 to 3.10, and this"),
        ("acme-plates==1.0", ("python=3.12.1",), None),
        ("torch", ("python=3.12.1",), None),
    ],
)
def test_a_release_without_files_for_a_python(finding, requirement, assume, sentence):
    said = finding(NONE.format(requirement), *assume)
    assert (sentence in said.message) if sentence else "has wheels" not in said.message


def test_a_build_of_another_index(finding):
    said = finding(NONE.format("torch==2.1.0+cu118"))
    assert "the build for cu118 is on https://download.pytorch.org/whl/cu118 alone" in said.message
    (remedy,) = said.remedies
    (call,) = remedy.commands
    assert call.packages == ("torch==2.1.0",)
    assert call.options == ("--index-url", "https://download.pytorch.org/whl/cu118")
    listed = NONE.format("torch==2.1.0+cu118").replace("none", "2.0.1+cu118, 2.1.1+cu118")
    assert "alone" not in finding(listed).message


BUILT = (
    "Collecting tokenizers\n  Downloading tokenizers-0.13.3.tar.gz (314 kB)\n"
    "ERROR: Failed building wheel for tokenizers\n"
)


@pytest.mark.parametrize(
    ("python", "sentence"),
    [("3.12.1", "tokenizers 0.13.3 has wheels for Python 3.7 to 3.11, and"), ("3.10.2", None)],
)
def test_why_pip_built_from_source(finding, python, sentence):
    said = finding(BUILT, f"python={python}")
    assert (sentence in said.message) if sentence else "has wheels for" not in said.message
    if sentence:
        assert said.remedies[0].text.startswith("Use Python 3.11 or install tokenizers ")


def test_an_index_that_was_not_reached_has_said_nothing(finding, run_pip):
    """pip goes on behind a proxy that is not there as if the index had no such release."""
    index = ("--index-url", "https://index.example.invalid/simple", "--retries", "1")
    done = run_pip("download", *index, "--proxy", "http://127.0.0.1:9", "torch==2.5.1")
    assert "No matching distribution found for torch==2.5.1" in done.stderr
    said = finding(done.stderr)
    assert said.component == "network"
    words = said.message.partition("did not reach the package index: ")[2]
    # of urllib3 1 and 2, by the pip that is there
    assert words.startswith(("Cannot connect to proxy", "Connection refused"))


def test_a_package_without_a_release_for_this_python(finding):
    """Asked for without a version: what has files for others is the package, not none of it."""
    text = (
        "ERROR: Could not find a version that satisfies the requirement openrlhf "
        "(from versions: none)\nERROR: No matching distribution found for openrlhf\n"
    )
    said = finding(text, "python=3.13").message
    assert "openrlhf has wheels for Python 3.10 to 3.12, and this is Python 3.13" in said
    assert "No release of openrlhf has" not in said
