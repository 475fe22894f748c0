"""Use case: versions that work together on given targets, pinned.

Never prints, never writes a file.

The solver chooses, ``check`` has the last word; what uv adds comes after that (:mod:`.rounds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Optional, Sequence, Tuple, Union

from ..errors import InputError, suggest
from ..intake.wanted import Wanted
from ..model.facts import Facts
from ..model.requirement import parse_requirement
from ..model.versions import try_version
from .as_of import day_of, much_newer, of_its_time
from .verification import verified

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..model.request import Request, Root
    from ..model.resolution import Explanation, Resolution
    from .solver.profiles import ProfileResolver

__all__ = ["lock"]

_STRANGERS = 10  # of more, the lock names the names alone


def lock(
    requirements: Sequence[str],
    facts: Sequence[Facts],
    matrix: Optional[Matrix] = None,
    *,
    python: Optional[str] = None,
    as_of: Optional[str] = None,
    allow_index: Sequence[str] = (),
    profile: Optional[str] = None,
    others: bool = False,
    wanted: Optional[Wanted] = None,
    resolvers: Optional[Dict[Tuple[str, Optional[str]], ProfileResolver]] = None,
) -> Union[Resolution, Explanation]:
    """Choose versions that work together on all targets at once, or explain why there are none.

    Args:
        requirements: What is wanted, the most important first: "vllm>=0.8", "verl[vllm]".
        facts: The targets.
        matrix: What is known of versions and hardware; by default the one that envdoctor carries.
        python: Python that the lock is for; by default that of the targets.
        as_of: ISO date after which no release counts; "release": a month after the newest release
            that a requirement pins with ==, where there is one and it is not of today; None or
            "latest": no date.
        allow_index: Further indexes whose builds may be taken ("pytorch").
        profile: A framework ("verl": the newest of its requests that fits) or one of its requests
            ("verl:0.7-vllm"); its Python is that of the targets or the newest that it allows.
        others: Let pass what the matrix does not know; the resolution names it in
            ``request.others``.
        wanted: What files ask for besides (``intake.wanted``).
        resolvers: Of whoever asks for a profile and a Python on many machines, and for nothing
            else: what was read for one serves the next.

    Raises:
        InputError: a request that means nothing, or targets that cannot share a lock.
        GaveUp: the search limit was reached; nothing is proven.
    """
    from ..model.resolution import Resolution
    from .asked import check_asked, check_wheels, read_roots
    from .solver import resolve
    from .solver.boards import board_statements
    from .solver.torch_extras import without_torch

    if matrix is None:
        from ..matrix.loader import load_matrix

        matrix = load_matrix()
    wanted = wanted or Wanted()
    request = _undated(
        requirements, facts, matrix, wanted, python, allow_index, has_profile=profile is not None
    )
    known = matrix.packages_known
    asked = request.roots
    unknown = tuple(root for root in asked if root.name not in known) if others else ()
    roots = tuple(root for root in asked if root not in unknown)
    day, pinned = day_of(as_of, roots, matrix)
    request = request._replace(
        roots=roots,
        as_of=day,
        others=unknown,
        of_the_time=bool(pinned),
        constraints=read_roots(wanted.constraints, request),
    )
    check_asked(request, wanted.pythons, matrix)
    check_wheels(wanted.wheels, request)
    is_newer = False  # than what is asked for was ever tested with
    if profile is not None:
        answer = _of_profile(
            profile, request, facts, matrix, python, as_of, {} if resolvers is None else resolvers
        )
    else:
        answer = resolve(request, facts, matrix)
        if pinned and not isinstance(answer, Resolution):
            is_newer = True
            answer = resolve(request._replace(as_of=None, of_the_time=False), facts, matrix)
    if not isinstance(answer, Resolution):
        return answer
    notes = [
        *answer.notes,
        *([_newer_note(pinned, day)] if is_newer else _age_notes(answer, matrix, pinned)),
        *(reason.text for reason in answer.passed),
        *(cause.text for cause in board_statements(facts, matrix) if answer.requires.cuda),
        *without_torch(answer, matrix),
        *_stranger_notes(unknown, matrix),
        *wanted.notes,
        *_replaced_notes(answer),
    ]
    return verified(answer._replace(notes=tuple(notes)), facts, matrix)


def _undated(
    requirements: Sequence[str],
    facts: Sequence[Facts],
    matrix: Matrix,
    wanted: Wanted,
    python: Optional[str],
    allow_index: Sequence[str],
    *,
    has_profile: bool,
) -> Request:
    """Return what is asked for on which machine, of whatever day.

    Raises:
        InputError: nothing is asked for, or targets cannot share a lock.
    """
    from ..model.request import Request
    from .asked import indexes_of, read_roots, read_sources

    lines = (*requirements, *wanted.requirements)
    if not lines and not has_profile:
        named = ", ".join(parse_requirement(text).name for text in wanted.direct)
        raise InputError(
            f"expected at least one requirement beside {named}: what that requires was not read"
            if named
            else "expected at least one requirement, such as 'vllm>=0.8', or --profile NAME"
        )
    usual = "3.12" if has_profile else None
    request = Request(
        (),
        python or _common(facts, "python.version", "give --python-version", usual),
        _common(facts, "os.platform", "one lock is for one platform", "linux"),
        _common(facts, "os.architecture", "one lock is for one architecture", "x86_64"),
    )
    sources = read_sources(wanted.direct, request)
    indexes = (*allow_index, *indexes_of(wanted.wheels, request.architecture, matrix))
    given = map(parse_requirement, wanted.addresses)
    request = request._replace(
        sources=sources,
        allow_index=tuple(dict.fromkeys(indexes)),
        addresses={requirement.name: requirement.url for requirement in given},
    )
    roots = read_roots(lines, request)
    if not roots and not has_profile:
        raise InputError(
            f"nothing of what was asked for is for Python {request.python} on {request.platform} "
            f"{request.architecture}, as the markers say"
        )
    return request._replace(roots=roots)


def _age_notes(resolution: Resolution, matrix: Matrix, pinned: str) -> List[str]:
    """Say of what time the packages are, or which are much newer than what was asked for."""
    request = resolution.request
    if request.of_the_time:
        return [
            (
                f"the packages date from {request.as_of} or earlier, the time of "
                f"{request.profile or pinned}; --as-of latest takes the newest"
            )
        ]
    return much_newer(resolution, matrix) if request.as_of is None else []


def _newer_note(pinned: str, day: Optional[str]) -> str:
    return (
        f"nothing of the time of {pinned} ({day}) meets the request: some packages are newer "
        "than it was ever tested with"
    )


def _stranger_notes(roots: Sequence[Root], matrix: Matrix) -> List[str]:
    """Name what nothing judges, or nothing but what was measured of its imports; of a long list,
    which is a file, the names alone.
    """
    known, measured = matrix.packages_known, matrix.packages_measured
    if len(roots) > _STRANGERS:
        names = ", ".join(root.name for root in roots)
        return [f"{len(roots)} packages are not judged by envdoctor: {names}"]
    return [
        (
            f"the matrix has no releases of {root.text}: of the one that a full lock takes, its "
            "imports alone are judged"
            if root.name in measured
            else f"{root.text} is not judged by envdoctor: the matrix does not know it"
            f"{suggest(root.name, known, 0.8)}"
        )
        for root in roots
    ]


def _replaced_notes(resolution: Resolution) -> List[str]:
    """Say of which pins something else is installed in the end."""
    pins = [(step, resolution.pin(step.name)) for step in resolution.sources]
    return [
        f"{pin.name} {pin.version} is pinned because others require it; what {step.url} has "
        "replaces it, and nothing here judges that"
        for step, pin in pins
        if pin is not None
    ]


def _of_profile(
    profile: str,
    base: Request,
    facts: Sequence[Facts],
    matrix: Matrix,
    python: Optional[str],
    as_of: Optional[str],
    resolvers: Dict[Tuple[str, Optional[str]], ProfileResolver],
) -> Union[Resolution, Explanation]:
    from .solver.profiles import ProfileResolver, find_wanted, resolve_profile

    wanted = find_wanted(profile, matrix)
    resolver = resolvers.get((profile, python))
    if resolver is None:
        dated = of_its_time(as_of, matrix)
        resolver = ProfileResolver(wanted.profile, base, matrix, python, dated)
        resolvers[profile, python] = resolver
    return resolve_profile(wanted, resolver, facts)


def _common(facts: Sequence[Facts], field: str, advice: str, default: Optional[str] = None) -> str:
    """Return the value that all targets have; of Python, only the minor has to agree."""
    known = [str(entry.value(field)) for entry in facts if entry.value(field) is not None]
    odd = [value for value in known if field == "python.version" and try_version(value) is None]
    if odd:
        raise InputError(f"expected a version as {field} of a target, found {odd[0]!r}; {advice}")
    shown = {
        ".".join(value.split(".")[:2]) if field == "python.version" else value for value in known
    }
    if len(shown) > 1:
        raise InputError(f"the targets differ in {field} ({', '.join(sorted(shown))}); {advice}")
    if not shown:
        if default is None:
            raise InputError(f"no target tells its {field}; {advice}")
        return default
    return known[0]
