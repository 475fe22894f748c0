"""Which of the rows that were written by hand the matrix says without them.

From the terms of a row machines are made that violate it: releases at the ends of its ranges and
between them, a device, a driver, a variable as it asks for. Each is judged by ``check`` with all
that is measured or follows from tables, and without any written row. A row is reproduced where
that names the same packages at least as gravely on most of its machines, and no more once a term
of the row does not hold.
"""

from __future__ import annotations

import itertools
import random
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set

from envdoctor.matrix.bind import Subject, bind, truth
from envdoctor.matrix.derive import derive_candidate, derive_target, gpu_attributes
from envdoctor.matrix.loader import Matrix
from envdoctor.model.evidence import Absent, Evidence, Fact, Known
from envdoctor.model.facts import Distribution, Facts, Gpu
from envdoctor.model.finding import Finding, severity_rank
from envdoctor.model.row import Row, Term
from envdoctor.model.versions import Version, VersionSet, parse_version
from envdoctor.model.workload import stated_workload
from envdoctor.rules import judge
from envdoctor.rules.matrix_rows import SEVERITY_OF_EFFECT

__all__ = [
    "BASES",
    "Recalled",
    "basis_of",
    "is_refused_by_metadata",
    "is_said_anyway",
    "machines_of",
    "recall",
    "recall_lines",
    "recall_row",
    "subjects",
    "violated",
    "with_packages",
]

_HERE = Evidence("recall")
_SINCE = "2023-01-01"
#: Releases of one package, and machines of one row, that are tried.
_MOST_RELEASES = 4
_MOST_MACHINES = 12
#: Requirements that do not hold: whoever installs the pair was told so by pip.
_METADATA = frozenset(["ED301", "ED302", "ED303", "ED304", "ED305"])
_NOT_INSTALLED = "ED302"
_LIBRARY_KINDS = frozenset(["abi-mismatch", "arch-missing", "cuda-major-mismatch"])

_IMPORT = re.compile(r"cannot import name|No module named|ModuleNotFoundError|ImportError: cannot")
_LIBRARY = re.compile(
    r"undefined symbol|GLIBC(?:XX)?_|\.so\b[^;]*cannot open shared|for option 'gpu-name'"
    r"|no kernel image|Could not load lib|libbitsandbytes_cuda|cuDNN version incompatib"
)
_GATE = re.compile(
    r"(?i)requires? .{0,40}(?:version|>=|==|at least|or (?:higher|newer|greater))|supports? .{0,30}"
    r"version|version .{0,60}(?:is|are) (?:required|needed|not supported)|please (?:upgrade|update|"
    r"install|reinstall|use)|is required for|but found|is installed with version|must be|"
    r"minimum|incompatible|not compatible|disabling|not found\b.*upgrade|need(?:s|ed)? .{0,30}>="
)
BASES = ("import", "library", "gate", "other")


def basis_of(row: Row) -> str:
    """Return what a row rests on, by its kind and the texts that people see."""
    if row.kind in _LIBRARY_KINDS or _LIBRARY.search(row.symptom):
        return "library"
    # An import of what is not installed at all is no question of releases.
    absent = any(term.operator == "present" and term.argument is False for term in row.terms)
    if _IMPORT.search(row.symptom) and not absent:
        return "import"
    versions = {
        term.component
        for term in row.terms
        if term.attribute == "version" and isinstance(term.argument, VersionSet)
    }
    return "gate" if len(versions) > 1 and _GATE.search(row.symptom) else "other"


class Recalled(NamedTuple):
    """A written row, how many machines violate it that metadata allows, and on how many of these
    the rest of the matrix says so. spurious: that is said without the row's condition as well.
    """

    row: Row
    basis: str
    machines: int
    named: int
    spurious: bool = False
    by: str = ""

    @property
    def reproduced(self) -> bool:
        """Most of what the row says is said: ends that were guessed do not count against it."""
        return not self.spurious and self.machines > 0 and self.named >= 0.8 * self.machines


def recall(matrix: Matrix, seed: int = 0, only: str = "") -> Iterator[Recalled]:
    """Yield every row that was written about packages, or of one basis, with what is said without
    it.
    """
    bare = matrix.without_written_rows()
    for row in matrix.rows():
        if row.origin == "derived" or not row.packages or "*" in row.packages:
            continue
        if only and basis_of(row) != only:
            continue
        yield recall_row(row, matrix, bare, random.Random(f"{seed} {row.id}"))


def recall_row(row: Row, matrix: Matrix, bare: Matrix, chance: random.Random) -> Recalled:
    """Return on how many machines that violate a row the matrix without written rows says so."""
    machines = named = 0
    by = ""
    spurious = False
    for facts in machines_of(row, matrix, chance):
        findings = violated(facts, bare)
        if is_refused_by_metadata(findings, row):
            continue
        machines += 1
        match = next((finding for finding in findings if _says(finding, row)), None)
        if match is None:
            continue
        if not named:
            spurious = is_said_anyway(match, row, facts, bare)
            by = match.row or match.code
        named += 1
    return Recalled(row, basis_of(row), machines, named, spurious, by)


def violated(facts: Facts, matrix: Matrix) -> List[Finding]:
    """Return what is wrong with a machine on the day of the matrix."""
    return [
        finding
        for finding in judge(facts, matrix, today=matrix.date)
        if finding.verdict == "violated"
    ]


def subjects(finding: Finding) -> Set[str]:
    """Return all that a finding names."""
    return {*finding.packages, finding.component, finding.subject}


def is_refused_by_metadata(findings: Sequence[Finding], row: Row) -> bool:
    """Tell whether pip told whoever installed the packages of a row that they do not fit; what
    several of them require and is not here says nothing of that.
    """
    packages = set(row.packages)
    return len(packages) > 1 and any(
        finding.code in _METADATA - {_NOT_INSTALLED} and len(packages & subjects(finding)) > 1
        for finding in findings
    )


def _says(finding: Finding, row: Row) -> bool:
    """Tell whether a finding is about the packages of a row and at least as grave, where the row is
    an error at least a warning.
    """
    wanted = SEVERITY_OF_EFFECT[row.effect]
    asked = "warning" if wanted == "error" else wanted
    there = [term for term in row.terms if term.scope == "env"]
    # What only has to be there, in any release, need not be named, beside others of some release.
    present = {term.component for term in there if term.operator != "present"}
    present = present or {term.component for term in there if term.argument is not False}
    return (
        finding.code not in _METADATA
        and present <= subjects(finding)
        and severity_rank(finding.severity) <= severity_rank(asked)
    )


def is_said_anyway(match: Finding, row: Row, facts: Facts, bare: Matrix) -> bool:
    """Tell whether a finding about one package has nothing to do with what the row asks for."""
    return len(row.packages) == 1 and any(
        (other.code, other.row, other.component) == (match.code, match.row, match.component)
        for changed in _machines_without(row, facts, bare)
        for other in violated(changed, bare)
    )


def _machines_without(row: Row, facts: Facts, matrix: Matrix) -> Iterator[Facts]:
    """Yield the machine with one thing changed that a row asks for: its device, driver, variable or
    setting; of a row about one package alone its release.
    """
    about_machine = False
    for term in row.terms:
        if term.scope == "env":
            continue
        about_machine = True
        if term.scope == "gpu":
            gpu = _device([_contrary(term)], matrix)
            if gpu is not None:
                yield _with(facts, {"gpus": Known((gpu,), _HERE)})
        elif term.scope == "host":
            value = _host_value(_contrary(term), matrix)
            if value is not None:
                yield _with(facts, {_HOST_FIELDS[term.attribute]: Known(value, _HERE)})
        elif term.scope == "var":
            held = dict(facts.value("variables"))
            if held.pop(term.component, None) is None:
                held[term.component] = _text_of(_contrary(term)) or "1"
            yield _with(facts, {"variables": Known(held, _HERE)})
        else:
            yield _with(facts, {"request": Absent(_HERE)})
    if not about_machine:
        yield from _other_releases(row, facts, matrix)


def _other_releases(row: Row, facts: Facts, matrix: Matrix) -> Iterator[Facts]:
    name = row.packages[0]
    package = matrix.package(name)
    for version in reversed(package.versions if package is not None else ()):
        changed = with_packages(facts, [Distribution(name, str(version))])
        subject = derive_candidate(changed, matrix, name)
        if any(truth(term, subject) is False for term in row.terms):
            yield changed
            return


def _contrary(term: Term) -> Term:
    if term.operator == "present":
        return term._replace(argument=not term.argument)
    if term.operator == "lacks":
        operator = "in" if isinstance(term.argument, VersionSet) else "any"
        return term._replace(operator=operator)
    return term._replace(operator="lacks")


# machines


def machines_of(
    row: Row,
    matrix: Matrix,
    chance: random.Random,
    releases: int = _MOST_RELEASES,
    machines: int = _MOST_MACHINES,
    since: str = _SINCE,
) -> Iterator[Facts]:
    """Yield machines that violate a row, none where it asks for what no table has: with at most so
    many releases of a package, from a day on where there are such, and at most so many.
    """
    base = _machine(row, matrix)
    if base is None:
        return
    by_package: Dict[str, List[Distribution]] = {}
    for name in row.packages:
        terms = [term for term in row.terms if (term.scope, term.component) == ("env", name)]
        if any(term.operator == "present" and term.argument is False for term in terms):
            continue
        by_package[name] = _releases(name, terms, base, matrix, chance, releases, since)
    sets = list(itertools.product(*by_package.values()))
    chance.shuffle(sets)
    made = 0
    for chosen in sets:
        facts = with_packages(base, chosen)
        if bind(row, derive_target(facts, matrix)).outcome == "violated":
            yield facts
            made += 1
        if made >= machines:
            return


def with_packages(base: Facts, chosen: Sequence[Distribution]) -> Facts:
    """Return a machine with these packages, and no others, installed."""
    held = {item.name: item for item in chosen}
    return _with(
        base,
        {
            "distributions": Known(held, _HERE),
            "distributions.complete": Known(True, _HERE),
        },
    )


def _with(facts: Facts, changed: Mapping[str, Fact[Any]]) -> Facts:
    return Facts({**dict(facts), **changed})


def _releases(
    name: str,
    terms: Sequence[Term],
    base: Facts,
    matrix: Matrix,
    chance: random.Random,
    most: int,
    since: str,
) -> List[Distribution]:
    """Releases, and their builds where a term asks for one, that meet all terms: both ends, and
    some between; of that day or later where there are such.
    """
    package = matrix.package(name)
    if package is None:
        return []
    fitting: List[Distribution] = []
    dated: List[str] = []
    for version, release in package.releases():
        labels = dict.fromkeys(build.variant for build in release.builds if build.variant)
        for text in (str(version), *(f"{version.public}+{label}" for label in labels)):
            item = Distribution(name, text)
            subject = derive_candidate(with_packages(base, [item]), matrix, name)
            if not release.yanked and all(truth(term, subject) for term in terms):
                fitting.append(item)
                dated.append(release.released)
                break
    recent = [item for item, day in zip(fitting, dated) if day >= since] or fitting
    if len(recent) <= most:
        return recent
    return [recent[0], recent[-1], *chance.sample(recent[1:-1], most - 2)]


def _machine(row: Row, matrix: Matrix) -> Optional[Facts]:
    """The machine that a row asks for, without packages."""
    table: Dict[str, Fact[Any]] = {
        "os.platform": Known("linux", _HERE),
        "os.architecture": Known("x86_64", _HERE),
        "python.version": Known("3.11.9", _HERE),
        "glibc.version": Known("2.35", _HERE),
    }
    settings: Dict[str, str] = {}
    variables: Dict[str, str] = {}
    for term in row.terms:
        if term.scope == "host":
            value = _host_value(term, matrix)
            if value is None:
                return None
            table[_HOST_FIELDS[term.attribute]] = Known(value, _HERE)
        elif term.scope == "var":
            value = _text_of(term)
            if value is not None:
                variables[term.component] = value
        elif term.scope == "request":
            value = _text_of(term)
            if value is not None:
                settings[term.component] = value
    devices = [term for term in row.terms if term.scope == "gpu"]
    if devices:
        gpu = _device(devices, matrix)
        if gpu is None:
            return None
        table["gpus"] = Known((gpu,), _HERE)
    if settings:
        table["request"] = Known(stated_workload(settings, _HERE), _HERE)
    table["variables"] = Known(variables, _HERE)
    table["variables.complete"] = Known(True, _HERE)
    return Facts(table)


_HOST_FIELDS = {
    "driver": "driver.release",
    "glibc": "glibc.version",
    "python": "python.version",
    "toolkit": "toolkit.version",
    "platform": "os.platform",
    "architecture": "os.architecture",
    "container": "container.runtime",
}
_POINTS = {
    "glibc": ("2.35", "2.31", "2.28", "2.17", "2.39"),
    "python": ("3.11.9", "3.12.4", "3.10.12", "3.9.18", "3.13.1", "3.8.18"),
    "toolkit": ("12.8", "12.4", "12.1", "13.0", "11.8"),
}


def _host_value(term: Term, matrix: Matrix) -> Optional[str]:
    if isinstance(term.argument, frozenset):
        if term.operator == "any":
            return min(term.argument)
        return next((word for word in ("linux", "x86_64") if word not in term.argument), None)
    points = _POINTS.get(term.attribute) or tuple(
        f"{branch}.200" for branch in sorted(matrix.driver_branches, reverse=True)
    )
    if term.attribute not in _HOST_FIELDS or not isinstance(term.argument, VersionSet):
        return None
    inside = term.operator == "in"
    return next((text for text in points if (parse_version(text) in term.argument) is inside), None)


def _text_of(term: Term) -> Optional[str]:
    """A value for which a term about a variable or a setting holds, None where it has none."""
    argument = term.argument
    if term.operator == "present":
        return "1" if argument else None
    if term.operator in ("any", "has") and isinstance(argument, frozenset):
        return min(argument)
    if term.operator == "in" and isinstance(argument, VersionSet):
        return next((str(n) for n in range(1, 4096) if Version(str(n)) in argument), None)
    return None


def _device(terms: Sequence[Term], matrix: Matrix) -> Optional[Gpu]:
    for model in matrix.gpus:
        gpu = Gpu(name=model.name)
        subject = Subject(True, gpu_attributes(gpu, matrix))
        if all(truth(term, subject) for term in terms):
            return gpu
    return None


def recall_lines(found: Sequence[Recalled]) -> Iterator[str]:
    """Yield a table by basis, and the rows that are not reproduced."""
    for basis in BASES:
        yield _share(f"{basis:<8}", [item for item in found if item.basis == basis])
    yield _share("all     ", found)
    for item in found:
        if not item.reproduced:
            words = "said without its condition" if item.spurious else item.by
            yield f"  {item.basis}  {item.row.id}: {item.named} of {item.machines} {words}"


def _share(title: str, found: Sequence[Recalled]) -> str:
    judged = [item for item in found if item.machines]
    good = sum(item.reproduced for item in judged)
    share = f"{100 * good // len(judged)} %" if judged else "none"
    left = len(found) - len(judged)
    tail = f"; {left} allowed by no metadata, or about what no table has" if left else ""
    return f"{title} {good} of {len(judged)} written rows reproduced ({share}){tail}"
