"""Versions against packaging.version, which is the oracle: how they are read, written and
ordered.
"""

import copy
import pickle

import packaging.version
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor.model.version import DriverRelease, InvalidVersion, Version

_NUMBER = st.sampled_from(["0", "1", "2", "9", "10", "01", "535"])


def _maybe(*parts):
    return st.one_of(st.just(""), st.tuples(*parts).map("".join))


_TEXT = st.tuples(
    st.sampled_from(["", "", "", "v", " "]),
    _maybe(_NUMBER, st.just("!")),
    st.lists(_NUMBER, min_size=1, max_size=4).map(".".join),
    _maybe(
        st.sampled_from(["", ".", "-"]),
        st.sampled_from(["a", "b", "rc", "c", "alpha", "RC"]),
        st.one_of(st.just(""), _NUMBER),
    ),
    _maybe(st.sampled_from([".post", "post", "-r", "-"]), st.one_of(st.just(""), _NUMBER)),
    _maybe(st.sampled_from([".dev", "dev", "-dev"]), st.one_of(st.just(""), _NUMBER)),
    _maybe(
        st.sampled_from(
            [
                "+cu124",
                "+cu12.4",
                "+CPU",
                "+g1a2b",
                "+1",
                "+01",
                "+cu12_torch2.6-x",
                "+1.a",
                "+",
                "+a..b",
            ]
        )
    ),
).map("".join)


def _read(kind, error, text):
    try:
        return kind(text)
    except error:
        return None


@given(st.one_of(_TEXT, st.text("0123456789.!+-_abrcpostdev ", max_size=12), st.text(max_size=6)))
def test_read_and_written_as_packaging_does(text):
    ours, theirs = (
        _read(Version, InvalidVersion, text),
        _read(packaging.version.Version, packaging.version.InvalidVersion, text),
    )
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert str(ours) == str(theirs)
        for name in (
            "epoch",
            "release",
            "pre",
            "post",
            "dev",
            "local",
            "major",
            "minor",
            "public",
            "base_version",
        ):
            assert getattr(ours, name) == getattr(theirs, name), name
        for name in ("is_prerelease", "is_postrelease", "is_devrelease"):
            assert getattr(ours, name) is getattr(theirs, name), name
        assert Version(str(ours)) == ours


@given(_TEXT, _TEXT)
def test_ordered_as_packaging_does(first, second):
    ours = [_read(Version, InvalidVersion, text) for text in (first, second)]
    theirs = [
        _read(packaging.version.Version, packaging.version.InvalidVersion, text)
        for text in (first, second)
    ]
    if None in ours or None in theirs:
        return
    (a, b), (c, d) = ours, theirs
    assert (a < b, a <= b, a == b, a != b, a > b, a >= b) == (
        c < d,
        c <= d,
        c == d,
        c != d,
        c > d,
        c >= d,
    )
    assert a != b or hash(a) == hash(b)


def test_copied_and_pickled():
    version = Version("2.6.0rc1+cu124")
    assert copy.deepcopy(version) == pickle.loads(pickle.dumps(version)) == version


@pytest.mark.parametrize("other", ["1.0", 1, None])
def test_nothing_but_a_version_compares(other):
    assert Version("1.0") != other
    with pytest.raises(TypeError):
        _ = Version("1.0") < other


def test_a_driver_release_is_shown_as_written_and_ordered_as_a_version():
    release = DriverRelease("575.57.08")
    assert str(release) == "575.57.08"
    assert release == Version("575.57.8")
    assert hash(release) == hash(Version("575.57.8"))
    assert Version("575.57") < release < DriverRelease("575.57.10")
    with pytest.raises(InvalidVersion):
        DriverRelease("none")
