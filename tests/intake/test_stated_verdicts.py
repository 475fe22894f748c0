"""Which releases a text says to work and to fail: sentences, lines with ticks, tables."""

import pytest

from envdoctor.intake import parse_report
from envdoctor.intake.stated_verdicts import topic_of


def here_and_works(text):
    """Return what a text says is here, and what works, of the packages that it compares."""
    facts = parse_report(text)
    works = facts.value("report.works_with") or {}
    return {name: (facts.version_of(name), good) for name, good in works.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The first bad release is torch 2.6.0; it works with 2.5.1.", ("2.6.0", "2.5.1")),
        ("I bisected: torch 2.5.1 good, 2.6.0 bad.", ("2.6.0", "2.5.1")),
        ("It regressed between torch 2.5.1 and 2.6.0.", ("2.6.0", "2.5.1")),
        ("torch 2.6.0 fails, works with 2.5.1", ("2.6.0", "2.5.1")),
        ("It works with torch 2.4.1, 2.5.0 and 2.5.1 but not with 2.6.0", ("2.6.0", "2.5.1")),
        (
            "This does not error out with torch 2.5.1, but does with torch 2.3.1 or 2.4.1",
            ("2.4.1", "2.5.1"),
        ),
        (
            "torch 2.5.1 uses 7.9 GB and works, 2.6.0 uses 9.5 GB and fails with OOM",
            ("2.6.0", "2.5.1"),
        ),
        ("torch 2.5.1 -> OK, torch 2.6.0 -> segfault", ("2.6.0", "2.5.1")),
        (
            "It is incompatible with `torch == 2.6.0`, works with `torch == 2.5.1`.",
            ("2.6.0", "2.5.1"),
        ),
        (
            "使用torch 2.6.0版本的时候，出现ValueError。使用torch 2.5.1可以训练了。",
            ("2.6.0", "2.5.1"),
        ),
        ("- ❌ torch==2.6.0, 2.7.0\n- ✔ torch==2.5.1", ("2.6.0", "2.5.1")),
        ("| torch | |\n|---|---|\n| 2.5.1 | ✅ |\n| 2.6.0 | ❌ |", ("2.6.0", "2.5.1")),
        (
            (
                "| numpy | torch | result |\n|---|---|---|\n| 1.26.4 | 2.5.1 | pass |\n"
                "| 1.26.4 | 2.6.0 | fail |"
            ),
            ("2.6.0", "2.5.1"),
        ),
    ],
)
def test_what_fails_is_here_and_what_works_is_kept(text, expected):
    assert here_and_works(text)["torch"] == expected


@pytest.mark.parametrize(
    "text",
    [
        "does torch 2.5.1 work where 2.6.0 fails?",
        "torch 2.5.1 and numpy 1.26.4 work",
        "Ubuntu 22.04 works, 24.04 fails with torch",
        "it should work with torch 2.5.1 but fails with 2.6.0 they say",
        "  ✔ Install numpy 1.26.4 successful\n  ✖ Install torch 2.5.1 failed",
    ],
)
def test_what_compares_nothing(text):
    assert here_and_works(f"numpy 2.0.0\n{text}") == {}


def test_what_has_releases():
    assert topic_of("PyTorch").name == "torch"
    assert topic_of("driver").kind == "release"
    assert topic_of("build") is None
