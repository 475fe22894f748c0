"""From a request, targets and the matrix to what the engine takes: variables over candidates, and nogoods with their reasons.

Only what the request can reach is built: a release of a package takes part where some other release that takes part asks for it. That
leaves satisfiability and optimum as they are, because what nothing asks for is absent from the best solution.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..matrix.bind import Subject, Target, bind, truth
from ..matrix.derive import build_attributes, derive_target, find_builds
from ..matrix.loader import Matrix
from ..matrix.tables import Build, Release
from ..model.evidence import Evidence, Known
from ..model.facts import Facts
from ..model.request import Request, Root
from ..model.row import Row, Source, Term
from ..model.versions import InvalidSpecifier, Version, VersionSet, canonicalize_name, parse_version, try_version
from .engine import Nogood, Variable

__all__ = ["Candidate", "Catalog", "Edge", "OverrideOption", "Problem", "Table", "Why", "bits_of", "build_problem"]

_LINE = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?\s*\(?\s*([^;@()]*?)\s*\)?\s*(?:;(.*))?\Z", re.DOTALL)
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]|['\"]([^'\"]+)['\"]\s*==\s*extra")
_EXACT = re.compile(r"===?\s*([^\s,*]+)(?![^,]*\*)")
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)\Z")
_LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
#: Lines of torch's metadata that belong to the CUDA of its default build; builds from other indexes ask for others.
_OF_DEFAULT_BUILD = ("nvidia-", "triton", "cuda-")
#: Users build these against their torch, so a release without a fitting wheel may still be right.
_BUILT_BY_HAND = frozenset(["flash-attn", "flash-attn-3", "causal-conv1d", "mamba-ssm", "transformer-engine-torch", "apex", "grouped-gemm"])
#: What a host attribute of a row rests on, as people name it.
LIMIT_OF = {"driver": "driver", "cuda": "driver", "ptx": "driver", "platform": "platform", "architecture": "platform"}


class Candidate(NamedTuple):
    """One build of one release. ``index_name`` is "pypi" for the default one; ``from_source`` where the index has no wheel."""

    version: Version
    release: Release
    subject: Subject
    index_name: str = "pypi"
    from_source: bool = False


class Line(NamedTuple):
    """One requirement line for one target: whether it applies at all, and for which extras."""

    name: str
    extras: Tuple[str, ...]
    specifier: str
    always: bool
    for_extras: FrozenSet[str]


class Edge(NamedTuple):
    """What one set of candidates asks of another package: ``allowed`` of its candidates."""

    requirer: str
    name: str
    bits: int
    allowed: int
    specifier: str


class Why(NamedTuple):
    """Why a nogood holds.

    kind: request, extra, metadata, build, row, host. key: what belongs together in an explanation. limits: the properties of targets that
    it rests on (driver, gpu, glibc, python, platform, date). targets: numbers of the targets that it holds for; empty: all.
    """

    kind: str
    key: Tuple[str, ...]
    edge: Optional[Edge] = None
    row: Optional[Row] = None
    text: str = ""
    limits: FrozenSet[str] = frozenset()
    targets: Tuple[int, ...] = ()


class OverrideOption(NamedTuple):
    """A metadata edge that a row may break: the variable that says so, the row and the release that is installed instead."""

    node: str
    row: Row
    requirer: str
    name: str
    bit: int


class Problem(NamedTuple):
    """What the engine takes, and how to read its answer. ``nodes`` are packages ("vllm") and their extras ("vllm[flashinfer]")."""

    nodes: Tuple[str, ...]
    variables: Tuple[Variable, ...]
    nogoods: Tuple[Nogood, ...]
    tables: Mapping[str, Table]
    edges: Tuple[Edge, ...]
    overrides: Tuple[OverrideOption, ...]
    targets: Tuple[Target, ...]
    settings: Tuple[Tuple[Nogood, Row], ...]  # rows that a variable mitigates: violated, they ask for the setting
    tail: FrozenSet[str]  # required names that the matrix does not know


def bits_of(mask: int) -> Iterator[int]:
    """Yield the set bits of a mask, lowest first, each as a mask."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


class Table:
    """The candidates of one package in order of preference; bit i is the i-th, ``absent`` the bit above all."""

    def __init__(self, name: str, candidates: Sequence[Candidate], named: Iterable[str]) -> None:
        self.name = name
        self.candidates = tuple(candidates)
        self.absent = 1 << len(self.candidates)
        self.all = self.absent - 1
        order = sorted(range(len(self.candidates)), key=lambda number: self.candidates[number].version)
        self._versions = [self.candidates[number].version for number in order]
        self._sums = [0]
        self._early = 0  # pre-releases
        for number in order:
            self._sums.append(self._sums[-1] | 1 << number)
            if self.candidates[number].version.is_prerelease:
                self._early |= 1 << number
        # A package that publishes nothing but pre-releases (opentelemetry's exporters) is taken as it is, as installers do.
        self._free = name in frozenset(named) or self._early == self.all
        self._masks: Dict[str, int] = {}

    def mask(self, specifier: str) -> int:
        """Return the candidates that a specifier admits: pre-releases only where it names one, or where they are asked for."""
        found = self._masks.get(specifier)
        if found is None:
            try:
                found = self._members(VersionSet.parse(specifier.replace("||", ",")))
            except InvalidSpecifier:
                found = self.all  # a line that no tool understands binds nobody
            if self._early and not self._free:
                exact = _EXACT.findall(specifier)
                wanted = [version for version in map(try_version, exact) if version is not None and version.is_prerelease]
                named = 0
                for version in wanted:
                    named |= self._members(VersionSet.parse(f"=={version}"))
                final = found & ~self._early
                if final or not _names_early(specifier):  # sglang asks for flash-attn-4>=4.0.0b9, of which there is no final release
                    found = final | found & named
            self._masks[specifier] = found
        return found

    def _members(self, wanted: VersionSet) -> int:
        found = 0
        for low, high in wanted.intervals:
            start = 0 if low is None else bisect_left(self._versions, low)
            end = len(self._versions) if high is None else bisect_left(self._versions, high)
            if end > start:
                found |= self._sums[end] & ~self._sums[start]
        return found

    def holding(self, terms: Sequence[Term]) -> int:
        """Return the values, "absent" among them, of which all these terms are true."""
        found = 0
        for number, candidate in enumerate(self.candidates):
            if all(truth(term, candidate.subject) for term in terms):
                found |= 1 << number
        if all(truth(term, _ABSENT) for term in terms):
            found |= self.absent
        return found

    def at(self, bit: int) -> Candidate:
        """Return the candidate of a bit."""
        return self.candidates[bit.bit_length() - 1]


_ABSENT = Subject(False)


class Catalog:
    """Tables and requirement lines for one Python, platform and set of indexes; kept between attempts, since making them costs most."""

    def __init__(self, matrix: Matrix, request: Request) -> None:
        self.matrix = matrix
        self.request = request
        self.known = frozenset(matrix.package_names)
        self._releases: Dict[str, List[Tuple[Version, Release]]] = {}
        self._tables: Dict[str, Table] = {}
        self._lines: Dict[str, Optional[Line]] = {}
        self._markers: Dict[Tuple[str, str], bool] = {}
        self._parsed: Dict[str, Any] = {}
        self._asks: Dict[Tuple[str, int], Tuple[Tuple[Tuple[str, int, str], ...], Tuple[str, ...]]] = {}
        self._refusals: Dict[Tuple[str, Optional[Version]], Dict[Tuple[str, str], int]] = {}
        self._replaced = {root.name: root.specifier for root in request.overrides}
        python = request.python
        self._environment = {
            "python_version": ".".join(python.split(".")[:2]),
            "python_full_version": python if python.count(".") > 1 else f"{python}.0",
            "implementation_version": python if python.count(".") > 1 else f"{python}.0",
            "sys_platform": request.platform,
            "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(request.platform, request.platform),
            "platform_machine": request.architecture,
            "os_name": "posix",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_version": "",
        }

    def asking(self, roots: Sequence[Root]) -> Catalog:
        """Return a catalog for other roots that shares what was made so far."""
        other = Catalog.__new__(Catalog)
        other.__dict__.update(self.__dict__)
        other.request = self.request._replace(roots=tuple(roots))
        return other

    def changed(self, request: Request) -> Catalog:
        """Return a catalog for another request that shares the releases, and for the same Python the requirement lines, that were read so far."""
        other = Catalog(self.matrix, request)
        other._releases = self._releases
        mine = self.request
        if (request.python, request.platform, request.architecture) == (mine.python, mine.platform, mine.architecture):
            other._lines, other._markers = self._lines, self._markers
        other._parsed = self._parsed
        return other

    def table(self, name: str) -> Table:
        """Return the candidates of a known package."""
        found = self._tables.get(name)
        if found is None:
            # As installers have it: who names a pre-release takes those of that package.
            named = [root.name for root in self.request.roots if _names_early(root.specifier)]
            found = self._tables[name] = Table(name, self._candidates(name), (*self.request.prereleases, *named))
        return found

    def _candidates(self, name: str) -> List[Candidate]:
        """All builds of all releases, the preferred ones first: not yanked, newest, wheels before sources, the default index."""
        found: List[Tuple[Any, Candidate]] = []
        indexes = {index: rank for rank, index in enumerate(("pypi", *self.request.allow_index))}
        preferred = try_version(self.request.prefer.get(name))
        for place, (version, release) in enumerate(self._released(name)):
            for rank, candidate in enumerate(self._builds(version, release, indexes)):
                key = (candidate.version != preferred, release.yanked, -place, candidate.from_source, indexes[candidate.index_name], rank)
                found.append((key, candidate))
        found.sort(key=lambda entry: entry[0])
        return [candidate for _, candidate in found]

    def _released(self, name: str) -> List[Tuple[Version, Release]]:
        found = self._releases.get(name)
        if found is None:
            package = self.matrix.package(name)
            found = self._releases[name] = package.releases() if package is not None else []
        return found

    def _builds(self, version: Version, release: Release, indexes: Mapping[str, int]) -> Iterator[Candidate]:
        architecture = self.request.architecture
        default = find_builds(release, version, architecture)
        attributes = _agreed(default)
        # Wheels for other systems alone (deepspeed's for Windows) leave the source archive.
        elsewhere = release.sdist and bool(release.platforms) and all(floor is None for floor in _floors(release, self.request))
        yield Candidate(version, release, Subject(True, {**attributes, "version": version}), "pypi", release.sdist_only or elsewhere)
        labels: Set[str] = set()
        for build in reversed(release.builds):  # newest CUDA first
            if build.index_name == "pypi" or build.index_name not in indexes or build.architecture != architecture or build.variant is None:
                continue
            if build.trust == "reported" and "nightlies only" in build.source:
                continue  # no release of it can be installed
            label = _label(build)
            if label not in labels and version.local is None:
                labels.add(label)
                built = parse_version(f"{version}+{label}")
                yield Candidate(built, release, Subject(True, {**build_attributes(build), "version": built}), build.index_name)

    # ------------------------------------------------------------------------------------------------------------ requirements

    def asks(self, node: str, bit: int) -> Tuple[Tuple[Tuple[str, int, str], ...], Tuple[str, ...]]:
        """Return what a candidate of a node asks for, as (node, allowed, specifier), and the names that the matrix does not know."""
        found = self._asks.get((node, bit))
        if found is None:
            found = self._asks[(node, bit)] = self._find_asks(node, bit)
        return found

    def _find_asks(self, node: str, bit: int) -> Tuple[Tuple[Tuple[str, int, str], ...], Tuple[str, ...]]:
        name, _, extra = node.rstrip("]").partition("[")
        asked: Dict[str, Tuple[int, str]] = {}
        unknown = []
        for line in self._applying(name, self.table(name).at(bit), extra):
            if line.name not in self.known:
                unknown.append(line.name)
                continue
            allowed = self.table(line.name).mask(self._replaced.get(line.name, line.specifier))
            if line.name == name:  # an extra that stands for other extras
                allowed &= bit
            for wanted in (line.name, *(f"{line.name}[{entry}]" for entry in line.extras)):
                if wanted == node or (wanted == name and line.name == name):
                    continue
                before = asked.get(wanted)
                if before is None:
                    asked[wanted] = (allowed, line.specifier)
                else:
                    asked[wanted] = (before[0] & allowed, ",".join(dict.fromkeys(filter(None, (before[1], line.specifier)))))
        return tuple((wanted, *entry) for wanted, entry in asked.items()), tuple(unknown)

    def broken(self, name: str, candidate: Candidate, extras: Sequence[str]) -> Iterator[Tuple[Root, str]]:
        """Yield the overrides of the request that a requirement of a candidate or its extras excludes, with that requirement."""
        for line in (line for extra in ("", *extras) for line in self._applying(name, candidate, extra)):
            for root in self.request.overrides:
                if root.name == line.name and not self.table(root.name).mask(root.specifier) & self.table(root.name).mask(line.specifier):
                    yield root, line.specifier

    def _applying(self, name: str, candidate: Candidate, extra: str) -> List[Line]:
        """The lines that apply to a candidate, or only those that one of its extras adds."""
        lines = [self._line(line) for line in candidate.release.requires or ()]
        kept = [line for line in lines if line is not None and (extra in line.for_extras and not line.always if extra else line.always)]
        if candidate.index_name != "pypi" and name == "torch":
            kept = [line for line in kept if not line.name.startswith(_OF_DEFAULT_BUILD)]
        return kept

    def refusals(self, name: str, glibc: Optional[Version]) -> Mapping[Tuple[str, str], int]:
        """Return the candidates that cannot be installed on the targets at all, by (limit, words)."""
        found = self._refusals.get((name, glibc))
        if found is None:
            found = self._refusals[(name, glibc)] = {}
            for number, candidate in enumerate(self.table(name).candidates):
                refusal = self.refusal(candidate, glibc)
                if refusal is not None:
                    found[refusal] = found.get(refusal, 0) | 1 << number
            if self.request.of_the_time:
                late = next((key for key in found if key[0] == "date"), None)
                if late is not None and all(self._is_late(candidate) for candidate in self.table(name).candidates):
                    del found[late]
        return found

    def extras_of(self, candidate: Candidate) -> FrozenSet[str]:
        """Return the extras that a release's lines name."""
        found: Set[str] = set()
        for line in candidate.release.requires or ():
            if "extra" in line:
                found.update(canonicalize_name(first or second) for first, second in _EXTRA.findall(line))
        return frozenset(found)

    def _line(self, text: str) -> Optional[Line]:
        if text in self._lines:
            return self._lines[text]
        match = _LINE.match(text)
        line = None
        if match is not None:
            name, extras, specifier, marker = match.groups()
            always, named = True, frozenset()  # type: bool, FrozenSet[str]
            if marker is not None and marker.strip():
                always = self._holds(marker, "")
                if "extra" in marker:
                    extras_named = {first or second for first, second in _EXTRA.findall(marker)}
                    named = frozenset(canonicalize_name(extra) for extra in extras_named if self._holds(marker, extra))
            wanted = tuple(sorted(canonicalize_name(extra.strip()) for extra in (extras or "").split(",") if extra.strip()))
            if always or named:
                line = Line(canonicalize_name(name), wanted, specifier.replace(" ", ""), always, named)
        self._lines[text] = line
        return line

    def _holds(self, marker: str, extra: str) -> bool:
        key = (marker, extra)
        if key not in self._markers:
            from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

            try:
                parsed = self._parsed.get(marker) or self._parsed.setdefault(marker, Marker(marker))
                self._markers[key] = bool(parsed.evaluate({**self._environment, "extra": extra}))
            except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, ValueError):
                self._markers[key] = False  # legacy text, which installers skip as well
        return self._markers[key]

    # ------------------------------------------------------------------------------------------------------------ limits

    def _is_late(self, candidate: Candidate) -> bool:
        as_of = self.request.as_of
        return as_of is not None and candidate.release.released > as_of

    def refusal(self, candidate: Candidate, glibc: Optional[Version]) -> Optional[Tuple[str, str]]:
        """Return (limit, words) where a candidate cannot be installed on any of the targets at all, whatever else is."""
        request, release = self.request, candidate.release
        if self._is_late(candidate):
            return "date", f"was uploaded after {request.as_of}"
        python = parse_version(request.python)
        if release.requires_python:
            try:
                if python not in VersionSet.parse(release.requires_python.replace(" ", "").rstrip(",")):
                    return "python", f"needs Python {release.requires_python.replace(' ', '')}"
            except InvalidSpecifier:
                pass  # a field that installers ignore as well
        if not candidate.from_source and release.pythons and not any(_tag_serves(tag, python) for tag in release.pythons):
            return "python", f"has no wheel for Python {request.python}"
        if candidate.index_name == "pypi" and release.platforms and not candidate.from_source:
            floors = [floor for floor in _floors(release, request) if floor is not None]
            if not floors:
                return "platform", f"has no wheel for {request.platform} on {request.architecture}"
            lowest = min(floors)
            if glibc is not None and glibc < lowest:
                return "glibc", f"has wheels for glibc {lowest} or newer"
        needed = candidate.subject.attributes.get("glibc")
        if glibc is not None and isinstance(needed, Version) and needed > glibc:
            return "glibc", f"needs glibc {needed}"
        return None


def _names_early(specifier: str) -> bool:
    """Tell whether a specifier names a pre-release."""
    return any(version.is_prerelease for version in map(try_version, re.split(r"[<>=!~,\s]+", specifier)) if version is not None)


def _agreed(builds: Sequence[Build]) -> Dict[str, Any]:
    """The attributes in which all builds that an index may serve agree."""
    if not builds:
        return {}
    first, *others = [build_attributes(build) for build in builds]
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _label(build: Build) -> str:
    """The local label of a build: ``cu124``, and for what is built against a torch ``cu12torch2.6cxx11abitrue``."""
    label = str(build.variant)
    if build.index_name != "pytorch" and build.torch is not None:
        label += f"torch{build.torch}"
        if build.cxx11abi is not None:
            label += f"cxx11abi{'true' if build.cxx11abi else 'false'}"
    return label


def _tag_serves(tag: str, python: Version) -> bool:
    """``py3`` serves every Python 3, ``cp38-abi3`` everything from 3.8 on, ``cp310`` that minor alone."""
    interpreter, _, abi = tag.partition("-")
    digits = interpreter[2:]
    if not digits.isdigit():
        return not interpreter.endswith("t")  # cp313t is a free-threaded build; any other odd tag is taken to fit
    wanted = (int(digits[0]), int(digits[1:])) if len(digits) > 1 else (int(digits[0]),)
    mine = python.release[:2]
    if interpreter.startswith("py"):
        return mine[0] == wanted[0] and mine >= wanted
    if abi == "abi3":
        return mine >= wanted
    return mine == wanted


def _floors(release: Release, request: Request) -> List[Optional[Version]]:
    """Return what ``_floor`` says of each platform tag of a release's wheels."""
    return [_floor(tag, request) for tags in release.platforms for tag in tags.split(".")]


def _floor(tag: str, request: Request) -> Optional[Version]:
    """Return the glibc that a platform tag asks for (0 for "any"), or None where it is for another platform."""
    if tag == "any":
        return parse_version("0")
    if request.platform != "linux":
        return parse_version("0") if tag.startswith({"darwin": "macosx", "win32": "win"}.get(request.platform, "?")) else None
    match = _MANYLINUX.match(tag)
    if match is not None:
        return parse_version(f"{match.group(1)}.{match.group(2)}") if match.group(3) == request.architecture else None
    for name, floor in _LEGACY.items():
        if tag == f"{name}_{request.architecture}":
            return parse_version(floor)
    return parse_version("0") if tag == f"linux_{request.architecture}" else None


# ---------------------------------------------------------------------------------------------------------------- the problem


def build_problem(catalog: Catalog, facts: Sequence[Facts], *, complete: bool = False, overrides_allowed: int = 0) -> Problem:
    """Build the problem of a request on targets.

    Args:
        catalog: tables for the request.
        facts: the targets; all their limits hold at once.
        complete: keep what Python, platform, date or glibc exclude, with nogoods that say so: for explanations, which ask what lies behind.
        overrides_allowed: how many metadata edges may be broken.
    """
    return _Builder(catalog, facts, complete).build(overrides_allowed)


class _Builder:
    def __init__(self, catalog: Catalog, facts: Sequence[Facts], complete: bool) -> None:
        self._catalog = catalog
        self._request = catalog.request
        self._complete = complete
        self._targets = tuple(_target(entry, catalog.matrix, catalog.request) for entry in facts)
        known = [version for target in self._targets for version in [target.host.attributes.get("glibc")] if isinstance(version, Version)]
        self._glibc: Optional[Version] = min(known) if known else None
        self._domains: Dict[str, int] = {}
        self._edges: Dict[Tuple[str, str], Dict[int, Tuple[int, str]]] = {}
        self._waiting: List[Tuple[str, int]] = []
        self._refused: Dict[str, Mapping[Tuple[str, str], int]] = {}
        self._excluded: Dict[str, int] = {}
        self._tail: Set[str] = set()
        self._rows: Dict[Any, Tuple[Row, Dict[str, int], FrozenSet[str], List[int]]] = {}
        self._settings: Dict[str, Tuple[Row, Dict[str, int]]] = {}
        self._overrides: List[OverrideOption] = []

    def build(self, overrides_allowed: int) -> Problem:
        roots = [(root, self._root_mask(root)) for root in self._request.roots]
        for root, mask in roots:
            self._ask(root.name, mask)
            for extra in root.extras:
                self._ask(f"{root.name}[{extra}]", self._with_extra(root.name, extra, mask))
        done: Set[str] = set()
        while True:
            self._expand()
            names = {_base(node) for node in self._domains}
            if names == done:
                break
            done = names
            self._bind_rows(sorted(names))
            self._find_overrides()
        return self._finish(roots, overrides_allowed)

    # ------------------------------------------------------------------------------------------------------------ reach

    def _root_mask(self, root: Root) -> int:
        return self._catalog.table(root.name).mask(root.specifier)

    def _with_extra(self, name: str, extra: str, mask: int) -> int:
        """Those of ``mask`` whose metadata knows an extra that is asked for: older releases would fall short in silence."""
        table = self._catalog.table(name)
        knowing = sum(bit for bit in bits_of(mask) if extra in self._catalog.extras_of(table.at(bit)))
        return knowing or mask

    def _ask(self, node: str, mask: int) -> None:
        """Let these candidates of a node take part."""
        base = _base(node)
        excluded = self._exclusions(base)
        if not self._complete:
            mask &= ~excluded
        new = mask & ~self._domains.setdefault(node, 0)
        if new:
            self._domains[node] |= new
            self._waiting.append((node, new))
            if node != base:
                self._ask(base, new)

    def _exclusions(self, name: str) -> int:
        found = self._excluded.get(name)
        if found is None:
            groups = self._catalog.refusals(name, self._glibc)
            self._refused[name] = groups
            found = self._excluded[name] = sum(groups.values())
        return found

    def _expand(self) -> None:
        while self._waiting:
            node, bits = self._waiting.pop()
            for bit in bits_of(bits):
                asked, unknown = self._catalog.asks(node, bit)
                self._tail.update(unknown)
                for wanted, allowed, specifier in asked:
                    groups = self._edges.setdefault((node, wanted), {})
                    known, first = groups.get(allowed, (0, specifier))
                    groups[allowed] = (known | bit, first)
                    self._ask(wanted, allowed)

    # ------------------------------------------------------------------------------------------------------------ rows

    def _bind_rows(self, names: Sequence[str]) -> None:
        """Bind the blocking rows to each target; env terms become masks."""
        self._rows.clear()
        self._settings.clear()
        rows = [row for row in self._catalog.matrix.rows_about(names) if row.effect == "blocks" and row.trust == "established"]
        for row in [*rows, *_build_rows(names, self._catalog), *_dropped_rows(names, self._catalog.matrix)]:
            for number, target in enumerate(self._targets):
                binding = bind(row, target)
                if binding.outcome != "residual":
                    continue
                masks = self._masks(binding.residual)
                if masks is None:
                    continue
                if row.mitigations and row.mitigations[0].scope == "var":
                    self._settings[row.id] = (row, masks)
                    continue
                limits = frozenset(_limit(term) for term in row.terms if term.scope in ("gpu", "host"))
                key = (row.id, tuple(sorted(masks.items())))
                self._rows.setdefault(key, (row, masks, limits, []))[3].append(number)
        for _, masks, _, _ in list(self._rows.values()):
            for name, mask in masks.items():
                others = [self._can_hold(other, its) for other, its in masks.items() if other != name]
                if mask & self._catalog.table(name).absent and others and all(others):  # a row can ask that something is there
                    self._ask(name, self._catalog.table(name).all & ~mask)

    def _masks(self, terms: Sequence[Term]) -> Optional[Dict[str, int]]:
        """Return the masks of env terms, or None where one can hold of no candidate or speaks of what the matrix does not know."""
        by_name: Dict[str, List[Term]] = {}
        for term in terms:
            by_name.setdefault(term.component, []).append(term)
        masks: Dict[str, int] = {}
        for name, listed in by_name.items():
            if name not in self._catalog.known:
                return None
            mask = self._catalog.table(name).holding(listed)
            if not mask:
                return None
            masks[name] = mask
        return masks

    def _can_hold(self, name: str, mask: int) -> bool:
        """Tell whether a term can hold of what takes part."""
        return bool(mask & (self._domains.get(name, 0) | self._catalog.table(name).absent))

    def _find_overrides(self) -> None:
        """Find metadata edges of which every admitted release violates a row that may break them."""
        self._overrides.clear()
        for row, masks, _, _ in list(self._rows.values()):
            if not row.id or ":" in row.id:
                continue
            complete = self._catalog.matrix.complete(row)
            for edge in complete.overrides:
                requirer, _, name = edge.partition(" -> ")
                bad = masks.get(name, 0)
                groups = self._edges.get((requirer, name))
                if not groups or not any(not allowed & ~bad for allowed in groups):
                    continue
                bit = self._lowest_fix(complete, name, bad)
                if bit and not any(option.row.id == row.id and option.name == name for option in self._overrides):
                    self._overrides.append(OverrideOption(f"override:{row.id}:{requirer}", complete, requirer, name, bit))
                    self._ask(name, bit)
        self._overrides.sort(key=lambda option: option.node)
        self._expand()

    def _lowest_fix(self, row: Row, name: str, bad: int) -> int:
        """The oldest release that a row's pins name and that can be installed on the targets."""
        table = self._catalog.table(name)
        for pin in row.pins:
            match = _LINE.match(pin)
            if match is None or canonicalize_name(match.group(1)) != name:
                continue
            fixed = table.mask(match.group(3).replace(" ", "")) & ~bad & ~self._exclusions(name)
            usable = [bit for bit in bits_of(fixed) if not table.at(bit).release.yanked and table.at(bit).index_name == "pypi"]
            for other, masks, _, _ in self._rows.values():  # hit by another row on its own: no cure
                if len(masks) == 1 and other.id != row.id:
                    usable = [bit for bit in usable if not bit & masks.get(name, 0)]
            if usable:
                return min(usable, key=lambda bit: table.at(bit).version)
        return 0

    # ------------------------------------------------------------------------------------------------------------ nogoods

    def _finish(self, roots: Sequence[Tuple[Root, int]], overrides_allowed: int) -> Problem:
        order = self._order([root for root, _ in roots])
        nodes = (*order, *(option.node for option in self._overrides))
        number_of = {node: number for number, node in enumerate(nodes)}
        tables = {node: self._catalog.table(_base(node)) for node in order}
        variables = [Variable(self._domains[node] | tables[node].absent, tables[node].absent) for node in order]
        variables += [Variable(0b11, 0b10) for _ in self._overrides]
        nogoods: List[Nogood] = []

        def add(masks: Mapping[str, int], why: Why) -> Optional[Nogood]:
            terms = []
            for node, mask in masks.items():
                number = number_of.get(node)
                if number is None:  # nothing reaches it, so it is absent
                    if mask & self._catalog.table(_base(node)).absent:
                        continue
                    return None
                narrowed = mask & variables[number].domain
                if not narrowed:
                    return None
                terms.append((number, narrowed))
            nogood = Nogood(tuple(sorted(terms)), why)
            nogoods.append(nogood)
            return nogood

        for root, mask in roots:
            table = tables[root.name]
            add({root.name: table.all & ~mask | table.absent}, Why("request", ("request", root.text), text=root.text))
            for extra in root.extras:
                node = f"{root.name}[{extra}]"
                add({node: table.absent}, Why("request", ("request", root.text), text=root.text))
        for node in order:
            base = _base(node)
            if node != base:
                for bit in bits_of(self._domains[node]):
                    add({node: bit, base: ~bit}, Why("extra", ("extra",)))
        self._add_edges(tables, add)
        for row, masks, limits, targets in self._rows.values():
            kind = "build" if row.origin == "build" else "row"
            add(masks, Why(kind, (kind, row.id), row=row, limits=limits, targets=tuple(targets) if limits else ()))
        if self._complete:
            for name in sorted(self._refused):
                for (limit, text), bits in sorted(self._refused[name].items()):
                    if name in number_of:
                        add({name: bits}, Why("host", ("host", limit, name), text=text, limits=frozenset((limit,))))
        self._bound_overrides(overrides_allowed, add)
        settings = []
        for row, masks in self._settings.values():
            nogood = add(masks, Why("row", ("setting", row.id), row=row))
            if nogood is not None:
                nogoods.pop()
                settings.append((nogood, self._catalog.matrix.complete(row)))
        edges = tuple(
            Edge(node, wanted, bits, allowed, specifier)
            for (node, wanted), groups in sorted(self._edges.items())
            for allowed, (bits, specifier) in sorted(groups.items(), key=lambda group: group[1][0])
        )
        return Problem(
            nodes, tuple(variables), tuple(nogoods), tables, edges, tuple(self._overrides), self._targets, tuple(settings), frozenset(self._tail)
        )

    def _add_edges(self, tables: Mapping[str, Table], add: Any) -> None:
        """Add what metadata asks: requirer there, and the required one absent or outside. A row may break the edge, at the price of an override."""
        breaking: Dict[Tuple[str, str], List[OverrideOption]] = {}
        for option in self._overrides:
            breaking.setdefault((option.requirer, option.name), []).append(option)
        for (node, wanted), groups in sorted(self._edges.items()):
            table = tables[wanted]
            for allowed, (bits, specifier) in sorted(groups.items(), key=lambda group: group[1][0]):
                why = Why("metadata", ("metadata", _base(node), _base(wanted)), Edge(node, wanted, bits, allowed, specifier))
                masks = {node: bits, wanted: table.all & ~allowed | table.absent}
                for option in breaking.get((node, wanted), ()):
                    if allowed & option.bit:
                        continue
                    masks[option.node] = 0b10
                    add({node: bits, wanted: table.all & ~option.bit | table.absent, option.node: 0b01}, why._replace(kind="override"))
                add(masks, why)

    def _bound_overrides(self, allowed: int, add: Any) -> None:
        """No more than so many overrides at once."""
        from itertools import combinations

        nodes = [option.node for option in self._overrides]
        if allowed < len(nodes):
            for group in combinations(nodes, allowed + 1):
                add(dict.fromkeys(group, 1), Why("override", ("override",)))

    # ------------------------------------------------------------------------------------------------------------ order

    def _order(self, roots: Sequence[Root]) -> List[str]:
        """Roots as asked, then requirers before what they require, by name where that leaves a choice.

        So whether a package is needed at all is settled before its version is chosen; what is not needed is absent.
        """
        first: List[str] = []
        for root in roots:
            first += [root.name, *(f"{root.name}[{extra}]" for extra in root.extras)]
        first = list(dict.fromkeys(first))
        requires: Dict[str, Set[str]] = {node: set() for node in self._domains}
        for node, wanted in self._edges:
            requires[node].add(wanted)
        for node in self._domains:
            if node != _base(node):
                requires[node].add(_base(node))
        placed = set(first)
        return first + [node for node in _topological(requires) if node not in placed]


def _limit(term: Term) -> str:
    """The property of a target that a term asks for, as people name it."""
    return "gpu" if term.scope == "gpu" else LIMIT_OF.get(term.attribute, term.attribute)


def _base(node: str) -> str:
    return node.partition("[")[0]


def _target(facts: Facts, matrix: Matrix, request: Request) -> Target:
    """A target whose packages are free, on which variables that are not known are not set, with the Python and platform of the request."""
    if request.settings:
        facts = facts.updated({"variables": Known({**(facts.value("variables") or {}), **request.settings}, Evidence("request"))})
    target = derive_target(facts, matrix)
    known = target.variable
    asked = parse_version(request.python)
    own = target.host.attributes.get("python")
    python = own if isinstance(own, Version) and own.release[:2] == asked.release[:2] else asked
    host = {**target.host.attributes, "python": python, "platform": request.platform, "architecture": request.architecture}

    def variable(name: str) -> Subject:
        found = known(name)
        return _ABSENT if found.present is None else found

    return target._replace(host=Subject(True, host), environment=None, variable=variable)


def _topological(requires: Mapping[str, Set[str]]) -> List[str]:
    """Order nodes so that each comes before what it requires; members of a cycle stand together, by name."""
    from heapq import heapify, heappop, heappush

    component = _components(requires)
    members: Dict[str, List[str]] = {}
    for node, head in component.items():
        members.setdefault(head, []).append(node)
    lead = {head: min(listed) for head, listed in members.items()}
    waiting: Dict[str, int] = dict.fromkeys(members, 0)
    after: Dict[str, Set[str]] = {head: set() for head in members}
    for node, wanted in requires.items():
        for other in wanted:
            if component[node] != component[other] and component[other] not in after[component[node]]:
                after[component[node]].add(component[other])
                waiting[component[other]] += 1
    ready = [(lead[head], head) for head, count in waiting.items() if not count]
    heapify(ready)
    order: List[str] = []
    while ready:
        _, head = heappop(ready)
        order += sorted(members[head])
        for other in after[head]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (lead[other], other))
    return order


def _components(requires: Mapping[str, Set[str]]) -> Dict[str, str]:
    """Return for each node the head of its strongly connected component (Tarjan, without recursion)."""
    place: Dict[str, int] = {}
    low: Dict[str, int] = {}
    stack: List[str] = []
    found: Dict[str, str] = {}
    for start in sorted(requires):
        if start in place:
            continue
        place[start] = low[start] = len(place)
        stack.append(start)
        work = [(start, iter(sorted(requires[start])))]
        while work:
            node, others = work[-1]
            for other in others:
                if other not in place:
                    place[other] = low[other] = len(place)
                    stack.append(other)
                    work.append((other, iter(sorted(requires.get(other, ())))))
                    break
                if other not in found:
                    low[node] = min(low[node], place[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == place[node]:
                    while True:
                        member = stack.pop()
                        found[member] = node
                        if member == node:
                            break
    return found


# ---------------------------------------------------------------------------------------------------------------- builds against torch


def _build_rows(names: Sequence[str], catalog: Catalog) -> List[Row]:
    """Rows that follow from how a wheel was compiled: its torch minor, the CUDA major and, where its label tells, the C++ ABI of torch."""
    if "torch" not in names:
        return []
    rows: List[Row] = []
    there = Term("env", "torch", "version", "present", True)
    for name in names:
        if name == "torch":
            continue
        minors: Set[Version] = set()
        majors: Set[int] = set()
        abis: Set[str] = set()
        for candidate in catalog.table(name).candidates:
            attributes = candidate.subject.attributes
            minor, cuda = attributes.get("torch"), attributes.get("cuda")
            if not isinstance(minor, Version) or (name in _BUILT_BY_HAND and candidate.index_name == "pypi"):
                continue
            minors.add(minor)
            if isinstance(cuda, Version):
                majors.add(cuda.release[0])
            if candidate.index_name not in ("pypi", "pytorch") and "cxx11abi" in attributes:
                abis.add(attributes["cxx11abi"])
        built = Term("env", name, "torch", "in", VersionSet.all())
        for minor in sorted(minors):
            span = VersionSet.parse(f"=={minor}.*")
            mine = Term("env", name, "torch", "in", span)
            rows.append(_build_row(name, f"torch-{minor}", f"torch {minor}", (mine, there, Term("env", "torch", "version", "lacks", span))))
        for major in sorted(majors):
            span = VersionSet.parse(f">={major},<{major + 1}")
            mine = Term("env", name, "cuda", "in", span)
            rows.append(
                _build_row(name, f"cuda-{major}", f"a torch for CUDA {major}", (mine, built, there, Term("env", "torch", "cuda", "lacks", span)))
            )
        for abi in sorted(abis):
            wanted = frozenset((abi,))
            mine = Term("env", name, "cxx11abi", "any", wanted)
            label = Term("env", name, "index", "lacks", frozenset(("pypi", "pytorch")))
            terms = (mine, built, label, there, Term("env", "torch", "cxx11abi", "lacks", wanted))
            rows.append(_build_row(name, f"cxx11abi-{abi}", f"a torch with the {'new' if abi == 'true' else 'old'} C++ ABI", terms))
    return rows


def _dropped_rows(names: Sequence[str], matrix: Matrix) -> List[Row]:
    """Rows for builds whose code was not read: a CUDA newer than the last one that compiles for a device has none for it."""
    if "torch" not in names:
        return []
    rows = []
    for entry in matrix.capabilities.values():
        if entry.last_cuda is None:
            continue
        major, minor = entry.last_cuda.split(".")[:2]
        span = VersionSet.parse(f">={major}.{int(minor) + 1}")
        device = Term("gpu", "gpu", "sm", "any", frozenset((entry.capability,)))
        terms = (device, Term("env", "torch", "cuda", "in", span))
        title = f"CUDA {entry.last_cuda} is the last that compiles code for {entry.architecture} (compute capability {entry.capability})"
        row = _build_row("torch", f"cuda-after-{entry.capability}", "", terms)
        rows.append(row._replace(title=title, code="ED120", kind="arch-missing", sources=(entry.source,)))
    return rows


def _build_row(name: str, what: str, needed: str, terms: Tuple[Term, ...]) -> Row:
    return Row(
        id=f"{name}-built-for-{what}",
        effect="blocks",
        trust="established",
        terms=terms,
        component=name,
        kind="abi-mismatch",
        code="ED401",
        title=f"this build of {name} is compiled for {needed}",
        symptom="",
        fix="",
        pins=(),
        overrides=(),
        mitigations=(),
        sources=(Source(f"wheels of {name}"),),
        date="",
        origin="build",
    )
