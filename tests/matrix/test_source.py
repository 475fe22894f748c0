"""Documents that were measured: what is none is refused, and the compiled form is what was read."""

import json
from pathlib import Path

import pytest

from envdoctor.errors import MatrixError
from envdoctor.matrix import messages, names
from envdoctor.matrix.compiled import load_package
from envdoctor.matrix.packed import unpack
from envdoctor.matrix.source import package_lines, read_measured, write_compiled
from envdoctor.model.versions import parse_version

from .test_messages import DOCUMENT as MESSAGES
from .test_names import DOCUMENT as NAMES

ROOT = Path(__file__).resolve().parents[2]
INDICES = {"names": (2, names.index_fault), "messages": (1, messages.index_fault)}


@pytest.mark.parametrize("kind", INDICES)
def test_faults_of_the_index(kind):
    schema, fault = INDICES[kind]
    for document in ([], {"schema": schema + 1}, {"schema": schema, "packages": {"x": 1}}):
        assert fault(document)
    assert not fault({"schema": schema, "packages": {"maker": "word"}})


@pytest.mark.parametrize("kind", ["names", "messages"])
def test_a_file_that_is_none_is_refused(tmp_path, kind):
    (tmp_path / kind).mkdir()
    (tmp_path / kind / "maker.json").write_text("{", encoding="utf-8")
    with pytest.raises(MatrixError):
        read_measured(str(tmp_path), f"{kind}/maker")
    assert read_measured(str(tmp_path), f"{kind}/other") is None


@pytest.mark.parametrize(("kind", "document"), [("names", NAMES), ("messages", MESSAGES)])
def test_the_compiled_form_is_what_was_measured(tmp_path, kind, document):
    source = tmp_path / "matrices"
    (source / kind).mkdir(parents=True)
    (source / kind / "maker.json").write_text(json.dumps(document), encoding="utf-8")
    write_compiled(str(source), str(tmp_path / "compiled"), times=False)
    packed = (tmp_path / "compiled" / kind / "maker.z").read_bytes()
    assert json.loads(unpack(packed)) == document


def test_measured_releases_come_from_the_surfaces(tmp_path):
    (tmp_path / "surfaces").mkdir()
    assert read_measured(str(tmp_path), "measured") == {}
    document = {"name": "maker", "measured": ["1.0", "1.1"], "statements": []}
    (tmp_path / "surfaces" / "maker.json").write_text(json.dumps(document), encoding="utf-8")
    assert read_measured(str(tmp_path), "measured") == {"maker": ["1.0", "1.1"]}


def as_lists(value):
    return [as_lists(part) for part in value] if isinstance(value, tuple) else value


def fields_of(value, entry):
    """The fields of a release or a build that its entry in a file has."""
    fields = {key: as_lists(getattr(value, key)) for key in entry}
    for key in ("builds", "differs"):
        if key in entry:
            parts = zip(getattr(value, key), entry[key])
            fields[key] = [fields_of(part, of_part) for part, of_part in parts]
    return fields


def assert_reads_as_written(document):
    """Release by release, and all of them in one pass."""
    one_by_one, together = [load_package(package_lines(document)) for _ in range(2)]
    assert len(together.releases()) == len(document["releases"])
    for entry in document["releases"]:
        for package in (one_by_one, together):
            assert fields_of(package.release(parse_version(entry["version"])), entry) == entry


def test_the_compiled_releases_are_those_of_the_files():
    paths = sorted((ROOT / "matrices" / "packages").glob("*.json"))
    assert len(paths) > 300
    for path in paths:
        assert_reads_as_written(json.loads(path.read_text("utf-8")))


def test_values_that_releases_share_may_hold_anything():
    hostile = {
        "requires_python": "0\t1\n2",
        "pythons": ["0", "a\tb", ""],
        "platforms": [],
        "requires": ['torch; extra == "0\\t"'],
        "builds": [{"cuda": "12.8", "source": "\t0\n"}],
    }
    assert_reads_as_written(
        {
            "name": "maker",
            "source": "s",
            "date": "2026-11-28",
            "trust": "reported",
            "releases": [
                {"version": "1.0", "released": "2026-01-01", **hostile},
                {"version": "2.0", "released": "2026-01-02", **hostile},
                {"version": "3.0", "released": "2026-01-03", "requires_python": "0"},
            ],
        }
    )
