"""A home for matrices, archives to update from, and what serves then: what the tests of updates
share.
"""

import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest

from envdoctor.errors import InputError
from envdoctor.matrix import loader
from envdoctor.matrix.source import write_compiled
from envdoctor.matrix.update.installation import update

from ..folders import row_text, small_matrix

DAYS = ["2027-01-01", "2027-02-01", "2027-03-01"]
OLD = '{ env = "torch", in = "<2.6" }'


@pytest.fixture(scope="session")
def compiled_once(tmp_path_factory):
    """A folder with a small matrix and its compiled form, which each test copies."""
    folder = tmp_path_factory.mktemp("small-matrix")
    source = str(small_matrix(folder / "built-in"))
    write_compiled(source, str(folder / "built-in-compiled"), times=False)
    return folder


@pytest.fixture
def home(compiled_once, tmp_path, monkeypatch):
    """A home of its own, a built-in matrix of November 2026, and a clock that stands in April
    2027.
    """
    for name in (
        "XDG_DATA_HOME",
        "HOME",
        "ENVDOCTOR_MATRIX",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENVDOCTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    shutil.copytree(compiled_once, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(loader, "_SOURCE", str(tmp_path / "nowhere"))
    monkeypatch.setattr(loader, "_COMPILED", str(tmp_path / "built-in-compiled"))
    import envdoctor.matrix.update.installation as module

    class Clock:
        monotonic = staticmethod(module.time.monotonic)
        strftime = staticmethod(module.time.strftime)
        gmtime = staticmethod(lambda *_: (2027, 4, 1, 0, 0, 0, 3, 91, 0))
        time = staticmethod(lambda: 0.0)

    monkeypatch.setattr(module, "time", Clock)
    return tmp_path / "home" / "matrix"


def make(tmp_path, date=DAYS[0], row="new-row", form="tar", beside=True, prefix="", **options):
    """Make an archive of a small matrix, with its digest beside it as sha256sum writes it."""
    folder = small_matrix(
        tmp_path / f"{row}-{date}-{form}", row_text(row, OLD, date=date), **options
    )
    path = tmp_path / f"{row}-{date}.{'tar.gz' if form == 'tar' else 'zip'}"
    if form == "tar":
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder, prefix or ".")
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry in sorted(folder.rglob("*")):
                archive.write(entry, os.path.join(prefix, entry.relative_to(folder)))
    if beside:
        subprocess.run(
            f"sha256sum {path.name} > {path.name}.sha256", cwd=tmp_path, shell=True, check=True
        )
    return path


def serving():
    """The row that the matrix that serves now was made with."""
    matrix = loader.load_matrix()
    rows = [row for row in matrix.rows() if row.origin != "derived"]
    assert len(rows) == 1
    assert [matrix.package(name).versions for name in matrix.package_names]
    return rows[0].id


def generations(home):
    return sorted(entry.name for entry in home.iterdir() if entry.name not in ("lock", "current"))


def refused(home, source, words, sha256=None):
    """Expect a refusal that says these words, and that everything is as it was."""
    before = (serving(), generations(home) if home.exists() else [])
    with pytest.raises(InputError) as caught:
        update(str(source), sha256)
    assert words in str(caught.value)
    assert (serving(), generations(home) if home.exists() else []) == before
    return str(caught.value)
