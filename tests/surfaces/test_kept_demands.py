"""What a release demands is read once, and again where another release tells it otherwise."""

import pytest
from surface_scan.kept_demands import KeptDemands
from surface_scan.measure import Measurement
from surface_scan.release import Release

MAKER = {
    "maker/__init__.py": "",
    "maker/versions.py": "import importlib.metadata\n"
    "from packaging.version import parse\n"
    "is_new = parse(importlib.metadata.version('third')) >= parse('{}')\n",
}
USER = {
    "user/__init__.py": "from maker.versions import is_new\n"
    "from . import part\n"
    "if is_new:\n    from third import late\n",
    "user/part.py": "import importlib.metadata\n"
    "if importlib.metadata.version('maker') != '1.0':\n    raise ImportError('maker 1.0')\n"
    "import maker.gone\n",
}


def _release(workshop, version, floor):
    files = {path: text.format(floor) for path, text in MAKER.items()}
    workshop.release("maker", files, version)


@pytest.fixture
def stocked(workshop):
    _release(workshop, "1.0", "2.0")
    workshop.release("third", {"third/__init__.py": ""})
    workshop.release("user", USER)
    return workshop


def _demanded(workshop):
    measurement = Measurement(workshop.packages, workshop.sources, workshop.folder)
    return measurement.demanded("user")


def _no_reading(*_):
    raise AssertionError("read again")


def test_it_is_read_once(stocked, monkeypatch):
    """Not even the new release of a package whose functions answer as before changes that."""
    first = _demanded(stocked)
    assert {demand.provider for demand in first[0].demands} == {"maker", "third"}
    assert any(demand.limits.versions for demand in first[0].demands)
    assert first[0].entered.keys() == {"user", "user.part"}
    _release(stocked, "2.0", "2.0")
    monkeypatch.setattr(Release, "demands", _no_reading)
    assert _demanded(stocked) == first


def test_another_answer_is_heard(stocked):
    """A new release whose function asks for another version."""
    first = _demanded(stocked)
    _release(stocked, "2.0", "3.0")
    second = _demanded(stocked)
    assert second != first
    measurement = Measurement(stocked.packages, stocked.sources, stocked.folder)
    (release,) = measurement.releases("user")
    entries = stocked.packages.entries["user"]
    assert second[0].demands == release.demands(entries, measurement.newest)
    assert second[0].gates == list(release.gates(measurement.newest))


def test_another_list_of_packages_is_heard(stocked):
    """What is known of packages is part of what is kept."""
    _demanded(stocked)
    fewer = {name: of for name, of in stocked.packages.modules.items() if name != "third"}
    stocked.packages = stocked.packages._replace(modules=fewer)
    again = _demanded(stocked)
    assert {demand.provider for demand in again[0].demands} == {"maker"}


def test_a_release_without_sources(stocked):
    """Nothing is there to read; the newest of nothing is nothing."""
    measurement = Measurement(stocked.packages, stocked.sources, stocked.folder)
    kept = KeptDemands(
        stocked.packages, stocked.sources, measurement.readings, lambda package: None
    )
    (release,) = measurement.releases("user")
    assert {demand.provider for demand in kept.of(release).demands} >= {"maker"}
