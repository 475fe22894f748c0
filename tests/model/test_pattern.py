"""A pattern that is compiled late is the same pattern: ``re`` is the oracle."""

import re

import pytest

from envdoctor.model.pattern import pattern


@pytest.mark.parametrize("method", ["match", "search", "fullmatch", "findall", "split"])
@pytest.mark.parametrize("text", ["", "a1", "xA22y", "é3"])
def test_methods(method, text):
    found = getattr(pattern(r"([a-z])\d", re.IGNORECASE), method)(text)
    expected = getattr(re.compile(r"([a-z])\d", re.IGNORECASE), method)(text)
    if isinstance(expected, re.Match):
        found, expected = (found.span(), found.groups()), (expected.span(), expected.groups())
    assert found == expected


def test_substitution_and_bytes():
    late = pattern(rb"\d+")
    assert late.sub(b"#", b"a1b22") == b"a#b#"
    assert late.subn(b"#", b"a1b22") == (b"a#b#", 2)
    assert [match.group() for match in late.finditer(b"a1b22")] == [b"1", b"22"]
    assert late.pattern == rb"\d+"


def test_compiled_at_the_first_use_only():
    broken = pattern("(")
    with pytest.raises(re.error):
        broken.match("x")
