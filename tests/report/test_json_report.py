"""The JSON report against its published schema."""

import json

import jsonschema
import pytest

from envdoctor.model.finding import Finding
from envdoctor.report import View, render

from ..schemas import unproduced, validate
from .conftest import GOLDEN, HEALTHY, REPORT, hostile_report


@pytest.mark.parametrize(
    "report", [REPORT, HEALTHY, hostile_report()], ids=["full", "healthy", "hostile"]
)
def test_output_fits_the_schema(report):
    text = render(report, "json", View(80))
    assert text.isascii()
    validate(json.loads(text), "report")


def test_outputs_have_all_of_the_schema_and_no_more():
    golden = json.loads((GOLDEN / "json.json").read_text(encoding="utf-8"))
    hostile = json.loads(render(hostile_report(), "json", View(80)))
    assert unproduced("report", [golden, hostile]) == set()


def test_the_schema_refuses():
    data = json.loads(render(REPORT, "json", View(80)))
    data["findings"][0]["severity"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        validate(data, "report")


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
