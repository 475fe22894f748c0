"""The text formats: content and order, width, escaping."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdoctor import __version__
from envdoctor.model.calls import OwnCall
from envdoctor.model.evidence import Evidence
from envdoctor.model.finding import Gap
from envdoctor.model.report import Examined
from envdoctor.report import REPORTERS, View, render
from envdoctor.report.blocks import lines_of
from envdoctor.report.findings_text import lay_out
from envdoctor.report.headline import open_questions, summary_line, target_line
from envdoctor.report.text import _UNSAFE, cells, clean, clip, fold, wrap

from .conftest import ADVICE, HEALTHY, HOSTILE_TEXT, MACHINE, OPEN, REPORT, ROOT, hostile_report

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [80, 60, 40])
def test_plain_at_each_width(golden, width):
    golden(f"plain-{width}.txt", render(REPORT, "plain", View(width)))


def test_verbose(golden):
    golden("plain-verbose.txt", render(REPORT, "plain", View(80, verbose=True)))


def test_healthy(golden):
    golden("healthy.txt", render(HEALTHY, "plain", View(80)))


#: Those whose golden outputs have tests of their own.
_OTHERS = {"text", "plain", "sarif", "html", "prometheus"}
_SUFFIXES = {"markdown": "md", "json": "json"}


@pytest.mark.parametrize("name", [name for name in REPORTERS if name not in _OTHERS])
def test_golden(golden, name):
    golden(
        f"{name}.{_SUFFIXES.get(name, 'txt')}",
        render(REPORT, name, View(80)).replace(__version__, "VERSION"),
    )


def test_golden_sarif(golden):
    data = json.loads(render(REPORT, "sarif", View(80)))
    for rule in data["runs"][0]["tool"]["driver"]["rules"]:
        assert rule.pop("name")
        assert rule.pop("shortDescription")["text"]
    golden("sarif.json", json.dumps(data, indent=1).replace(__version__, "VERSION") + "\n")


@pytest.mark.parametrize("width", [110, 80, 60, 40, 20])
def test_lines_fit_unless_a_word_cannot(width):
    for block in lay_out(REPORT, View(width, verbose=True)):
        for head, text in lines_of(block, width):
            line = head + text
            longest = max(map(cells, text.split()), default=0)
            assert (
                block.verbatim
                or cells(line) <= width
                or len(text.split()) == 1
                or longest > width - len(head)
                or not text.strip()
            ), line


def test_commands_and_addresses_stay_whole():
    text = render(REPORT, "plain", View(40))
    assert ROOT.remedies[0].commands[0] in text
    assert ROOT.sources[0].address in text


def test_console_has_the_words_of_plain_in_colour(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = render(REPORT, "text", View(60, color=True))
    assert "\x1b[" in console
    assert ANSI.sub("", console) == render(REPORT, "plain", View(60))
    assert render(REPORT, "text", View(60, color=False)) == render(REPORT, "plain", View(60))


def test_root_comes_before_its_consequence_which_is_indented():
    lines = render(REPORT, "plain", View(80)).splitlines()
    root, consequence = (
        next(i for i, line in enumerate(lines) if code in line.split(":")[0])
        for code in ("ED101 error", "ED121 warning")
    )
    assert root < consequence
    assert lines[root][0] == "E"
    assert lines[consequence].startswith("  ED121 warning (reported):")


def test_consequence_of_a_hidden_root_stands_on_its_own():
    text = render(REPORT._replace(findings=REPORT.findings[1:]), "plain", View(80))
    assert "\nED121 warning (reported):" in text


def test_circle_of_causes_is_still_shown():
    first = ROOT._replace(caused_by=REPORT.findings[1].key)
    text = render(REPORT._replace(findings=(first, REPORT.findings[1])), "plain", View(80))
    assert text.count("ED101 error") == 1
    assert text.count("ED121 warning") == 1


def test_questions_are_grouped_by_the_missing_fact_most_wanted_first():
    questions = open_questions(REPORT)
    assert [(question.missing, question.findings) for question in questions] == [
        ("glibc.version", 2),
        ("pcie.acs_iommu", 1),
    ]
    assert questions[0].supply == "--assume glibc=2.35"
    assert "--facts" in questions[1].supply


def test_questions_of_one_kind_are_listed_together():
    names = [f"package{number}" for number in range(9)]
    missing = tuple(OPEN[0]._replace(missing=Gap("version", name)) for name in names)
    text = render(HEALTHY._replace(undetermined=missing), "plain", View(80))
    assert "the version of package0, package1, package2, package3, package4, package5 and" in text
    assert "--assume NAME==VERSION" in text
    assert [
        question.supply for question in open_questions(HEALTHY._replace(undetermined=missing))
    ] == [f"--assume {name}==VERSION" for name in names]


def test_summary_is_one_line_of_at_most_80_columns():
    assert summary_line(REPORT).startswith("envdoctor: 1 error, 1 warning: Driver 550.54.15")
    for report in (REPORT, HEALTHY, hostile_report()):
        assert cells(summary_line(report)) <= 80
        assert "\n" not in summary_line(report)


def test_a_verdict_is_as_long_as_a_wide_terminal_lets_it_be():
    long = "Driver 550.54.15 is too old for " + "and ".join(["torch 2.9.0 "] * 8) + "here"
    report = REPORT._replace(findings=(ROOT._replace(message=long + "."),))
    assert render(report, "plain", View(80)).splitlines()[0].endswith("...")
    wide = render(report, "plain", View(110, columns=200)).splitlines()
    assert " ".join(wide[:2]).startswith(f"envdoctor: 1 error: {long}")
    assert "..." not in " ".join(wide[:3])


@pytest.mark.parametrize(
    ("examined", "words"),
    [
        (
            Examined(61, 22, 14),
            "22 known combinations that concern this environment (14 need a GPU,",
        ),
        (Examined(61, 15, 15), "Looked at: 61 checks, 15 known combinations that concern this"),
        (Examined(61, 15, 15), "(all need a GPU, and there is none)"),
        (Examined(1, 1), "1 check, 1 known combination that concerns this environment.\n"),
        (Examined(68, 0), "Looked at: 68 checks.\n"),
        (Examined(68, 0, 0, 9, 1), "68 checks; 1 of 9 packages is not in the matrix.\n"),
    ],
)
def test_a_healthy_machine_says_what_was_looked_at(examined, words):
    text = render(HEALTHY._replace(examined=examined), "plain", View(110))
    assert words in text
    assert "Looked at" not in render(REPORT._replace(examined=examined), "plain", View(110))


def test_what_comes_next():
    error = ROOT._replace(code="ED304", remedies=())
    report = REPORT._replace(findings=(error,), fix_command=OwnCall("fix", python="/x"))
    assert "  envdoctor fix --python /x\n" in render(report, "plain", View(80))
    unnamed = render(report._replace(fix_command=None), "plain", View(80))
    assert "envdoctor fix" not in unnamed
    assert "\nNext: 'envdoctor explain ED304' says more.\n" in unnamed
    # Packages do not mend a driver, and advice asks for nothing.
    on_host = render(REPORT._replace(fix_command=OwnCall("fix")), "plain", View(80))
    assert "envdoctor fix" not in on_host
    advice = REPORT._replace(findings=(ADVICE,))
    assert "Next" not in render(advice, "plain", View(80))


def test_the_fix_is_bright_and_what_proves_it_is_dim():
    text = render(REPORT, "text", View(100, color=True))
    lines = text.splitlines()
    assert "\x1b[1;31mED101 error:\x1b[0m \x1b[1mDriver" in text
    assert any(line.lstrip().startswith("\x1b[2mseen in") for line in lines)
    assert any(line.lstrip().startswith("\x1b[2msource") for line in lines)
    assert any(line.lstrip().startswith("\x1b[1;32mfix") for line in lines)
    assert any(line.lstrip().startswith("\x1b[1;32mpip install") for line in lines)


def test_target_line():
    assert target_line(MACHINE) == (
        "Python 3.10.12, torch 2.9.0+cu130, driver 550.54.15 (CUDA 12.4), 8 x NVIDIA H100 80GB "
        "HBM3, container limit 64 GiB"
    )


@pytest.mark.parametrize(
    ("message", "lead"),
    [
        (
            "vllm 0.6.3 was asked for and is in the lock, but it is not installed",
            "vllm 0.6.3 was asked for and is in the lock...",
        ),
        (
            "Python 3.9.18 is too old for torch 2.11.0 (>=3.10), vllm 0.20.0 (<3.15,>=3.10)",
            "Python 3.9.18 is too old for torch 2.11.0 (>=3.10)...",
        ),
        (
            "Ray differs between nodes (2.40.0 on a; 2.43.0 on b): Ray refuses to let them join",
            "Ray differs between nodes (2.40.0 on a; 2.43.0 on b)",
        ),
        (
            "The installed torch differs between the nodes (2.5.1 on a; 2.6.0 on b)",
            "The installed torch differs between the nodes...",
        ),
        (
            "The soft limit of open files is 20000; Ray's daemons want 65536",
            "The soft limit of open files is 20000",
        ),
    ],
)
def test_a_sentence_that_is_cut_says_so(message, lead):
    """A statement is whole before a semicolon; before a comma the rest may turn its meaning
    round.
    """
    assert (
        summary_line(REPORT._replace(findings=(ROOT._replace(message=message + "."),)))
        == f"envdoctor: 1 error: {lead}"
    )


@pytest.mark.parametrize("name", REPORTERS)
@pytest.mark.parametrize("verbose", [False, True])
def test_nothing_hostile_reaches_the_output(name, verbose, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    text = render(hostile_report(), name, View(80, verbose))
    kinds = {sign: unicodedata.category(sign) for sign in text if sign != "\n"}
    assert {"Cc", "Cf", "Cs", "Zl", "Zp"}.isdisjoint(kinds.values())
    assert {"\u3164", "\u034f"}.isdisjoint(text)  # nobody sees them, whatever their category
    text.encode("utf-8")


def test_colour_escapes_are_only_our_own(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = ANSI.sub("", render(hostile_report(), "text", View(80, color=True)))
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text


@given(st.text(max_size=300))
def test_clean_leaves_one_safe_line(text):
    cleaned = clean(text)
    assert cleaned.splitlines() in ([], [cleaned])
    assert clean(cleaned) == cleaned
    cleaned.encode("utf-8")


@given(st.text(max_size=300), st.integers(20, 100))
def test_wrap_loses_no_word_and_keeps_the_width(text, width):
    text = clean(text)
    lines = wrap(text, width, "- ", "  ")
    assert " ".join(lines)[2:].split() == text.split()
    assert all(cells(line) <= width or len(line.split()) <= 2 for line in lines)


@given(st.text(max_size=200), st.integers(10, 80))
def test_clip_keeps_the_width(text, width):
    assert cells(clip(text, width)) <= width


def test_fold():
    assert fold("8 × H100, ≥ 580 → …") == "8 x H100, >= 580 -> ..."
    assert HOSTILE_TEXT not in clean(HOSTILE_TEXT)


def test_printable_text_holds_nothing_to_escape():
    """``clean`` asks its pattern only where a text is not ASCII or not printable."""
    assert [
        chr(code) for code in range(128) if chr(code).isprintable() and _UNSAFE.search(chr(code))
    ] == []


def test_no_format_character_and_no_control_is_left():
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    signs = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in kinds]
    assert [hex(ord(sign)) for sign in signs if sign in clean(sign)] == []


_LINE = Evidence("train.log:647", "ValueError: torch 2.6 or newer is required")


@pytest.mark.parametrize("form", ["plain", "markdown"])
def test_the_line_of_a_log_is_quoted(form):
    finding = REPORT.findings[0]._replace(evidence=(_LINE, Evidence("train.log:680", "again")))
    text = render(REPORT._replace(findings=(finding,)), form, View(120))
    assert text.count(_LINE.detail) == 1
    assert "train.log:680" in text


@pytest.mark.parametrize("form", ["plain", "markdown"])
def test_what_no_fact_would_decide_is_no_question(form):
    """It is shown with its line; no missing fact is named, since there is none."""
    open_one = REPORT.findings[0]._replace(verdict="undetermined", evidence=(_LINE,))
    report = REPORT._replace(findings=(), undetermined=(open_one,))
    assert not open_questions(report)
    text = render(report, form, View(120))
    assert "undetermined: " in text
    assert _LINE.detail in text
    assert "Not determined" not in text
