"""A framework's profile as a request: which of its named requests fits the targets, and on which
Python.
"""

from __future__ import annotations

from typing import (
    Callable,
    Container,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from ...errors import InputError
from ...matrix.curated import NamedRequest, Profile
from ...matrix.loader import Matrix
from ...model.facts import Facts
from ...model.request import Request, Root, parse_root, parse_source
from ...model.resolution import Explanation, Reason, Resolution, Statement
from ...model.row import Source
from ...model.versions import Version, VersionSet, meets_pin, parse_version
from .candidates import Catalog
from .explanation import Refusal, explain, refusal_of
from .resolve import check_request
from .torch_needed import attempt_whole, resolution_of_whole
from .ways_out import Loosened, ways_out

__all__ = ["ProfileResolver", "WantedProfile", "find_wanted", "request_of", "resolve_profile"]

_PYTHONS = ("3.14", "3.13", "3.12", "3.11", "3.10", "3.9")


class WantedProfile(NamedTuple):
    """What ``NAME[:REQUEST]`` names: a profile, and those of its requests that may be taken, the
    preferred one first.
    """

    profile: Profile
    requests: Tuple[NamedRequest, ...]


def find_wanted(text: str, matrix: Matrix) -> WantedProfile:
    """Find ``verl`` (any of its requests, as the profile orders them) or ``verl:0.7-vllm`` (that
    one); raises :class:`InputError`.
    """
    name, colon, wanted = text.partition(":")
    profile = matrix.profile(name)
    if profile is None:
        raise InputError(
            f"--profile {text}: no such profile; there are {', '.join(sorted(matrix.profiles))}"
        )
    if not colon:
        # What its maintainers tested comes before what only fits by its metadata.
        tested = {entry.name for entry in profile.tested if entry.good}
        return WantedProfile(
            profile,
            tuple(sorted(profile.requests, key=lambda request: request.tested not in tested)),
        )
    requests = tuple(
        request for request in profile.requests if request.name.lower() == wanted.lower()
    )
    if not requests:
        titles = "; ".join(
            f"{profile.name}:{request.name} ({request.title})" for request in profile.requests
        )
        raise InputError(
            f"--profile {text}: {profile.name} has no request {wanted!r}; it has {titles}"
        )
    return WantedProfile(profile, requests)


def request_of(
    profile: Profile, named: NamedRequest, base: Request, python: str, known: Container[str]
) -> Request:
    """Return a profile's request as one of the resolver.

    Args:
        profile: where it stands; the set that it names as tested is preferred.
        named: the request.
        base: roots that are asked for besides, date, platform and indexes.
        python: for which Python.
        known: names that the matrix knows; what else the request asks for nothing judges.
    """
    asked = tuple(map(parse_root, named.requirements))
    sources = tuple(parse_source(text, profile.note) for text in named.direct)
    for root in base.roots:
        if root.name in [step.name for step in sources]:
            raise InputError(
                f"{root.text}: {root.name} of the profile {profile.name} comes from "
                f"{sources[0].url}, not from the index"
            )
    prefer = {}
    for tested in profile.tested:
        if tested.name == named.tested and tested.good:
            prefer = {root.name: root.specifier[2:] for root in map(parse_root, tested.packages)}
    return base._replace(
        roots=_joined([*(root for root in asked if root.name in known), *base.roots]),
        others=(*base.others, *(root for root in asked if root.name not in known)),
        python=python,
        prereleases=(*base.prereleases, *named.prereleases),
        prefer={**prefer, **base.prefer},
        profile=f"{profile.name}:{named.name}",
        origin=named.source,
        overrides=tuple(map(parse_root, named.overrides)),
        settings=dict(named.variables),
        sources=sources,
    )


def _joined(roots: Sequence[Root]) -> Tuple[Root, ...]:
    """Roots of one name are one: what the profile and the caller ask of it holds together."""
    joined: Dict[str, Root] = {}
    for root in roots:
        known = joined.get(root.name)
        if known is not None:
            specifier = ",".join(
                dict.fromkeys(
                    part for part in f"{known.specifier},{root.specifier}".split(",") if part
                )
            )
            root = parse_root(
                Root(root.name, tuple(sorted({*known.extras, *root.extras})), specifier).text
            )
        joined[root.name] = root
    return tuple(joined.values())


def resolve_profile(
    wanted: WantedProfile, resolver: ProfileResolver, facts: Sequence[Facts]
) -> Union[Resolution, Explanation]:
    """Resolve the first request that fits all targets, on the first Python that serves it, or
    explain why the first one does not.

    Args:
        wanted: a profile and the requests that may be taken.
        resolver: the one of this profile.
        facts: the targets.

    Raises:
        InputError: a root that the matrix does not know, or a target of another platform.
        GaveUp: the search limit was reached.
    """
    passed: List[Reason] = []
    for named in wanted.requests:
        resolution = resolver.fit(named, facts)
        if resolution is not None:
            words = _tested_words(wanted.profile, named, resolution)
            return resolution._replace(passed=tuple(passed), notes=(*resolution.notes, words))
        stops = _stops(resolver.causes(named, facts))
        passed.append(
            Reason("profile", f"{wanted.profile.name}:{named.name} does not fit: {stops}")
        )
    return resolver.explain(wanted.requests, facts, passed)


def _stops(causes: Sequence[Statement]) -> str:
    """What the hardware says of a request; where it says nothing, the last cause."""
    of_hardware = [cause.text for cause in causes if cause.kind == "hardware"]
    return "; ".join(of_hardware or [causes[-1].text])


def _tested_words(profile: Profile, named: NamedRequest, resolution: Resolution) -> str:
    """Say which set of the maintainers this is, and in what it differs."""
    tested = next((entry for entry in profile.tested if entry.name == named.tested), None)
    name = f"{profile.name}:{named.name}"
    if tested is None or not tested.good:
        return f"{name} names no set that its maintainers tested: it fits by metadata and rows"
    chosen = {pin.name: str(pin.version) for pin in resolution.pins}
    other = [
        f"{pin} {chosen[pin]} (tested: {version})"
        for pin, version in resolution.request.prefer.items()
        if pin in chosen and not meets_pin(chosen[pin], version)
    ]
    return f"the maintainers of {profile.name} tested this as {tested.name!r}" + (
        f", but for {', '.join(other)}" if other else ""
    )


class ProfileResolver:
    """Resolves requests of one profile.

    What was read and made for one target serves the next one.

    Args:
        profile: where the requests stand.
        base: roots that are asked for besides, date, platform and indexes; its Python is tried
            first.
        matrix: what is known of versions and hardware.
        python: the only Python that counts; by default the one of ``base``, then the newest that
            the request allows.
        dated: gives a request its as-of date. One that only follows from what is pinned is dropped
            where nothing of its time fits.
    """

    def __init__(
        self,
        profile: Profile,
        base: Request,
        matrix: Matrix,
        python: Optional[str] = None,
        dated: Callable[[Request], Request] = lambda request: request,
    ) -> None:
        self._profile = profile
        self._base = base
        self._python = python
        self._dated = dated
        self._catalog = Catalog(matrix, base)
        self._catalogs: Dict[Tuple[str, str, bool], Catalog] = {}
        self._facts: Tuple[Facts, ...] = ()  # that the refusals are about
        self._refused: Set[int] = set()  # identities of catalogs, which are kept as long as this
        self._refusals: Dict[int, Refusal] = {}

    def fit(
        self, named: NamedRequest, facts: Sequence[Facts], *, any_python: bool = False
    ) -> Optional[Resolution]:
        """Return the resolution of a request on the first Python that serves it, or None."""
        self._turn_to(facts)
        refused: Dict[str, Set[str]] = {}  # by Python, what the refusal rests on
        for own in self._attempts(named, facts, any_python):
            python = own.request.python
            if "date" not in refused.get(python, ("date",)):
                continue
            if id(own) not in self._refused:
                whole = attempt_whole(own, facts)
                if whole.search.outcome.model is not None:
                    return resolution_of_whole(whole, facts)
                self._refused.add(id(own))
            if own.request.of_the_time or not refused:
                refused[python] = self._refusal(own, facts).rests_on
                if not refused[python]:  # neither another Python nor another date helps
                    return None
        return None

    def causes(self, named: NamedRequest, facts: Sequence[Facts]) -> Sequence[Statement]:
        """Return why a request does not fit."""
        own = self._stand_in(named, facts)
        if own is not None:
            return self._said(named, self._refusal(own, facts).causes)
        clash = self._clash(named)
        if clash is not None:
            return (clash,)
        text = f"it is for Python {named.python}, not {self._python or self._base.python}"
        return (Statement("python", text, sources=(Source(named.source),)),)

    def explain(
        self, requests: Sequence[NamedRequest], facts: Sequence[Facts], passed: Sequence[Reason]
    ) -> Explanation:
        """Explain the first of these requests, none of which fits; ``passed`` says of each what
        stops it.
        """
        named = requests[0]
        own = self._stand_in(named, facts)
        if own is not None:
            explanation = explain(own, facts, self._refusal(own, facts), self._loosened(named))
        else:
            explanation = Explanation(
                self._base._replace(profile=self._name(named), origin=named.source),
                tuple(self.causes(named, facts)),
                (),
            )
        causes = self._said(named, explanation.causes)
        others = [Statement("profile", reason.text) for reason in passed[1:]]
        if others:
            others.insert(0, Statement("profile", f"this is {self._name(named)}"))
        ways = (*self._other_ways(requests, facts), *explanation.ways_out)
        return explanation._replace(
            causes=(*causes, *others),
            ways_out=ways
            or tuple(self._ways_of_others(requests[1:], facts))
            or tuple(self._ways_without(requests, facts)),
        )

    def _turn_to(self, facts: Sequence[Facts]) -> None:
        """Forget what was refused on other targets."""
        if [*map(id, facts)] != [*map(id, self._facts)]:
            self._facts = tuple(facts)
            self._refused.clear()
            self._refusals.clear()

    def _refusal(self, own: Catalog, facts: Sequence[Facts]) -> Refusal:
        """Why a request does not fit, found once."""
        self._turn_to(facts)
        key = id(own)
        if key not in self._refusals:
            self._refusals[key] = refusal_of(own, facts)
        return self._refusals[key]

    def _said(self, named: NamedRequest, causes: Sequence[Statement]) -> Sequence[Statement]:
        """Causes in which the profile says what it asks for itself."""
        profile = {root.name: root for root in map(parse_root, named.requirements)}
        user = {root.name: root for root in self._base.roots}

        def said(cause: Statement) -> Statement:
            name = parse_root(cause.requirement).name if cause.requirement else ""
            if name not in profile:
                return cause
            text = f"{self._name(named)} asks for {profile[name].text}"
            return cause._replace(
                text=f"{text}, and you for {user[name].text}" if name in user else text,
                sources=(Source(named.source),),
            )

        return tuple(map(said, causes))

    def _clash(self, named: NamedRequest) -> Optional[Statement]:
        """Name the bound of a request that what is asked for besides excludes."""
        for root in self._base.roots:
            own = self._excluded(named, root)
            if own is not None:
                text = f"{self._name(named)} itself asks for {own.text}, and you for {root.text}"
                return Statement("request", text, sources=(Source(named.source),))
        return None

    def _name(self, named: NamedRequest) -> str:
        return f"{self._profile.name}:{named.name}"

    def _attempts(
        self, named: NamedRequest, facts: Sequence[Facts], any_python: bool = False
    ) -> Iterator[Catalog]:
        if self._clash(named) is not None:
            return
        for of_the_time in (True, False):
            for python in _pythons(named, self._base, None if any_python else self._python):
                request = self._dated(
                    request_of(
                        self._profile, named, self._base, python, self._catalog.matrix.package_names
                    )
                )
                if not of_the_time:
                    if not request.of_the_time:
                        return  # was tried
                    request = request._replace(as_of=None, of_the_time=False)
                key = (named.name, python, of_the_time)
                own = self._catalogs.get(key)
                if own is None:
                    check_request(request, facts, self._catalog.matrix)
                    own = self._catalogs[key] = self._catalog.changed(request)
                yield own

    def _stand_in(self, named: NamedRequest, facts: Sequence[Facts]) -> Optional[Catalog]:
        """The request on the first Python on which the hardware refuses it, so that what is said is
        about the targets.
        """
        first: Optional[Catalog] = None
        self._turn_to(facts)
        for own in self._attempts(named, facts):
            if id(own) not in self._refused:
                continue
            first = first or own
            causes = self._refusal(own, facts).causes
            if any(cause.kind == "hardware" for cause in causes):
                return own
        return first

    def _other_ways(self, tried: Sequence[NamedRequest], facts: Sequence[Facts]) -> Iterator[str]:
        """Yield another request of the profile that fits, or another Python with which one does."""
        for named in self._profile.requests:
            resolution = None if named in tried else self.fit(named, facts)
            if resolution is not None:
                yield f"ask for --profile {self._name(named)} ({named.title}), which fits"
                return
        for named in self._profile.requests if self._python is not None else ():
            if self._hangs_on_python(named, facts):
                resolution = self.fit(named, facts, any_python=True)
                if resolution is not None:
                    minor = resolution.requires.python
                    yield (
                        f"ask for --profile {self._name(named)} ({named.title}), which fits on "
                        f"Python {minor}: --python-version {minor}"
                    )
                    return

    def _hangs_on_python(self, named: NamedRequest, facts: Sequence[Facts]) -> bool:
        """Tell whether the Python is among what refuses a request."""
        own = self._stand_in(named, facts)
        return own is None or any(
            cause.kind == "python" for cause in self._refusal(own, facts).causes
        )

    def _ways_of_others(
        self, requests: Sequence[NamedRequest], facts: Sequence[Facts]
    ) -> Sequence[str]:
        """What would give one of these requests a resolution, the first of which anything would."""
        for named in requests:
            own = self._stand_in(named, facts)
            ways = self._ways_of(named, own, facts) if own is not None else ()
            if ways:
                return [f"ask for --profile {self._name(named)} and {way}" for way in ways]
        return ()

    def _loosened(self, named: NamedRequest) -> List[Loosened]:
        """The roots that are the user's own, each with what the profile asks for without it."""
        own = {root.name: root for root in map(parse_root, named.requirements)}
        return [
            Loosened(root, _joined([own.get(root.name, free), free])[0], own.get(root.name))
            for root in self._base.roots
            for free in [root._replace(specifier="")]
        ]

    def _ways_without(
        self, requests: Sequence[NamedRequest], facts: Sequence[Facts]
    ) -> Iterator[str]:
        """Yield what the first of these requests takes that excludes the Python, or requirements of
        the user, by itself.
        """
        for named in requests:
            left_out = [root for root in self._base.roots if self._excluded(named, root)]
            fitting = list(_pythons(named, self._base, self._python))
            if fitting and not left_out:
                continue
            kept = tuple(root for root in self._base.roots if root not in left_out)
            tail = f" and leave out {', '.join(root.text for root in left_out)}" if left_out else ""
            for python in fitting or _pythons(named, self._base, None):
                other = ProfileResolver(
                    self._profile,
                    self._base._replace(roots=kept),
                    self._catalog.matrix,
                    python,
                    self._dated,
                )
                fits = other.fit(named, facts) is not None
                own = other._stand_in(named, facts)
                ways = other._ways_of(named, own, facts, False) if own and not fits else ()
                if fits or ways:
                    asked = "" if fitting else f" --python-version {python}"
                    more = "".join(f" and {way}" for way in ways[:1])
                    yield f"ask for --profile {self._name(named)}{asked}{tail}{more}"
                    return

    def _ways_of(
        self,
        named: NamedRequest,
        own: Catalog,
        facts: Sequence[Facts],
        other_pythons: bool = True,
    ) -> Sequence[str]:
        """What would give one of the requests a resolution."""
        problem, groups, _ = self._refusal(own, facts)
        return ways_out(own, facts, problem, groups, self._loosened(named), other_pythons)

    def _excluded(self, named: NamedRequest, root: Root) -> Optional[Root]:
        """What a request itself asks for of a root, where no release is both."""
        for own in map(parse_root, named.requirements):
            both = VersionSet.parse(own.specifier) & VersionSet.parse(root.specifier)
            if root.name == own.name and not both:
                return own
        return None


def _pythons(named: NamedRequest, base: Request, python: Optional[str]) -> Iterator[str]:
    """Yield the Pythons that a request allows: the one that is asked for, else that of the targets
    and then the newest.
    """
    allowed = VersionSet.parse(named.python)
    seen = set()
    for version in (python,) if python is not None else (base.python, *_PYTHONS):
        minor = ".".join(version.split(".")[:2])
        both = allowed & VersionSet.parse(f"=={minor}.*")
        if minor in seen or not both:
            continue
        seen.add(minor)
        if parse_version(version) in allowed:
            yield version
        elif version == minor:  # a floor within the minor: ">=3.13.13"
            low: Optional[Version] = both.intervals[0][0]
            yield str(low) if low is not None else version
