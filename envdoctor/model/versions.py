"""Version order and version sets.

All order comes from :class:`~envdoctor.model.version.Version` (PEP 440). A :class:`VersionSet` is a
sorted tuple of half-open intervals ``[low, high)`` of such versions, which is what the matrix
stores and what ``truth`` asks. ``packaging`` is the oracle of the tests, not an import of a start:
it costs 5 to 15 ms.
"""

from __future__ import annotations

from functools import lru_cache

from .version import DriverRelease, InvalidVersion, Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, List, Mapping, Optional, Sequence, Tuple

    Interval = Tuple[Optional[Version], Optional[Version]]

__all__ = [
    "DriverRelease",
    "InvalidSpecifier",
    "InvalidVersion",
    "Version",
    "VersionSet",
    "canonicalize_name",
    "cuda_of_variant",
    "enumerated",
    "find_variant",
    "is_placeholder",
    "meets_pin",
    "parse_version",
    "releases_of",
    "split_clauses",
    "try_driver_release",
    "try_version",
]


_OPERATORS = ("===", "==", "~=", "!=", "<=", ">=", "<", ">")
_NEWEST_POST = 10**9


class InvalidSpecifier(ValueError):
    """A version specifier that PEP 440 does not allow; the message holds the text."""


def canonicalize_name(name: str) -> str:
    """Return the PEP 503 form of a distribution name (``Flash_Attn`` gives ``flash-attn``)."""
    canonical = name.lower().replace("_", "-").replace(".", "-")
    while "--" in canonical:
        canonical = canonical.replace("--", "-")
    return canonical


@lru_cache(maxsize=8192)
def parse_version(text: str) -> Version:
    """Parse a PEP 440 version; raises :class:`InvalidVersion`."""
    return Version(text)


def try_version(text: Optional[str]) -> Optional[Version]:
    """Parse a version, or return None where the text is none (``2.6.0a0-g1234``, ``unknown``)."""
    if text is None:
        return None
    try:
        return parse_version(text)
    except InvalidVersion:
        return None


def is_placeholder(text: str) -> bool:
    """Tell whether a version stands for one that a build could not find out, as from a clone
    without tags: what setuptools-scm guesses there (0.1.dev4+g1a2b3c4, its version_schemes.py:
    the next of "0.0"; 0.0.0.dev1+g1a2b3c4 from a fallback) and what versioneer writes (0+unknown,
    0+untagged.4.g1a2b3c4).
    """
    return text.startswith(("0+unknown", "0+untagged.")) or (
        text.startswith(("0.1.dev", "0.0.0.dev")) and "+g" in text
    )


def releases_of(first: str, last: str) -> str:
    """Say a span of releases: "2.0.0 to 2.2.2", or the only one."""
    return first if first == last else f"{first} to {last}"


def enumerated(texts: Sequence[str]) -> str:
    """Say texts one after the other: "a, b and c"; "" for none."""
    *before, last = texts or ("",)
    return f"{', '.join(before)} and {last}" if before else last


def try_driver_release(text: Optional[str]) -> Optional[DriverRelease]:
    """Parse a release of the driver or of one of its parts, or return None where it is none.

    A branch alone (``535``) is ordered as its newest release: what that does not meet, none does.
    """
    try:
        return DriverRelease(text) if text is not None else None
    except InvalidVersion:
        return None


def meets_pin(installed: Optional[str], pinned: str) -> bool:
    """Tell whether a pin is met: one without a local label by any build of that version, as
    installers see it.
    """
    version, pin = try_version(installed), try_version(pinned)
    if version is None or pin is None:
        return installed == pinned
    return version == pin or (pin.local is None and parse_version(version.public) == pin)


def find_variant(text: Optional[str]) -> Optional[str]:
    """Return the CUDA variant named in a version or file name: ``2.6.0+cu124`` gives ``cu124``."""
    text = (text or "").replace("_", ".").replace("torch", ".torch")
    start = text.find("cu")
    while start >= 0:
        end = start + 2
        while text[end : end + 1].isdecimal():
            end += 1
        # A word of its own: cu124, but not cu12x, xcu12 or cu1234.
        if (
            4 <= end - start <= 5
            and not text[start - 1 : start].isalnum()
            and not text[end : end + 1].isalnum()
        ):
            return text[start:end]
        start = text.find("cu", end)
    return None


def cuda_of_variant(variant: str) -> Optional[str]:
    """Return the CUDA version that a variant label stands for.

    ``cu124`` is 12.4, ``cu130`` is 13.0, ``cu92`` is 9.2. A bare major (``cu12``, flash-attn's
    label) gives ``12``: the minor is unknown.
    """
    digits = variant[2:]
    if not variant.startswith("cu") or not (digits.isascii() and digits.isdigit()):
        return None
    if len(digits) == 3:
        return digits[:2] + "." + digits[2]
    if len(digits) == 2:
        return digits if digits[0] == "1" else digits[0] + "." + digits[1]
    return None


_FLOOR = parse_version("0.dev0")


def _after_locals(version: Version) -> Version:
    """The smallest version above ``version`` and all its local variants (``1.0`` and
    ``1.0+cu124``).
    """
    if version.dev is not None:
        return version.with_suffix(version.post, version.dev + 1)
    return version.with_suffix(0 if version.post is None else version.post + 1, 0)


def _before(version: Version) -> Version:
    """The exclusive end of ``< version``: PEP 440 keeps the pre-releases of ``version`` itself
    out.
    """
    return version.with_suffix(version.post, version.dev if version.is_prerelease else 0)


def _after(version: Version) -> Version:
    """The start of ``> version``: PEP 440 keeps its post-releases and local variants out."""
    if version.post is not None or version.dev is not None:
        return _after_locals(version)
    return version.with_suffix(_NEWEST_POST)


def _prefix(version: Version) -> Interval:
    """The interval of ``== version.*``."""
    if version.pre is not None or version.post is not None or version.dev is not None:
        raise InvalidSpecifier(f"a wildcard stands only after a release number: {version}.*")
    *first, last = version.release
    return (
        Version.of_release(version.epoch, version.release, dev=0),
        Version.of_release(version.epoch, (*first, last + 1), dev=0),
    )


class VersionSet:
    """An immutable set of versions: sorted, disjoint, half-open intervals; ``None`` is an open
    end.
    """

    __slots__ = ("intervals",)
    intervals: Tuple[Interval, ...]

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self.intervals = _normalize(intervals)

    @classmethod
    def all(cls) -> VersionSet:
        """Return the set of every version."""
        return cls([(None, None)])

    @classmethod
    def parse(cls, text: str) -> VersionSet:
        """Parse ``>=1,<2`` (and), with ``||`` between alternatives; raises
        :class:`InvalidSpecifier`.

        Pre-releases are members wherever the order puts them: whether one may be chosen is the
        solver's question.
        """
        return _parse(text)

    @classmethod
    def spanning(cls, spans: Iterable[Sequence[str]]) -> VersionSet:
        """Return the versions from the first to the last of each span, none of no span."""
        texts = [f">={first},<={last}" for first, last in spans]
        return _parse("||".join(texts)) if texts else cls()

    def __contains__(self, version: object) -> bool:
        if not isinstance(version, Version):
            return False
        for low, high in self.intervals:
            if low is not None and version < low:
                return False
            if high is None or version < high:
                return True
        return False

    def __and__(self, other: VersionSet) -> VersionSet:
        intervals = []
        for low_a, high_a in self.intervals:
            for low_b, high_b in other.intervals:
                low = low_b if low_a is None or (low_b is not None and low_b > low_a) else low_a
                high = (
                    high_b if high_a is None or (high_b is not None and high_b < high_a) else high_a
                )
                if low is None or high is None or low < high:
                    intervals.append((low, high))
        return VersionSet(intervals)

    def __or__(self, other: VersionSet) -> VersionSet:
        return VersionSet(self.intervals + other.intervals)

    def __invert__(self) -> VersionSet:
        intervals: List[Interval] = []
        start: Optional[Version] = None
        for low, high in self.intervals:
            if low is not None:
                intervals.append((start, low))
            if high is None:
                return VersionSet(intervals)
            start = high
        intervals.append((start, None))
        return VersionSet(intervals)

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionSet) and self.intervals == other.intervals

    def __hash__(self) -> int:
        return hash(self.intervals)

    def __repr__(self) -> str:
        return f"VersionSet.parse({str(self)!r})"

    def __str__(self) -> str:
        """Return the set as a person writes it (``>=2.1, <2.5``); for messages, not to be
        parsed.
        """
        if not self.intervals:
            return "no version"
        return " or ".join(_interval_text(low, high) for low, high in self.intervals)


def _interval_text(low: Optional[Version], high: Optional[Version]) -> str:
    if (
        low is not None
        and high is not None
        and not low.is_devrelease
        and _after_locals(low) == high
    ):
        return f"=={low}"
    parts = []
    if low is not None and low != _FLOOR:
        below = _closed_end(low)
        parts.append(
            f">{below}" if below is not None else f">={low.base_version if low.dev == 0 else low}"
        )
    if high is not None:
        last = _closed_end(high)
        parts.append(
            f"<={last}" if last is not None else f"<{high.base_version if high.dev == 0 else high}"
        )
    return ", ".join(parts) or "any version"


def _closed_end(version: Version) -> Optional[str]:
    """The version that ``_after_locals`` or ``_after`` made this bound from, or None:
    ``2.8.3.post2.dev0`` stands for ``2.8.3.post1``.
    """
    if version.post is None or (version.post != _NEWEST_POST and version.dev != 0):
        return None
    head = version.public.rsplit(".post", 1)[0]
    return head if version.post in (0, _NEWEST_POST) else f"{head}.post{version.post - 1}"


def _normalize(intervals: Iterable[Interval]) -> Tuple[Interval, ...]:
    given = [pair for pair in intervals if pair[0] is None or pair[1] is None or pair[0] < pair[1]]
    if len(given) < 2:
        return tuple(given)
    given.sort(key=lambda pair: (pair[0] is not None, pair[0] or _FLOOR))
    merged = [given[0]]
    for low, high in given[1:]:
        last_low, last_high = merged[-1]
        if last_high is None:
            break
        if low is None or low <= last_high:
            merged[-1] = (last_low, None if high is None else max(high, last_high))
        else:
            merged.append((low, high))
    return tuple(merged)


def split_clauses(specifier: str) -> List[Tuple[str, str]]:
    """Part ``>=1, <2`` into pairs of operator and version; "" where the operator is none."""
    clauses = []
    for text in specifier.split(","):
        clause = text.strip()
        signs = clause[: len(clause) - len(clause.lstrip("<>=!~"))]
        if clause:
            operator = signs if signs in _OPERATORS else ""
            clauses.append((operator, clause[len(operator) :].lstrip()))
    return clauses


@lru_cache(maxsize=4096)
def _parse(text: str) -> VersionSet:
    first, *others = [_parse_all(alternative) for alternative in text.split("||")]
    for other in others:
        first = first | other
    return first


def _parse_all(text: str) -> VersionSet:
    """The versions that meet all clauses."""
    first, *others = [_clause_set(*clause) for clause in split_clauses(text)] or [VersionSet.all()]
    for other in others:
        first = first & other
    return first


@lru_cache(maxsize=4096)
def _clause_set(operator: str, text: str) -> VersionSet:
    if not operator or not text or len(text.split()) > 1:
        raise InvalidSpecifier(
            f"expected a version specifier such as '>=1.2', found {operator + text!r}"
        )
    is_prefix = text.endswith(".*")
    try:
        version = parse_version(text[:-2] if is_prefix else text)
    except InvalidVersion as error:
        raise InvalidSpecifier(
            f"expected a PEP 440 version in {operator + text!r}, found {text!r}"
        ) from error
    if not is_prefix:
        return _SETS[operator](version)
    if operator not in ("==", "!="):
        raise InvalidSpecifier(f"a wildcard goes with == and != only, found {operator}{text}")
    matching = VersionSet([_prefix(version)])
    return matching if operator == "==" else ~matching


def _equal(version: Version) -> VersionSet:
    # Local labels are dense in PEP 440; ".0" appended is the next one that can be written.
    if version.local is not None:
        return VersionSet([(version, parse_version(f"{version}.0"))])
    return VersionSet([(version, _after_locals(version))])


def _identical(version: Version) -> VersionSet:
    """The versions of ``=== version``: one without a local label means none with one."""
    if version.local is not None:
        return _equal(version)
    # "0a" sorts before every label that begins with a letter, as those of all indexes do.
    return VersionSet([(version, parse_version(f"{version}+0a"))])


def _compatible(version: Version) -> VersionSet:
    """The versions of ``~= version``: not older, and of the release that its last number is cut
    from.
    """
    if len(version.release) < 2:
        raise InvalidSpecifier(f"~= needs at least two release numbers, found '{version}'")
    _, high = _prefix(Version.of_release(version.epoch, version.release[:-1]))
    return VersionSet([(version, high)])


_SETS: Mapping[str, Callable[[Version], VersionSet]] = {
    "===": _identical,
    "==": _equal,
    "!=": lambda version: ~_equal(version),
    "~=": _compatible,
    ">=": lambda version: VersionSet([(version, None)]),
    "<=": lambda version: VersionSet([(None, _after_locals(version))]),
    ">": lambda version: VersionSet([(_after(version), None)]),
    "<": lambda version: VersionSet([(None, _before(version))]),
}
