"""Version sets against packaging.specifiers, which is the oracle that the package itself does not
import.
"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import InvalidSpecifier as OracleInvalid
from packaging.specifiers import SpecifierSet

from envdoctor.model.version import Version
from envdoctor.model.versions import (
    InvalidSpecifier,
    VersionSet,
    canonicalize_name,
    cuda_of_variant,
    enumerated,
    find_variant,
    is_placeholder,
    parse_version,
    releases_of,
    try_version,
)

numbers = st.integers(0, 4)
releases = st.lists(numbers, min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))
suffixes = st.sampled_from(
    [
        "",
        "a1",
        "b2",
        "rc1",
        ".post0",
        ".post1",
        ".dev0",
        ".dev3",
        "a1.dev2",
        "rc1.post2",
        ".post1.dev4",
    ]
)
public = st.builds(lambda release, suffix: release + suffix, releases, suffixes)
versions = st.builds(
    lambda text, local: text + local, public, st.sampled_from(["", "", "+cu124", "+1"])
)
clauses = st.one_of(
    st.builds(
        lambda operator, text: operator + text,
        st.sampled_from([">=", "<=", ">", "<", "==", "!="]),
        public,
    ),
    st.builds(
        lambda operator, text: f"{operator}{text}.*", st.sampled_from(["==", "!="]), releases
    ),
    st.builds(lambda text, suffix: f"~={text}.{suffix}", releases, numbers),
)
specifiers = st.lists(clauses, min_size=1, max_size=3).map(",".join)


@settings(max_examples=400)
@given(specifiers, versions)
def test_membership_is_that_of_packaging(text, version):
    assert (Version(version) in VersionSet.parse(text)) == SpecifierSet(
        text, prereleases=True
    ).contains(version, prereleases=True)


@settings(max_examples=200)
@given(specifiers, specifiers, versions)
def test_set_operations_are_those_of_membership(first, second, text):
    a, b, version = VersionSet.parse(first), VersionSet.parse(second), Version(text)
    assert (version in (a & b)) == (version in a and version in b)
    assert (version in (a | b)) == (version in a or version in b)
    assert (version in ~a) == (version not in a)
    assert a & b == b & a
    assert a | b == b | a
    assert ~~a == a


@settings(max_examples=100)
@given(specifiers, specifiers, versions)
def test_alternatives(first, second, text):
    version = Version(text)
    assert (version in VersionSet.parse(f"{first} || {second}")) == (
        version in VersionSet.parse(first) or version in VersionSet.parse(second)
    )


@settings(max_examples=100)
@given(specifiers)
def test_intervals_survive_as_text(text):
    """The compiled matrix stores interval ends as version texts."""
    intervals = VersionSet.parse(text).intervals
    again = [
        tuple(None if end is None else parse_version(str(end)) for end in interval)
        for interval in intervals
    ]
    assert VersionSet(again) == VersionSet.parse(text)


@pytest.mark.parametrize(
    "text", ["2.0", ">=", ">=x", "~=2", ">=1.*", "==1.0rc1.*", "=>1", "torch>=1"]
)
def test_bad_specifiers_are_refused(text):
    with pytest.raises(OracleInvalid):
        SpecifierSet(text)
    with pytest.raises(InvalidSpecifier):
        VersionSet.parse(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (">=2.1,<2.5", ">=2.1, <2.5"),
        ("==2.6.0", "==2.6.0"),
        ("", "any version"),
        (">2", ">2"),
        ("<=2", "<=2"),
        (">2,<1", "no version"),
    ],
)
def test_text_for_messages(text, shown):
    assert str(VersionSet.parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "variant", "cuda"),
    [
        ("2.6.0+cu124", "cu124", "12.4"),
        ("2.11.0+cu130", "cu130", "13.0"),
        ("2.0.1+cu92", "cu92", "9.2"),
        ("2.8.3+cu12torch2.6cxx11abifalse", "cu12", "12"),
        ("2.6.0", None, None),
        ("2.6.0+cpu", None, None),
        (None, None, None),
    ],
)
def test_variants(text, variant, cuda):
    assert find_variant(text) == variant
    assert (cuda_of_variant(variant) if variant else None) == cuda


def test_names_and_versions():
    assert canonicalize_name("Flash_Attn") == "flash-attn"
    assert try_version("unknown") is None
    assert try_version(None) is None
    assert try_version("2.6.0+cu124") in VersionSet.parse("==2.6.0")


@pytest.mark.parametrize(
    "text",
    [
        "<=2.8.3.post1",
        ">2.8.3.post1",
        "<=2.8.3",
        ">1.0",
        "<5",
        ">=1.2.post1",
        "==2.6.0",
        ">=2.1, <2.5",
    ],
)
def test_a_set_reads_as_it_was_written(text: str) -> None:
    assert str(VersionSet.parse(text)) == text


@given(
    st.lists(
        st.sampled_from(["cu", "1", "12", "124", "_", ".", "+", "torch", "c", "x", "é", "٣"]),
        max_size=8,
    ).map("".join)
)
def test_variant_is_a_word_of_its_own(text):
    """The regular expression that this was, before importing re at each start cost too much, is the
    oracle.
    """
    match = re.search(r"\bcu(\d{2,3})\b", text.replace("_", ".").replace("torch", ".torch"))
    assert find_variant(text) == (match.group() if match else None)


def test_spans_as_a_set_and_in_words():
    spans = [("2.0", "2.2.1"), ("2.4", "2.4"), ("2.6", "2.7")]
    inside, outside = ("2.0", "2.1.5", "2.2.1", "2.4", "2.7"), ("1.13", "2.2.2", "2.5", "2.7.1")
    releases = VersionSet.spanning(spans)
    assert all(parse_version(text) in releases for text in inside)
    assert not any(parse_version(text) in releases for text in outside)
    assert not VersionSet.spanning([])
    said = [releases_of(*span) for span in spans]
    assert [enumerated(said[:count]) for count in range(4)] == [
        "",
        "2.0 to 2.2.1",
        "2.0 to 2.2.1 and 2.4",
        "2.0 to 2.2.1, 2.4 and 2.6 to 2.7",
    ]


@pytest.mark.parametrize(
    ("version", "is_one"),
    [
        ("0.1.dev4+g1a2b3c4", True),
        ("0.0.0.dev1+g11605767e.d20260615", True),
        ("0+unknown", True),
        ("0.0.1", False),
        ("0.11.1.dev0+gf70df3d.d20260101", False),
    ],
)
def test_a_version_that_a_build_could_not_find_out(version, is_one):
    assert is_placeholder(version) is is_one
