"""Of which releases the files of a traceback are."""

import pytest

from envdoctor.app import diagnose
from envdoctor.diagnose.releases_of_files import releases_of_files
from envdoctor.intake.assumptions import parse_assumptions, with_assumptions
from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.names import PackageNames, Releases
from envdoctor.model.facts import Facts
from envdoctor.model.log import Frame
from envdoctor.model.versions import parse_version

#: A module that came with 2.0 and one that went with 3.0; in the third a function that came with
#: 2.0, and was a method of the same name before in one of its classes.
NAMES = PackageNames(
    {
        "schema": 2,
        "name": "maker",
        "versions": ["1.0", "2.0", "2.1", "3.0"],
        "modules": {"maker.new": "1-3", "maker.old": "0-2", "maker.brief": "1-2"},
        "names": {},
        "classes": {"maker.core:Car": {"0": "drive", "0-3": "."}},
        "signatures": {
            "maker.core:build": {"1-3": ".", "2-3": "plan="},
            "maker.core:drive": {"1-3": ".", "2-3": "plan="},
        },
    }
)


@pytest.mark.parametrize(
    ("places", "releases"),
    [
        ([("maker.new", "f")], ("2.0", "")),
        ([("maker.old", "<module>")], ("", "2.1")),
        ([("maker.old", "f"), ("maker.new", "f")], ("2.0", "2.1")),
        ([("maker.brief", "f")], ("2.0", "2.1")),
        ([("maker.core", "build")], ("2.0", "")),
    ],
)
def test_what_only_some_releases_have(places, releases):
    assert NAMES.with_places(places) == Releases("maker", *releases)


@pytest.mark.parametrize(
    "places",
    [
        [],
        [("maker.core", "f")],  # all have it
        [("maker.core", "drive")],  # a method, it may be
        [("maker.never", "f")],  # not measured, so nothing is said of it
    ],
)
def test_what_bounds_nothing(places):
    assert NAMES.with_places(places) is None


@pytest.mark.parametrize(
    ("first", "last", "words", "held"),
    [
        ("2.0", "", "2.0 or newer", {"1.0": False, "2.0": True, "4.0": True}),
        ("", "2.1", "2.1 or older", {"1.0": True, "2.1": True, "3.0": False}),
        ("2.0", "2.1", "2.0 to 2.1", {"1.0": False, "2.0": True, "3.0": False}),
    ],
)
def test_their_words_say_what_they_hold(first, last, words, held):
    releases = Releases("maker", first, last)
    assert releases.words == words
    for version, is_held in held.items():
        assert releases.may_hold(parse_version(version)) is is_held


CUDA_SETUP = "/v/lib/python3.10/site-packages/bitsandbytes/cuda_setup/main.py"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (CUDA_SETUP, Releases("bitsandbytes", "", "0.43.0")),
        ("/w/bitsandbytes/bitsandbytes/cuda_setup/main.py", None),  # a checkout
        ("/v/site-packages/bitsandbytes/../../x.py", None),
        ("/v/site-packages/.py", None),
        ("", None),
    ],
)
def test_of_files_as_tracebacks_name_them(file, said):
    matrix = load_matrix()
    frames = [Frame("/w/train.py", 3, "<module>"), Frame(file, 166, "<module>")]
    assert releases_of_files("bitsandbytes", frames, matrix.modules, matrix) == said


TRACE = f"""\
Traceback (most recent call last):
  File "/w/train.py", line 3, in <module>
    import bitsandbytes
  File "{CUDA_SETUP}", line 166, in <module>
    raise RuntimeError(
RuntimeError: something of this run
"""


def test_a_release_that_nobody_states(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(TRACE, encoding="utf-8")
    message = diagnose([str(path)], None, load_matrix()).traces[0].finding.message
    assert "raised by bitsandbytes (by its files 0.43.0 or older) at bitsandbytes/cuda" in message
    stated = with_assumptions(Facts(), dict(parse_assumptions(["bitsandbytes==0.41.0"])))
    message = diagnose([str(path)], stated, load_matrix()).traces[0].finding.message
    assert "raised by bitsandbytes 0.41.0 at" in message  # what is stated counts
