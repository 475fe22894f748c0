"""Which releases know a family of models: registries, the line that says so, and stand-ins."""

import json

from surface_scan.families import family_document, load_families
from surface_scan.measure import Measurement
from surface_scan.names import measure_names

from envdoctor.intake.model_names import FAMILIES
from envdoctor.matrix.model_rows import families_fault

LISTED = {
    "engine": {
        "maker": {
            "title": "Maker",
            "tables": ["_TEXT_GENERATION_MODELS", "EntryClass"],
            "ended": ["_PREVIOUSLY_SUPPORTED_MODELS"],
            "configs": "maker.configs",
            "stand_in": {"text": ["maker.models.anything"]},
        },
        "not-measured": {"title": "None", "tables": []},
    },
    "family": {
        "old": {"name": "Old", "architectures": ["OldModel"]},
        "new": {"name": "New", "architectures": ["NewModel", "New2Model"], "stand_in": "text"},
        "gone": {"name": "Gone", "architectures": ["GoneModel"]},
        "never": {"name": "Never", "architectures": ["NeverModel"]},
    },
}
RELEASES = {
    "1.0": {
        "maker/registry.py": '_TEXT_GENERATION_MODELS = {"OldModel": 1, "GoneModel": 2}\n',
        "maker/models/__init__.py": "",
    },
    "2.0": {
        "maker/registry.py": '# NewModel\n_TEXT_GENERATION_MODELS = {"OldModel": 1, "NewModel": 2}\n'
        '_PREVIOUSLY_SUPPORTED_MODELS = {"GoneModel": "1.0"}\n',
        "maker/models/__init__.py": "",
        "maker/models/anything.py": "",
    },
    "3.0": {
        "maker/registry.py": '_TEXT_GENERATION_MODELS = {"OldModel": 1}\n',
        "maker/models/__init__.py": "",
        "maker/models/anything.py": "",
        "maker/models/new.py": "class New2Model: pass\nEntryClass = [New2Model]\n",
    },
}


def test_families_of_a_registry(workshop):
    for version, files in RELEASES.items():
        workshop.release("maker", {"maker/__init__.py": "", **files}, version)
    measurement = Measurement(workshop.packages, workshop.sources, workshop.folder)
    measure_names(workshop.packages, ["maker"], workshop.sources, workshop.folder, lambda _: None)
    document = family_document(LISTED, measurement, workshop.folder)
    assert families_fault(document) == ""
    assert document["engines"] == {
        "maker": {"title": "Maker", "newest": "3.0", "stand_in": {"text": [["2.0", "3.0"]]}}
    }
    # Of what the oldest release has nothing is said, nor of what none has.
    assert {name for name, entry in document["families"].items() if "maker" in entry} == {"new"}
    assert document["families"]["new"]["maker"] == {
        "word": "NewModel",
        "in": [["2.0", "3.0"]],
        "archive": "maker-2.0-py3-none-any.whl",
        "path": "maker/registry.py",
        "line": 2,
        "stand_in": "text",
    }


def test_tables_alone(workshop):
    """Of a package with tables_only the same registries and modules, and nothing else."""
    for version, files in RELEASES.items():
        workshop.release("maker", {"maker/__init__.py": "", **files}, version)
    documents = []
    for tables_only in (False, True):
        packages = workshop.packages._replace(
            tables_only=frozenset({"maker"} if tables_only else ())
        )
        measure_names(packages, ["maker"], workshop.sources, workshop.folder, lambda _: None)
        path = workshop.folder / "names" / "maker.json"
        documents.append(json.loads(path.read_text("utf-8")))
    whole, tables = documents
    assert whole["registries"] == tables["registries"] != {}
    assert whole["modules"] == tables["modules"] != {}
    assert not any(tables[part] for part in ("names", "moved", "classes", "signatures"))


def test_every_family_has_a_form_of_its_name():
    assert set(load_families()["family"]) == set(FAMILIES)
