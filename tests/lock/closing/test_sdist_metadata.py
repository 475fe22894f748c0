"""What source archives state, against what setuptools wrote: importlib.metadata is the oracle."""

import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PathDistribution
from importlib.util import find_spec
from io import BytesIO

import pytest
from packaging.requirements import Requirement

from envdoctor.lock.closing.sdist_metadata import Unreadable, fetch_sdist, read_sdist

from .synthetic_index import sdist

SETUP = """
from setuptools import setup
setup(name="made", version="1.0", install_requires=["einops", "numpy>=1.20,<3", 'typing-extensions; python_version < "3.8"'],
      extras_require={
          "dev": ["pytest>=7"], ":sys_platform == 'linux'": ["psutil"], "all:python_version >= '3.6'": ["click"]},
      python_requires=">=3.8")
"""


@pytest.fixture
def built(tmp_path, prerequisite):
    """Return the source archive of a project, and the requirements that importlib.metadata reads of
    what setuptools wrote for it.
    """
    prerequisite(find_spec("setuptools"), "setuptools (extra dev)")
    (tmp_path / "setup.py").write_text(SETUP)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "sdist"], cwd=tmp_path, check=True, capture_output=True
    )
    (archive,) = (tmp_path / "dist").glob("*.tar.gz")
    return archive, PathDistribution(tmp_path / "made.egg-info").requires


def meaning(lines, extra):
    """Return what the lines ask for on Linux with Python 3.11."""
    target = {"extra": extra, "sys_platform": "linux", "python_version": "3.11"}
    return {
        f"{requirement.name}{requirement.specifier}"
        for requirement in map(Requirement, lines)
        if requirement.marker is None or requirement.marker.evaluate(target)
    }


def without(data, *names):
    """Return an archive with what newer setuptools write taken out: lines of PKG-INFO that start
    so.
    """
    found = BytesIO()
    with (
        tarfile.open(fileobj=BytesIO(data)) as old,
        tarfile.open(fileobj=found, mode="w:gz") as new,
    ):
        for member in old:
            stream = old.extractfile(member)
            text = stream.read() if stream else b""
            if member.name.endswith("PKG-INFO"):
                text = b"\n".join(line for line in text.split(b"\n") if not line.startswith(names))
            member.size = len(text)
            new.addfile(member, BytesIO(text))
    return found.getvalue()


def test_an_archive_states_what_its_build_states(built):
    archive, requires = built
    sdist = read_sdist(archive.read_bytes(), archive.name)
    for extra in ("", "dev", "all"):
        assert meaning(sdist.requires, extra) == meaning(requires, extra)
    assert sdist.requires_python == ">=3.8"


def test_so_does_an_old_one_with_requires_txt_alone(built):
    archive, requires = built
    sdist = read_sdist(
        without(archive.read_bytes(), b"Requires-Dist", b"Provides-Extra"), archive.name
    )
    for extra in ("", "dev", "all"):
        assert meaning(sdist.requires, extra) == meaning(requires, extra)
    assert set(sdist.extras) == {"dev", "all"}


def test_an_archive_that_does_not_tell_is_not_taken_for_one_without_requirements():
    _, data = sdist("old", "1.0", {"PKG-INFO": "Metadata-Version: 1.1\nName: old\nVersion: 1.0\n"})
    with pytest.raises(Unreadable, match="does not say"):
        read_sdist(data, "old-1.0.tar.gz")
    _, data = sdist(
        "new",
        "1.0",
        {"PKG-INFO": "Metadata-Version: 2.2\nName: new\nVersion: 1.0\nDynamic: Requires-Dist\n"},
    )
    with pytest.raises(Unreadable, match="does not say"):
        read_sdist(data, "new-1.0.tar.gz")
    _, data = sdist(
        "static", "1.0", {"PKG-INFO": "Metadata-Version: 2.2\nName: static\nVersion: 1.0\n"}
    )
    assert read_sdist(data, "static-1.0.tar.gz").requires == ()


def test_a_zip_is_read_as_well():
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("old-1.0/PKG-INFO", "Metadata-Version: 1.0\n")
        archive.writestr("old-1.0/src/old.egg-info/requires.txt", "click>=8\n")
    assert read_sdist(data.getvalue(), "old-1.0.zip").requires == ("click>=8",)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 not a zip", b"\x1f\x8b\x08\x00broken"])
def test_a_damaged_archive_is_said_to_be_one(data):
    for name in ("x-1.tar.gz", "x-1.zip"):
        with pytest.raises(Unreadable, match="damaged"):
            read_sdist(data, name)


def test_an_archive_with_another_hash_is_refused(tmp_path):
    path = tmp_path / "x-1.0.tar.gz"
    path.write_bytes(b"data")
    with pytest.raises(Unreadable, match="hash differs"):
        fetch_sdist(path.as_uri(), {"sha256": "0" * 64}, {}, 5.0)
    with pytest.raises(Unreadable, match="cannot be read"):
        fetch_sdist((tmp_path / "none.tar.gz").as_uri(), {}, {}, 5.0)
