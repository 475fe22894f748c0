"""Workflow commands, read back the way the runner reads them."""

import re

from envdoctor.report import View, render

from .conftest import REPORT, ROOT, hostile_report

COMMAND = re.compile(r"::(error|warning|notice) title=([^:,\r\n]*)::(.*)")


def commands_of(text):
    """Parse as the runner does: a line that begins with :: is a command; %25, %0D, %0A, %3A and %2C
    are unescaped.
    """
    found = []
    for line in text.splitlines():
        if line.lstrip().startswith("::"):
            level, title, message = COMMAND.fullmatch(line).groups()
            found.append((level, unescape(title), unescape(message)))
    return found


def unescape(text):
    for escaped, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escaped, sign)
    return text


def test_one_annotation_per_finding():
    found = commands_of(render(REPORT, "github", View(80)))
    assert [(level, title) for level, title, _ in found] == [
        ("error", "ED101 nvidia-driver"),
        ("warning", "ED121 vllm"),
        ("notice", "ED502 /dev/shm"),
        ("warning", "ignore entry expired"),
    ]
    assert ROOT.remedies[0].commands[0] in found[0][2].splitlines()[2]


def test_hostile_text_makes_no_further_command():
    report = hostile_report()
    assert len(commands_of(render(report, "github", View(80)))) == len(report.findings) + len(
        report.expired
    )
