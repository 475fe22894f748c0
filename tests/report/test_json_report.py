"""The JSON report against its published schema."""

import json
from pathlib import Path

import jsonschema
import pytest

import envdoctor
from envdoctor.model.finding import Finding
from envdoctor.model.serde import dump_facts, facts_schema
from envdoctor.report import View, render
from envdoctor.report.schema import report_schema

from .conftest import HEALTHY, MACHINE, REPORT, hostile_report

SCHEMAS = Path(envdoctor.__file__).parent / "schemas"


@pytest.mark.parametrize(
    "report", [REPORT, HEALTHY, hostile_report()], ids=["full", "healthy", "hostile"]
)
def test_output_fits_the_schema(report):
    text = render(report, "json", View(80))
    assert text.isascii()
    jsonschema.validate(json.loads(text), report_schema())


def test_published_schemas_are_the_generated_ones():
    assert (
        json.loads((SCHEMAS / "report.schema.json").read_text(encoding="utf-8")) == report_schema()
    )
    assert json.loads((SCHEMAS / "facts.schema.json").read_text(encoding="utf-8")) == facts_schema()


def test_schemas_are_schemas_and_reject():
    for schema in (report_schema(), facts_schema()):
        jsonschema.Draft202012Validator.check_schema(schema)
    data = json.loads(render(REPORT, "json", View(80)))
    data["findings"][0]["severity"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, report_schema())


def test_facts_fit_their_schema():
    jsonschema.validate(json.loads(json.dumps(dump_facts(MACHINE))), facts_schema())


def test_every_member_of_a_finding_is_there():
    finding = json.loads(render(REPORT, "json", View(80)))["findings"][0]
    assert set(Finding._fields) <= set(finding)


def test_counts_and_roots():
    data = json.loads(render(REPORT, "json", View(80)))
    assert data["summary"] == {
        "line": data["summary"]["line"],
        "errors": 1,
        "warnings": 1,
        "advice": 1,
        "undetermined": 3,
        "ignored": 1,
        "exit_code": 1,
    }
    assert [finding["root"] for finding in data["findings"]] == [True, False, True]
    assert data["targets"][0]["failed_probes"] == {
        "driver.fabric_manager": "probe fabric: timed out after 2 s"
    }
