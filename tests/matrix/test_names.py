"""Histories of names: by hand on a small document, and the committed ones against known facts."""

import json
import zlib
from pathlib import Path

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.names import PackageNames, index_fault, names_fault, owners_of
from envdoctor.model.versions import parse_version

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = {
    "schema": 2,
    "name": "maker",
    "date": "2026-11-22",
    "versions": ["1.0", "1.1", "2.0", "2.1", "3.0"],
    "modules": {"maker.part": "2-4"},
    "names": {"maker": {"0-1": "Old Older", "0,3-4": "Torn"}, "maker.late": {"3-4": "Computed"}},
    "dynamic": {"maker.late": "0-2"},
    "moved": {"maker": {"maker.part": "Old"}},
    "classes": {
        "maker.part:Car": {"2-3": "wheels", "2-4": "."},
        "maker.base:Thing": {"0-2": "name weight", "0-4": "."},
    },
    "bases": {"maker.part:Car": "maker.base:Thing other.cars:Vehicle"},
    "signatures": {
        "maker.part:Car.__init__": {
            "2-3": "colour=",
            "4": "colour paint=",
            "2-4": ". +other:Vehicle",
        },
        "maker:build": {"0-1": "plan", "3-4": "**", "0-4": "."},
    },
    "registries": {"MODELS": {"2-4": "Llama Qwen"}, "--": {"3-4": "fast-mode"}},
    "asked": {"maker": {"Old": {"user": [["0.1", "0.4"]], "other": [["7", "9"]]}}},
}
NAMES = PackageNames(DOCUMENT)


def test_what_is_asked_for_ends_with_the_module():
    """maker.part came with 2.0 and went with 3.0: neither 1.1 nor 3.0 has what 2.1 has."""
    document = {**DOCUMENT, "modules": {"maker.part": "2-3"}, "names": {"maker.part": {"3": "X"}}}
    history = PackageNames(document).of_module("maker.part", "X")
    assert history.requirement() == "maker>=2.1,<=2.1"
    assert NAMES.of_attribute("Car", "wheels").requirement() == "maker>=2.0,<=2.1"


def test_a_name_that_went():
    old = NAMES.of_module("maker", "Old")
    assert old.sentence() == "maker has maker.Old in 1.1 or older only"
    assert old.requirement() == "maker<=1.1"
    assert old.moved == "maker.part"
    assert old.side() == "newer"
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
    torn = NAMES.of_module("maker", "Torn")
    assert torn.requirement(parse_version("2.0")) == "maker>=2.1"
    assert torn.requirement(parse_version("1.1")) == "maker<=1.0"
    assert torn.requirement() == "maker>=2.1"
    assert torn.side() == torn.side(parse_version("1.1")) == ""


def test_a_module_that_came():
    part = NAMES.of_module("maker.part")
    assert part == NAMES.of_module("maker", "part")
    assert part.sentence() == "maker has maker.part in 2.0 or newer only"
    assert part.requirement() == "maker>=2.0"
    assert part.side() == "older"


def test_a_module_that_makes_names_up_may_have_them():
    computed = NAMES.of_module("maker.late", "Computed")
    assert computed.has(parse_version("2.0")) is None
    assert computed.has(parse_version("2.1")) is True


def test_attributes_of_a_class_and_of_those_above_it():
    assert NAMES.of_attribute("Car", "wheels").present == (("2.0", "2.1"),)
    weight = NAMES.of_attribute("Car", "weight")
    assert weight.sentence() == "maker's Car has weight in 2.0 or older only"
    assert weight.has(parse_version("2.1")) is None  # a Vehicle may have it
    assert NAMES.of_attribute("Car", "doors") is None
    assert NAMES.bases_elsewhere("Car") == ["other.cars:Vehicle"]


def test_parameters():
    paint = NAMES.of_parameter("Car.__init__", "paint")
    assert paint.sentence() == "maker's Car.__init__ takes paint in 3.0 only"
    assert (paint.first, paint.side()) == ("2.0", "older")  # there was no Car before
    assert NAMES.of_parameter("Car.__init__", "colour") is None  # it always takes it
    required = NAMES.of_parameter("Car.__init__", "colour", required=True)
    assert required.present == (("3.0", "3.0"),)
    plan = NAMES.of_parameter("build", "plan")
    assert [plan.has(parse_version(text)) for text in ("1.0", "2.0", "3.0")] == [True, False, None]
    assert NAMES.of_parameter("build", "plans") is None
    assert NAMES.inherited_from("Car.__init__") == ["other:Vehicle"]


def test_what_calls_an_override_with_more():
    calls = NAMES.of_calls("__init__", "paint")
    assert calls.sentence() == "maker calls __init__ without paint in 2.0 to 2.1 only"
    assert calls.side() == "newer"
    assert NAMES.of_constructors("paint").requirement() == "maker>=3.0"


def test_registries_and_options():
    assert NAMES.of_registry("Qwen").sentence() == "maker knows Qwen in 2.0 or newer only"
    assert NAMES.of_option("fast-mode").requirement() == "maker>=2.1"
    assert NAMES.of_registry("fast-mode") is None


def test_who_asks():
    installed = {"user": parse_version("0.3"), "other": parse_version("10")}
    history = NAMES.of_module("maker", "Old")
    assert [importer.package for importer in history.asked_by(installed)] == ["user"]


@pytest.mark.parametrize("name", ["", "Never"])
def test_what_is_not_known(name):
    assert NAMES.of_module("maker", name) is None
    assert NAMES.of_module("elsewhere", "Old") is None


def test_who_has_a_class():
    index = {"packages": {"maker": "Car Thing maker", "other": "Cart"}}
    assert owners_of(index, "Car") == ["maker"]
    assert owners_of(index, "Thing") == ["maker"]
    assert owners_of(index, "hing") == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"schema": 1}, "expected an object with schema 2"),
        ({"name": None}, "expected a name and a date"),
        ({"versions": ["one"]}, "expected texts of versions"),
        ({"modules": []}, "expected an object of modules"),
        ({"modules": {"maker": "0-5"}}, "modules: expected spans such as 0-3,7 of places below 5"),
        ({"dynamic": {"maker": "0-"}}, "dynamic: expected spans such as 0-3,7 of places below 5"),
        (
            {"names": {"maker": {"x": "Old"}}},
            "names: expected spans such as 0-3,7 of places below 5",
        ),
        ({"classes": {"maker:Car": "wheels"}}, "classes: expected texts by text"),
        ({"bases": {"maker:Car": []}}, "bases: expected texts"),
    ],
)
def test_faults(changed, fault):
    assert names_fault({**DOCUMENT, **changed}) == fault
    assert names_fault(DOCUMENT) == ""


def test_the_committed_files_are_sound_and_small():
    """At most 4 MB packed, all of them known to the index."""
    folder = ROOT / "matrices" / "names"
    index = json.loads((ROOT / "matrices" / "names.json").read_text("utf-8"))
    assert index_fault(index) == ""
    size = 0
    for path in folder.glob("*.json"):
        text = path.read_text("utf-8")
        assert names_fault(json.loads(text)) == "", path.name
        assert path.stem in index["packages"]
        size += len(zlib.compress(text.encode(), 1))
    assert size < 4 << 20


@pytest.mark.parametrize(
    ("module", "name", "requirement"),
    [
        ("trl", "AutoModelForSeq2SeqLMWithValueHead", "trl<=0.28.0"),
        ("huggingface_hub", "cached_download", "huggingface-hub<=0.25.2"),
    ],
)
def test_names_that_are_known_to_have_gone(module, name, requirement):
    assert load_matrix().name_history(module, name).requirement() == requirement


@pytest.mark.parametrize(
    ("word", "parameter", "requirement"),
    [
        ("SFTTrainer.__init__", "max_seq_length", "trl>=0.4.2,<=0.12.2"),  # trl 0.13.0's notes
        ("Client.__init__", "proxies", "httpx<=0.27.2"),  # httpx 0.28.0's changelog
    ],
)
def test_parameters_that_are_known_to_have_gone(word, parameter, requirement):
    histories = [
        owner.of_parameter(word, parameter)
        for owner in load_matrix().owners_of(word.partition(".")[0])
    ]
    assert requirement in [history.requirement() for history in histories if history]
