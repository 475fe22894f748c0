"""Which of the rows that were written by hand may go, since what is measured or follows from tables
says the same, with a remedy that is as good.

Each row gets the machines of :mod:`recall`, judged with every row and without the written ones. It
is needless where one derived row holds on all machines of all releases, at least as gravely; where
what that one asks to install cures the machine, the written row looking on; where no setting would
have done instead; and where ``diagnose`` answers each text of the row with the packages that it
answered with before.
"""

from __future__ import annotations

import io
import random
import re
from typing import Collection, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from envdoctor.app import check, diagnose
from envdoctor.matrix.bind import bind
from envdoctor.matrix.derive import derive_target
from envdoctor.matrix.loader import Matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.facts import Distribution, Facts
from envdoctor.model.finding import Finding, severity_rank
from envdoctor.model.requirement import try_requirement
from envdoctor.model.row import EFFECTS, Row
from envdoctor.model.versions import VersionSet, parse_version

from .recall import (
    is_refused_by_metadata,
    is_said_anyway,
    machines_of,
    subjects,
    violated,
    with_packages,
)

__all__ = ["Judgement", "needless", "needless_lines"]

_EVERY = 2000


class Judgement(NamedTuple):
    """A written row, the derived one that says the same, and what speaks against deleting it: ""
    where nothing does.
    """

    row: Row
    said_by: str
    machines: int
    obstacle: str


def needless(matrix: Matrix, seed: int = 0, only: Collection[str] = ()) -> Iterator[Judgement]:
    """Yield every written row about packages, or these, of which metadata allow a machine."""
    bare = matrix.without_written_rows()
    for row in matrix.rows():
        if row.origin == "derived" or not row.packages or "*" in row.packages:
            continue
        if only and row.id not in only:
            continue
        machines = _allowed_machines(row, matrix, bare, random.Random(f"{seed} {row.id}"))
        if machines:
            said_by, obstacle = _judged(row, machines, matrix, bare)
            yield Judgement(row, said_by, len(machines), obstacle)


def _allowed_machines(row: Row, matrix: Matrix, bare: Matrix, chance: random.Random) -> List[Facts]:
    return [
        facts
        for facts in machines_of(row, matrix, chance)
        if not is_refused_by_metadata(violated(facts, bare), row)
    ]


def _judged(row: Row, machines: Sequence[Facts], matrix: Matrix, bare: Matrix) -> Tuple[str, str]:
    """Return the derived row that says what a written one says, and what is less of it."""
    rows = [one for one in bare.rows() if _is_as_grave(one, row)]
    if not rows:
        return "", "not said"
    for facts in machines:
        target = derive_target(facts, bare)
        rows = [one for one in rows if bind(one, target).outcome == "violated"]
    if not rows:
        return "", "not said by one"
    every = machines_of(row, matrix, random.Random(row.id), _EVERY, _EVERY, "")
    for facts in every:
        target = derive_target(facts, bare)
        rows = [one for one in rows if bind(one, target).outcome == "violated"] or rows
        if bind(rows[0], target).outcome != "violated" and not is_refused_by_metadata(
            violated(facts, bare), row
        ):
            return rows[0].id, f"not of {_releases_of(facts)}"
    reasons = [(one.id, _obstacle(row, one.id, machines, matrix, bare)) for one in rows]
    return min(reasons, key=lambda pair: bool(pair[1]))


def _is_as_grave(derived: Row, row: Row) -> bool:
    present = {
        term.component
        for term in row.terms
        if term.scope == "env" and not (term.operator == "present" and term.argument is False)
    }
    return present <= {*derived.packages} and EFFECTS.index(derived.effect) <= EFFECTS.index(
        row.effect
    )


def _releases_of(facts: Facts) -> str:
    held = facts.value("distributions").values()
    return ", ".join(f"{item.name} {item.version}" for item in held)


def _says_as_much(finding: Finding, own: Finding) -> bool:
    return {*own.packages, own.component} <= subjects(finding) and severity_rank(
        finding.severity
    ) <= severity_rank(own.severity)


def _obstacle(
    row: Row, said_by: str, machines: Sequence[Facts], matrix: Matrix, bare: Matrix
) -> str:
    if row.mitigations:
        return "a setting would do"
    for facts in machines:
        findings = check(facts, bare).findings
        own = next((one for one in check(facts, matrix).findings if one.row == row.id), None)
        if own is None:
            return "hidden by others"
        matches = [one for one in findings if _says_as_much(one, own)]
        match = next((one for one in matches if one.row == said_by), next(iter(matches), None))
        if match is None:
            return "not said"
        if is_said_anyway(match, row, facts, bare):
            return "said without its condition"
        before, after = _after(own, facts, matrix), _after(match, facts, matrix)
        if before is None:
            return "its remedy is words"
        others = set(after.value("distributions")) if after is not None else set()
        if not set(before.value("distributions")) <= {*others, *row.packages}:
            return "its remedy changes more"
        if after is None or not _lowered(facts, after) <= _lowered(facts, before):
            return "the other remedy lowers more"
        if _is_cured(before, facts, row, said_by, matrix) and not _is_cured(
            after, facts, row, said_by, matrix
        ):
            return "the other remedy does not cure"
        for text in _texts(row):
            rows, packages = _answered(text, facts, matrix)
            if row.id in rows and not packages <= _answered(text, facts, bare)[1]:
                return f"its text is not answered: {text}"
    return ""


def _is_cured(after: Facts, before: Facts, row: Row, said_by: str, matrix: Matrix) -> bool:
    """Tell whether a machine is without both rows, and without an error about their packages that
    was not there before.
    """
    there = {(one.code, one.row) for one in violated(before, matrix)}
    return not any(
        one.row in (row.id, said_by)
        or (
            one.severity == "error"
            and (one.code, one.row) not in there
            and subjects(one) & set(row.packages)
        )
        for one in violated(after, matrix)
    )


def _lowered(before: Facts, after: Facts) -> Set[str]:
    """The packages of which an older release is installed than before."""
    held = before.value("distributions")
    return {
        name
        for name, item in after.value("distributions").items()
        if name in held and parse_version(item.version) < parse_version(held[name].version)
    }


def _after(finding: Finding, facts: Facts, matrix: Matrix) -> Optional[Facts]:
    """The machine after the first remedy of a finding, with the newest releases that it admits;
    None where that is more, or less, than to install.
    """
    if not finding.remedies or finding.remedies[0].is_refused:
        return None
    held = dict(facts.value("distributions"))
    calls = finding.remedies[0].commands
    for call in calls:
        if not isinstance(call, InstallerCall) or call.action != "install":
            return None
        for text in call.packages:
            requirement = try_requirement(text)
            package = matrix.package(requirement.name) if requirement is not None else None
            if requirement is None or package is None:
                return None
            allowed = VersionSet.parse(requirement.specifier or ">=0")
            fitting = [version for version in package.versions if version in allowed]
            if not fitting:
                return None
            held[requirement.name] = Distribution(requirement.name, str(fitting[-1]))
    return with_packages(facts, list(held.values())) if calls else None


def _texts(row: Row) -> List[str]:
    """The lines that people see, as one of them may stand in a log."""
    plain = re.sub(r"\([^)]*\)\s*(?=;|$)", "", row.symptom)
    return [text.strip().replace("…", "x") for text in plain.split(";") if text.strip()]


def _answered(text: str, facts: Facts, matrix: Matrix) -> Tuple[Set[str], Set[str]]:
    """The rows and the packages that ``diagnose`` names for a line of a log."""
    log = io.BytesIO(text.encode() + b"\n")
    log.name = "log"  # type: ignore[misc]  # an open file has to have a name
    rows: Set[str] = set()
    packages: Set[str] = set()
    for trace in diagnose([log], facts, matrix).traces:
        for finding in (trace.finding, *trace.suspects):
            rows.add(getattr(finding, "row", ""))
            packages |= {*getattr(finding, "packages", ()), getattr(finding, "component", "")}
    return rows, packages - {""}


def needless_lines(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield what may go, as entries of matrices/retired.toml, and what keeps the others."""
    for one in judgements:
        if not one.obstacle:
            yield f'[[retired]]\nrow = "{one.row.id}"\nsaid_by = "{one.said_by}"\n'
    for one in judgements:
        if one.obstacle:
            yield f"# {one.row.id} ({one.machines}): {one.obstacle} {one.said_by}".rstrip()
