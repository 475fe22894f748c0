"""The sandbox against the kernel, and drawn trials against the index and the packages
themselves.
"""

import itertools
import random
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from envdoctor.matrix.loader import load_matrix
from scripts.pair_trials.draw import Statements, Trial, draw
from scripts.pair_trials.importing import MEMORY, Importer, sandbox
from scripts.pair_trials.run import Place, keep_room, try_one
from scripts.pair_trials.tally import judge

STATEMENTS = Statements(Path(__file__).resolve().parents[2] / "matrices")
#: Packages that need no torch: seconds instead of gigabytes.
LIGHT = ("gradio", "wandb", "huggingface-hub", "setuptools", "ray", "mistral-common", "datasets")


def tried(trial, folder):
    place = Place(str(folder), sys.executable)
    importer = Importer(place.own, place.compiled)
    try:
        return try_one(trial, place, importer, {})
    finally:
        importer.close()


def inside(code):
    return subprocess.run(
        [*sandbox(), sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )


def test_the_sandbox_has_no_network(prerequisite):
    alone = subprocess.run(["unshare", "--net", "true"], capture_output=True)
    prerequisite(alone.returncode == 0, "namespaces")
    done = inside("import socket; print([name for _, name in socket.if_nameindex()])")
    assert done.stdout.strip() == "['lo']"


def test_the_sandbox_bounds_memory():
    assert inside(f"bytearray({MEMORY} + 1)").returncode == 1
    assert "MemoryError" in inside(f"bytearray({MEMORY} + 1)").stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blocks", "allowed"])
def test_drawn_trials_agree_with_check(tmp_path, prerequisite, kind):
    prerequisite(shutil.which("uv"), "uv")
    drawn = draw(random.Random("sample"), load_matrix(), STATEMENTS, [kind])
    light = (
        trial
        for trial in drawn
        if all(
            word.partition("==")[0] in LIGHT or "==" not in word for word in trial.requirements[:1]
        )
    )
    outcomes = []
    for trial in itertools.islice(light, 3):
        record = tried(trial, tmp_path)
        record["statements"] = {trial.row: STATEMENTS.of_row(trial.row)}
        outcomes += [verdict.outcome for verdict in judge(record)]
    assert outcomes
    assert not {"false alarm", "miss"} & set(outcomes), outcomes


@pytest.mark.slow
def test_what_an_import_says_is_kept(tmp_path, prerequisite):
    prerequisite(shutil.which("uv"), "uv")
    trial = Trial("blocks", ("colorama==0.4.6",), "2024-04-04", "", ("colorama", "no_such"), "")
    record = tried(trial, tmp_path)
    assert record["state"] == "tried"
    assert set(record["installed"]) == {"colorama", "setuptools"}
    assert record["errors"]["colorama"] == []
    assert record["errors"]["no_such"][0] == "ModuleNotFoundError: No module named 'no_such'"


@pytest.fixture
def importer(tmp_path):
    importer = Importer(str(tmp_path), str(tmp_path / "compiled"))
    yield importer
    importer.close()


def test_each_module_is_imported_in_a_process_of_its_own(importer):
    said = importer.imported(sys.executable, {}, ["json", "no_such", "colorsys"])
    assert said["json"] == said["colorsys"] == []
    assert said["no_such"][0] == "ModuleNotFoundError: No module named 'no_such'"


def test_a_module_that_kills_its_process_is_named(importer, tmp_path, monkeypatch):
    (tmp_path / "kills.py").write_text("import os\nos.abort()\n")
    monkeypatch.chdir(tmp_path)
    said = importer.imported(sys.executable, {}, ["kills", "json"])
    assert said == {"kills": ["killed by signal 6"], "json": []}


def test_what_is_loaded_once_is_loaded_anew_where_it_was_replaced(importer, tmp_path, monkeypatch):
    """A distribution that is slow to import is loaded before the fork; its next release is not."""
    package, metadata = tmp_path / "pandas", tmp_path / "pandas-1.0.dist-info"
    for folder in (package, metadata):
        folder.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pandas\nVersion: 1.0\n")
    (metadata / "RECORD").write_text("pandas/__init__.py,,\n")
    (metadata / "top_level.txt").write_text("pandas\n")
    (package / "__init__.py").write_text("from os import getpid\nprocess = getpid()\n")
    asks = "import os, pandas\nraise ImportError(f'{pandas.process == os.getpid()} {pandas.late}')"
    (tmp_path / "asks.py").write_text(asks)
    monkeypatch.chdir(tmp_path)
    (package / "__init__.py").write_text("from os import getpid\nprocess, late = getpid(), 1\n")
    here = {item.metadata["Name"].lower(): item.version for item in distributions()}
    first = importer.imported(sys.executable, {**here, "pandas": "1.0"}, ["asks"])
    assert first["asks"][0] == "ImportError: False 1"
    (package / "__init__.py").write_text("from os import getpid\nprocess, late = getpid(), 22\n")
    again = importer.imported(sys.executable, {**here, "pandas": "1.0"}, ["asks"])
    assert again["asks"][0] == "ImportError: False 1"
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pandas\nVersion: 2.0\n")
    other = importer.imported(sys.executable, {**here, "pandas": "2.0"}, ["asks"])
    assert other["asks"][0] == "ImportError: False 22"


def test_room_is_made_of_what_was_compiled(tmp_path, prerequisite):
    prerequisite(shutil.which("uv"), "uv")
    place = Place(str(tmp_path), sys.executable)
    compiled = Path(place.compiled)
    compiled.mkdir(parents=True)
    assert keep_room(place, 0.0)
    assert compiled.exists()
    assert not keep_room(place, 1e18)
    assert not compiled.exists()


def test_where_nothing_may_go_the_cache_stays(tmp_path, prerequisite):
    """``uv cache clean`` without a name would empty all of it."""
    prerequisite(shutil.which("uv"), "uv")
    place = Place(str(tmp_path), sys.executable)
    archives = Path(place.cache, "archive-v0")
    kept = [
        Path(place.cache, "wheels-v8", "pypi", "torch", "2.6.0-cp311"),
        Path(place.cache, "wheels-v8", "pypi", "nvidia-cublas", "pointer"),
        archives / "of-torch" / "torch.py",
    ]
    for path in (*kept[1:], archives / "left-over" / "torch.py"):
        path.parent.mkdir(parents=True)
        path.touch()
    kept[0].parent.mkdir()
    kept[0].symlink_to(archives / "of-torch")
    assert not keep_room(place, 1e18)
    assert all(path.exists() for path in kept)
    assert not (archives / "left-over").exists()
