"""What any row or line of a log can print as a remedy: it installs releases that exist, and, on
facts of other devices and platforms, nothing that is made for others.
"""

from __future__ import annotations

from functools import cache
from typing import Dict, List, Set, Tuple

import pytest

from envdoctor import app
from envdoctor.diagnose.trace_draft import remedies_of
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.facts import Facts
from envdoctor.model.finding import Finding, Remedy
from envdoctor.model.requirement import Requirement, try_requirement
from envdoctor.rules.addressing import addressed
from envdoctor.rules.installable import admitted, is_for_cuda
from envdoctor.rules.matrix_rows import remedies_of_row
from envdoctor.rules.remedy_trial import tried_remedies
from envdoctor.rules.rule import vendor_of_builds
from envdoctor.rules.wheel_tags import platform_words, serves_platform

MATRIX = load_matrix()
#: Environments for other devices, and platforms that not all wheels are for.
ELSEWHERE = {
    "ROCm": "torch 2.6.0+rocm6.2\n",
    "Intel GPUs": "torch 2.6.0+xpu\n",
    "Ascend NPUs": "torch 2.5.1\ntorch-npu 2.5.1\n",
    "the CPU": "torch 2.6.0+cpu\n",
    "Windows": "OS: Windows\nPython 3.10\n",
    "macOS": "OS: macOS 14.5\nPython 3.10\n",
    "Linux on aarch64": "Python platform: Linux-6.8.0-1020-aarch64-with-glibc2.39\n",
}


@cache
def written() -> Tuple[Remedy, ...]:
    """Every remedy of a row that somebody wrote, and of a line of a log, once."""
    rows = [row for row in MATRIX.rows() if row.origin != "derived"]
    remedies: Dict[Remedy, None] = {}
    for row in rows:
        remedies.update(dict.fromkeys(remedies_of_row(row)))
    for signature in MATRIX.signatures:
        remedies.update(dict.fromkeys(remedies_of(signature.fix, signature.commands)))
    return tuple(remedies)


def installed_by(remedy: Remedy) -> List[Requirement]:
    """What the default index is asked for."""
    return [
        requirement
        for call in remedy.commands
        if isinstance(call, InstallerCall) and call.action == "install"
        if not call.indexes and "--index-url" not in call.options
        for line in call.packages
        if (requirement := try_requirement(line)) is not None
    ]


def test_there_are_remedies_to_judge() -> None:
    assert sum(bool(installed_by(remedy)) for remedy in written()) > 100


def test_every_release_that_a_remedy_names_exists() -> None:
    unmet: Set[str] = set()
    for remedy in written():
        for requirement in installed_by(remedy):
            package = MATRIX.package(requirement.name)
            if package is None or not package.versions or not requirement.specifier:
                continue
            if not admitted(package, requirement.specifier):
                unmet.add(f"{requirement.name}{requirement.specifier}")
    assert unmet == set()


def tried_on(text: str) -> Tuple[Facts, List[Remedy]]:
    """All remedies as they are printed for an environment."""
    facts = parse_report(text, MATRIX.package)
    findings = [
        Finding("ED395", f"part-{number}", "missing", "warning", "It fails.", remedies=(remedy,))
        for number, remedy in enumerate(written())
        if installed_by(remedy)
    ]
    printed = addressed(tried_remedies(findings, facts, MATRIX, lambda _: ()), (facts,))
    return facts, [remedy for entry in printed for remedy in entry.remedies]


@pytest.mark.parametrize("place", ELSEWHERE)
def test_no_remedy_installs_what_is_for_other_devices_or_platforms(place: str) -> None:
    facts, remedies = tried_on(ELSEWHERE[place])
    vendor = vendor_of_builds(facts)
    assert place == vendor or platform_words(facts).startswith(place)  # "… with glibc 2.39"
    wrong = set()
    for remedy in remedies:
        for requirement in installed_by(remedy):
            package = MATRIX.package(requirement.name)
            if package is None:
                continue
            releases = map(package.release, admitted(package, requirement.specifier))
            known = [entry for entry in releases if entry.platforms]
            if vendor and is_for_cuda(requirement.name, vendor):
                wrong.add(f"{requirement.name}: {vendor}")
            is_served = any(serves_platform(entry, facts) for entry in known)
            if platform_words(facts) and known and not is_served:
                wrong.add(f"{requirement.name}{requirement.specifier}: {place}")
    assert wrong == set()


@pytest.mark.parametrize("place", ELSEWHERE)
def test_a_check_elsewhere_leaves_no_new_error_behind(place: str, tmp_path) -> None:
    """Whatever a check prints as a command for one package is carried out and checked again."""
    text = f"{ELSEWHERE[place]}transformers 4.41.2\ntrl 0.16.0\npeft 0.14.0\naccelerate 0.30.0\n"
    facts = parse_report(text, MATRIX.package)
    report = app.check(facts, MATRIX)
    known = {entry.key for entry in report.findings}
    tried = 0
    for remedy in (way for entry in report.findings for way in entry.remedies):
        pins = {
            entry.name: entry.specifier[2:]
            for entry in installed_by(remedy)
            if entry.specifier.startswith("==")
        }
        if not pins:
            continue
        tried += 1
        lines = [
            f"{line.split(' ')[0]} {pins.get(line.split(' ')[0], line.partition(' ')[2])}"
            for line in text.splitlines()
        ]
        after = app.check(parse_report("\n".join(lines) + "\n", MATRIX.package), MATRIX)
        new = [one for one in after.findings if one.severity == "error" and one.key not in known]
        assert not new, (remedy, new)
    assert tried
