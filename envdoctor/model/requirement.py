"""One requirement line, taken apart: ``torch[opt]>=2.5,<3 ; marker``, ``torch @ address``.

The form is that of https://packaging.python.org/en/latest/specifications/dependency-specifiers/,
with ``packaging.requirements`` as the oracle of the tests. Whether versions and markers mean
something is not asked here: metadata hold many that no tool understands, and who needs to know
asks ``versions``. A start reads thousands of lines, so no expression and no import of packaging
(10 ms) takes part.
"""

from __future__ import annotations

from functools import lru_cache

from .pattern import pattern
from .record import NamedTuple
from .versions import InvalidSpecifier, VersionSet, canonicalize_name, split_clauses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Container, Iterator, List, Match, Optional, Tuple

__all__ = [
    "InvalidRequirement",
    "Requirement",
    "is_for_extra",
    "joined_lines",
    "line_with_extras",
    "parse_requirement",
    "requirement_fault",
    "try_requirement",
]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_NAME_SIGNS = _LETTERS + "-_."
_SPECIFIER_SIGNS = frozenset(_NAME_SIGNS + "<>=!~,+*|")
_EXTRA = pattern(r"extra\s*==\s*['\"]([^'\"]+)['\"]|['\"]([^'\"]+)['\"]\s*==\s*extra")
_EXTRA_COMPARISONS = ("extra==", "extra!=", "==extra", "extrain")


class InvalidRequirement(ValueError):
    """A text that is no requirement; the message holds it."""


class Requirement(NamedTuple):
    """One requirement.

    name: in canonical form, as are the extras, in order. specifier: without spaces, "" where any
    version will do. marker: as written. url: of ``name @ url``. line: the whole text.
    """

    name: str
    extras: Tuple[str, ...]
    specifier: str
    marker: str
    url: str
    line: str

    @property
    def versions(self) -> VersionSet:
        """What the specifier admits; raises :class:`~envdoctor.model.versions.InvalidSpecifier`."""
        return VersionSet.parse(self.specifier)

    @property
    def exact(self) -> Optional[str]:
        """The version behind the first ``==`` or ``===`` without wildcard, as written, or None."""
        for operator, version in split_clauses(self.specifier):
            if operator in ("==", "===") and not version.endswith(".*"):
                return version
        return None

    @property
    def marker_extras(self) -> Tuple[str, ...]:
        """The extras that the marker names, as written."""
        return tuple(first or second for first, second in _EXTRA.findall(self.marker))


def is_for_extra(line: str) -> bool:
    """Tell whether a line's marker asks which extra is wanted, without taking the line apart."""
    if "extra" not in line:
        return False
    marker = line.partition(";")[2].replace(" ", "")
    return any(comparison in marker for comparison in _EXTRA_COMPARISONS)


def line_with_extras(requirement: Requirement, extras: Container[str]) -> str:
    """Return a line of metadata as these extras have it: what its marker says of extras is
    answered, "" where no such extra is asked for.
    """
    named = requirement.marker_extras
    if not named:
        return requirement.line
    if not any(canonicalize_name(extra) in extras for extra in named):
        return ""

    def answered(match: Match[str]) -> str:
        asked = canonicalize_name(match.group(1) or match.group(2)) in extras
        return "python_version >= '0'" if asked else "python_version < '0'"

    wanted = requirement.line.partition(";")[0].strip()
    return f"{wanted} ; {_EXTRA.sub(answered, requirement.marker)}"


@lru_cache(maxsize=16384)
def try_requirement(line: str) -> Optional[Requirement]:
    """Take a line apart, or return None where it is no requirement."""
    try:
        return parse_requirement(line)
    except InvalidRequirement:
        return None


def joined_lines(text: str) -> Iterator[Tuple[int, str]]:
    """Yield the lines of a requirements file with the number that each begins at, those that a
    backslash joins as one. As in pip, a comment joins nothing that stands below it.
    """
    start = 0
    pending: List[str] = []
    rows = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff").split("\n")
    for number, row in enumerate(rows, 1):
        row = row.rstrip()
        start = start or number
        if row.endswith("\\") and not row.lstrip().startswith("#"):
            pending.append(row[:-1])
            continue
        yield start, "".join([*pending, f" {row}" if row.startswith("#") else row])
        start, pending = 0, []
    if pending:
        yield start, "".join(pending)


def requirement_fault(line: str) -> str:
    """Return what is wrong with a line or its specifier, "" where nothing is."""
    try:
        VersionSet.parse(parse_requirement(line).specifier)
    except (InvalidRequirement, InvalidSpecifier) as error:
        return str(error)
    return ""


def parse_requirement(line: str) -> Requirement:
    """Take a line apart; raises :class:`InvalidRequirement`."""
    wanted, semicolon, marker = line.partition(";")
    wanted, marker = wanted.strip(), marker.strip()
    rest = wanted.lstrip(_NAME_SIGNS)
    name = wanted[: len(wanted) - len(rest)]
    rest = rest.lstrip()
    extras: Tuple[str, ...] = ()
    if rest[:1] == "[":
        inside, bracket, rest = rest[1:].partition("]")
        rest = rest.lstrip()
        if not bracket:
            raise _fault(line)
        extras = _extras(inside, line)
    url = ""
    if rest[:1] == "@":
        url, semicolon, marker = _address(line)
        rest = ""
    if not _is_name(name) or (semicolon and not marker):
        raise _fault(line)
    return Requirement(canonicalize_name(name), extras, _specifier(rest, line), marker, url, line)


def _fault(line: str) -> InvalidRequirement:
    return InvalidRequirement(f"expected a requirement such as 'torch>=2.5', found {line[:80]!r}")


def _is_name(text: str) -> bool:
    # An underscore at the end is no name by the specification; packaging, and so pip, take it.
    return bool(text) and text[0] in _LETTERS and text[-1] in _LETTERS + "_"


def _extras(text: str, line: str) -> Tuple[str, ...]:
    """Read what stands between the brackets, which may be nothing."""
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    if not all(_is_name(name) and not name.strip(_NAME_SIGNS) for name in names):
        raise _fault(line)
    return tuple(sorted({canonicalize_name(name) for name in names}))


def _address(line: str) -> Tuple[str, str, str]:
    """Read address, semicolon and marker behind the ``@``: an address ends at the first space, and
    may hold a semicolon.
    """
    url, *rest = line.partition("@")[2].split(None, 1) or ("",)
    tail = rest[0].strip() if rest else ""
    if not url or (tail and tail[0] != ";"):
        raise _fault(line)
    return url, tail[:1], tail[1:].strip()


def _specifier(text: str, line: str) -> str:
    """Read ``>=1,<2`` or ``(>=1, <2)``; what stands behind the operators may be any word."""
    if text[:1] == "(" and text[-1:] == ")":
        text = text[1:-1].strip()
    clauses = split_clauses(text)
    # "> =1.0" is no operator for packaging either.
    if [1 for operator, version in clauses if not operator or version[:1] in ("", *"<>=!~")]:
        raise _fault(line)
    specifier = ",".join([operator + version for operator, version in clauses])
    if text[:1] == "," or not _SPECIFIER_SIGNS.issuperset(specifier):
        raise _fault(line)
    return specifier
