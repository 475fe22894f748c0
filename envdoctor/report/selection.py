"""What of the findings is reported: codes to keep and to skip, what was accepted, and the exit code
that follows.
"""

from __future__ import annotations

from ..errors import InputError, suggest
from ..model.finding import SEVERITIES, Finding, findings_tree, severity_rank
from ..model.record import NamedTuple
from ..model.report import Examined, Ignore, Ignored, Judged, Report
from ..model.versions import try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Set, Tuple

    from ..matrix.loader import Matrix
    from ..model.facts import Facts

__all__ = [
    "FAIL_ON",
    "Options",
    "check_options",
    "examined_of",
    "report_of",
    "unknown_releases",
    "with_current_rows",
]

FAIL_ON = (*SEVERITIES, "undetermined", "never")


class Options(NamedTuple):
    """What is reported, and from which level on the exit code is 1.

    ``only`` and ``skip`` hold codes, bands (ED3) and row ids.
    """

    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    ignores: Sequence[Ignore] = ()
    fail_on: str = "error"
    today: Optional[str] = None  # ISO date; the clock's where left out


def with_current_rows(options: Options, matrix: Matrix) -> Options:
    """Return options in which a row that was deleted is the one that says the same now: what
    somebody accepted stays accepted.
    """
    retired = matrix.retired
    only, skip = (
        tuple([retired.get(name, name) for name in names]) for names in (options.only, options.skip)
    )
    ignores = [
        entry._replace(pattern=retired.get(entry.pattern, entry.pattern))
        for entry in options.ignores
    ]
    return options._replace(only=only, skip=skip, ignores=ignores)


def check_options(options: Options, matrix: Matrix) -> None:
    """Raise :class:`InputError` for a code or row id that does not exist: a misspelt --skip would
    hide nothing, silently.
    """
    if options.fail_on not in FAIL_ON:
        raise InputError(
            f"fail_on: expected one of {', '.join(FAIL_ON)}, found {options.fail_on!r}"
        )
    if not (options.only or options.skip or options.ignores):
        return
    from ..rules.codes import CODES

    known = {*CODES, *(name for row in matrix.rows() for name in (row.code, row.id))}
    for pattern in options.only:
        _check_pattern("--only", pattern, known)
    for pattern in options.skip:
        _check_pattern("--skip", pattern, known)
    for entry in options.ignores:
        _check_entry(entry, known)


def _check_pattern(option: str, pattern: str, known: Set[str]) -> None:
    if not any(_selects(pattern, code) for code in known):
        raise InputError(f"{option} {pattern}: no such code, band or row{suggest(pattern, known)}")


def _check_entry(entry: Ignore, known: Set[str]) -> None:
    code = entry.pattern.split(":", 1)[0]
    if entry.pattern not in known and code not in known:
        raise InputError(
            f"{entry.origin or 'ignore'}: {entry.pattern}: no such code or "
            f"row{suggest(code, known)}"
        )


def report_of(
    findings: Sequence[Finding], nodes: Tuple[Facts, ...], date: str, options: Options
) -> Report:
    """Sort findings into those that count, open questions, and what is accepted; ``date`` is that
    of the matrix.
    """
    selected = [finding for finding in findings if _is_wanted(finding.code, finding.rule, options)]
    ignored, expired = _entries_of(selected, options)
    hidden = {id(entry.finding) for entry in ignored}
    shown = [finding for finding in selected if id(finding) not in hidden]
    violated = [finding for finding in shown if finding.verdict != "undetermined"]
    undetermined = [finding for finding in shown if finding.verdict == "undetermined"]
    return Report(
        tuple([finding for finding, _ in findings_tree(violated)]),
        tuple(undetermined),
        tuple(ignored),
        tuple(expired),
        nodes,
        date,
        _exit_code(violated, undetermined, options.fail_on),
    )


def _entries_of(
    findings: Sequence[Finding], options: Options
) -> Tuple[List[Ignored], List[Ignored]]:
    """Return the findings that an ignore entry hides, and those that one would hide had it not
    expired.
    """
    ignored: List[Ignored] = []
    expired: List[Ignored] = []
    if not options.ignores:
        return ignored, expired
    import time

    today = options.today or time.strftime("%Y-%m-%d")
    for finding in findings:
        entries = [entry for entry in options.ignores if entry.covers(finding)]
        valid = [entry for entry in entries if entry.until >= today]
        if valid:
            ignored.append(Ignored(finding, valid[0]))
        elif entries:
            expired.append(Ignored(finding, entries[0]))
    return ignored, expired


def _exit_code(violated: Sequence[Finding], undetermined: Sequence[Finding], fail_on: str) -> int:
    if fail_on == "never":
        return 0
    if fail_on == "undetermined":
        return int(bool(violated or undetermined))
    worst = severity_rank(fail_on)
    return int(any(severity_rank(finding.severity) <= worst for finding in violated))


def examined_of(
    judged: Set[Judged], options: Options, nodes: Sequence[Facts], matrix: Matrix
) -> Examined:
    """Count what was judged and may be reported; a row that asks for a GPU is in vain where no
    node has one.
    """
    packages = {name for facts in nodes for name in facts.value("distributions") or ()}
    counted = {entry for entry in judged if _is_wanted(entry.code, entry.rule, options)}
    rows = {entry.rule for entry in counted if entry.is_row}
    met = {entry.rule for entry in counted if entry.is_row and not entry.without_gpu}
    checks = {entry.rule for entry in counted if not entry.is_row}
    unknown = packages - matrix.spoken_of - matrix.packages_measured
    return Examined(len(checks), len(rows), len(rows - met), len(packages), len(unknown))


def unknown_releases(nodes: Sequence[Facts], matrix: Matrix) -> Tuple[str, ...]:
    """Return the installed releases, as "torch 2.99.0", that the matrix does not have of packages
    whose releases it has.
    """
    unknown = set()
    for facts in nodes:
        for name, distribution in (facts.value("distributions") or {}).items():
            package = matrix.package(name)
            version = try_version(distribution.version)
            if package is not None and version is not None and package.release(version) is None:
                unknown.add(f"{name} {version}")
    return tuple(sorted(unknown))


def _selects(pattern: str, code: str) -> bool:
    """``ED304`` selects itself, ``ED3`` and ``ED3xx`` the band; a row id selects itself."""
    if pattern == code:
        return True
    band = pattern[:-2] if pattern.endswith("xx") else pattern
    return band[:2] == "ED" and band[2:].isdigit() and len(band) < 5 and code.startswith(band)


def _is_wanted(code: str, rule: str, options: Options) -> bool:
    """Tell whether --only and --skip leave what this rule finds in the report."""

    def named(patterns: Sequence[str]) -> bool:
        return any(pattern == rule or _selects(pattern, code) for pattern in patterns)

    return (not options.only or named(options.only)) and not named(options.skip)
