"""What is suspicious in rows that load: the schema says what a row may hold, this says what it
should.

A ``fault`` contradicts the matrix itself or the row. A ``note`` is worth a look: it may be meant.
"""

from __future__ import annotations

import re
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ...model.requirement import parse_requirement, try_requirement
from ...model.row import EFFECTS, Row, Term
from ...model.versions import Version, VersionSet, canonicalize_name
from ..loader import Matrix
from ..signatures import symptom_texts
from .measured import disagreements

__all__ = ["CHECKS", "LintRemark", "lint"]


class LintRemark(NamedTuple):
    """One suspicious thing: which check, how bad, the row or entry, one sentence, the file."""

    check: str
    level: str
    subject: str
    message: str
    origin: str = ""


Found = Iterator[LintRemark]


class _Bench:
    """What the checks share: the matrix, the day, the releases of each package."""

    def __init__(self, matrix: Matrix, today: str) -> None:
        self.matrix = matrix
        self.today = today
        self._versions: Dict[str, Tuple[Version, ...]] = {}

    def versions(self, name: str) -> Tuple[Version, ...]:
        """The known releases of a distribution, oldest first; none where the matrix does not know
        it.
        """
        versions = self._versions.get(name)
        if versions is None:
            package = self.matrix.package(name)
            versions = self._versions[name] = package.versions if package is not None else ()
        return versions


def lint(
    matrix: Matrix, today: str, chosen: Optional[Callable[[Row], bool]] = None
) -> List[LintRemark]:
    """Return what is suspicious, faults first.

    Args:
        matrix: all rows, tables and packages that the rows are judged by.
        today: the ISO date after which nothing can have been read.
        chosen: tells which rows are judged (a site's own); all written rows, tables and packages
            where left out.
    """
    bench = _Bench(matrix, today)
    written = [row for row in matrix.rows() if row.origin != "derived"]
    rows = [row for row in written if chosen is None or chosen(row)]
    findings: List[LintRemark] = []
    for row in rows:
        for check in _ROW_CHECKS:
            findings += check(row, bench)
    findings += _pairs(written, {row.id for row in rows}, bench)
    findings += [_note(check, row, message) for check, row, message in disagreements(matrix, rows)]
    if chosen is None:
        findings += _tables(bench)
        findings += _packages(bench)
        findings += _signatures(bench)
    return sorted(findings, key=lambda finding: finding.level != "fault")


def _fault(check: str, row: Row, message: str) -> LintRemark:
    return LintRemark(check, "fault", row.id, message, row.origin)


def _note(check: str, row: Row, message: str) -> LintRemark:
    return LintRemark(check, "note", row.id, message, row.origin)


# --------------------------------------------------------------------------------------------------
# one row


def _ranges(row: Row, bench: _Bench) -> Found:
    """Ranges that no known release is in, alternatives of a range too."""
    for term in _version_terms(row):
        known = bench.versions(term.component)
        ranges = _set_of(term)
        if not known or ranges is None:
            continue
        intervals = [VersionSet([interval]) for interval in ranges.intervals]
        # A table that does not reach back so far says nothing of an interval that ends before its
        # first release.
        reaching = [part for part in intervals if part & VersionSet([(known[0], None)])]
        empty = [part for part in reaching if not any(version in part for version in known)]
        for part in empty:
            whole = len(empty) == len(intervals)
            what = f"no release of {term.component} is in {part}"
            yield _fault(
                "range-without-release",
                row,
                what if whole else f"{what}, one alternative of {term.argument}",
            )


def _version_terms(row: Row) -> Iterator[Term]:
    for term in row.terms:
        if (
            term.scope == "env"
            and term.attribute == "version"
            and term.component != "*"
            and isinstance(term.argument, VersionSet)
        ):
            yield term


def _set_of(term: Term) -> Optional[VersionSet]:
    return term.argument if isinstance(term.argument, VersionSet) else None


def _impossible(row: Row, _bench: _Bench) -> Found:
    """Two terms on the same thing that cannot hold at once, and mitigations that a term rules
    out.
    """
    for number, term in enumerate(row.terms):
        for other in row.terms[number + 1 :]:
            if term[:2] == other[:2] and _exclude(term, other):
                yield _fault(
                    "never-holds",
                    row,
                    f"'{term}' and '{other}' cannot hold at once, so the row says nothing",
                )
    for setting in row.mitigations:
        for term in row.terms:
            if (
                term.scope != "var"
                or term.component != setting.component
                or term.attribute != "value"
            ):
                continue
            if (
                isinstance(term.argument, frozenset)
                and term.operator == "any"
                and term.argument == {setting.value}
            ):
                yield _fault(
                    "never-holds",
                    row,
                    f"needs {term} and is mitigated by {setting.component}={setting.value}, so it "
                    "never applies",
                )


def _exclude(term: Term, other: Term) -> bool:
    """Tell whether two terms on one subject can never hold together."""
    absent = [
        entry for entry in (term, other) if entry.operator == "present" and entry.argument is False
    ]
    if absent:
        return any(
            entry.operator != "lacks"
            and not (entry.operator == "present" and entry.argument is False)
            for entry in (term, other)
        )
    if term.attribute != other.attribute:
        return False
    one, two = _meaning(term), _meaning(other)
    if isinstance(one, VersionSet) and isinstance(two, VersionSet):
        return not one & two
    if isinstance(term.argument, frozenset) and isinstance(other.argument, frozenset):
        operators = {term.operator, other.operator}
        if operators == {"any"}:
            return not term.argument & other.argument
        if operators == {"any", "lacks"}:
            allowed, refused = (term, other) if term.operator == "any" else (other, term)
            return (
                isinstance(allowed.argument, frozenset)
                and isinstance(refused.argument, frozenset)
                and allowed.argument <= refused.argument
            )
    return False


def _meaning(term: Term) -> Optional[VersionSet]:
    ranges = _set_of(term)
    return None if ranges is None else ~ranges if term.operator == "lacks" else ranges


def _pins(row: Row, bench: _Bench) -> Found:
    """Pins that no release follows, or that leave the row as true as it was."""
    for name, text, wanted in _pinned(row):
        if name in _HOST_PINS:
            yield from _host_pin(row, name, text, wanted)
        else:
            yield from _package_pin(row, name, text, wanted, bench)
    spoken = {term.component for term in row.terms if term.scope == "env"} | _HOST_PINS.keys()
    if row.pins and not any(name in spoken for name, _, _ in _pinned(row)):
        yield _note(
            "pin-elsewhere",
            row,
            f"no pin is about a package that the row speaks of: {', '.join(row.pins)}",
        )


def _host_pin(row: Row, name: str, text: str, wanted: VersionSet) -> Found:
    terms = [
        term for term in row.terms if term.scope == "host" and term.attribute == _HOST_PINS[name]
    ]
    if any(_inside(wanted, term) for term in terms):
        yield _fault("pin-in-row", row, f"the pin {text} lies in the row's own range: {terms[0]}")


def _package_pin(row: Row, name: str, text: str, wanted: VersionSet, bench: _Bench) -> Found:
    known = bench.versions(name)
    allowed = [version for version in known if version in wanted]
    terms = [term for term in _version_terms(row) if term.component == name]
    if known and not allowed:
        yield _fault("pin-without-release", row, f"no release of {name} follows the pin {text}")
    elif not terms:
        return
    elif not known:
        if all(_inside(wanted, term) for term in terms):
            yield _fault("pin-in-row", row, f"the pin {text} lies in the row's own range")
    else:
        staying = [version for version in allowed if all(_holds(term, version) for term in terms)]
        if staying:
            shown = ", ".join(map(str, staying[:4])) + (" …" if len(staying) > 4 else "")
            yield _fault(
                "pin-in-row", row, f"{name} {shown} follows the pin {text} and is still in the row"
            )


_HOST_PINS: Mapping[str, str] = {
    "nvidia-driver": "driver",
    "python": "python",
    "glibc": "glibc",
    "cuda-toolkit": "toolkit",
}


def _name_of(requirement: str) -> str:
    parsed = try_requirement(requirement)
    return parsed.name if parsed is not None else ""


def _pinned(row: Row) -> Iterator[Tuple[str, str, VersionSet]]:
    for pin in row.pins:
        requirement = parse_requirement(pin)
        yield requirement.name, pin, requirement.versions


def _holds(term: Term, version: Version) -> bool:
    ranges = _set_of(term)
    return ranges is not None and (version in ranges) is not (term.operator == "lacks")


def _inside(wanted: VersionSet, term: Term) -> bool:
    """Tell whether everything that a pin admits is in a term's range."""
    meaning = _meaning(term)
    return meaning is not None and bool(wanted) and (wanted & meaning) == wanted


_ADDRESS = re.compile(
    r"https://([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?::\d+)?(?:/[^\s<>\"]*)?(?: "
    r"\([^()]*(?:\([^()]*\)[^()]*)*\))?"
)
_PRIVATE = re.compile(
    r"\b(localhost|127\.0\.0\.1|example\.(com|org|net)|[a-z0-9-]+\.(local|internal|lan))\b"
)
_GITHUB = re.compile(
    r"https://github\.com/[^/\s]+/[^/\s]+"
    r"(/(issues|pull|discussions|commit|blob|tree|releases|wiki|security|compare"
    r"|actions)\b.*)?/?(#.*)?( \(.*)?"
)


def source_fault(address: str) -> Optional[str]:
    """Return what is wrong with the form of a source, or None: an https address, or a document by a
    name of two words or more.
    """
    text = address.strip()
    if text != address or not text:
        return "has spaces around it" if text else "is empty"
    if "://" not in text.split(" ", 1)[0]:
        return (
            None
            if len(text.split()) >= 2
            else f"{text!r} is no address and too short for the name of a document"
        )
    if not text.startswith("https://"):
        return f"{text} is not https"
    if not _ADDRESS.fullmatch(text):
        return f"{text} is no address (a remark goes in parentheses behind it)"
    if _PRIVATE.search(text):
        return f"{text} cannot be read by others"
    if text.startswith("https://github.com/") and not _GITHUB.fullmatch(text):
        return f"{text} names no issue, pull request, commit or file"
    return None


def _sources(row: Row, _bench: _Bench) -> Found:
    """Sources that nobody can look up."""
    for source in row.sources:
        fault = source_fault(source.address)
        if fault is not None:
            yield _fault("source-form", row, fault)
    twice = {
        source.address
        for source in row.sources
        if sum(other.address == source.address for other in row.sources) > 1
    }
    for address in sorted(twice):
        yield _note("source-form", row, f"names {address} twice")


def _dates(row: Row, bench: _Bench) -> Found:
    """Dates that have not come yet, or are none."""
    fault = _date_fault(row.date, bench.today)
    if fault is not None:
        yield _fault("date", row, fault)


_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _date_fault(text: str, today: str) -> Optional[str]:
    match = re.fullmatch(r"(\d{4})-(\d{2})-(\d{2})", text)
    if (
        match is None
        or not 1 <= int(match.group(2)) <= 12
        or not 1 <= int(match.group(3)) <= _DAYS[int(match.group(2)) - 1]
    ):
        return f"{text} is no day"
    return f"{text} is in the future (today is {today})" if text > today else None


def _labels(row: Row, bench: _Bench) -> Found:
    """GPU labels that no table knows."""
    matrix = bench.matrix
    known: Mapping[str, FrozenSet[str]] = {
        "model": frozenset(model.name for model in matrix.gpus),
        "architecture": frozenset(entry.architecture for entry in matrix.capabilities.values()),
        "sm": frozenset(matrix.capabilities),
        "kind": frozenset(model.kind for model in matrix.gpus),
    }
    for term in row.terms:
        if term.scope == "gpu" and term.attribute in known and isinstance(term.argument, frozenset):
            unknown = sorted(term.argument - known[term.attribute])
            if unknown:
                yield _fault(
                    "unknown-label",
                    row,
                    f"no table knows the GPU {term.attribute} {', '.join(unknown)}",
                )


_SETTING = re.compile(r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)=(\S+)")


def _mitigations(row: Row, _bench: _Bench) -> Found:
    """Mitigations without a variable or value, given twice, and settings that the fix names but the
    row does not carry.
    """
    for setting in row.mitigations:
        if setting.scope != "var" or not setting.component or not setting.value:
            yield _fault("mitigation", row, "a mitigation needs a variable and a value")
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", setting.component):
            yield _fault("mitigation", row, f"{setting.component!r} is no name of a variable")
    if len(set(row.mitigations)) < len(row.mitigations):
        yield _fault("mitigation", row, "the same setting stands twice")
    carried = {setting.component for setting in row.mitigations} | {
        term.component for term in row.terms if term.scope == "var"
    }
    for name, value in _SETTING.findall(row.fix):
        if name not in carried:
            yield _note(
                "mitigation",
                row,
                f"the fix says {name}={value.rstrip('.,;)')}, but neither a mitigation nor a term "
                "has that variable",
            )


_PROSE = re.compile(
    r"(?:after|before|below|from|in|of|on|since|until|with)\s|[\d.]+:\s|\w+(?:/\w+)+(?:\.py)?:\s\w*Error:"
)


def _symptom(row: Row, _bench: _Bench) -> Found:
    """Words about a text of a log before it: no line begins with them, so that none is
    recognized.
    """
    for text in symptom_texts(row):
        if _PROSE.match(text):
            yield _fault(
                "symptom-prose",
                row,
                f"no line of a log reads {text!r}: what is said of a text goes behind it in "
                "parentheses",
            )


def _overrides(row: Row, bench: _Bench) -> Found:
    """Edges that no metadata has."""
    for edge in row.overrides:
        name, _, wanted = (canonicalize_name(part.strip()) for part in edge.partition("->"))
        package = bench.matrix.package(name)
        if package is None:
            continue
        read = [
            release
            for release in map(package.release, package.versions)
            if release is not None and release.requires is not None
        ]
        if read and not any(
            _name_of(line) == wanted for release in read for line in release.requires or ()
        ):
            yield _fault("override", row, f"no release of {name} in the matrix requires {wanted}")


def _reach(row: Row, _bench: _Bench) -> Found:
    """Rows that every check on every machine has to look at."""
    if not any(term.scope in ("env", "gpu") for term in row.terms):
        yield _note(
            "looked-at-everywhere",
            row,
            "speaks of no package and no GPU, so every check looks at it",
        )


def _unread(row: Row, bench: _Bench) -> Found:
    """Packages whose releases nobody read, so that their ranges were held against nothing."""
    for name in sorted({term.component for term in _version_terms(row)}):
        if not bench.versions(name):
            yield _note(
                "releases-not-read",
                row,
                f"{name} has no file in packages/: whether a release matches was not looked at",
            )


_ROW_CHECKS: Tuple[Callable[[Row, _Bench], Found], ...] = (
    _ranges,
    _impossible,
    _pins,
    _sources,
    _dates,
    _labels,
    _mitigations,
    _symptom,
    _overrides,
    _reach,
    _unread,
)


# --------------------------------------------------------------------------------------------------
# pairs of rows


def _pairs(rows: Sequence[Row], chosen: Set[str], bench: _Bench) -> Found:
    """Rows that say the same, that another one shadows, or whose pins lead into each other."""
    by_component: Dict[Any, List[Row]] = {}
    for row in rows:
        by_component.setdefault(row.component, []).append(row)
    for group in by_component.values():
        for number, row in enumerate(group):
            for other in group[number + 1 :]:
                if row.id in chosen or other.id in chosen:
                    yield from _pair(row, other)
    about: Dict[str, List[Row]] = {}
    for row in rows:
        for name in {term.component for term in _version_terms(row)}:
            about.setdefault(name, []).append(row)
    for row in rows:
        pinned: Dict[str, VersionSet] = {}
        for name, _, wanted in _pinned(row):
            pinned[name] = pinned.get(name, VersionSet.all()) & wanted
        for name in pinned:
            for other in about.get(name, ()):
                if other is not row and (row.id in chosen or other.id in chosen):
                    yield from _contradiction(row, other, name, pinned, bench)


def _pair(row: Row, other: Row) -> Found:
    covers, covered = _implies(other, row), _implies(row, other)
    if covers and covered:
        yield _fault("repeated", other, f"asks for exactly what {row.id} asks for")
        return
    for wide, narrow, holds in ((row, other, covers), (other, row, covered)):
        if (
            holds
            and _as_bad(wide, narrow)
            and wide.kind == narrow.kind
            and set(wide.mitigations) <= set(narrow.mitigations)
        ):
            message = (
                f"wherever it holds, {wide.id} holds too, and says as much ({wide.effect}, "
                f"{wide.trust})"
            )
            if set(narrow.pins) <= set(wide.pins):
                yield _fault("shadowed", narrow, message)
            else:
                yield _note("shadowed", narrow, f"{message}; its pins differ")
            return
    if (
        row.kind == other.kind
        and _alike(row, other)
        and _together(row, other)
        and not (covers or covered)
    ):
        yield _note(
            "overlapping",
            other,
            f"overlaps with {row.id}, which asks for the same things in other ranges",
        )


def _as_bad(wide: Row, narrow: Row) -> bool:
    return EFFECTS.index(wide.effect) <= EFFECTS.index(narrow.effect) and (
        wide.trust == "established" or narrow.trust != "established"
    )


def _implies(narrow: Row, wide: Row) -> bool:
    """Tell whether every term of ``wide`` follows from one of ``narrow``."""
    return all(any(_follows(term, wanted) for term in narrow.terms) for wanted in wide.terms)


def _follows(term: Term, wanted: Term) -> bool:
    """Tell whether ``wanted`` holds wherever ``term`` does."""
    if term[:2] != wanted[:2]:
        return False
    if wanted.operator == "present":
        # Any positive statement about a thing says that it is there.
        return (wanted.argument is True and term.operator in ("in", "any", "has")) or (
            term.operator == "present" and term.argument is wanted.argument
        )
    if term.operator == "present":
        return term.argument is False and wanted.operator == "lacks"
    if term.attribute != wanted.attribute:
        return False
    one, two = term.argument, wanted.argument
    if term.operator == wanted.operator:
        return _within(two, one) if term.operator == "lacks" else _within(one, two)
    return (
        wanted.operator == "lacks"
        and term.operator in ("in", "any")
        and type(one) is type(two)
        and not one & two  # type: ignore[operator]
    )


def _within(one: object, two: object) -> bool:
    """Tell whether everything in one argument is in the other; both of one kind."""
    if isinstance(one, VersionSet) and isinstance(two, VersionSet):
        return (one & two) == one
    return isinstance(one, frozenset) and isinstance(two, frozenset) and one <= two


def _together(row: Row, other: Row) -> bool:
    """Tell whether nothing keeps both rows from holding at once."""
    return not any(
        term[:2] == wanted[:2] and _exclude(term, wanted)
        for term in row.terms
        for wanted in other.terms
    )


def _alike(row: Row, other: Row) -> bool:
    """Tell whether two rows ask for the same things, with labels in common."""
    if sorted(term[:4] for term in row.terms) != sorted(term[:4] for term in other.terms):
        return False
    pairs = (
        (term.argument, wanted.argument)
        for term in row.terms
        for wanted in other.terms
        if term[:4] == wanted[:4]
    )
    return all(
        not isinstance(one, frozenset) or not isinstance(two, frozenset) or bool(one & two)
        for one, two in pairs
    )


def _contradiction(
    row: Row, other: Row, name: str, pinned: Mapping[str, VersionSet], bench: _Bench
) -> Found:
    """Whoever follows the pins of ``row`` runs into ``other``: with every release that they admit,
    or with the newest, which pip takes.
    """
    if EFFECTS.index(other.effect) > EFFECTS.index(row.effect) or (
        other.trust != "established" and row.trust == "established"
    ):
        return
    every = led = True
    for wanted in other.terms:
        if wanted.scope == "env" and wanted.component in pinned:
            allowed = [
                version
                for version in bench.versions(wanted.component)
                if version in pinned[wanted.component]
            ]
            if not allowed or wanted.attribute != "version" or not _holds(wanted, allowed[-1]):
                return
            every = every and all(_holds(wanted, version) for version in allowed)
            # Else both may hold before the pins are followed.
            led = led and not _shared(row, wanted, bench)
        elif not any(_follows(term, wanted) for term in row.terms):
            if not _shared(row, wanted, bench):
                return
            every = False
    pins = ", ".join(pin for pin in row.pins if _name_of(pin) == name)
    if every:
        yield _fault(
            "contradicting",
            row,
            f"every release of {name} that follows the pin {pins} is in {other.id}, with nothing "
            "else changed",
        )
    elif led:
        yield _note(
            "pin-into-row",
            row,
            f"the newest release of {name} that follows the pin {pins} can be in {other.id}",
        )


def _shared(row: Row, wanted: Term, bench: _Bench) -> List[Version]:
    """Return the releases that a row and a term of another one have in common; none where the row
    does not speak of the package.
    """
    terms = [term for term in _version_terms(row) if term.component == wanted.component]
    if wanted.attribute != "version" or not terms:
        return []
    return [
        version
        for version in bench.versions(wanted.component)
        if all(_holds(term, version) for term in (*terms, wanted))
    ]


# --------------------------------------------------------------------------------------------------
# tables and packages


def _tables(bench: _Bench) -> Found:
    from ..compiled import KEYS

    for table, key in KEYS.items():
        entries = (
            bench.matrix.gpu_entries() if table == "gpu" else bench.matrix.table_entries(table)
        )
        for entry in entries:
            yield from _provenance(
                f"{table} {entry[key]}",
                entry["source"],
                entry["date"],
                str(entry.get("origin", "gpus.toml")),
                bench,
            )
    for model in bench.matrix.models:
        yield from _provenance(
            f"model {model.name}", model.source, model.date, "models.toml", bench
        )
    for package in bench.matrix.conda.values():
        yield from _provenance(
            f"conda name of {package.distribution}",
            package.source,
            package.date,
            "conda.toml",
            bench,
        )


def _provenance(subject: str, source: str, date: str, origin: str, bench: _Bench) -> Found:
    """What is wrong with the source and the date of one entry."""
    for check, fault in (
        ("source-form", source_fault(str(source))),
        ("date", _date_fault(str(date), bench.today)),
    ):
        if fault is not None:
            yield LintRemark(check, "fault", subject, fault, origin)


def _signatures(bench: _Bench) -> Found:
    """Sources, dates and rows that signatures name."""
    for entry in bench.matrix.signatures:
        subject = f"signature {entry.id}"
        source = source_fault(entry.source.address)
        if source is not None:
            yield LintRemark("source-form", "fault", subject, source, entry.origin)
        date = _date_fault(entry.date, bench.today)
        if date is not None:
            yield LintRemark("date", "fault", subject, date, entry.origin)
        for name in [name for cause in entry.causes for name in cause.rows if "*" not in name]:
            if bench.matrix.row(name) is None:
                yield LintRemark(
                    "signature-row", "fault", subject, f"there is no row {name}", entry.origin
                )


def _packages(bench: _Bench) -> Found:
    for name in bench.matrix.package_names:
        package = bench.matrix.package(name)
        if package is None:
            continue
        origin = f"packages/{name}.json"
        date = _date_fault(package.date, bench.today)
        if date is not None:
            yield LintRemark("date", "fault", name, date, origin)
        for version in package.versions:
            release = package.release(version)
            if release is None:
                continue
            fault = _date_fault(release.released, bench.today)
            if fault is not None:
                yield LintRemark("date", "fault", f"{name} {version}", f"released {fault}", origin)
            if any(not build.source for build in release.builds):
                yield LintRemark(
                    "source-form",
                    "fault",
                    f"{name} {version}",
                    "a build does not say where it was read",
                    origin,
                )


#: The checks by name, for the documentation and ``--json``.
CHECKS: Mapping[str, str] = {
    "range-without-release": "a range, or one alternative of it, that no known release is in",
    "never-holds": "terms, or a term and a mitigation, that exclude each other",
    "pin-without-release": "a pin that no known release follows",
    "pin-in-row": "a pin that leads to versions that the row itself forbids",
    "pin-elsewhere": "pins about packages that the row does not speak of",
    "source-form": "a source that nobody can look up",
    "date": "a date that has not come yet, or is none",
    "signature-row": "a signature that names a row that is not there",
    "unknown-label": "a GPU model, architecture or capability that no table knows",
    "mitigation": (
        "a mitigation without variable or value, or a setting in the fix that no mitigation carries"
    ),
    "symptom-prose": "words about a text of a log before it, so that no line matches",
    "override": "an override of an edge that no metadata has",
    "looked-at-everywhere": "a row without package and GPU",
    "releases-not-read": "a range of a package without a file in packages/",
    "repeated": "two rows that ask for the same",
    "shadowed": "a row that another, wider one makes needless",
    "measured-otherwise": "a row about a missing name that was measured for other releases",
    "measured-graver": "a row that calls harmless what a measured one does not",
    "overlapping": "two rows of one kind that ask for the same things in overlapping ranges",
    "contradicting": "a pin that leads into another row at least as bad, with nothing else changed",
    "pin-into-row": (
        "a pin whose newest release is in another row at least as bad, for some "
        "releases of the other packages"
    ),
}
