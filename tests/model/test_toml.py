"""TOML of somebody else: its errors, and that its cost grows with its length alone."""

import pytest

from envdoctor.model.toml import parse_toml

from ..time_taken import within


def test_lines_may_end_in_any_way():
    assert parse_toml("a = 1\r\n[b]\r\nc = 'd'\r\n") == {"a": 1, "b": {"c": "d"}}


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a = " + "{b=" * 50_000,
        ".".join("a" * 50_000) + " = 1",
        "[" + " . ".join("a" * 50_000) + "]",
        "x = {" + ".".join(['"a"'] * 50_000) + " = 1}",
        "a = 1\na = 2",
    ],
)
def test_what_is_no_toml_is_said_in_time(text):
    def refuse():
        with pytest.raises(ValueError, match=r"deeply|200 parts|line 2|Cannot overwrite"):
            parse_toml(text)

    within(2, refuse)


def test_a_ruler_or_a_number_is_no_key():
    ruler = "." * 150
    assert parse_toml(f"a = '{ruler}'\n[b.c]\nd = 1.5") == {"a": ruler, "b": {"c": {"d": 1.5}}}
