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
    ("text", "field", "expected"),
    [
        (
            (
                "It's working fine on a driver version 555 machine but caught segmentation fault "
                "on "
                "a driver version 535 machine."
            ),
            "driver.release",
            ("535", "555"),
        ),
        ("driver 550 works, 570.86.15 crashes", "driver.release", ("570.86.15", "550")),
        (
            "NCCL ENOMEM on kernel 7.0.0-1019; works with 6.17.0-1032",
            "os.kernel",
            ("7.0.0-1019", "6.17.0-1032"),
        ),
        (
            "Jetson: kernel 5.15.148-tegra works, 5.15.185-tegra hangs",
            "os.kernel",
            ("5.15.185-tegra", "5.15.148-tegra"),
        ),
        ("CUDA 12.4 works but CUDA 12.8 fails here", "report.cuda", ("12.8", "12.4")),
        ("Python 3.11 works, 3.12 crashes", "python.version", ("3.12", "3.11")),
    ],
)
def test_what_is_no_distribution_is_compared_as_well(text, field, expected):
    facts = parse_report(text)
    assert (facts.value(field), facts.value("report.works_with")[field]) == expected
    assert not facts.value("report.disputed")


@pytest.mark.parametrize(
    "text",
    [
        "does torch 2.5.1 work where 2.6.0 fails?",
        "torch 2.5.1 and numpy 1.26.4 work",
        "Ubuntu 22.04 works, 24.04 fails with torch",
        "it should work with torch 2.5.1 but fails with 2.6.0 they say",
        "On driver 550.54.15 a batch of 512 works, 640 fails",
        "it works with 400 W, fails with 700 W on my driver 550.54.15",
        "The image pytorch 2.6.0-cuda12.4 works, the one of 2.5.1-runtime does, too",
        "  ✔ Install numpy 1.26.4 successful\n  ✖ Install torch 2.5.1 failed",
    ],
)
def test_what_compares_nothing(text):
    assert here_and_works(f"numpy 2.0.0\n{text}") == {}


def test_what_has_releases():
    assert topic_of("PyTorch").name == "torch"
    assert topic_of("driver").kind == "release"
    assert topic_of("build") is None


@pytest.mark.parametrize(
    ("text", "here", "works"),
    [
        (
            (
                "The server starts with vllm/vllm-openai:v0.14.0 as usual and works, but "
                "vllm/vllm-openai:v0.15.0 crashes."
            ),
            "0.15.0",
            "0.14.0",
        ),
        ("lmsysorg/sglang:v0.5.2 hangs; lmsysorg/sglang:v0.5.1 works", "0.5.2", "0.5.1"),
        ("vllm/vllm-openai:v0.14.0 hangs as vllm/vllm-openai:v0.15.0 does", None, None),
        ("I run vllm/vllm-openai:v0.14.0 and vllm/vllm-openai:v0.15.0", None, None),
        ("vllm/vllm-openai:v0.14.0 works, nvidia/cuda:12.4.1-base-ubuntu22.04 too", None, None),
    ],
)
def test_images_that_are_compared_are_the_releases_in_them(text, here, works):
    facts = parse_report(f"Python version: 3.11.4\n{text}")
    name = "sglang" if "sglang" in text else "vllm"
    assert (facts.value("report.works_with") or {}).get(name) == works
    assert here is None or facts.version_of(name) == here
