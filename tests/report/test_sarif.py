"""SARIF against the OASIS schema, a copy of which is in tests/data/schemas."""

import json
from pathlib import Path

import jsonschema
import pytest

from envdoctor.report import View, render

from .conftest import HEALTHY, REPORT, hostile_report

SCHEMA = json.loads(
    (Path(__file__).parent.parent / "data" / "schemas" / "sarif-schema-2.1.0.json").read_text(
        encoding="utf-8"
    )
)


@pytest.mark.parametrize(
    "report", [REPORT, HEALTHY, hostile_report()], ids=["full", "healthy", "hostile"]
)
def test_output_fits_the_oasis_schema(report):
    text = render(report, "sarif", View(80))
    assert text.isascii()
    jsonschema.validate(json.loads(text), SCHEMA)


def test_the_schema_rejects_what_is_no_sarif():
    data = json.loads(render(REPORT, "sarif", View(80)))
    data["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)


def test_levels_suppressions_and_open_results():
    results = json.loads(render(REPORT, "sarif", View(80)))["runs"][0]["results"]
    assert [result["level"] for result in results] == [
        "error",
        "warning",
        "note",
        "none",
        "none",
        "none",
        "error",
    ]
    assert [result["kind"] for result in results] == ["fail"] * 3 + ["open"] * 3 + ["fail"]
    assert (
        results[-1]["suppressions"][0]["justification"]
        == "built from source here (until 2999-12-31)"
    )
    assert (
        results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        == "file:///proc/driver/nvidia/version"
    )
