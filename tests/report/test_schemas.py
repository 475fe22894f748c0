"""The published JSON Schemas as data: closed to what they do not name, and in the code's words."""

import re

import jsonschema
import pytest

from envdoctor.cli.matrix import MATRIX_SCHEMA_VERSION
from envdoctor.fix import change_plan
from envdoctor.lock.emit import lock_json
from envdoctor.model import facts
from envdoctor.model.change import GOALS
from envdoctor.model.finding import FINDING_EFFECTS, KINDS, SEVERITIES
from envdoctor.model.memory_plan import PHASES, VERDICTS
from envdoctor.model.row import EFFECTS, TRUSTS
from envdoctor.model.signature import CERTAINTIES, CONFIDENCES, ROLES, SIGNATURE_ROLES
from envdoctor.model.workload import WORKLOAD_FIELDS
from envdoctor.report.cluster_json import NODES_SCHEMA_VERSION
from envdoctor.report.diagnosis_text import DIAGNOSIS_SCHEMA_VERSION
from envdoctor.report.explain_json import EXPLAIN_SCHEMA_VERSION
from envdoctor.report.json_report import BAKE_SCHEMA_VERSION, REPORT_SCHEMA_VERSION
from envdoctor.report.plan_json import PLAN_SCHEMA_VERSION
from envdoctor.report.proof_json import PROVE_SCHEMA_VERSION
from envdoctor.report.sweep_json import SWEEP_SCHEMA_VERSION
from envdoctor.report.watch_json import WATCH_SCHEMA_VERSION
from envdoctor.watch.trend import SHAPES

from ..schemas import FOLDER, NAMES, load_schema, subschemas, unproduced

VERSIONS = {
    "bake": BAKE_SCHEMA_VERSION,
    "diagnosis": DIAGNOSIS_SCHEMA_VERSION,
    "explain": EXPLAIN_SCHEMA_VERSION,
    "facts": facts.SCHEMA_VERSION,
    "fix": change_plan.SCHEMA_VERSION,
    "lock": lock_json.SCHEMA_VERSION,
    "matrix": MATRIX_SCHEMA_VERSION,
    "nodes": NODES_SCHEMA_VERSION,
    "plan": PLAN_SCHEMA_VERSION,
    "prove": PROVE_SCHEMA_VERSION,
    "report": REPORT_SCHEMA_VERSION,
    "sweep": SWEEP_SCHEMA_VERSION,
    "watch": WATCH_SCHEMA_VERSION,
}
# Where a schema lists words, they are these of the code: (schema, end of the place) to the words.
WORDS = {
    ("diagnosis", "/traces/items/properties/kind"): KINDS,
    ("diagnosis", "/findings/items/properties/kind"): KINDS,
    ("diagnosis", "/suspects/items/properties/kind"): KINDS,
    ("diagnosis", "/properties/severity"): SEVERITIES,
    ("diagnosis", "/properties/trust"): TRUSTS,
    ("diagnosis", "/properties/certainty"): CERTAINTIES,
    ("diagnosis", "/properties/confidence"): CONFIDENCES,
    ("diagnosis", "/properties/role"): ROLES,
    ("matrix", "/$defs/row/properties/effect"): EFFECTS,
    ("matrix", "/$defs/row/properties/trust"): TRUSTS,
    ("plan", "/$defs/finding/properties/kind"): KINDS,
    ("plan", "/properties/severity"): SEVERITIES,
    ("plan", "/properties/trust"): TRUSTS,
    ("plan", "/$defs/pool/properties/verdict"): VERDICTS,
    ("plan", "#/properties/verdict"): VERDICTS,
    ("plan", "/before/anyOf/0/properties/verdict"): VERDICTS,
    ("plan", "/cache/anyOf/0/properties/verdict"): VERDICTS,
    ("plan", "/levers/items/properties/verdict"): VERDICTS,
    ("plan", "/properties/peak"): PHASES,
    ("plan", "/properties/phases/items"): PHASES,
    ("plan", "/inputs/items/properties/field"): WORKLOAD_FIELDS,
    ("report", "/properties/kind"): KINDS,
    ("report", "/properties/severity"): SEVERITIES,
    ("report", "/properties/trust"): TRUSTS,
    ("report", "/properties/effect"): ("", *FINDING_EFFECTS),
    ("fix", "/properties/effect"): ("", *FINDING_EFFECTS),
    ("fix", "/properties/goal"): GOALS,
    ("fix", "/properties/severity"): SEVERITIES,
    ("bake", "/properties/kind"): KINDS,
    ("explain", "/$defs/row/properties/effect"): EFFECTS,
    ("explain", "/properties/role"): SIGNATURE_ROLES,
    ("explain", "/properties/confidence"): CONFIDENCES,
    ("sweep", "/properties/verdict"): VERDICTS,
    ("watch", "/properties/shape"): SHAPES,
}


def test_every_schema_is_one_and_its_version_is_that_of_the_code():
    assert sorted(VERSIONS) == NAMES
    assert len(list(FOLDER.iterdir())) == len(NAMES)
    for name, version in VERSIONS.items():
        schema = load_schema(name)
        jsonschema.Draft202012Validator.check_schema(schema)
        stated = {
            entry["properties"]["schema_version"]["const"]
            for entry in [schema, *schema.get("oneOf", ())]
            if "properties" in entry
        }
        assert stated == {version}, name


@pytest.mark.parametrize("name", NAMES)
def test_an_object_has_what_the_schema_names_and_no_more(name):
    for place, schema in subschemas(load_schema(name)):
        if "properties" in schema:
            assert schema["type"] in ("object", ["object", "null"]), place
            assert schema["additionalProperties"] is False, place
            assert set(schema.get("required", ())) <= set(schema["properties"]), place


@pytest.mark.parametrize("name", NAMES)
def test_words_are_those_of_the_code(name):
    ends = {end: words for (schema, end), words in WORDS.items() if schema == name}
    used = set()
    for place, schema in subschemas(load_schema(name)):
        for end, words in ends.items():
            if re.fullmatch(rf"(#.*)?{re.escape(end)}", place) and "enum" in schema:
                assert sorted(schema["enum"]) == sorted(words), place
                used.add(end)
    assert used == set(ends)


def test_the_workload_of_a_plan_has_the_fields_of_the_code():
    workload = load_schema("plan")["properties"]["workload"]
    assert workload["propertyNames"]["enum"] == list(WORKLOAD_FIELDS)
    phases = load_schema("plan")["$defs"]["pool"]["properties"]["phases"]["properties"]
    assert tuple(phases) == PHASES


def test_a_finding_is_the_same_in_every_schema():
    finding = load_schema("report")["$defs"]["finding"]
    assert load_schema("plan")["$defs"]["finding"] == finding
    assert load_schema("diagnosis")["properties"]["findings"]["items"] == finding
    for name, listed in (("report", "findings"), ("diagnosis", "traces")):
        members = load_schema(name)["properties"][listed]["items"]["properties"]
        assert {key: members[key] for key in finding["properties"]} == finding["properties"]


def test_what_no_document_has_is_named():
    """The oracle of the tests that hold outputs to the schemas can fail."""
    machine = {"source": "x", "value": [{"name": "NVIDIA H100"}]}
    document = {"schema_version": facts.SCHEMA_VERSION, "facts": {"gpus": machine}}
    left = unproduced("facts", [document])
    assert "#/properties/facts/properties/torch.version" in left
    assert "#/$defs/Gpu/properties/uuid" in left
    assert not {"#/properties/facts/properties/gpus", "#/$defs/Gpu/properties/name"} & left
    document["facts"]["gpus"]["more"] = 1
    with pytest.raises(jsonschema.ValidationError):
        unproduced("facts", [document])
