"""Use case: what a resolution needs besides its pins, added by uv and judged, in rounds."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Callable,
    Container,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ..errors import InputError, suggest
from ..model.facts import Facts
from ..model.pattern import pattern
from ..model.versions import parse_version
from .as_of import released_on
from .verification import findings_of, problems_in, verified, warned

if TYPE_CHECKING:
    from ..matrix.loader import Matrix
    from ..model.finding import Finding
    from ..model.request import Root
    from ..model.resolution import Closure, Hole, Resolution
    from .closing.index_sources import IndexSources

__all__ = ["close"]

#: How often the core is chosen again with what uv says about packages that the matrix does not
#: know.
_ROUNDS = 6
_EARLY = pattern(r"\d(?:a|b|rc|\.dev)\d")


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
    rounds = _Rounds(first, facts, matrix, sources, allow_build, progress)
    settled: Optional[Resolution] = None  # closed, with warnings that another choice may spare
    for _ in range(_ROUNDS):
        closed, learned = rounds.judged(rounds.closure())
        if closed.closure.state != "refused":
            if settled is not None and len(closed.warnings) >= len(settled.warnings):
                return settled
            settled = closed
        if not rounds.choose_again(learned):
            return settled or closed
    return settled or closed


class _Rounds:
    """What each round of closing learns, and the core that is chosen with it."""

    def __init__(
        self,
        first: Resolution,
        facts: Sequence[Facts],
        matrix: Matrix,
        sources: IndexSources,
        allow_build: Sequence[str],
        progress: Callable[[str], None],
    ) -> None:
        self._first, self._core = first, first
        self._facts, self._matrix = facts, matrix
        self._sources, self._allow_build, self._progress = sources, allow_build, progress
        self._glibc = _lowest_glibc(facts)
        self._brought: Tuple[Root, ...] = ()
        self._lacking: Dict[str, Hole] = {}  # by the requirement that follows from it
        self._cured: Dict[str, Finding] = {}  # likewise

    def closure(self) -> Closure:
        """Let uv close the core.

        Raises:
            InputError: a request that neither the matrix nor an index knows.
        """
        from .closing.closure import UnknownName
        from .closing.closure import close as close_with_uv

        try:
            return close_with_uv(
                self._core,
                self._sources,
                glibc=self._glibc,
                later=_later(self._core, self._matrix),
                allow_build=self._allow_build,
                progress=self._progress,
            )
        except UnknownName as error:
            near = suggest(error.name, self._matrix.package_names, 0.8)
            raise InputError(f"{error}{near}") from error

    def judged(self, closure: Closure) -> Tuple[Resolution, List[Root]]:
        """Return the core with what uv added, refused where check refuses that, and what to ask
        for besides in the next round.
        """
        from ..model.request import parse_root
        from ..model.resolution import Closure

        notes = [f"the date does not bind {', '.join(closure.late)}"] if closure.late else []
        notes += [
            f"{extra}: there is no such extra, so it adds nothing" for extra in closure.extras
        ]
        holes = [hole.text for hole in self._lacking.values()]
        closed = self._core._replace(closure=closure, notes=(*self._first.notes, *holes, *notes))
        findings = findings_of(closed, self._facts, self._matrix) if closure.is_closed else []
        problems = problems_in(findings)
        if problems:
            refusal = Closure(
                "refused",
                "check refuses what uv added to the pins",
                "\n".join(problems),
                tool=closure.tool,
            )
            strangers = _asked_by_strangers(closure, self._core, self._matrix)
            errors = [finding for finding in findings if finding.severity == "error"]
            cures = _cures(errors, self._matrix.packages_known)
            self._cured.update(cures)
            learned = [*strangers, *map(parse_root, cures)]
            return self._first._replace(closure=refusal), learned
        if closure.state == "refused":
            self._lacking.update({f"{hole.name}!={hole.version}": hole for hole in closure.holes})
            return closed, [parse_root(text) for text in (*closure.conflicts, *self._lacking)]
        free = {line.name for line in closure.lines if self._core.pin(line.name) is None}
        of_added = [
            finding
            for finding in findings
            if finding.severity == "warning" and finding.component in free
        ]
        self._cured.update(_cures(of_added, free))
        return warned(closed, findings), [parse_root(text) for text in self._cured]

    def choose_again(self, learned: Sequence[Root]) -> bool:
        """Choose the core with what was learned; False where that is nothing new, or no help."""
        from ..model.resolution import Resolution
        from .solver import resolve
        from .solver.engine import GaveUp

        for more in _lessons([root for root in learned if root not in self._brought]):
            roots = (*self._first.request.roots, *self._brought, *more)
            try:
                answer = resolve(
                    self._core.request._replace(roots=roots), self._facts, self._matrix
                )
            except GaveUp:  # what was closed before stands, with uv's refusal
                return False
            if isinstance(answer, Resolution):
                why = "; ".join(_why_again(more, self._lacking, self._cured))
                self._progress(f"choosing again: {why}")
                self._brought = (*self._brought, *more)
                again = _as_asked(answer, self._first, self._brought, self._lacking, self._cured)
                self._core = verified(again, self._facts, self._matrix)
                return True
        return False


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
        if any(name not in matrix.packages_known for name in line.via)
        and line.name in matrix.packages_known
        and core.pin(line.name) is None
    ]


def _cures(findings: Sequence[Finding], choices: Container[str]) -> Dict[str, Finding]:
    """Return what check would install against these findings, by requirement: of each the first
    remedy that is about packages that may be chosen.
    """
    from ..model.calls import InstallerCall
    from ..model.request import parse_root

    cures: Dict[str, Finding] = {}
    for finding in findings:
        for remedy in finding.remedies:
            texts = [
                text
                for call in remedy.commands
                if isinstance(call, InstallerCall) and call.action == "install"
                for text in call.packages
                if parse_root(text).name in choices
            ]
            cures.update(dict.fromkeys(texts, finding))
            if texts:
                break
    return cures


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


def _later(resolution: Resolution, matrix: Matrix) -> List[str]:
    """The pins that the as-of date does not bind."""
    day = resolution.request.as_of
    return [
        pin.name
        for pin in resolution.pins
        if day is not None and (released_on(pin.name, pin.version, matrix) or "") > day
    ]
