"""Use case: versions that work together on given targets, pinned and closed.

Never prints, never writes a file.

The solver chooses, uv closes, ``check`` has the last word on both.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Callable,
    Collection,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from ..errors import InputError, InternalFault, suggest
from ..intake.wanted import Wanted
from ..model.facts import Facts
from ..model.pattern import pattern
from ..model.requirement import parse_requirement
from ..model.versions import Version, parse_version, try_version

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..model.finding import Finding
    from ..model.request import Request, Root
    from ..model.resolution import Closure, Explanation, Hole, Resolution
    from .closing.index_sources import IndexSources
    from .solver.profiles import ProfileResolver

__all__ = ["check_date", "close", "lock", "of_its_time"]

#: How often the core is chosen again with what uv says about packages that the matrix does not
#: know.
_CLOSING_ROUNDS = 6
#: Days after a release within which its dependencies may have been released to count as of its
#: time: it was tested before it came out, and what it needed fixed came soon after (research: vllm
#: 0.8.5 with transformers of its month, 4.51.3, and of today, 5.23.0).
_GRACE = 30
_MUCH_NEWER = 365  # days
_EARLY = pattern(r"\d(?:a|b|rc|\.dev)\d")
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
    from ..model.request import Request
    from ..model.resolution import Resolution
    from .asked import check_asked, check_wheels, indexes_of, read_roots, read_sources
    from .solver import resolve
    from .solver.torch_extras import without_torch

    if matrix is None:
        from ..matrix.loader import load_matrix

        matrix = load_matrix()
    wanted = wanted or Wanted()
    lines = (*requirements, *wanted.requirements)
    if not lines and profile is None:
        named = ", ".join(parse_requirement(text).name for text in wanted.direct)
        raise InputError(
            f"expected at least one requirement beside {named}: what that requires was not read"
            if named
            else "expected at least one requirement, such as 'vllm>=0.8', or --profile NAME"
        )
    request = Request(
        (),
        python
        or _common(facts, "python.version", "give --python-version", "3.12" if profile else None),
        _common(facts, "os.platform", "one lock is for one platform", "linux"),
        _common(facts, "os.architecture", "one lock is for one architecture", "x86_64"),
    )
    request = request._replace(sources=read_sources(wanted.direct, request))
    given = indexes_of(wanted.wheels, request.architecture, matrix)
    request = request._replace(allow_index=tuple(dict.fromkeys((*allow_index, *given))))
    asked = read_roots(lines, request)
    if not asked and profile is None:
        raise InputError(
            f"nothing of what was asked for is for Python {request.python} on {request.platform} "
            f"{request.architecture}, as the markers say"
        )
    known = frozenset(matrix.package_names)
    unknown = tuple(root for root in asked if root.name not in known) if others else ()
    roots = tuple(root for root in asked if root not in unknown)
    day, pinned = _day(as_of, roots, matrix)
    request = request._replace(
        roots=roots,
        as_of=day,
        others=unknown,
        of_the_time=bool(pinned),
        constraints=read_roots(wanted.constraints, request),
    )
    check_asked(request, wanted.pythons, matrix)
    check_wheels(wanted.wheels, request)
    if profile is not None:
        answer = _of_profile(
            profile, request, facts, matrix, python, as_of, {} if resolvers is None else resolvers
        )
    else:
        answer = resolve(request, facts, matrix)
    newer = bool(pinned) and profile is None and not isinstance(answer, Resolution)
    if newer:
        answer = resolve(request._replace(as_of=None, of_the_time=False), facts, matrix)
    if not isinstance(answer, Resolution):
        return answer
    notes = [
        *answer.notes,
        *(_age_notes(answer, matrix, pinned) if not newer else [_newer_note(pinned, day)]),
        *(reason.text for reason in answer.passed),
        *without_torch(answer, matrix),
        *_stranger_notes(unknown, known),
        *wanted.notes,
        *_replaced_notes(answer),
    ]
    return _verified(answer._replace(notes=tuple(notes)), facts, matrix)


def _age_notes(resolution: Resolution, matrix: Matrix, pinned: str) -> List[str]:
    """Say of what time the packages are, or which are much newer than what was asked for."""
    request = resolution.request
    if request.of_the_time:
        return [
            (
                f"the packages are of {request.as_of} or before, the time of "
                f"{request.profile or pinned}; --as-of latest takes the newest"
            )
        ]
    return _much_newer(resolution, matrix) if request.as_of is None else []


def _newer_note(pinned: str, day: Optional[str]) -> str:
    return (
        f"nothing of the time of {pinned} ({day}) meets the request: some packages are newer "
        "than it was ever tested with"
    )


def _stranger_notes(roots: Sequence[Root], known: Collection[str]) -> List[str]:
    """Name what nothing judges; of a long list, which is a file, the names alone."""
    if len(roots) > _STRANGERS:
        names = ", ".join(root.name for root in roots)
        return [f"{len(roots)} packages are not judged by envdoctor: {names}"]
    return [
        (
            f"{root.text} is not judged by envdoctor: the matrix does not know it"
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


def of_its_time(as_of: Optional[str], matrix: Matrix) -> Callable[[Request], Request]:
    """Return what gives a request its as-of date; see :func:`lock`.

    What its maintainers tested counts like what it pins.
    """
    from ..model.request import Root

    def dated(request: Request) -> Request:
        tested = (Root(name, (), f"=={version}") for name, version in request.prefer.items())
        day, pinned = _day(as_of, (*request.roots, *tested), matrix)
        return request._replace(as_of=day, of_the_time=bool(pinned))

    return dated


def close(
    first: Resolution,
    facts: Sequence[Facts],
    matrix: Matrix,
    sources: IndexSources,
    *,
    allow_build: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _words: None,
) -> Resolution:
    """Let uv add what a resolution needs besides its pins; how far that came says ``closure`` of
    the result.

    What uv adds is judged as well. Packages that the matrix does not know may ask for others than
    were chosen, which only uv can tell; then the core is chosen again with what they ask for.

    Args:
        first: The core pins.
        facts: The targets.
        matrix: What is known of versions and hardware.
        sources: Where packages come from.
        allow_build: Packages whose setup code uv may run to learn what they require.
        progress: Is told what happens, a line at a time.

    Raises:
        InputError: a request that neither the matrix nor an index knows.
    """
    from ..model.request import parse_root
    from ..model.resolution import Closure, Resolution
    from .closing.closure import UnknownName
    from .closing.closure import close as close_with_uv
    from .solver import resolve
    from .solver.engine import GaveUp

    lowest = _lowest_glibc(facts)
    core, brought = first, ()  # type: Resolution, Tuple[Root, ...]
    lacking: Dict[str, Hole] = {}  # by the requirement that follows from it
    cured: Dict[str, Finding] = {}  # likewise
    settled: Optional[Resolution] = None  # closed, with warnings that another choice may spare
    for _ in range(_CLOSING_ROUNDS):
        try:
            closure = close_with_uv(
                core,
                sources,
                glibc=lowest,
                later=_later(core, matrix),
                allow_build=allow_build,
                progress=progress,
            )
        except UnknownName as error:
            raise InputError(f"{error}{suggest(error.name, matrix.package_names, 0.8)}") from error
        notes = [f"the date does not bind {', '.join(closure.late)}"] if closure.late else []
        notes += [
            f"{extra}: there is no such extra, so it adds nothing" for extra in closure.extras
        ]
        closed = core._replace(
            closure=closure, notes=(*first.notes, *(hole.text for hole in lacking.values()), *notes)
        )
        findings = _findings(closed, facts, matrix) if closure.is_closed else []
        problems = _problems(findings)
        if problems:
            learned = _asked_by_strangers(closure, core, matrix)
            closed = first._replace(
                closure=Closure(
                    "refused",
                    "check refuses what uv added to the pins",
                    "\n".join(problems),
                    tool=closure.tool,
                )
            )
        elif closure.state == "refused":
            lacking.update({f"{hole.name}!={hole.version}": hole for hole in closure.holes})
            learned = [parse_root(text) for text in (*closure.conflicts, *lacking)]
        else:
            closed = _warned(closed, findings)
            cured.update(_cures(findings, closure, core))
            learned = [parse_root(text) for text in cured]
            if settled is not None and len(closed.warnings) >= len(settled.warnings):
                return settled
            settled = closed
        learned = [root for root in learned if root not in brought]
        again: Optional[Resolution] = None
        for more in _lessons(learned):
            try:
                answer = resolve(
                    core.request._replace(roots=(*first.request.roots, *brought, *more)),
                    facts,
                    matrix,
                )
            except GaveUp:  # what was found before stands, with uv's refusal
                break
            if isinstance(answer, Resolution):
                again, learned, brought = answer, more, (*brought, *more)
                break
        if again is None:
            return settled or closed
        progress(f"choosing again: {'; '.join(_why_again(learned, lacking, cured))}")
        core = _verified(_as_asked(again, first, brought, lacking, cured), facts, matrix)
    return settled or closed


def _lessons(learned: List[Root]) -> Iterator[List[Root]]:
    """Yield what was learned, whole and then one by one: of releases of one package uv may say what
    each asks for, which excludes one another. Pre-releases come last.
    """
    if learned:
        yield learned
    if len(learned) > 1:
        for root in sorted(learned, key=lambda root: bool(_EARLY.search(root.specifier))):
            yield [root]


def _lowest_glibc(facts: Sequence[Facts]) -> Optional[str]:
    """Return the oldest glibc of the targets that say theirs."""
    stated = [entry.value("glibc.version") for entry in facts]
    versions = [str(version) for version in stated if version]
    return min(versions, key=parse_version) if versions else None


def _asked_by_strangers(closure: Closure, core: Resolution, matrix: Matrix) -> List[Root]:
    """Return what packages outside the matrix brought in, and the matrix could have chosen."""
    from ..model.request import Root

    return [
        Root(line.name)
        for line in closure.lines
        if any(name not in matrix.package_names for name in line.via)
        and line.name in matrix.package_names
        and core.pin(line.name) is None
    ]


def _cures(findings: Sequence[Finding], closure: Closure, core: Resolution) -> Dict[str, Finding]:
    """Return what check would install in place of what uv added, where it warns of that."""
    from ..model.calls import InstallerCall
    from ..model.request import parse_root

    free = {line.name for line in closure.lines if core.pin(line.name) is None}
    return {
        text: finding
        for finding in findings
        if finding.severity == "warning" and finding.component in free
        for remedy in finding.remedies[:1]
        for call in remedy.commands
        if isinstance(call, InstallerCall) and call.action == "install"
        for text in call.packages
        if parse_root(text).name in free
    }


def _why_again(
    learned: Sequence[Root], lacking: Mapping[str, Hole], cured: Mapping[str, Finding]
) -> List[str]:
    needed = [root.text for root in learned if root.text not in (*lacking, *cured)]
    strangers = [f"what is not in the matrix needs {', '.join(needed)}"] if needed else []
    said = [lacking[root.text].text for root in learned if root.text in lacking]
    warned = [cured[root.text].message for root in learned if root.text in cured]
    return [*strangers, *said, *dict.fromkeys(warned)]


def _as_asked(
    again: Resolution,
    first: Resolution,
    brought: Sequence[Root],
    lacking: Mapping[str, Hole],
    cured: Mapping[str, Finding],
) -> Resolution:
    """A resolution with what closing taught as reasons, and the request as the user made it."""
    from ..model.resolution import Reason

    taught = {
        root.text: Reason(
            "required",
            f"what is not in the matrix requires {root.specifier or 'it'}",
            requirement=root.specifier,
        )
        for root in brought
    }
    taught.update(
        {
            text: Reason("refused", f"not {hole.version}: {hole.text}")
            for text, hole in lacking.items()
        }
    )
    taught.update(
        {
            text: Reason("row", f"another one: {finding.message}", finding.row or finding.code)
            for text, finding in cured.items()
        }
    )

    return again.with_reasons(taught)._replace(
        request=first.request, notes=first.notes, passed=first.passed
    )


def _day(as_of: Optional[str], roots: Sequence[Root], matrix: Matrix) -> Tuple[Optional[str], str]:
    """Return the as-of date, and the pinned requirement that it follows from (empty where it is the
    user's own or there is none).
    """
    if as_of is None or as_of == "latest":
        return None, ""
    if as_of != "release":
        check_date(as_of)
        return as_of, ""
    dated = [
        (day, root.text)
        for root in roots
        if root.specifier.startswith("==")
        for day in [_released(root.name, try_version(root.specifier.lstrip("=")), matrix)]
        if day
    ]
    if not dated:
        return None, ""
    newest, text = max(dated)
    day = _plus_days(newest, _GRACE)
    return (day, text) if day < str(matrix.date) else (None, "")


def _released(name: str, version: Optional[Version], matrix: Matrix) -> Optional[str]:
    package = matrix.package(name)
    release = package.release(version) if package is not None and version is not None else None
    return release.released if release is not None else None


def _plus_days(day: str, days: int) -> str:
    from datetime import date, timedelta

    return (date(*map(int, day.split("-"))) + timedelta(days)).isoformat()


def _later(resolution: Resolution, matrix: Matrix) -> List[str]:
    """The pins that the as-of date does not bind."""
    day = resolution.request.as_of
    return [
        pin.name
        for pin in resolution.pins
        if day is not None and (_released(pin.name, pin.version, matrix) or "") > day
    ]


def _much_newer(resolution: Resolution, matrix: Matrix) -> List[str]:
    """Say where what is asked for is much older than what is taken with it: nobody has tested
    that.
    """
    asked = {root.name for root in resolution.request.roots}
    dated = [
        (day, pin)
        for pin in resolution.pins
        for day in [_released(pin.name, pin.version, matrix)]
        if day
    ]
    old = max(((day, pin) for day, pin in dated if pin.name in asked), default=None)
    if old is None:
        return []
    limit = _plus_days(old[0], _MUCH_NEWER)
    newer = [pin for day, pin in dated if day > limit]
    if not newer:
        return []
    shown = ", ".join(f"{pin.name} {pin.version}" for pin in newer[:3]) + (
        " ..." if len(newer) > 3 else ""
    )
    advice = f"--as-of {_plus_days(old[0], _GRACE)} takes what there was then"
    return [
        (
            f"{old[1].name} {old[1].version} is of {old[0]}, but {shown} came more than a year "
            "later; "
            f"{advice}"
        )
    ]


def check_date(text: Optional[str]) -> None:
    """Raise :class:`InputError` for what is no ISO date; None is fine."""
    import time

    if text is None:
        return

    try:
        time.strptime(text, "%Y-%m-%d")
    except ValueError as error:
        raise InputError(f"--as-of: expected a date such as 2025-06-30, found {text!r}") from error
    if len(text) != 10:
        raise InputError(f"--as-of: expected a date such as 2025-06-30, found {text!r}")


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


def _usual_architecture(facts: Sequence[Facts], matrix: Matrix) -> str:
    """The architecture of targets that do not tell theirs: that of the boards that their GPUs are
    on.
    """
    from ..matrix.derive import usual_architecture

    usual = {usual_architecture(entry, matrix) for entry in facts}
    return "aarch64" if usual == {"aarch64"} else "x86_64"


def _verified(resolution: Resolution, facts: Sequence[Facts], matrix: Matrix) -> Resolution:
    """Judge every target with the pins installed, and name what check warns of: an error that the
    target does not have anyway is a fault of ours.
    """
    findings = _findings(resolution, facts, matrix)
    for problem in _problems(findings):
        raise InternalFault(f"check refuses what was resolved: {problem}")
    if resolution.requires.platform != "linux":
        # what a release requires of drivers, GPUs and glibc was read from its wheels for Linux
        needs = resolution.requires._replace(driver=None, glibc=None, cuda=None, sm=())
        resolution = resolution._replace(requires=needs)
    return _warned(resolution, findings)


def _findings(resolution: Resolution, facts: Sequence[Facts], matrix: Matrix) -> List[Finding]:
    """What check finds on the targets with everything installed, beside what they have anyway."""
    from ..rules import judge
    from .solver.objective import applied

    findings = []
    for entry in facts:
        own = {finding.key for finding in judge(entry, matrix, today=str(matrix.date))}
        findings += [
            finding
            for finding in judge(applied(resolution, entry), matrix, today=str(matrix.date))
            if finding.verdict == "violated" and finding.key not in own
        ]
    return findings


def _problems(findings: Sequence[Finding]) -> List[str]:
    """The errors, in words, each once."""
    errors = [finding for finding in findings if finding.severity == "error"]
    return list(dict.fromkeys(f"{finding.code} {finding.message}" for finding in errors))


def _warned(resolution: Resolution, findings: Sequence[Finding]) -> Resolution:
    """Add the warnings of check about packages that no row among those of the solver says: of
    rules, and of what closing added. What is built beside its torch is not what a rule about wheels
    speaks of.
    """
    from ..model.resolution import Reason

    built = {pin.name for pin in resolution.pins if pin.build is not None}
    names = {pin.name for pin in resolution.pins} | {line.name for line in resolution.closure.lines}
    named = {reason.row for reason in resolution.warnings}
    more = {}
    for finding in findings:
        row = finding.row or finding.code
        of_wheels = finding.kind == "abi-mismatch" and finding.component in built
        speaks = finding.severity == "warning" and finding.component in names and not of_wheels
        if speaks and row not in named:
            kind = finding.effect or "degrades"
            more[row, finding.message] = Reason(kind, finding.message, row, finding.sources)
    return resolution._replace(warnings=(*resolution.warnings, *more.values()))
