"""A framework's profile as a request: which of its named requests fits the targets, and on which Python."""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..errors import InputError
from ..matrix.curated import Profile
from ..matrix.curated import Request as NamedRequest
from ..matrix.loader import Matrix
from ..model.facts import Facts
from ..model.request import Request, Root, parse_root, parse_source
from ..model.resolution import Explanation, Reason, Resolution, Statement
from ..model.row import Source
from ..model.versions import Version, VersionSet, parse_version
from .candidates import Catalog
from .explanation import causes_of, explain
from .objective import attempt, check_request, resolution_of

__all__ = ["Wanted", "find_wanted", "request_of", "resolve_profile"]

_PYTHONS = ("3.14", "3.13", "3.12", "3.11", "3.10", "3.9")


class Wanted(NamedTuple):
    """What ``NAME[:REQUEST]`` names: a profile, and those of its requests that may be taken, the preferred one first."""

    profile: Profile
    requests: Tuple[NamedRequest, ...]


def find_wanted(text: str, matrix: Matrix) -> Wanted:
    """Find ``verl`` (any of its requests, as the profile orders them) or ``verl:0.7-vllm`` (that one); raises :class:`InputError`."""
    name, colon, wanted = text.partition(":")
    profile = matrix.profile(name)
    if profile is None:
        raise InputError(f"--profile {text}: no such profile; there are {', '.join(sorted(matrix.profiles))}")
    if not colon:
        return Wanted(profile, profile.requests)
    found = tuple(request for request in profile.requests if request.name.lower() == wanted.lower())
    if not found:
        listed = "; ".join(f"{profile.name}:{request.name} ({request.title})" for request in profile.requests)
        raise InputError(f"--profile {text}: {profile.name} has no request {wanted!r}; it has {listed}")
    return Wanted(profile, found)


def request_of(profile: Profile, named: NamedRequest, base: Request, python: str) -> Request:
    """Return a profile's request as one of the resolver.

    Args:
        profile: where it stands; the set that it names as tested is preferred.
        named: the request.
        base: roots that are asked for besides, date, platform and indexes.
        python: for which Python.
    """
    sources = tuple(parse_source(text, profile.note) for text in named.direct)
    for root in base.roots:
        if root.name in [step.name for step in sources]:
            raise InputError(f"{root.text}: {root.name} of the profile {profile.name} comes from {sources[0].url}, not from the index")
    prefer = {}
    for tested in profile.tested:
        if tested.name == named.tested and tested.good:
            prefer = {root.name: root.specifier[2:] for root in map(parse_root, tested.packages)}
    return base._replace(
        roots=_joined([*map(parse_root, named.requirements), *base.roots]),
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
    found: dict[str, Root] = {}
    for root in roots:
        known = found.get(root.name)
        if known is not None:
            specifier = ",".join(dict.fromkeys(part for part in f"{known.specifier},{root.specifier}".split(",") if part))
            root = parse_root(Root(root.name, tuple(sorted({*known.extras, *root.extras})), specifier).text)
        found[root.name] = root
    return tuple(found.values())


def resolve_profile(
    wanted: Wanted, base: Request, facts: Sequence[Facts], matrix: Matrix, python: Optional[str] = None
) -> Union[Resolution, Explanation]:
    """Resolve the first request that fits all targets, on the first Python that serves it, or explain why the first one does not.

    Args:
        wanted: a profile and the requests that may be taken.
        base: roots that are asked for besides, date, platform and indexes; its Python is tried first.
        facts: the targets.
        matrix: what is known of versions and hardware.
        python: the only Python that counts; by default the one of ``base``, then the newest that the request allows.

    Raises:
        InputError: a root that the matrix does not know, or a target of another platform.
        GaveUp: the search limit was reached.
    """
    catalog = Catalog(matrix, base)
    passed: List[Reason] = []
    for named in wanted.requests:
        found = _fitting(wanted.profile, named, base, facts, catalog, python)
        if found is not None:
            return found._replace(passed=tuple(passed))
        passed.append(
            Reason("profile", f"{wanted.profile.name}:{named.name} does not fit: {_cause(wanted.profile, named, base, facts, catalog, python)}")
        )
    return _explained(wanted, base, facts, catalog, python)


def _fitting(
    profile: Profile, named: NamedRequest, base: Request, facts: Sequence[Facts], catalog: Catalog, python: Optional[str]
) -> Optional[Resolution]:
    for version in _pythons(named, base, python):
        own = _catalog(profile, named, base, version, facts, catalog)
        found = attempt(own, facts)
        if found.outcome.model is not None:
            return resolution_of(found, own, facts)
    return None


def _catalog(profile: Profile, named: NamedRequest, base: Request, python: str, facts: Sequence[Facts], catalog: Catalog) -> Catalog:
    request = request_of(profile, named, base, python)
    check_request(request, facts, catalog.matrix)
    return catalog.changed(request)


def _pythons(named: NamedRequest, base: Request, python: Optional[str]) -> Iterator[str]:
    """Yield the Pythons that a request allows: the one that is asked for, else that of the targets and then the newest."""
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


def _stand_in(
    profile: Profile, named: NamedRequest, base: Request, facts: Sequence[Facts], catalog: Catalog, python: Optional[str]
) -> Optional[Catalog]:
    """The request on the first Python on which it fits a machine of which nothing is known, so that what is said is about the targets."""
    first: Optional[Catalog] = None
    for version in _pythons(named, base, python):
        own = _catalog(profile, named, base, version, facts, catalog)
        first = first or own
        if attempt(own, (Facts({}),)).outcome.model is not None:
            return own
    return first


def _cause(profile: Profile, named: NamedRequest, base: Request, facts: Sequence[Facts], catalog: Catalog, python: Optional[str]) -> str:
    """The last cause in one sentence: what the hardware says, where it says something."""
    own = _stand_in(profile, named, base, facts, catalog, python)
    return _python_words(named, python or base.python) if own is None else causes_of(own, facts)[-1].text


def _python_words(named: NamedRequest, python: str) -> str:
    return f"it is for Python {named.python}, not {python}"


def _explained(wanted: Wanted, base: Request, facts: Sequence[Facts], catalog: Catalog, python: Optional[str]) -> Explanation:
    """Explain the first request, and say what became of the others."""
    profile, named = wanted.profile, wanted.requests[0]
    own = _stand_in(profile, named, base, facts, catalog, python)
    if own is None:
        cause = Statement("python", f"{profile.name}:{named.name}: {_python_words(named, str(python))}", sources=(Source(named.source),))
        found = Explanation(base._replace(profile=f"{profile.name}:{named.name}", origin=named.source), (cause,), ())
    else:
        found = explain(own, facts)
    others = [f"{profile.name}:{other.name}" for other in wanted.requests[1:]]
    if others:
        statement = Statement(
            "profile", f"this is {profile.name}:{named.name}; {', '.join(others)} {'does' if len(others) == 1 else 'do'} not fit either"
        )
        found = found._replace(causes=(*found.causes, statement))
    return found._replace(ways_out=(*_other_ways(wanted, base, facts, catalog, python), *found.ways_out))


def _other_ways(wanted: Wanted, base: Request, facts: Sequence[Facts], catalog: Catalog, python: Optional[str]) -> Iterator[str]:
    """Yield another request of the profile that fits, and another Python with which one does."""
    profile = wanted.profile
    for version in (python, None) if python is not None else (None,):
        for other in profile.requests:
            if version is not None and other in wanted.requests:
                continue  # was tried
            fitting = _fitting(profile, other, base, facts, catalog, version)
            if fitting is not None:
                name, minor = f"{profile.name}:{other.name}", fitting.requires.python
                yield f"ask for --profile {name} ({other.title}), which fits" + (
                    f" on Python {minor}: --python-version {minor}" if version is None and python else ""
                )
                return
