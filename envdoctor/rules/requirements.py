"""Requirement lines of installed distributions, read at the cost of a pre-filter.

An environment has thousands of ``Requires-Dist`` lines and nearly all are met. A line is split by one regular expression and plain
versions are compared as tuples; only what is not obviously met goes through ``VersionSet`` and, where it has a marker, through
``packaging.markers``, which is imported then.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..model.evidence import Known
from ..model.facts import Distribution, Facts
from ..model.versions import InvalidSpecifier, Version, VersionSet, canonicalize_name, cuda_of_variant, find_variant, parse_version, try_version
from .rule import is_unindexed

__all__ = ["Requirement", "Violation", "accepted_edges", "marker_holds", "marker_values", "meets", "requirements_of", "unconditional", "violations"]

_LINE = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?\s*\(?\s*([^;@()]*?)\s*\)?\s*(?:;(.*))?\Z")
_CLAUSE = re.compile(r"(>=|<=|==|!=|~=|<|>)\s*(\d+(?:\.\d+)*)\s*\Z")
_FINAL = re.compile(r"(\d+(?:\.\d+)*)(?:\+\S*)?\Z")
_PLAIN = re.compile(r"\d+(?:\.\d+)*\Z")
_AND = re.compile(r"\s+and\s+")
_OR = re.compile(r"\s+or\s+")
_ATOM = re.compile(r"\s*([a-z_]+)\s*(==|!=|>=|<=|>|<)\s*(['\"])([^'\"]*)\3\s*\Z")
_ORDER = frozenset(["==", "!=", ">=", "<=", ">", "<"])
_VERSIONED = frozenset(["python_version", "python_full_version", "implementation_version"])
_MARKER_NAMES = (
    "python_version",
    "python_full_version",
    "sys_platform",
    "platform_system",
    "platform_machine",
    "platform_release",
    "platform_version",
)
_NOT_SIMPLE = object()
_EXTRA = re.compile(r"\bextra\s*(?:==|!=|in\b)|['\"]\s*==\s*extra\b")

Clause = Tuple[str, Tuple[int, ...], int]


class Requirement(NamedTuple):
    """One requirement line: canonical name, specifier as written, marker without extras or empty."""

    name: str
    specifier: str
    marker: str


class Violation(NamedTuple):
    """A requirement that what is installed does not meet; ``installed`` is None where nothing of that name is there."""

    requirer: Distribution
    requirement: Requirement
    installed: Optional[Distribution]
    from_metadata: bool  # read from the environment's own METADATA, not from the matrix


def _numbers(text: str) -> Tuple[int, ...]:
    """``2.6.0`` gives (2, 6): without trailing zeros, so that tuples compare as PEP 440 compares final releases."""
    found = [int(part) for part in text.split(".")]
    while len(found) > 1 and found[-1] == 0:
        found.pop()
    return tuple(found)


def _clauses(specifier: str) -> Optional[List[Clause]]:
    """Split a specifier of plain release numbers, or return None where it holds anything else."""
    found = []
    for part in specifier.split(","):
        match = _CLAUSE.match(part.strip())
        if match is None:
            return None
        found.append((match.group(1), _numbers(match.group(2)), match.group(2).count(".")))
    return found


def _plainly_met(installed: Tuple[int, ...], clauses: List[Clause]) -> bool:
    for operator, wanted, dots in clauses:
        if operator == ">=":
            met = installed >= wanted
        elif operator == "<":
            met = installed < wanted
        elif operator == "==":
            met = installed == wanted
        elif operator == "!=":
            met = installed != wanted
        elif operator == "<=":
            met = installed <= wanted
        elif operator == ">":
            met = installed > wanted
        else:
            padded = installed + (0,) * dots
            met = installed >= wanted and padded[:dots] == (wanted + (0,) * dots)[:dots]
        if not met:
            return False
    return True


def meets(version: Version, specifier: str) -> Optional[bool]:
    """Tell whether a version meets a specifier, or return None where the specifier is none."""
    try:
        return version in VersionSet.parse(specifier.replace("||", ","))
    except InvalidSpecifier:
        return None


def marker_values(facts: Facts, assume_linux: bool = True) -> Dict[str, str]:
    """Return what markers may ask, as far as it is known of the target.

    Args:
        facts: what is known of the target.
        assume_linux: take linux on x86_64 where platform or machine is not known.
    """
    values: Dict[str, str] = {"extra": "", "os_name": "posix", "implementation_name": "cpython", "platform_python_implementation": "CPython"}
    python = facts.value("python.version")
    if isinstance(python, str) and _FINAL.match(python) is not None and python.count("."):
        values["python_version"] = ".".join(python.split(".")[:2])
        values["python_full_version"] = values["implementation_version"] = python if python.count(".") > 1 else f"{python}.0"
    platform = facts.value("os.platform") or ("linux" if assume_linux else None)
    if platform is not None:
        values["sys_platform"] = platform
        values["platform_system"] = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(platform, platform)
    machine = facts.value("os.architecture") or ("x86_64" if assume_linux else None)
    if machine is not None:
        values["platform_machine"] = machine
    return values


def marker_holds(marker: str, values: Mapping[str, str]) -> Optional[bool]:
    """Evaluate a marker for ``marker_values``, or return None where that hangs on what is not known.

    Nearly all markers are comparisons joined by "and" or "or"; only what has parentheses or another form goes to ``packaging.markers``,
    whose import costs more than the whole check of the requirements.
    """
    some: Optional[bool] = False
    for alternative in _OR.split(marker):
        every: Optional[bool] = True
        for text in _AND.split(alternative):
            atom = _ATOM.match(text)
            found = _judge_atom(atom, values) if atom is not None else _NOT_SIMPLE
            if found is _NOT_SIMPLE:
                return _evaluate(marker, values)
            if found is False:
                every = False
            elif found is None and every is True:
                every = None
        if every is True:
            some = True
        elif every is None and some is False:
            some = None
    return some


def _judge_atom(atom: re.Match[str], values: Mapping[str, str]) -> Any:
    """Return True, False, None (not known) or ``_NOT_SIMPLE`` for one comparison."""
    name, operator, _, wanted = atom.groups()
    value = values.get(name)
    if value is None:
        return None
    if name in _VERSIONED:
        if operator not in _ORDER or not _PLAIN.match(wanted) or not _PLAIN.match(value):
            return _NOT_SIMPLE
        return _plainly_met(_numbers(value), [(operator, _numbers(wanted), 0)])
    if operator == "==":
        return value == wanted
    if operator == "!=":
        return value != wanted
    return _NOT_SIMPLE


def _evaluate(marker: str, values: Mapping[str, str]) -> Optional[bool]:
    """Let packaging evaluate what is not simple; None where it asks for what is not known."""
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

    if any(name not in values and name in marker for name in _MARKER_NAMES):
        return None
    try:
        return bool(Marker(marker).evaluate(dict(values)))
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, ValueError):
        return None  # legacy text that installers skip as well


def _split(line: str) -> Optional[Requirement]:
    match = _LINE.match(line)
    if match is None:
        return None
    return Requirement(match.group(1), match.group(3), (match.group(4) or "").strip())


def requirements_of(found: Distribution, matrix: Any, known: Any, cuda: Optional[str] = None) -> Tuple[Tuple[str, ...], bool]:
    """Return the requirement lines of a distribution, and whether they are its own.

    The matrix stands in where its METADATA was not read: with the lines of the release on the default index. Another build of that
    release (``+cu124``) pins other CUDA wheels, so those lines are left out for it.

    Args:
        found: the distribution.
        matrix: where releases are looked up.
        known: the distributions that the matrix has.
        cuda: CUDA version of the installed torch; one that is not the default build's makes torch another build, without a label.
    """
    if found.requires is not None:
        return found.requires, True
    version = try_version(found.version)
    if version is None or found.name not in known or is_unindexed(found):
        return (), False
    package = matrix.package(found.name)
    release = package.release(version) if package is not None else None
    if release is None or release.requires is None:
        return (), False
    own = [build.cuda for build in release.builds if build.index_name == "pypi" and build.cuda is not None]
    variant = find_variant(version.local) if version.local is not None else None
    label = cuda_of_variant(variant) if variant is not None else None
    other = found.build != "" or (version.local is not None and label not in own)
    if found.name == "torch" and cuda is not None:
        other = other or (bool(own) and cuda not in own)
    if other:
        return tuple(line for line in release.requires if not line.lstrip().lower().startswith(("nvidia-", "triton", "cuda-"))), False
    return release.requires, False


def violations(facts: Facts, matrix: Any) -> Iterator[Violation]:
    """Yield every unconditional requirement that is not met; those without a version of their own only where the list is complete."""
    listed: Mapping[str, Distribution] = facts.value("distributions", {})
    complete = bool(facts.value("distributions.complete"))
    known = frozenset(matrix.package_names)
    cuda = facts.value("torch.cuda")
    values, strict = marker_values(facts), marker_values(facts, assume_linux=False)
    plain: Dict[str, Optional[Tuple[int, ...]]] = {}
    specifiers: Dict[str, Optional[List[Clause]]] = {}
    for requirer in listed.values():
        lines, own = requirements_of(requirer, matrix, known, cuda)
        for line in lines:
            if "extra" in line and _EXTRA.search(line):
                continue
            match = _LINE.match(line)
            if match is None:
                continue
            raw, _, specifier, marker = match.groups()
            installed = listed.get(raw)
            if installed is None:
                name = canonicalize_name(raw)
                installed = listed.get(name)
                if installed is None:
                    if complete and own:
                        requirement = Requirement(name, specifier, (marker or "").strip())
                        if not requirement.marker or marker_holds(requirement.marker, strict) is True:
                            yield Violation(requirer, requirement, None, own)
                    continue
            if not specifier:
                continue
            name = installed.name
            if name not in plain:
                final = _FINAL.match(installed.version or "")
                plain[name] = _numbers(final.group(1)) if final is not None else None
            numbers = plain[name]
            if numbers is not None:
                if specifier not in specifiers:
                    specifiers[specifier] = _clauses(specifier)
                clauses = specifiers[specifier]
                if clauses is not None and _plainly_met(numbers, clauses):
                    continue
            if not _fails(installed, specifier):
                continue
            requirement = Requirement(name, specifier, (marker or "").strip())
            if requirement.marker and marker_holds(requirement.marker, values) is not True:
                continue
            yield Violation(requirer, requirement, installed, own)


def _fails(installed: Distribution, specifier: str) -> bool:
    """Tell whether what is installed, or the whole range that is asked for, lies outside a specifier."""
    version = try_version(installed.version)
    if version is not None:
        # A build that no index knows: 2.6.0a0+… stands for what became 2.6.0.
        return meets(parse_version(version.base_version) if is_unindexed(installed) else version, specifier) is False
    if not installed.constraint:
        return False
    try:
        return not VersionSet.parse(installed.constraint) & VersionSet.parse(specifier)
    except InvalidSpecifier:
        return False


def unconditional(found: Distribution, facts: Facts, matrix: Any) -> List[Requirement]:
    """Return the requirements of one distribution that apply here, without those of extras."""
    lines, _ = requirements_of(found, matrix, frozenset(matrix.package_names), facts.value("torch.cuda"))
    values = marker_values(facts)
    kept = []
    for line in lines:
        if _EXTRA.search(line):
            continue
        requirement = _split(line)
        if requirement is None or (requirement.marker and marker_holds(requirement.marker, values) is not True):
            continue
        kept.append(requirement._replace(name=canonicalize_name(requirement.name)))
    return kept


def accepted_edges(facts: Facts, rows: Callable[[], Any]) -> Callable[[str, str], bool]:
    """Return a test for metadata edges that an established row breaks on purpose, with its fix installed.

    ``torch 2.4.0 requires nvidia-cublas-cu12==12.1.3.1`` is broken by 12.3.4.1 or newer, because a row says so: no finding.
    """
    edges: Dict[Tuple[str, str], List[str]] = {}
    for row in rows():
        for edge in row.overrides:
            requirer, _, required = edge.partition(" -> ")
            for pin in row.pins:
                requirement = _split(pin)
                if requirement is not None and canonicalize_name(requirement.name) == canonicalize_name(required):
                    edges.setdefault((canonicalize_name(requirer), canonicalize_name(required)), []).append(requirement.specifier)

    def accepted(requirer: str, required: str) -> bool:
        found = facts.distribution(required)
        version = try_version(found.value.version) if isinstance(found, Known) else None
        return version is not None and any(meets(version, specifier) for specifier in edges.get((requirer, required), ()))

    return accepted
