"""Spans of places: what is written by scripts is read back, and what is none is refused."""

import random

import pytest

from envdoctor.matrix.spans import (
    are_spans,
    head_fault,
    packages_fault,
    places_of,
    spans_of,
)

VERSIONS = [f"1.{minor}" for minor in range(40)]


def written(places):
    """The text of a set of places."""
    runs = []
    for place in sorted(places):
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


@pytest.mark.parametrize("seed", range(20))
def test_places_are_read_back(seed):
    chance = random.Random(seed)
    places = {place for place in range(40) if chance.random() < 0.5}
    text = written(places)
    assert places_of(text) == places
    assert are_spans(text, 40)
    named = [
        VERSIONS[place]
        for first, last in spans_of(text, VERSIONS)
        for place in range(VERSIONS.index(first), VERSIONS.index(last) + 1)
    ]
    assert named == [VERSIONS[place] for place in sorted(places)]


@pytest.mark.parametrize("text", ["0-", "-1", "1,,2", "1,", "a", "0-40", "40", "1234567", None, 3])
def test_what_is_no_spans(text):
    assert not are_spans(text, 40)


HEAD = {"schema": 1, "name": "x", "date": "2026-01-01", "versions": ["1.0"]}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, ""),
        ({"schema": 2}, "schema 1"),
        ({"name": None}, "a name"),
        ({"date": 1}, "a date"),
        ({"versions": []}, "versions"),
        ({"versions": ["x y"]}, "versions"),
        ({"versions": "1.0"}, "versions"),
    ],
)
def test_faults_of_a_head(changed, fault):
    said = head_fault({**HEAD, **changed}, 1)
    assert fault in said
    assert bool(said) == bool(fault)


@pytest.mark.parametrize("document", [[], {}, {"schema": 1}, {"schema": 1, "packages": {"x": 1}}])
def test_faults_of_an_index(document):
    assert packages_fault(document, 1)
    assert not packages_fault({"schema": 1, "packages": {"x": "y"}}, 1)
