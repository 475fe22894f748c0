"""What packages raise: texts that are found again, by releases."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from envdoctor.matrix.messages import (
    PackageMessages,
    index_fault,
    literals_of,
    messages_fault,
    owners_of_text,
    words_of,
)
from envdoctor.model.version import Version

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = "max_model_len ({max_len}) is larger than the {what} of {{this}} model ({derived})."
PLACES = [
    ["ValueError", 0, "Config.verify", 12, ["max_len > derived"], "2-3", 0],
    ["ValueError", 0, "Config.verify", 9, ["max_len >= derived"], "1", 0],
]
DOCUMENT = {
    "schema": 1,
    "name": "maker",
    "date": "2026-11-26",
    "versions": ["0.9", "1.0", "1.2", "1.3", "2.0"],
    "modules": ["maker.config"],
    "messages": {"max_model_len": [[TEMPLATE, "1-3", PLACES, 0]]},
}
TEXT = "max_model_len (8192) is larger than the window of {this} model (4096)."


def find(text):
    return PackageMessages(DOCUMENT).find(text)


def test_a_text_is_found_with_what_was_filled_in():
    match = find(TEXT)[0]
    assert match.values == {"max_len": "8192", "what": "window", "derived": "4096"}
    assert match.places[0].conditions == ("max_len > derived",)
    assert match.present == (("1.0", "1.3"),)
    assert (match.before, match.after) == ("0.9", "2.0")
    assert match.share > 0.7


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(" of {this}", "\n   of {this}"),
        TEXT + "\nand what another program wrote behind it",
        "\n" + TEXT,
    ],
)
def test_lines_and_what_stands_behind_do_not_matter(text):
    assert find(text)[0].values["max_len"] == "8192"


@pytest.mark.parametrize(
    "text", ["", TEXT[:-1], f"x {TEXT}", TEXT.replace("larger", "smaller"), f"{TEXT} And more"]
)
def test_another_text_is_not_found(text):
    assert find(text) == []


@pytest.mark.parametrize(
    ("release", "has"),
    [
        ("0.1", None),
        ("0.9", False),
        ("0.9.5", None),
        ("1.0", True),
        ("1.1", True),
        ("1.3", True),
        ("1.4", None),
        ("2.0", False),
        ("2.1", None),
    ],
)
def test_a_release_that_was_not_read_has_it_where_both_neighbours_have(release, has):
    assert find(TEXT)[0].has(Version(release)) is has


def test_no_text_takes_long():
    """A pattern of many holes that nearly fits takes as long as a text of its length does."""
    template = "a{x}" * 30 + "b end of it"
    entry = [template, "0", [["E", 0, "", 1, [], "", 0]], 0]
    names = PackageMessages({**DOCUMENT, "messages": {"end": [entry]}})
    assert names.find("a" * 20000 + " end") == []


def test_words_that_touch_a_hole_are_none_of_its_words():
    assert words_of("unknown {kind}s of number{n} {{in}} it") == {"unknown"}
    assert literals_of("a {{b}} {c}") == ["a {b} ", ""]


def test_the_index_names_who_may_raise_a_text():
    index = {"schema": 1, "packages": {"maker": "max_model_len other", "third": "larger_still"}}
    assert owners_of_text(index, TEXT) == ["maker"]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"schema": 2}, "expected an object with schema 1"),
        ({"name": 3}, "expected a name and a date"),
        ({"versions": []}, "expected texts of versions"),
        ({"modules": [1]}, "expected names of modules"),
        ({"messages": {"x": "y"}}, "expected lists of messages by word"),
        ({"messages": {"x": [["text", "5", PLACES, 0]]}}, "expected [template"),
        ({"messages": {"x": [["text", "0", [], 0]]}}, "expected [template"),
        ({"messages": {"x": [["text", "0", [["E", 1, "", 1, [], ""]], 0]]}}, "expected [template"),
    ],
)
def test_faults(changed, fault):
    assert messages_fault({**DOCUMENT, **changed}).startswith(fault)
    assert messages_fault(DOCUMENT) == ""


def test_the_committed_files_are_sound_and_small():
    """At most 3 MB packed, all of them known to the index, each message found by its word."""
    folder = ROOT / "matrices" / "messages"
    index = json.loads((ROOT / "matrices" / "messages.json").read_text("utf-8"))
    assert index_fault(index) == ""
    size = 0
    for path in folder.glob("*.json"):
        text = path.read_text("utf-8")
        document = json.loads(text)
        assert messages_fault(document) == "", path.name
        assert index["packages"][path.stem] == " ".join(sorted(document["messages"]))
        for word, entries in document["messages"].items():
            assert all(word in words_of(entry[0]) for entry in entries), word
        size += len(zlib.compress(text.encode(), 9))
    assert 0 < size < 3 << 20
