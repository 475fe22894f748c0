"""Why a request has no resolution, and what would give it one.

The leaves of the refutation are grouped (one edge of metadata, one row, one request is one group)
and groups are dropped while the rest still
refutes: metadata first, then requests, what the hardware says last. What remains is a minimal set
of true causes; what would give a resolution, ``ways_out`` tries.
"""

from __future__ import annotations

from typing import (
    Container,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ...errors import InternalFault
from ...matrix.bind import Target
from ...model.facts import Facts
from ...model.request import Request
from ...model.resolution import Explanation, Statement
from ...model.row import Row, Source
from ...model.versions import Version
from . import objective
from .boards import board_statements
from .candidate_table import CandidateTable, bits_of
from .candidates import Catalog
from .engine import Nogood, solve
from .inference import INFERRED_WORDS
from .misfit import ASK, NEED
from .problem import Problem, Why, base_of
from .staleness import days_behind, years
from .ways_out import Loosened, ways_out

__all__ = [
    "WORDS_OF_MANY",
    "Refusal",
    "explain",
    "minimal_groups",
    "refusal_of",
    "release_words",
    "statements",
]

_DROP_ORDER = {"build": 0, "metadata": 1, "row": 2, "request": 3, "behind": 3, "host": 4}
#: Nogoods that say how things are, and are no cause of anything.
_STRUCTURE = ("extra", "override")
#: Limits that are no property of a machine.
_OF_REQUEST = frozenset(("python", "date"))
_PIECES = 3
_LINES = 11
#: Kinds of causes, those first that stay where some have to go.
_CUT_LAST = ("request", "hardware", "python", "date", "build", "row", "metadata")
#: Releases that are left out of a range by name, and ranges that are named one by one.
_LEFT_OUT = 2
_RUNS = 3
#: Ways in which releases do not fit that are told apart, and what is said of more, by limit.
_TEXTS = 2
WORDS_OF_MANY = {
    "python": "exclude this Python or have no wheel for it",
    "glibc": "all ask for a newer glibc",
    "metadata": "have requirements that pip 24.1 and newer refuse",
}
#: Limits that are a kind of cause of their own; all others are what the hardware says.
_KINDS_OF_LIMITS = ("python", "date", "metadata")

Key = Tuple[str, ...]


class Refusal(NamedTuple):
    """Why a request has no resolution: groups of nogoods that refute the problem together, none of
    which can be left out, and what they say.
    """

    problem: Problem
    groups: Dict[Key, List[Nogood]]
    causes: Tuple[Statement, ...]

    @property
    def rests_on(self) -> Set[str]:
        """What of "date" and "python" another value might change: what releases require may hang on
        the Python.
        """
        kinds = {why.kind for why in self.reasons()}
        limits = {limit for why in self.reasons() for limit in why.limits}
        return (limits & {"date", "python"}) | ({"python"} if "metadata" in kinds else set())

    def reasons(self) -> Iterator[Why]:
        """What each group rests on."""
        for group in self.groups.values():
            yield group[0].why


def refusal_of(catalog: Catalog, facts: Sequence[Facts]) -> Refusal:
    """Find why a request has no resolution: what holds whatever the Python and the date, where that
    suffices.
    """
    refusal = _refusal_of(catalog, facts, ())
    if refusal is None:
        raise InternalFault("a request without resolution has one when it is to be explained")
    if any(why.limits & _OF_REQUEST for why in refusal.reasons()):
        return _refusal_of(catalog, facts, _OF_REQUEST) or refusal
    return refusal


def _refusal_of(
    catalog: Catalog, facts: Sequence[Facts], lifted: Container[str]
) -> Optional[Refusal]:
    search = objective.attempt(catalog, facts, complete=True, lifted=lifted)
    if search.outcome.model is not None:
        return None
    groups = minimal_groups(search.problem, search.outcome.core)
    return Refusal(search.problem, groups, tuple(statements(search.problem, groups, catalog)))


def explain(
    catalog: Catalog,
    facts: Sequence[Facts],
    refusal: Optional[Refusal] = None,
    loosened: Optional[Sequence[Loosened]] = None,
    with_ways: bool = True,
) -> Explanation:
    """Explain a request that has no resolution.

    refusal: where it is known already. loosened: the roots whose bounds can be given up; by default
    all. with_ways: whether ways out are looked for, which takes a search each.
    """
    refusal = refusal or refusal_of(catalog, facts)
    causes = _shown(refusal, catalog)
    if any(cause.kind == "hardware" for cause in causes):
        causes = (*causes, *board_statements(facts, catalog.matrix))
    return Explanation(
        catalog.request,
        tuple(causes),
        tuple(
            ways_out(catalog, facts, refusal.problem, refusal.groups, loosened) if with_ways else ()
        ),
        tuple(objective.target_words(entry) for entry in facts),
    )


def _shown(refusal: Refusal, catalog: Catalog) -> Sequence[Statement]:
    """The causes; where they are too many to be read, those that exclude what is young of the
    roots, of these what was measured before what packages require, and how many more there are, of
    either sort.
    """
    causes = refusal.causes
    if len(causes) <= _LINES:
        return causes
    against_young = statements(refusal.problem, _against_young(refusal, catalog), catalog)
    kept = sorted(against_young, key=lambda cause: _CUT_LAST.index(cause.kind))[:_LINES]
    shown = [cause for cause in against_young if cause in kept]
    cut, older = len(against_young) - len(shown), len(causes) - len(against_young)
    of_older = "without which older releases would do"
    if not cut:
        more = f"and {older} more, {of_older}"
    else:
        more = f"and {cut} more against young releases"
        more += f", and {older} {of_older}" if older else ""
    return (*shown, Statement("metadata", more))


def _against_young(refusal: Refusal, catalog: Catalog) -> Dict[Key, List[Nogood]]:
    """The groups of a refusal that suffice where no root may be more than a year behind the newest
    release that was asked for.
    """
    problem = refusal.problem
    asked = [variable.domain for variable in problem.variables]
    for variable, mask in _asked_away(refusal.groups):
        asked[variable] &= ~mask
    young = []
    for name in dict.fromkeys(root.name for root in catalog.request.roots):
        number, table = problem.nodes.index(name), problem.tables[name]
        releases = asked[number] & table.all
        if not releases:
            continue
        days = days_behind(table, releases, releases & -releases)
        old = sum(bit for bit, count in days.items() if years(count))
        young.append(Nogood(((number, old),), Why("behind", ("behind", name))))
    return _needed(problem, refusal.groups, young)


def _why(problem: Problem, number: int) -> Why:
    why: Why = problem.nogoods[number].why
    return why


def minimal_groups(problem: Problem, core: Iterable[int]) -> Dict[Key, List[Nogood]]:
    """Return groups of nogoods that together refute a problem, none of which can be left out."""
    groups: Dict[Key, List[Nogood]] = {}
    for number in sorted(core):
        why = _why(problem, number)
        if why.kind not in _STRUCTURE:
            groups.setdefault(why.key, []).append(problem.nogoods[number])
    if any(_why(problem, number).kind == "override" for number in core):
        # An edge that an override could not mend stays an edge.
        named = {(option.requirer, option.name) for option in problem.overrides}
        for nogood in problem.nogoods:
            edge = nogood.why.edge
            if (
                edge is not None
                and (edge.requirer, edge.name) in named
                and nogood.why.kind == "metadata"
            ):
                group = groups.setdefault(nogood.why.key, [])
                if nogood not in group:
                    group.append(nogood)

    return _needed(problem, groups, ())


def _needed(
    problem: Problem, groups: Dict[Key, List[Nogood]], assumed: Sequence[Nogood]
) -> Dict[Key, List[Nogood]]:
    """Drop groups while the rest still refutes a problem, beside what is assumed."""
    structure = [nogood for nogood in problem.nogoods if nogood.why.kind in _STRUCTURE]
    needed = dict(groups)

    def drop_rank(key: Key) -> Tuple[int, bool, Key]:
        why = groups[key][0].why
        return (
            _DROP_ORDER[why.kind] if not (why.kind == "row" and why.limits) else 5,
            bool(why.limits),
            key,
        )

    for key in sorted(groups, key=drop_rank):
        rest = [nogood for other, group in needed.items() if other != key for nogood in group]
        if solve(problem.variables, [*structure, *assumed, *rest]).model is None:
            del needed[key]
    return needed


# --------------------------------------------------------------------------------------------------
# sentences


def statements(
    problem: Problem, groups: Dict[Key, List[Nogood]], catalog: Catalog
) -> List[Statement]:
    """Word the causes: requests, metadata, builds, rows, limits."""
    reachable = [variable.domain for variable in problem.variables]
    for variable, mask in _asked_away(groups):
        reachable[variable] &= ~mask
    statements: List[Tuple[int, Key, Statement]] = []
    for key, group in groups.items():
        why: Why = group[0].why
        if why.kind == "request":
            text = f"you asked for {why.text}"
            statements.append((0, key, Statement("request", text, requirement=key[1])))
        elif why.kind == "metadata":
            text = _edge_words(problem, group, reachable)
            statements.append(
                (1, key, Statement("metadata", text, sources=(Source("package metadata"),)))
            )
        elif why.kind == "host":
            statements.append(
                (3, key, _limit_statement(problem, group, reachable, why, catalog.request))
            )
        elif why.row is not None:
            statements.append(
                (
                    2 if not why.limits else 4,
                    key,
                    _row_statement(problem, group, reachable, why, catalog),
                )
            )
    return [statement for _, _, statement in sorted(statements, key=lambda entry: entry[:2])]


def _asked_away(groups: Mapping[Key, Sequence[Nogood]]) -> Iterator[Tuple[int, int]]:
    """Yield the variables of which a request alone excludes values, with these."""
    for group in groups.values():
        for nogood in group:
            if len(nogood.terms) == 1 and nogood.why.kind == "request":
                yield nogood.terms[0]


def _edge_words(problem: Problem, group: Sequence[Nogood], reachable: Sequence[int]) -> str:
    """``vllm 0.20.0 to 0.26.0 need torch 2.11.0; 0.27.0 needs 2.13.0``."""
    pieces: Dict[str, int] = {}
    node = wanted = ""
    for nogood in group:
        edge = nogood.why.edge
        if edge is None:
            continue
        number = problem.nodes.index(edge.requirer)
        bits = edge.bits & reachable[number]
        node, wanted = edge.requirer, base_of(edge.name)
        if wanted == base_of(node):
            wanted = edge.name
        if bits:
            pieces[edge.specifier] = pieces.get(edge.specifier, 0) | bits
    table = problem.tables[node]
    if wanted.startswith(f"{node}["):
        joined = sum(pieces.values())
        extra, verb = wanted[len(node) + 1 : -1], ASK.of(_is_many(table, joined))
        releases = release_words(table, joined)
        return f"{node} {releases} {verb} for torch only with the extra {extra}"
    ordered = sorted(
        pieces.items(), key=lambda piece: min(table.at(bit).version for bit in bits_of(piece[1]))
    )
    if len(ordered) > _PIECES:
        joined = 0
        for _, bits in ordered:
            joined |= bits
        shown = "; ".join(
            f"{release_words(table, bits)}: {_plain(specifier) or 'any'}"
            for specifier, bits in (ordered[0], ordered[-1])
        )
        subject = f"{node} {release_words(table, joined)}"
        if all(specifier.startswith("==") for specifier, _ in ordered):
            return f"{subject} need {wanted} of one release each ({shown})"
        return f"{subject} each need their own range of {wanted} ({shown})"
    parts = []
    for place, (specifier, bits) in enumerate(ordered):
        releases = f"{'' if place else node + ' '}{release_words(table, bits)}"
        required = f"{'' if place else wanted + ' '}{_plain(specifier)}"
        parts.append(f"{releases} {NEED.of(_is_many(table, bits))} {required}".rstrip())
    gone = not any(nogood.why.edge.allowed for nogood in group if nogood.why.edge is not None)
    return "; ".join(parts) + (", which the index does not have" if gone else "")


def _plain(specifier: str) -> str:
    return (
        specifier[2:]
        if specifier.startswith("==") and "," not in specifier and "*" not in specifier
        else specifier
    )


def release_words(table: CandidateTable, bits: int) -> str:
    """Name releases: ``0.20.0 to 0.26.0``; where others lie between, these are left out by name, or
    the runs are named, or only how many they are.
    """
    named = {table.at(bit).version for bit in bits_of(bits & table.all)}
    first, last = min(named, default=None), max(named, default=None)
    if first is None or last is None:
        return ""
    runs: List[List[Version]] = []
    between: List[Version] = []
    follows = False
    for version in sorted({candidate.version for candidate in table.candidates}):
        if version in named:
            if not follows:
                runs.append([])
            runs[-1].append(version)
        elif first < version < last and not version.is_prerelease:
            between.append(version)
        else:
            continue
        follows = version in named
    if between and len(between) <= _LEFT_OUT and len(runs) > 1:
        return f"{first} to {last} but {' and '.join(map(str, between))}"
    if len(runs) <= _RUNS:
        return ", ".join(map(_run_words, runs))
    return f"{len(named)} releases from {first} to {last}"


def _is_many(table: CandidateTable, bits: int) -> bool:
    """Tell whether candidates are of more than one release."""
    return len({table.at(bit).version for bit in bits_of(bits & table.all)}) > 1


def _run_words(run: Sequence[Version]) -> str:
    if len(run) < 2:
        return str(run[0])
    return f"{run[0]} {'and' if len(run) == 2 else 'to'} {run[-1]}"


def _spoken_of(
    problem: Problem, group: Sequence[Nogood], reachable: Sequence[int]
) -> Iterator[Tuple[str, CandidateTable, int]]:
    """Yield the nodes that nogoods speak of, each with its table and the candidates."""
    masks: Dict[int, int] = {}
    for nogood in group:
        for variable, mask in nogood.terms:
            masks[variable] = masks.get(variable, 0) | mask
    for variable, mask in sorted(masks.items()):
        table = problem.tables.get(problem.nodes[variable])
        if table is not None:
            yield problem.nodes[variable], table, mask & reachable[variable] or mask


def _subjects(problem: Problem, group: Sequence[Nogood], reachable: Sequence[int]) -> str:
    """Name the releases that nogoods speak of."""
    spoken_of = _spoken_of(problem, group, reachable)
    named = [(node, release_words(table, bits)) for node, table, bits in spoken_of]
    return " with ".join(f"{node} {words}" for node, words in named if words)


def _limit_statement(
    problem: Problem, group: Sequence[Nogood], reachable: Sequence[int], why: Why, request: Request
) -> Statement:
    misfits = [nogood.why.misfit for nogood in group if nogood.why.misfit is not None]
    limit = why.key[1]
    many = any(_is_many(*spoken[1:]) for spoken in _spoken_of(problem, group, reachable))
    texts = list(dict.fromkeys(misfit.words(many) for misfit in misfits))
    shown = " or ".join(texts)
    asked = {"glibc": f"; the target has glibc {_glibc(problem)}" if _glibc(problem) else ""}
    if len(texts) > _TEXTS and limit in WORDS_OF_MANY:
        shown = WORDS_OF_MANY[limit]
        asked["python"] = f"; this is for Python {request.python}"
    return Statement(
        next((kind for kind in _KINDS_OF_LIMITS if kind in why.limits), "hardware"),
        f"{_subjects(problem, group, reachable)} {shown}{asked.get(limit, '')}",
    )


def _glibc(problem: Problem) -> str:
    known = [
        version
        for target in problem.targets
        for version in [target.host.attributes.get("glibc")]
        if isinstance(version, Version)
    ]
    return str(min(known)) if known else ""


def _row_statement(
    problem: Problem, group: Sequence[Nogood], reachable: Sequence[int], why: Why, catalog: Catalog
) -> Statement:
    row: Row = why.row  # type: ignore[assignment]
    if why.kind != "build":
        row = catalog.matrix.complete(row)
    subjects = _subjects(problem, group, reachable)
    text = f"{subjects}: {row.title}" if subjects else row.title
    text += _unread_words(problem, group, reachable, row)
    has = [
        _has(problem.targets[number], why.limits)
        for number in (why.targets or range(len(problem.targets)))
    ]
    properties = list(dict.fromkeys(words for words in has if words))
    if why.limits and properties:
        text += f"; the target has {' or '.join(properties)}"
    return Statement("hardware" if why.limits else why.kind, text, row.id, row.sources)


def _unread_words(
    problem: Problem, group: Sequence[Nogood], reachable: Sequence[int], row: Row
) -> str:
    """Say of which releases it was not read what a row speaks of."""
    words = ""
    for name, what in {(term.component, term.attribute): None for term in row.terms}:
        node = problem.nodes.index(name) if name in problem.tables else -1
        masks = [mask for nogood in group for number, mask in nogood.terms if number == node]
        unread = 0
        for bit in bits_of(_joined(masks) & reachable[node] if masks else 0):
            if bit & problem.tables[name].all:
                inferred = problem.tables[name].at(bit).inferred
                unread |= bit if any(item.attribute == what for item in inferred) else 0
        if unread:
            releases = release_words(problem.tables[name], unread)
            words += (
                f"; the {INFERRED_WORDS[what]} of {name} {releases} was not read, and is taken to "
                "be that of neighbours"
            )
    return words


def _joined(masks: Iterable[int]) -> int:
    joined = 0
    for mask in masks:
        joined |= mask
    return joined


def _has(target: Target, limits: FrozenSet[str]) -> str:
    """What a target has of the limits that a row rests on."""
    parts = []
    if "driver" in limits and "driver" in target.host.attributes:
        parts.append(f"driver {target.host.attributes['driver']}")
    if "gpu" in limits:
        for device in target.gpus or ():
            sm = device.attributes.get("sm")
            model = device.attributes.get("model", "a GPU")
            parts.append(f"{model} (compute capability {sm})" if sm else f"{model}")
    named = [
        name
        for name in ("glibc", "python", "toolkit", "platform")
        if name in limits and name in target.host.attributes
    ]
    parts += [f"{name} {target.host.attributes[name] or 'none'}" for name in named]
    return ", ".join(parts)
