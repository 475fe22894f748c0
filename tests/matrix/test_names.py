"""Histories of names: by hand on a small document, and the committed one against the kept facts."""

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.names import history_of, names_fault
from envdoctor.model.versions import parse_version

DOCUMENT = {
    "schema": 1,
    "date": "2026-11-22",
    "packages": {
        "maker": {
            "versions": ["1.0", "1.1", "2.0", "2.1", "3.0"],
            "names": {
                "maker": {"Old": [[0, 1]], "Torn": [[0, 0], [3, 4]]},
                "maker.part": {"": [[2, 4]]},
            },
            "asked": {"maker": {"Old": {"user": [["0.1", "0.4"]], "other": [["7", "9"]]}}},
        }
    },
}


def history(name, module="maker"):
    return history_of(DOCUMENT, module, name)


def test_a_name_that_went():
    old = history("Old")
    assert old.sentence() == "maker has maker.Old in 1.0 to 1.1 only"
    assert old.requirement() == "maker<=1.1"
    assert [
        old.has(parse_version(text)) for text in ("1.0", "1.1", "2.0", "3.0", "3.1", "0.9")
    ] == [
        True,
        True,
        False,
        False,
        None,
        None,
    ]


def test_the_nearest_releases_that_have_it():
    torn = history("Torn")
    assert torn.requirement(parse_version("2.0")) == "maker>=2.1"
    assert torn.requirement(parse_version("1.1")) == "maker<=1.0"
    assert torn.requirement() == "maker>=2.1"


def test_a_module_that_came():
    part = history("", "maker.part")
    assert part.sentence() == "maker has maker.part in 2.0 to 3.0 only"
    assert part.requirement() == "maker>=2.0"


def test_who_asks():
    installed = {"user": parse_version("0.3"), "other": parse_version("10")}
    assert [importer.package for importer in history("Old").asked_by(installed)] == ["user"]


@pytest.mark.parametrize("name", ["", "Never"])
def test_what_is_not_known(name):
    assert history(name) is None
    assert history("Old", "elsewhere") is None


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"schema": 2}, "expected an object with schema 1"),
        ({"packages": []}, "expected a date and an object of packages"),
        ({"packages": {"x": {"versions": []}}}, "x: expected versions, names and asked"),
        (
            {"packages": {"x": {"versions": ["1"], "names": {"x": {"y": [[0, 1]]}}, "asked": {}}}},
            "x: expected spans of places below 1",
        ),
        (
            {"packages": {"x": {"versions": ["one"], "names": {}, "asked": {}}}},
            "x: expected texts of versions",
        ),
    ],
)
def test_faults(changed, fault):
    assert names_fault({**DOCUMENT, **changed}) == fault
    assert names_fault(DOCUMENT) == ""


@pytest.mark.parametrize(
    ("module", "name", "requirement"),
    [
        ("trl", "AutoModelForSeq2SeqLMWithValueHead", "trl<=0.28.0"),
        ("huggingface_hub", "cached_download", "huggingface-hub<=0.25.2"),
    ],
)
def test_names_that_are_known_to_have_gone(module, name, requirement):
    assert load_matrix().name_history(module, name).requirement() == requirement
