"""Ranges of releases in words, against what ``packaging`` takes of them."""

import time

import pytest
from packaging.specifiers import SpecifierSet

from envdoctor.intake.worded_ranges import worded_ranges


def ranges(text):
    return [SpecifierSet(one.specifier) for one in worded_ranges(text)]


#: A text, a release that its words take, and one that they do not.
WORDED = [
    ("transformers >= 4.36", "4.36", "4.35.2"),
    ("transformers>=5", "5.0", "4.57"),
    ("transformers ≥4.36", "4.36", "4.35.2"),
    ("newer than 4.36", "4.37", "4.36"),
    ("later than version 4.36", "4.37", "4.36"),
    ("above 4.36", "4.37", "4.36"),
    ("高于4.36", "4.37", "4.36"),
    ("4.36+", "4.36", "4.35"),
    ("4.36+, please", "4.36", "4.35"),
    ("4.36 or newer", "4.36", "4.35"),
    ("4.36 or above", "4.36", "4.35"),
    ("4.36, or higher", "4.36", "4.35"),
    ("4.36 and up", "4.36", "4.35"),
    ("4.36 onwards", "4.40", "4.35"),
    ("4.36及以上", "4.36", "4.35"),
    ("4.36 版本以上", "4.36", "4.35"),
    ("at least 4.36", "4.36", "4.35"),
    ("至少4.36", "4.36", "4.35"),
    ("不低于4.36", "4.36", "4.35"),
    ("the minimum required version 4.36", "4.36", "4.35"),
    ("greater than or equal to 4.36", "4.36", "4.35"),
    ("no older than 4.36", "4.36", "4.35"),
    ("transformers below 4.40", "4.39", "4.40"),
    ("transformers <4.40", "4.39", "4.40"),
    ("older than v4.40", "4.39", "4.40"),
    ("prior to 4.40", "4.39", "4.40"),
    ("低于 4.40", "4.39", "4.40"),
    ("4.40 or older", "4.40", "4.41"),
    ("4.40 及以下", "4.40", "4.41"),
    ("at most 4.40", "4.40", "4.41"),
    ("up to 4.40", "4.40", "4.41"),
    ("no newer than 4.40", "4.40", "4.41"),
    ("不超过4.40", "4.40", "4.41"),
    ("between 4.36 and 4.40", "4.38", "4.41"),
    ("from 4.36 to 4.40", "4.40", "4.35"),
    ("2.0.1<=version<2.4", "2.3", "2.4"),
    ("介于 4.36 和 4.40", "4.38", "4.41"),
    ("`>=4.36,<4.40`", "4.39", "4.40"),
    ("at least 4.36 and below 4.40", "4.39", "4.40"),
    ("exactly 4.36", "4.36", "4.37"),
    ("==4.36.*", "4.36.2", "4.37"),
    ("!=4.36.1", "4.36.2", "4.36.1"),
    ("== 2.6.0+cu124", "2.6.0+cu124", "2.6.0+cu126"),
]


@pytest.mark.parametrize(("text", "inside", "outside"), WORDED)
def test_what_words_take(text, inside, outside):
    (stated,) = ranges(text)
    assert stated.contains(inside, prereleases=True)
    assert not stated.contains(outside, prereleases=True)


@pytest.mark.parametrize("written", [">=1.2,<2", "~=1.4.2", "!=1.5.0", "<=3.0.1", ">0.9", "==1.*"])
def test_specifiers_stay_what_they_are(written):
    assert ranges(f"peft{written}") == [SpecifierSet(written)]


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.6.0",
        "torch 2.6.0+cu124",
        "torch 2.6 + vllm",
        "at least 8 GPUs",
        "-> 2.6.0",
        "=2.6.0",
        "升级到2.6之后报错",
        "torch 2.6 or vllm",
        "more than 8 nodes",
    ],
)
def test_what_is_no_range(text):
    assert ranges(text) == []


def test_hostile_texts_take_no_time():
    start = time.process_time()
    for part in ("1.1.1 ", ">= 1.1, ", "between 1.1 and ", "at least ", ">=" * 9, "1." * 9, "<1"):
        list(worded_ranges(part * 2_000))
    assert time.process_time() - start < 1
