"""Requirement lines of installed distributions, read at the cost of a pre-filter.

An environment has thousands of ``Requires-Dist`` lines and nearly all are met. Plain versions are
compared as tuples; only what is not obviously met goes through ``VersionSet`` and, where it has a
marker of an unusual form, through ``packaging.markers``, imported then.
"""

from __future__ import annotations

from ..matrix.tags import served_release
from ..model.evidence import Known
from ..model.facts import Distribution, Facts
from ..model.record import NamedTuple
from ..model.versions import (
    InvalidSpecifier,
    Version,
    VersionSet,
    canonicalize_name,
    cuda_of_variant,
    find_variant,
    parse_version,
    try_version,
)
from .rule import is_unindexed

TYPE_CHECKING = False
if TYPE_CHECKING:
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

# A start reads these lines at each container's start, and one regular expression costs it the
# import of re and what that imports: 7 ms.
_OPERATORS = ("==", "!=", ">=", "<=", "~=", ">", "<")
_AFTER_NAME = frozenset(" \t[(<>=!~;@")
_NAME_SIGNS = str.maketrans("", "", "-_.")
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
_EXTRA = ("extra==", "extra!=", "==extra", "extrain")


class Requirement(NamedTuple):
    """One requirement line: canonical name, specifier as written, marker without extras or
    empty.
    """

    name: str
    specifier: str
    marker: str


class Violation(NamedTuple):
    """A requirement that what is installed does not meet; ``installed`` is None where nothing of
    that name is there.
    """

    requirer: Distribution
    requirement: Requirement
    installed: Optional[Distribution]
    from_metadata: bool  # read from the environment's own METADATA, not from the matrix


def _numbers(text: str) -> Tuple[int, ...]:
    """``2.6.0`` gives (2, 6): without trailing zeros, so that tuples compare as PEP 440 compares
    final releases; () for no plain release.
    """
    parts = text.split(".")
    if not text.isascii() or not text.replace(".", "").isdigit() or "" in parts:
        return ()
    found = [int(part) for part in parts]
    while len(found) > 1 and found[-1] == 0:
        found.pop()
    return tuple(found)


def _clauses(specifier: str) -> Optional[List[Clause]]:
    """Split a specifier of plain release numbers, or return None where it holds anything else."""
    found = []
    for part in specifier.split(","):
        part = part.strip()
        operator = part[:2] if part[:2] in _OPERATORS else part[:1]
        text = part[len(operator) :].strip()
        numbers = _numbers(text)
        if operator not in _OPERATORS or not numbers:
            return None
        found.append((operator, numbers, text.count(".")))
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
    values: Dict[str, str] = {
        "extra": "",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    python = facts.value("python.version")
    if isinstance(python, str) and _numbers(python.partition("+")[0]) and python.count("."):
        values["python_version"] = ".".join(python.split(".")[:2])
        values["python_full_version"] = values["implementation_version"] = (
            python if python.count(".") > 1 else f"{python}.0"
        )
    platform = facts.value("os.platform") or ("linux" if assume_linux else None)
    if platform is not None:
        values["sys_platform"] = platform
        values["platform_system"] = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(
            platform, platform
        )
    machine = facts.value("os.architecture") or ("x86_64" if assume_linux else None)
    if machine is not None:
        values["platform_machine"] = machine
    return values


def marker_holds(marker: str, values: Mapping[str, str]) -> Optional[bool]:
    """Evaluate a marker for ``marker_values``, or return None where that hangs on what is not
    known.

    Nearly all markers are comparisons joined by "and" or "or"; only what has parentheses or another
    form goes to ``packaging.markers``, whose import costs more than the whole check of the
    requirements.
    """
    some: Optional[bool] = False
    for alternative in marker.split(" or "):
        every: Optional[bool] = True
        for text in alternative.split(" and "):
            found = _judge_atom(text.strip(), values)
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


def _judge_atom(text: str, values: Mapping[str, str]) -> Any:
    """Return True, False, None (not known) or ``_NOT_SIMPLE`` for one comparison, of the form
    ``name operator 'value'``.
    """
    operator = next((sign for sign in _OPERATORS if sign in text), "")
    name, _, quoted = text.partition(operator or " ")
    name, quoted = name.rstrip(), quoted.lstrip()
    wanted = quoted[1:-1]
    simple = (
        operator
        and operator != "~="
        and name.replace("_", "").isalpha()
        and name.islower()
        and name.isascii()
    )
    if not simple or quoted not in (f"'{wanted}'", f'"{wanted}"') or "'" in wanted or '"' in wanted:
        return _NOT_SIMPLE
    value = values.get(name)
    if value is None:
        return None
    if name in _VERSIONED:
        mine, its = _numbers(value), _numbers(wanted)
        return _plainly_met(mine, [(operator, its, 0)]) if mine and its else _NOT_SIMPLE
    if operator == "==":
        return value == wanted
    if operator == "!=":
        return value != wanted
    return _NOT_SIMPLE


def _evaluate(marker: str, values: Mapping[str, str]) -> Optional[bool]:
    """Let packaging evaluate what is not simple; None where it asks for what is not known."""
    from packaging.markers import (
        InvalidMarker,
        Marker,
        UndefinedComparison,
        UndefinedEnvironmentName,
    )

    if any(name not in values and name in marker for name in _MARKER_NAMES):
        return None
    try:
        return bool(Marker(marker).evaluate(dict(values)))
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, ValueError):
        return None  # legacy text that installers skip as well


def _split(line: str) -> Optional[Requirement]:
    """Split a line into its name as written, specifier and marker; None for an address (``name @
    https://…``) and for what is no requirement.
    """
    text, _, marker = line.partition(";")
    text = text.strip()
    name, rest = text, ""
    for place, sign in enumerate(text):
        if sign in _AFTER_NAME:
            name, rest = text[:place], text[place:].lstrip()
            break
    if not name[:1].isalnum() or not name.isascii() or not name.translate(_NAME_SIGNS).isalnum():
        return None
    if rest[:1] == "[":
        _, closed, rest = rest.partition("]")
        rest = rest.lstrip()
        if not closed:
            return None
    if rest[:1] == "(":
        rest = rest[1:-1] if rest[-1:] == ")" else rest[1:]
    if "(" in rest or ")" in rest or "@" in rest:
        return None
    return Requirement(name, rest.strip(), marker.strip())


def _is_of_extra(line: str) -> bool:
    marker = line.partition(";")[2].replace(" ", "")
    return any(sign in marker for sign in _EXTRA)


def served_here(release: Release, facts: Facts) -> Release:
    """Return a release with the metadata of the wheel that a target gets; linux on x86_64 where
    that is not known.
    """
    if not release.differs:
        return release
    python = try_version(facts.value("python.version"))
    return served_release(
        release,
        python,
        facts.value("os.platform") or "linux",
        facts.value("os.architecture") or "x86_64",
    )


def requirements_of(
    found: Distribution, facts: Facts, matrix: Any, known: Any
) -> Tuple[Tuple[str, ...], bool]:
    """Return the requirement lines of a distribution, and whether they are its own.

    The matrix stands in where its METADATA was not read: with the lines of the release on the
    default index. Another build of that release (``+cu124``) pins other CUDA wheels, so those lines
    are left out for it.

    Args:
        found: the distribution.
        facts: the target. The CUDA of its torch that is not the default build's makes torch another
            build, without a label.
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
    own = [
        build.cuda
        for build in release.builds
        if build.index_name == "pypi" and build.cuda is not None
    ]
    variant = find_variant(version.local) if version.local is not None else None
    label = cuda_of_variant(variant) if variant is not None else None
    other = found.build != "" or (version.local is not None and label not in own)
    if found.name == "torch" and cuda is not None:
        other = other or (bool(own) and cuda not in own)
    if other:
        return tuple(
            line
            for line in lines
            if not line.lstrip().lower().startswith(("nvidia-", "triton", "cuda-"))
        ), False
    return lines, False


def violations(facts: Facts, matrix: Any) -> Iterator[Violation]:
    """Yield every unconditional requirement that is not met; those without a version of their own
    only where the list is complete.
    """
    listed: Mapping[str, Distribution] = facts.value("distributions", {})
    complete = bool(facts.value("distributions.complete"))
    known = frozenset(matrix.package_names)
    judge = _Judge(
        listed, marker_values(facts), marker_values(facts, assume_linux=False) if complete else None
    )
    judged: Dict[
        str, Optional[Failure]
    ] = {}  # many distributions ask for the same in the same words
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

    def __init__(
        self,
        listed: Mapping[str, Distribution],
        values: Mapping[str, str],
        strict: Optional[Mapping[str, str]],
    ) -> None:
        self.listed = listed
        self.values = values
        self.strict = strict  # None: the list is not complete, so nothing is missing
        self.plain: Dict[str, Tuple[int, ...]] = {}
        self.specifiers: Dict[str, Optional[List[Clause]]] = {}

    def failure(self, line: str) -> Optional[Failure]:
        """Return the requirement that a line fails with and what is installed instead; None where
        it is met, or does not apply.
        """
        if "extra" in line and _is_of_extra(line):
            return None
        asked = _split(line)
        if asked is None:
            return None
        raw, specifier, marker = asked
        installed = self.listed.get(raw) or self.listed.get(canonicalize_name(raw))
        if installed is None:
            if self.strict is None:
                return None
            requirement = asked._replace(name=canonicalize_name(raw))
            holds = not marker or marker_holds(marker, self.strict) is True
            return (requirement, None) if holds else None
        if (
            not specifier
            or self._plainly_met(installed, specifier)
            or not _fails(installed, specifier)
        ):
            return None
        if marker and marker_holds(marker, self.values) is not True:
            return None
        return asked._replace(name=installed.name), installed

    def _plainly_met(self, installed: Distribution, specifier: str) -> bool:
        name = installed.name
        if name not in self.plain:
            self.plain[name] = _numbers((installed.version or "").partition("+")[0])
        numbers = self.plain[name]
        if not numbers:
            return False
        if specifier not in self.specifiers:
            self.specifiers[specifier] = _clauses(specifier)
        clauses = self.specifiers[specifier]
        return clauses is not None and _plainly_met(numbers, clauses)


def _fails(installed: Distribution, specifier: str) -> bool:
    """Tell whether what is installed, or the whole range that is asked for, lies outside a
    specifier.
    """
    version = try_version(installed.version)
    if version is not None:
        # A build that no index knows: 2.6.0a0+… stands for what became 2.6.0.
        return (
            meets(
                parse_version(version.base_version) if is_unindexed(installed) else version,
                specifier,
            )
            is False
        )
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
        if "extra" in line and _is_of_extra(line):
            continue
        requirement = _split(line)
        if requirement is None or (
            requirement.marker and marker_holds(requirement.marker, values) is not True
        ):
            continue
        kept.append(requirement._replace(name=canonicalize_name(requirement.name)))
    return kept


def accepted_edges(facts: Facts, rows: Callable[[], Any]) -> Callable[[str, str], bool]:
    """Return a test for metadata edges that an established row breaks on purpose, with its fix
    installed.

    ``torch 2.4.0 requires nvidia-cublas-cu12==12.1.3.1`` is broken by 12.3.4.1 or newer, because a
    row says so: no finding. What a lock says that it breaks on purpose is accepted likewise.
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
                if requirement is not None and canonicalize_name(
                    requirement.name
                ) == canonicalize_name(required):
                    edges.setdefault(
                        (canonicalize_name(requirer), canonicalize_name(required)), []
                    ).append(requirement.specifier)

    def accepted(requirer: str, required: str) -> bool:
        found = facts.distribution(required)
        version = try_version(found.value.version) if isinstance(found, Known) else None
        return version is not None and any(
            meets(version, specifier) for specifier in edges.get((requirer, required), ())
        )

    return accepted
