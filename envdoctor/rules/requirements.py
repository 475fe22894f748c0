"""Requirement lines of installed distributions, read at the cost of a pre-filter.

An environment has thousands of ``Requires-Dist`` lines and nearly all are met. A line is split by one regular expression and plain
versions are compared as tuples; only what is not obviously met goes through ``VersionSet`` and, where it has a marker, through
``packaging.markers``, which is imported then.
"""

from __future__ import annotations

from ..matrix.tags import served_release
from ..model.evidence import Known
from ..model.facts import Distribution, Facts
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.versions import InvalidSpecifier, Version, VersionSet, canonicalize_name, cuda_of_variant, find_variant, parse_version, try_version
from .rule import is_unindexed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

    from ..matrix.tables import Release

    Clause = Tuple[str, Tuple[int, ...], int]
    Failure = Tuple["Requirement", Optional[Distribution]]

__all__ = [
    "Requirement",
    "Violation",
    "accepted_edges",
    "marker_holds",
    "marker_values",
    "meets",
    "requirements_of",
    "served_here",
    "unconditional",
    "violations",
]

_LINE = pattern(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?\s*\(?([^;@()]*)\)?\s*(?:;(.*))?\Z")
_CLAUSE = pattern(r"(>=|<=|==|!=|~=|<|>)\s*(\d+(?:\.\d+)*)\s*\Z")
_FINAL = pattern(r"(\d+(?:\.\d+)*)(?:\+\S*)?\Z")
_PLAIN = pattern(r"\d+(?:\.\d+)*\Z")
_AND = pattern(r"\s+and\s+")
_OR = pattern(r"\s+or\s+")
_ATOM = pattern(r"\s*([a-z_]+)\s*(==|!=|>=|<=|>|<)\s*(['\"])([^'\"]*)\3\s*\Z")
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
_EXTRA = pattern(r"\bextra\s*(?:==|!=|in\b)|['\"]\s*==\s*extra\b")


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
    return Requirement(match.group(1), match.group(3).strip(), (match.group(4) or "").strip())


def served_here(release: Release, facts: Facts) -> Release:
    """Return a release with the metadata of the wheel that a target gets; linux on x86_64 where that is not known."""
    if not release.differs:
        return release
    python = try_version(facts.value("python.version"))
    return served_release(release, python, facts.value("os.platform") or "linux", facts.value("os.architecture") or "x86_64")


def requirements_of(found: Distribution, facts: Facts, matrix: Any, known: Any) -> Tuple[Tuple[str, ...], bool]:
    """Return the requirement lines of a distribution, and whether they are its own.

    The matrix stands in where its METADATA was not read: with the lines of the release on the default index. Another build of that
    release (``+cu124``) pins other CUDA wheels, so those lines are left out for it.

    Args:
        found: the distribution.
        facts: the target. The CUDA of its torch that is not the default build's makes torch another build, without a label.
        matrix: where releases are looked up.
        known: the distributions that the matrix has.
    """
    if found.requires is not None:
        return found.requires, True
    version = try_version(found.version)
    if version is None or found.name not in known or is_unindexed(found):
        return (), False
    package = matrix.package(found.name)
    release = package.release(version) if package is not None else None
    lines = served_here(release, facts).requires if release is not None else None
    if release is None or lines is None:
        return (), False
    cuda = facts.value("torch.cuda")
    own = [build.cuda for build in release.builds if build.index_name == "pypi" and build.cuda is not None]
    variant = find_variant(version.local) if version.local is not None else None
    label = cuda_of_variant(variant) if variant is not None else None
    other = found.build != "" or (version.local is not None and label not in own)
    if found.name == "torch" and cuda is not None:
        other = other or (bool(own) and cuda not in own)
    if other:
        return tuple(line for line in lines if not line.lstrip().lower().startswith(("nvidia-", "triton", "cuda-"))), False
    return lines, False


def violations(facts: Facts, matrix: Any) -> Iterator[Violation]:
    """Yield every unconditional requirement that is not met; those without a version of their own only where the list is complete."""
    listed: Mapping[str, Distribution] = facts.value("distributions", {})
    complete = bool(facts.value("distributions.complete"))
    known = frozenset(matrix.package_names)
    judge = _Judge(listed, marker_values(facts), marker_values(facts, assume_linux=False) if complete else None)
    judged: Dict[str, Optional[Failure]] = {}  # many distributions ask for the same in the same words
    for requirer in listed.values():
        lines, own = requirements_of(requirer, facts, matrix, known)
        for line in lines:
            if line not in judged:
                judged[line] = judge.failure(line)
            failure = judged[line]
            if failure is not None and (own or failure[1] is not None):
                yield Violation(requirer, *failure, own)


class _Judge:
    """Judges requirement lines against what is installed."""

    def __init__(self, listed: Mapping[str, Distribution], values: Mapping[str, str], strict: Optional[Mapping[str, str]]) -> None:
        self.listed = listed
        self.values = values
        self.strict = strict  # None: the list is not complete, so nothing is missing
        self.plain: Dict[str, Optional[Tuple[int, ...]]] = {}
        self.specifiers: Dict[str, Optional[List[Clause]]] = {}

    def failure(self, line: str) -> Optional[Failure]:
        """Return the requirement that a line fails with and what is installed instead; None where it is met, or does not apply."""
        if "extra" in line and (" extra ==" in line or _EXTRA.search(line)):
            return None
        match = _LINE.match(line)
        if match is None:
            return None
        raw, specifier, marker = match.group(1, 3, 4)
        specifier = specifier.strip()
        installed = self.listed.get(raw) or self.listed.get(canonicalize_name(raw))
        if installed is None:
            if self.strict is None:
                return None
            requirement = Requirement(canonicalize_name(raw), specifier, (marker or "").strip())
            holds = not requirement.marker or marker_holds(requirement.marker, self.strict) is True
            return (requirement, None) if holds else None
        if not specifier or self._plainly_met(installed, specifier) or not _fails(installed, specifier):
            return None
        requirement = Requirement(installed.name, specifier, (marker or "").strip())
        if requirement.marker and marker_holds(requirement.marker, self.values) is not True:
            return None
        return requirement, installed

    def _plainly_met(self, installed: Distribution, specifier: str) -> bool:
        name = installed.name
        if name not in self.plain:
            final = _FINAL.match(installed.version or "")
            self.plain[name] = _numbers(final.group(1)) if final is not None else None
        numbers = self.plain[name]
        if numbers is None:
            return False
        if specifier not in self.specifiers:
            self.specifiers[specifier] = _clauses(specifier)
        clauses = self.specifiers[specifier]
        return clauses is not None and _plainly_met(numbers, clauses)


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
    lines, _ = requirements_of(found, facts, matrix, frozenset(matrix.package_names))
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

    ``torch 2.4.0 requires nvidia-cublas-cu12==12.1.3.1`` is broken by 12.3.4.1 or newer, because a row says so: no finding. What a lock says
    that it breaks on purpose is accepted likewise.
    """
    edges: Dict[Tuple[str, str], List[str]] = {}
    for text in facts.value("lock.overrides", ()):
        requirer, _, pin = text.partition(" [")[0].partition(" -> ")
        required, _, version = pin.partition("==")
        edges.setdefault((requirer, required), []).append(f"=={version}")
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
