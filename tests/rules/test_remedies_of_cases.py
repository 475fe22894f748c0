"""What the remedies of real reports have in common, whichever rule gave them: none installs only
what is there already, none is against what the report asks for, none is for another place, none
is a list that nobody reads. The oracle of ranges is ``packaging``.
"""

import json
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from envdoctor import app
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.rules.remedy_place import is_of_another_place

MATRIX = load_matrix()
CASES = Path(__file__).parents[1] / "data" / "cases"
_MOST_NAMED = 8


def texts():
    rows = map(json.loads, (CASES / "public.jsonl").read_text(encoding="utf-8").splitlines())
    return [(row["id"], f"{row['env_text']}\n\n{row['error'] or ''}\n") for row in rows]


def reported(text, folder):
    """The facts of a text, and the remedies that a check of it gives, with their findings."""
    file = folder / "issue.txt"
    file.write_text(text, encoding="utf-8")
    facts = parse_report(text, MATRIX.package)
    report = app.check(facts, MATRIX, logs=[str(file)])
    ways = [
        (finding, remedy)
        for finding in report.findings
        for remedy in finding.remedies
        if not remedy.is_refused
    ]
    return facts, ways


def installed_by(remedy):
    return [
        (call, Requirement(line))
        for call in remedy.commands
        if isinstance(call, InstallerCall) and call.action == "install"
        for line in call.packages
        if not line.startswith(("git+", "http"))
    ]


def changes_nothing(remedy, facts):
    """Whether all that a remedy installs is there already, so that an installer does nothing."""
    there = facts.value("distributions", {})
    asked = installed_by(remedy)
    if not asked or any(call.options or call.indexes for call, _ in asked):
        return False
    return all(
        (entry := there.get(requirement.name)) is not None
        and entry.version is not None
        and requirement.specifier.contains(entry.version, prereleases=True)
        for _, requirement in asked
    )


def against_text(remedy, facts):
    """What a report itself asks an installer for, and holds, of which a remedy takes another."""
    asked = facts.value("report.asked", {})
    there = facts.value("distributions", {})
    return [
        requirement.name
        for _, requirement in installed_by(remedy)
        for pin in requirement.specifier
        if pin.operator == "==" and "*" not in pin.version and requirement.name in asked
        and (entry := there.get(requirement.name)) is not None
        and entry.version is not None
        and Requirement(f"x{asked[requirement.name]}").specifier.contains(entry.version, True)
        and not Requirement(f"x{asked[requirement.name]}").specifier.contains(pin.version, True)
    ]  # fmt: skip


@pytest.mark.parametrize(("case", "text"), texts(), ids=lambda value: value[:30].split("\n")[0])
def test_remedies_of_a_case(case, text, tmp_path):
    facts, ways = reported(text, tmp_path)
    for finding, remedy in ways:
        said = (case, finding.message, remedy)
        assert not changes_nothing(remedy, facts), said
        assert not against_text(remedy, facts), said
        assert not is_of_another_place(remedy, facts), said
        assert len(installed_by(remedy)) <= _MOST_NAMED, said


def test_the_measures_tell_what_they_are_to_find():
    from envdoctor.model.finding import Remedy

    facts = parse_report("torch 2.6.0\npip install 'transformers>=5.2'\ntransformers 5.3.0\n")
    there = Remedy("", (InstallerCall("install", ("torch==2.6.0",)),))
    other = Remedy("", (InstallerCall("install", ("torch==2.6.0", "transformers==4.57.0")),))
    assert changes_nothing(there, facts)
    assert not changes_nothing(other, facts)
    assert against_text(other, facts) == ["transformers"]
    assert not against_text(there, facts)
