"""Documents that were measured: what is none is refused, and the compiled form is what was read."""

import json

import pytest

from envdoctor.errors import MatrixError
from envdoctor.matrix import messages, names
from envdoctor.matrix.packed import unpack
from envdoctor.matrix.source import read_measured, write_compiled

from .test_messages import DOCUMENT as MESSAGES
from .test_names import DOCUMENT as NAMES

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
