"""Rows on the threads that they cite: the environment lines of a thread, which ``tests/data/cases``
keeps, make its row fire through the reader, and no longer once a release outside its range is there.
"""

import json
import re
from pathlib import Path

import pytest

from envdoctor import app
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.versions import try_version

MATRIX = load_matrix()
CASES = Path(__file__).parent.parent / "data" / "cases"
_THREAD = re.compile(r"github\.com/[^/]+/([^/]+)/(?:issues|pull|discussions)/(\d+)")
#: Lines from which the row cannot be decided: the release or the setting that it is about is told
#: in the log alone.
SILENT = {
    "ray-2.41-vllm-v1": "the release of ray",
    "triton-ptxas-sm-121": "the release of triton",
}


def thread_of(address):
    """The repository, which may have moved, and the number of a thread."""
    match = _THREAD.search(address or "")
    return match.groups() if match else None


def witnesses():
    """Curated rows with the lines of each thread that they cite and that is kept here."""
    lines = {}
    for path in sorted(CASES.glob("*.jsonl")):
        for case in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if thread_of(case.get("url")) and (case.get("env_text") or "").strip():
                lines[thread_of(case["url"])] = case["env_text"]
    for row in map(MATRIX.complete, MATRIX.rows()):
        for number, source in enumerate(row.sources if row.origin != "derived" else ()):
            text = lines.get(thread_of(source.address))
            if text is not None:
                yield pytest.param(row, text, id=f"{row.id}-{number}")


WITNESSES = list(witnesses())


def violated(row, facts):
    """What is found of a row's fault: by itself, or by another that says it of the same packages."""
    return [
        finding
        for finding in app.judge(facts, MATRIX)
        if finding.verdict == "violated"
        and (
            row.id in (finding.row, *finding.rows)
            or (row.packages and set(row.packages) <= set(finding.packages))
        )
    ]


def test_there_are_witnesses():
    assert len(WITNESSES) > 15


@pytest.mark.parametrize(("row", "text"), WITNESSES)
def test_a_row_fires_on_its_own_thread(row, text):
    facts = parse_report(text, MATRIX.package)
    assert bool(violated(row, facts)) is (row.id not in SILENT)


def cured(row, facts):
    """The same facts with another release of one package that the row speaks of; None for none."""
    there = facts.value("distributions", {})
    for term in row.terms:
        installed, package = there.get(term.component), MATRIX.package(term.component)
        version = try_version(installed.version) if installed is not None else None
        if (term.scope, term.attribute, term.operator) != ("env", "version", "in"):
            continue
        if version is None or package is None or version not in term.argument:
            continue
        fitting = [
            release
            for release in package.versions
            if release not in term.argument and not release.is_prerelease
        ]
        if fitting:
            other = installed._replace(version=str(fitting[-1]), requires=None, tags=())
            evidence = facts.evidence("distributions") or Evidence("report")
            table = {**there, term.component: other}
            return facts.updated({"distributions": Known(table, evidence)})
    return None


@pytest.mark.parametrize(("row", "text"), WITNESSES)
def test_a_row_is_silent_with_a_release_that_it_does_not_speak_of(row, text):
    facts = cured(row, parse_report(text, MATRIX.package))
    if facts is not None:
        findings = app.judge(facts, MATRIX)
        assert not [
            entry for entry in findings if row.id == entry.row and entry.verdict == "violated"
        ]


def test_some_rows_were_cured():
    """So that the test above does not pass for want of a release."""
    facts = [cured(*witness.values[:1], parse_report(witness.values[1])) for witness in WITNESSES]
    assert sum(entry is not None for entry in facts) > 8
