"""Findings that repeat themselves become one; the others stay as they are."""

import subprocess

from envdoctor.model.calls import InstallerCall
from envdoctor.model.finding import Evidence, Finding, Remedy, findings_tree
from envdoctor.report import View, render
from envdoctor.report.repetition import Repeated, repeated

from .conftest import HEALTHY


def missing(name, **changes):
    finding = Finding(
        "ED302",
        name,
        "missing",
        "warning",
        f"{name} is not installed, although ray 2.50.0 requires it.",
        evidence=(Evidence("/site-packages"),),
        remedies=(Remedy(f"Install {name}.", (InstallerCall("install", (f"{name}>=1",)),)),),
    )
    return finding._replace(**changes)


NAMES = [f"package-{number}" for number in range(12)]


def joined(findings, least=3):
    return [
        entry.title if isinstance(entry, Repeated) else entry.component
        for entry, _ in repeated(findings_tree(findings), least)
    ]


def test_one_block_with_a_list_and_one_command():
    report = HEALTHY._replace(findings=tuple(missing(name) for name in NAMES))
    text = render(report, "plain", View(80))
    assert text.count("ED302 warning:") == 1
    assert "(12 times)" in text
    assert text.count("/site-packages") == 1
    command = text[text.index("python -m pip install") : text.index("\n\nNext")]
    assert max(map(len, text.splitlines())) <= 80
    # A shell is the oracle for lines that go on.
    said = subprocess.run(
        ["sh", "-c", f"echo {command}"], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == [
        "python",
        "-m",
        "pip",
        "install",
        *(f"{name}>=1" for name in NAMES),
    ]
    assert "package-7 is not installed" in text
    assert "package-8 is not installed" not in text
    assert "and 4 more (--verbose lists them)" in text


def test_verbose_shows_each_whole():
    report = HEALTHY._replace(findings=tuple(missing(name) for name in NAMES))
    text = render(report, "plain", View(80, verbose=True))
    assert text.count("ED302 warning:") == len(NAMES)


def test_two_stay_apart_and_so_does_what_differs_in_more_than_the_name():
    alike = [missing(name) for name in NAMES[:3]]
    assert len(joined(alike[:2])) == 2
    assert len(joined(alike)) == 1
    for change in (
        {"code": "ED301"},
        {"severity": "error"},
        {"trust": "reported"},
        {"row": "a-row"},
        {"nodes": ("a",)},
        {"remedies": (Remedy("Remove it."),)},
        {"remedies": (Remedy("Install package-2.", safety="changes-host"),)},
    ):
        assert len(joined([*alike[:2], missing("package-2", **change)])) == 3, change


def test_a_cause_stays_on_its_own_and_its_consequences_are_joined_under_it():
    cause = missing("torch")
    effects = [missing(name, caused_by=cause.key) for name in NAMES[:3]]
    others = [missing(name) for name in NAMES[3:5]]
    tree = repeated(findings_tree([cause, *effects, *others]), 3)
    shown = [(isinstance(entry, Repeated), depth) for entry, depth in tree]
    assert shown == [(False, 0), (True, 1), (False, 0), (False, 0)]


def test_commands_that_are_no_installers_are_listed_each_once():
    findings = [
        missing(name, remedies=(Remedy("Start anew.", ("export A='1'", f"rm '{name}'")),))
        for name in NAMES[:3]
    ]
    ((group, _),) = repeated(findings_tree(findings), 3)
    assert group.remedies[0].commands == (
        "export A='1'",
        "rm 'package-0'",
        "rm 'package-1'",
        "rm 'package-2'",
    )
