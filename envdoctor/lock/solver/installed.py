"""What is installed, as candidates: the point that ``fix`` stays near to.

An installed distribution stands first in its table, with the attributes that ``check`` gives it and
its own requirement lines; the releases of the index follow, the nearest first. A requirement that
is not met today and that ``check`` does not call an error binds nobody as long as both sides stay
as they are: to mend it would be a change that cures nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ...matrix.bind import Subject
from ...matrix.derive import derive_target
from ...matrix.loader import Matrix
from ...matrix.tables import Release
from ...model.facts import Distribution, Facts, is_unindexed
from ...model.request import Request, Root
from ...model.versions import (
    InvalidSpecifier,
    VersionSet,
    canonicalize_name,
    parse_version,
    try_version,
)
from ...rules.packages import COMPANIONS
from .candidate_table import Candidate
from .candidates import Asked, Catalog, Limits
from .misfit import Misfit
from .target_lines import TargetLine

__all__ = ["INSTALLED", "InstalledCatalog", "Situation", "usual_python"]

#: Index of the candidate that is installed.
INSTALLED = "installed"
#: In which a distribution that was compiled here can differ from the one of the index under the
#: same version.
_BUILD_ATTRIBUTES = ("cuda", "torch", "cxx11abi", "variant")
_PYTHONS = ("3.11", "3.12", "3.10", "3.13", "3.9", "3.14", "3.8")


class Situation(NamedTuple):
    """What is to be repaired.

    enforced: tells whether an unmet requirement (requirer, required) is an error. faulty:
    distributions whose installed copy may not stay.
    outside: also bind what distributions that the matrix does not know ask of those that it knows.
    """

    facts: Facts
    enforced: Callable[[str, str], bool] = lambda _requirer, _required: False
    faulty: FrozenSet[str] = frozenset()
    outside: bool = True

    @property
    def listed(self) -> Mapping[str, Distribution]:
        """The installed distributions by name."""
        distributions: Mapping[str, Distribution] = self.facts.value("distributions", {})
        return distributions

    @property
    def complete(self) -> bool:
        """Whether the list is whole, so that what is not in it is absent."""
        return bool(self.facts.value("distributions.complete"))


class InstalledCatalog(Catalog):
    """Tables in which what is installed comes first.

    ``family``: what other catalogs about the same environment made so far, which differ in the
    request or in ``outside`` alone.
    """

    brings_torch = False

    def __init__(
        self,
        matrix: Matrix,
        request: Request,
        situation: Situation,
        family: Optional[Dict[Any, Any]] = None,
    ) -> None:
        super().__init__(matrix, request._replace(prereleases=_early(situation.listed)), family)
        self.situation = situation
        self._subject = derive_target(situation.facts, matrix).environment or (
            lambda _name: Subject(None)
        )
        known = [name for name in situation.listed if name in self.known]
        self.core: Tuple[str, ...] = tuple(sorted(known))
        self.outside: Tuple[str, ...] = tuple(sorted(self._outside())) if situation.outside else ()
        tops, others = self._ordered()
        self.tops: Tuple[str, ...] = tuple(tops)
        roots = [*tops, *others, *self.outside]
        self.request = self.request._replace(roots=tuple(Root(name) for name in roots))

    def changed(self, request: Request) -> InstalledCatalog:
        """Return a catalog for another request about the same environment."""
        return self._alike(request, self.situation)

    def loosened(self) -> InstalledCatalog:
        """Return a catalog that what the matrix does not know binds in nothing."""
        return self._alike(self.request, self.situation._replace(outside=False))

    def _alike(self, request: Request, situation: Situation) -> InstalledCatalog:
        other = InstalledCatalog(self.matrix, request, situation, self._family)
        other._torch_of = self._torch_of
        return other

    def asking(self, roots: Sequence[Root]) -> InstalledCatalog:
        """Return a catalog for other roots."""
        other = self.changed(self.request)
        other.request = other.request._replace(roots=tuple(roots))
        return other

    def kept(self, name: str) -> int:
        """Return the candidates that are no change."""
        table = self.table(name)
        installed = self.situation.listed.get(name)
        if installed is None:
            return table.absent
        if name in self.situation.faulty:
            return 0
        bits = sum(
            1 << number
            for number, candidate in enumerate(table.candidates)
            if candidate.index_name == INSTALLED
        )
        return bits or (table.mask(installed.constraint) if installed.constraint else 0)

    def unlisted(self, name: str) -> Optional[Subject]:
        """Return what is installed of a package without releases in the matrix."""
        is_there = name in self.situation.listed and name not in self.known
        return self._subject(name) if is_there else None

    def shown(self, name: str) -> str:
        """Return what is installed, as people write it."""
        distribution = self.situation.listed[name]
        return distribution.version or distribution.constraint or "of an unknown version"

    def _candidates(self, name: str) -> Sequence[Candidate]:
        """What is installed, then another build of the same release, then the nearest releases, the
        newer one first.
        """
        distribution = self.situation.listed.get(name)
        if distribution is None:
            return super()._candidates(name)
        installed = self._installed(distribution)
        if name not in self.known:
            return [installed] if installed is not None else []
        others = super()._candidates(name)
        if installed is None:
            wanted = _range(distribution.constraint)
            return sorted(
                others, key=lambda candidate: wanted is not None and candidate.version not in wanted
            )
        others = [
            candidate
            for candidate in others
            if not candidate.version.is_prerelease and not _same(candidate, installed, distribution)
        ]
        releases = sorted({parse_version(candidate.version.public) for candidate in others})
        own = parse_version(installed.version.public)
        here = bisect_left(releases, own)
        there = here < len(releases) and releases[here] == own

        def distance(entry: Tuple[int, Candidate]) -> Tuple[Any, ...]:
            rank, candidate = entry
            public = parse_version(candidate.version.public)
            place = bisect_left(releases, public)
            steps = (
                0
                if public == own
                else place - here + (0 if there else 1)
                if public > own
                else here - place
            )
            return (candidate.release.yanked, steps, public < own, candidate.from_source, rank)

        return [installed, *(candidate for _, candidate in sorted(enumerate(others), key=distance))]

    def _installed(self, record: Distribution) -> Optional[Candidate]:
        version = try_version(record.version)
        subject = self._subject(record.name)
        if version is None:
            if (
                record.constraint
                or record.name not in self.known
                or not super()._candidates(record.name)
            ):
                return None
            # Of an unknown release: it stands where the newest does, and its version decides
            # nothing.
            return (
                super()
                ._candidates(record.name)[0]
                ._replace(subject=subject, index_name=INSTALLED, from_source=False)
            )
        package = self.matrix.package(record.name) if record.name in self.known else None
        release = package.release(version) if package is not None else None
        lines = (
            record.requires
            if record.requires is not None
            else release.requires
            if release is not None
            else ()
        )
        needs = record.requires_python or (release.requires_python if release is not None else None)
        if is_unindexed(record):
            # The order of such a version decides nothing: 2.6.0a0+… stands for what became 2.6.0.
            subject = subject._replace(
                attributes={
                    key: value for key, value in subject.attributes.items() if key != "version"
                }
            )
            version = parse_version(version.base_version)
        return Candidate(
            version,
            Release(record.version or "", "", requires=lines, requires_python=needs),
            subject,
            INSTALLED,
        )

    # ----------------------------------------------------------------------------------------------
    # requirements

    def _find_asks(self, node: str, bit: int) -> Asked:
        asked = super()._find_asks(node, bit)
        # A package that is not listed may be there already, as unmet as what is listed.
        presumed = node not in self.situation.listed and not self.situation.complete
        if not presumed and ("[" in node or self.table(node).at(bit).index_name != INSTALLED):
            return asked
        kept = []
        for wanted, allowed, specifier in asked:
            base = wanted.partition("[")[0]
            if base == node:
                continue
            if base not in self.situation.listed:
                if presumed or self.situation.enforced(node, base):
                    kept.append((wanted, allowed, specifier))
                continue
            now = self.kept(base)
            met = bool(allowed & now)
            kept.append(
                (
                    wanted,
                    allowed if met or self.situation.enforced(node, base) else allowed | now,
                    specifier,
                )
            )
        return tuple(kept)

    def _applying(self, name: str, candidate: Candidate, extra: str) -> Sequence[TargetLine]:
        own = candidate.index_name == INSTALLED and self.situation.listed[name].requires is not None
        if (
            own or candidate.subject.attributes.get("index") == "pypi"
        ):  # the lines are those of its build
            candidate = candidate._replace(index_name="pypi")
        return super()._applying(name, candidate, extra)

    def refusal(self, name: str, candidate: Candidate, limits: Limits) -> Optional[Misfit]:
        """What is installed can be installed."""
        if candidate.index_name == INSTALLED:
            return None
        return super().refusal(name, candidate, limits)

    # ----------------------------------------------------------------------------------------------
    # who asks for whom

    def _outside(self) -> List[str]:
        """Distributions that the matrix does not know and that ask for one that it knows and that
        is installed.
        """
        core = set(self.core)
        return [
            name
            for name, distribution in self.situation.listed.items()
            if name not in self.known
            and distribution.requires
            and try_version(distribution.version)
            and any(wanted in core for wanted in self.wants(name))
        ]

    def wants(self, name: str) -> Set[str]:
        """Return the names that an installed distribution asks for without extras."""
        distribution = self.situation.listed[name]
        version = try_version(distribution.version)
        lines = distribution.requires
        if lines is None and version is not None and name in self.known:
            package = self.matrix.package(name)
            release = package.release(version) if package is not None else None
            lines = self.served(release).requires if release is not None else None
        parsed = [self.lines.line(line) for line in lines or ()]
        return {
            canonicalize_name(line.name) for line in parsed if line is not None and line.always
        } - {name}

    def _ordered(self) -> Tuple[List[str], List[str]]:
        """What nothing else that is known asks for, and the others; that on which most of the
        environment hangs first.

        Of distributions that ask for each other in a circle the first by name stands for all.
        """
        core = frozenset(self.core)
        wants = {name: self.wants(name) & core for name in self.core}
        followers = COMPANIONS & core if "torch" in core else frozenset()
        for name in followers:  # they are released for a torch, and go where it goes
            wants[name] -= {"torch"}
        asked = frozenset().union(*wants.values())

        def reach(name: str) -> Set[str]:
            seen: Set[str] = set()
            waiting = [name]
            while waiting:
                for other in wants.get(waiting.pop(), ()):
                    if other not in seen:
                        seen.add(other)
                        waiting.append(other)
            return seen

        tops = [name for name in self.core if name not in asked]
        covered = set(tops).union(*map(reach, tops))
        for name in self.core:
            if name not in covered:
                tops.append(name)
                covered |= {name} | reach(name)
        order = sorted(
            self.core,
            key=lambda name: (
                name in followers,
                -len(reach(name)),
                -len(self.wants(name)),
                name,
            ),
        )
        return [name for name in order if name in tops], [
            name for name in order if name not in tops
        ]


def usual_python(facts: Facts, matrix: Matrix) -> str:
    """Return the Python of a target, or where it is not known one that all that is installed
    supports.
    """
    known = facts.value("python.version")
    if try_version(known) is not None:
        return str(known)
    catalogs = (Catalog(matrix, Request((), python)) for python in _PYTHONS)
    distributions: Mapping[str, Distribution] = facts.value("distributions", {})
    for catalog in catalogs:
        if all(
            _supported(catalog, name, distribution)
            for name, distribution in distributions.items()
            if name in catalog.known
        ):
            return catalog.request.python
    return _PYTHONS[0]


def _supported(catalog: Catalog, name: str, distribution: Distribution) -> bool:
    version = try_version(distribution.version)
    if version is None:
        return True
    builds = [
        candidate
        for candidate in catalog.table(name).candidates
        if candidate.version.public == version.public
    ]
    return not builds or any(
        catalog.refusal(name, candidate, Limits()) is None for candidate in builds
    )


def _early(distributions: Mapping[str, Distribution]) -> Tuple[str, ...]:
    """Names of which a pre-release is installed."""
    names = []
    for name, entry in distributions.items():
        version = try_version(entry.version)
        if version is not None and version.is_prerelease:
            names.append(name)
    return tuple(sorted(names))


def _range(constraint: str) -> Optional[VersionSet]:
    try:
        return VersionSet.parse(constraint)
    except InvalidSpecifier:
        return None


def _same(candidate: Candidate, installed: Candidate, distribution: Distribution) -> bool:
    """Tell whether a candidate of the index is what is installed."""
    if candidate.version != installed.version or candidate.from_source or distribution.editable:
        return False
    here, there = installed.subject.attributes, candidate.subject.attributes
    return all(here[key] == there[key] for key in _BUILD_ATTRIBUTES if key in here and key in there)
