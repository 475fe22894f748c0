"""What is suspicious in one row."""

from __future__ import annotations

import re
from typing import Callable, FrozenSet, Mapping, Tuple

from ...model.row import Row
from ...model.versions import VersionSet, canonicalize_name
from ..signatures import symptom_texts
from .provenance import date_fault, source_fault
from .remarks import Bench, Remarks, row_fault, row_note
from .term_relations import (
    exclude,
    holds_for,
    lies_inside,
    name_of,
    parsed_pins,
    range_of,
    version_terms,
)

__all__ = ["ROW_CHECKS"]


def _ranges(row: Row, bench: Bench) -> Remarks:
    """Ranges that no known release is in, alternatives of a range too."""
    for term in version_terms(row):
        known = bench.versions(term.component)
        ranges = range_of(term)
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
            yield row_fault(
                "range-without-release",
                row,
                what if whole else f"{what}, one alternative of {term.argument}",
            )


def _impossible(row: Row, _bench: Bench) -> Remarks:
    """Two terms on the same thing that cannot hold at once, and mitigations that a term rules
    out.
    """
    for number, term in enumerate(row.terms):
        for other in row.terms[number + 1 :]:
            if term[:2] == other[:2] and exclude(term, other):
                yield row_fault(
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
                yield row_fault(
                    "never-holds",
                    row,
                    f"needs {term} and is mitigated by {setting.component}={setting.value}, so it "
                    "never applies",
                )


def _pins(row: Row, bench: Bench) -> Remarks:
    """Pins that no release follows, or that leave the row as true as it was."""
    for name, text, wanted in parsed_pins(row):
        if name in _HOST_PINS:
            yield from _host_pin(row, name, text, wanted)
        else:
            yield from _package_pin(row, name, text, wanted, bench)
    spoken = {term.component for term in row.terms if term.scope == "env"} | _HOST_PINS.keys()
    if row.pins and not any(name in spoken for name, _, _ in parsed_pins(row)):
        yield row_note(
            "pin-elsewhere",
            row,
            f"no pin is about a package that the row speaks of: {', '.join(row.pins)}",
        )


def _host_pin(row: Row, name: str, text: str, wanted: VersionSet) -> Remarks:
    terms = [
        term for term in row.terms if term.scope == "host" and term.attribute == _HOST_PINS[name]
    ]
    if any(lies_inside(wanted, term) for term in terms):
        yield row_fault(
            "pin-in-row", row, f"the pin {text} lies in the row's own range: {terms[0]}"
        )


def _package_pin(row: Row, name: str, text: str, wanted: VersionSet, bench: Bench) -> Remarks:
    known = bench.versions(name)
    allowed = [version for version in known if version in wanted]
    terms = [term for term in version_terms(row) if term.component == name]
    if known and not allowed:
        yield row_fault("pin-without-release", row, f"no release of {name} follows the pin {text}")
    elif not terms:
        return
    elif not known:
        if all(lies_inside(wanted, term) for term in terms):
            yield row_fault("pin-in-row", row, f"the pin {text} lies in the row's own range")
    else:
        staying = [
            version for version in allowed if all(holds_for(term, version) for term in terms)
        ]
        if staying and not _leaves_by_another(row, name, bench):
            shown = ", ".join(map(str, staying[:4])) + (" …" if len(staying) > 4 else "")
            yield row_fault(
                "pin-in-row", row, f"{name} {shown} follows the pin {text} and is still in the row"
            )


def _leaves_by_another(row: Row, name: str, bench: Bench) -> bool:
    """Tell whether the pin of another package leads out of the row: all pins are followed."""
    for other, _, wanted in parsed_pins(row):
        terms = [term for term in version_terms(row) if term.component == other != name]
        allowed = [version for version in bench.versions(other) if version in wanted]
        if allowed and any(
            not any(holds_for(term, version) for version in allowed) for term in terms
        ):
            return True
    return False


_HOST_PINS: Mapping[str, str] = {
    "nvidia-driver": "driver",
    "python": "python",
    "glibc": "glibc",
    "cuda-toolkit": "toolkit",
}


def _sources(row: Row, _bench: Bench) -> Remarks:
    """Sources that nobody can look up."""
    for source in row.sources:
        fault = source_fault(source.address)
        if fault is not None:
            yield row_fault("source-form", row, fault)
    twice = {
        source.address
        for source in row.sources
        if sum(other.address == source.address for other in row.sources) > 1
    }
    for address in sorted(twice):
        yield row_note("source-form", row, f"names {address} twice")


def _dates(row: Row, bench: Bench) -> Remarks:
    """Dates that have not come yet, or are none."""
    fault = date_fault(row.date, bench.today)
    if fault is not None:
        yield row_fault("date", row, fault)


def _labels(row: Row, bench: Bench) -> Remarks:
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
                yield row_fault(
                    "unknown-label",
                    row,
                    f"no table knows the GPU {term.attribute} {', '.join(unknown)}",
                )


_SETTING = re.compile(r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)=(\S+)")


def _mitigations(row: Row, _bench: Bench) -> Remarks:
    """Mitigations without a variable or value, given twice, and settings that the fix names but the
    row does not carry.
    """
    for setting in row.mitigations:
        if setting.scope != "var" or not setting.component or not setting.value:
            yield row_fault("mitigation", row, "a mitigation needs a variable and a value")
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", setting.component):
            yield row_fault("mitigation", row, f"{setting.component!r} is no name of a variable")
    if len(set(row.mitigations)) < len(row.mitigations):
        yield row_fault("mitigation", row, "the same setting stands twice")
    carried = {setting.component for setting in row.mitigations} | {
        term.component for term in row.terms if term.scope == "var"
    }
    for name, value in _SETTING.findall(row.fix):
        if name not in carried:
            yield row_note(
                "mitigation",
                row,
                f"the fix says {name}={value.rstrip('.,;)')}, but neither a mitigation nor a term "
                "has that variable",
            )


_PROSE = re.compile(
    r"(?:after|before|below|from|in|of|on|since|until|with)\s|[\d.]+:\s"
    r"|\w+(?:/\w+)+(?:\.py)?:\s\w*Error:"
)


def _symptom(row: Row, _bench: Bench) -> Remarks:
    """Words about a text of a log before it: no line begins with them, so that none is
    recognized.
    """
    for text in symptom_texts(row):
        if _PROSE.match(text):
            yield row_fault(
                "symptom-prose",
                row,
                f"no line of a log reads {text!r}: what is said of a text goes behind it in "
                "parentheses",
            )


def _overrides(row: Row, bench: Bench) -> Remarks:
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
            name_of(line) == wanted for release in read for line in release.requires or ()
        ):
            yield row_fault(
                "override", row, f"no release of {name} in the matrix requires {wanted}"
            )


def _unbound(row: Row, _bench: Bench) -> Remarks:
    """Rows that every check on every machine has to look at."""
    if not any(term.scope in ("env", "gpu") for term in row.terms):
        yield row_note(
            "looked-at-everywhere",
            row,
            "speaks of no package and no GPU, so every check looks at it",
        )


def _unread(row: Row, bench: Bench) -> Remarks:
    """Packages whose releases nobody read, so that their ranges were held against nothing."""
    for name in sorted({term.component for term in version_terms(row)}):
        if not bench.versions(name):
            yield row_note(
                "releases-not-read",
                row,
                f"{name} has no file in packages/: whether a release matches was not looked at",
            )


ROW_CHECKS: Tuple[Callable[[Row, Bench], Remarks], ...] = (
    _ranges,
    _impossible,
    _pins,
    _sources,
    _dates,
    _labels,
    _mitigations,
    _symptom,
    _overrides,
    _unbound,
    _unread,
)
