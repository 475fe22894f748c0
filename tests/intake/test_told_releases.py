"""Releases told in a roundabout way: what is there, and which of these tell nothing."""

import pytest

from envdoctor.errors import InputError
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix


def told(text):
    """Return what a text tells, by name: a version or a range."""
    try:
        facts = parse_report(text, load_matrix().package)
    except InputError:
        return {}
    releases = {
        entry.name: entry.version or entry.constraint
        for entry in (facts.value("distributions") or {}).values()
    }
    fields = ("python.version", "driver.release", "toolkit.version")
    return {**releases, **{name: facts.value(name) for name in fields if facts.value(name)}}


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        ("After upgrading peft to 0.14.0 it hangs", {"peft": "0.14.0"}),
        (
            "We went from peft 0.13.2 to 0.14.0, now trl 0.12.0 breaks",
            {"peft": "0.14.0", "trl": "0.12.0"},
        ),
        ("downgrading numpy to 1.26.4 solved it", {"numpy": ">1.26.4"}),
        ("Updating trl from 0.11.0 to 0.12.0 fixed it", {"trl": "0.11.0"}),
        ("I have switched to Python 3.12 recently", {"python.version": "3.12"}),
        ("I moved to driver 570.86.15 and it crashes", {"driver.release": "570.86.15"}),
        ("works with nvcc 13.0.88, fails with nvcc 12.8.93", {"toolkit.version": "12.8.93"}),
        ("since peft 0.14.0 it hangs", {"peft": ">=0.14.0"}),
        ("version 0.14.0 of peft does not load it", {"peft": "0.14.0"}),
        # somebody else's, what is thought of or asked for
        ("The README says that after upgrading peft to 0.14.0 it breaks", {}),
        ("If you upgraded transformers to 5.0.0 it breaks", {}),
        ("A colleague has upgraded peft to 0.14.0", {}),
        ("It was fixed by upgrading to peft 0.14.0", {}),
    ],
)
def test_told(text, releases):
    assert told(text) == releases
