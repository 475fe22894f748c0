"""The objective, and the answer in words of packages.

A total order, so that there is one right answer: fewest overrides; then no root years behind, and
the roots that no other requires behind by the fewest months in all (``staleness``); then the roots,
requirers first and else in the order asked, each the best of its table (not yanked, newest, the
default index, a wheel); then no row that
does not bind is violated, wrong results first, then what is only reported to fail, then what
degrades, by id; then everything else, requirers before what they require and by name, each
likewise. What is not needed is absent. Where something is installed and ``prefer`` names it, that
version stands first in its table.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...matrix.bind import Subject, bind
from ...model.evidence import Evidence, Known
from ...model.facts import PACKAGE_GROUPS, Distribution, Facts, fields_of
from ...model.lock_file import machine_of
from ...model.resolution import Override, Pin, Reason, Resolution
from ...model.row import Row, Source
from .candidates import Candidate, Catalog, bits_of
from .engine import Outcome
from .problem import Problem, Why, build_problem
from .requires import requires_of, with_packages
from .source_builds import step_of
from .staleness import optimum

__all__ = [
    "Attempt",
    "answer",
    "applied",
    "attempt",
    "resolution_of",
    "target_words",
]


class Attempt(NamedTuple):
    """One search: the problem, what came of it, and the number of overrides that it was allowed.

    newest: of each root, the bit of the newest release that the targets admit alone.
    """

    problem: Problem
    outcome: Outcome
    overrides: int
    newest: Mapping[str, int] = {}


def answer(catalog: Catalog, facts: Sequence[Facts]) -> Optional[Resolution]:
    """Return the best resolution, or None."""
    found = attempt(catalog, facts)
    return resolution_of(found, catalog, facts) if found.outcome.model is not None else None


def attempt(catalog: Catalog, facts: Sequence[Facts], *, complete: bool = False) -> Attempt:
    """Search with as few overrides as it takes; the last attempt where none suffices."""
    allowed = 0
    while True:
        problem = build_problem(
            catalog, facts, complete=complete, overrides_allowed=allowed, costs=True
        )
        problem, outcome, newest = optimum(problem, catalog.request.roots)
        if outcome.model is not None or allowed >= len(problem.overrides):
            return Attempt(problem, outcome, allowed, newest)
        blamed = any(_why(problem, number).kind == "override" for number in outcome.core)
        if not blamed:  # more overrides change nothing
            return Attempt(problem, outcome, allowed)
        allowed += 1


def _why(problem: Problem, number: int) -> Why:
    why: Why = problem.nogoods[number].why
    return why


# --------------------------------------------------------------------------------------------------
# the answer


class _Chosen(NamedTuple):
    candidate: Candidate
    bit: int


def resolution_of(found: Attempt, catalog: Catalog, facts: Sequence[Facts]) -> Resolution:
    """Return a solved attempt in words of packages."""
    problem, model = found.problem, found.outcome.model or ()
    chosen: Dict[str, _Chosen] = {}
    extras: Dict[str, List[str]] = {}
    for node, bit in zip(problem.nodes, model):
        table = problem.tables.get(node)
        if table is None or bit == table.absent:
            continue
        name, _, extra = node.partition("[")
        if extra:
            extras.setdefault(name, []).append(extra[:-1])
        else:
            chosen[name] = _Chosen(table.at(bit), bit)
    bits = dict(zip(problem.nodes, model))
    overrides = (*_overrides(problem, bits, chosen), *_replaced(catalog, chosen, extras))
    torch = chosen["torch"].candidate.version if "torch" in chosen else None
    pins = []
    for name in sorted(chosen):
        candidate = chosen[name].candidate
        pins.append(
            Pin(
                name,
                candidate.version,
                candidate.index_name,
                tuple(sorted(extras.get(name, ()))),
                tuple(_reasons(name, problem, bits, catalog, overrides)),
                candidate.release.yanked,
                candidate.from_source,
                tuple(
                    sorted(
                        {
                            edge.name.partition("[")[0]
                            for edge in problem.edges
                            if edge.requirer.partition("[")[0] == name
                            and bits[edge.requirer] & edge.bits
                        }
                        - {name}
                    )
                ),
                step_of(candidate.build, candidate.subject.attributes, torch)
                if candidate.build is not None
                else None,
            )
        )
    subjects = {name: entry.candidate.subject for name, entry in chosen.items()}
    settings = dict(catalog.request.settings)
    for nogood, row in problem.settings:
        if all(model[variable] & mask for variable, mask in nogood.terms):
            settings[row.mitigations[0].component] = row.mitigations[0].value
    return Resolution(
        request=catalog.request,
        pins=tuple(pins),
        overrides=overrides,
        requires=requires_of(
            subjects,
            catalog.matrix,
            python=catalog.request.python,
            platform=catalog.request.platform,
            architecture=catalog.request.architecture,
            devices=_kinds_of_devices(problem),
        ),
        settings=settings,
        warnings=tuple(_warnings(catalog, problem, subjects)),
        matrix_date=catalog.matrix.date,
        targets=tuple(target_words(entry) for entry in facts),
        machines=tuple(machine_of(entry) for entry in facts),
    )


def _overrides(
    problem: Problem, bits: Dict[str, int], chosen: Dict[str, _Chosen]
) -> Tuple[Override, ...]:
    found = []
    for option in problem.overrides:
        if bits[option.node] != 0b01:
            continue
        for edge in problem.edges:
            if (
                (edge.requirer, edge.name) == (option.requirer, option.name)
                and bits[edge.requirer] & edge.bits
                and not edge.allowed & bits[edge.name]
            ):
                version = str(chosen[option.requirer].candidate.version)
                fixed = str(chosen[option.name].candidate.version)
                row = option.row
                found.append(
                    Override(
                        option.requirer,
                        version,
                        option.name,
                        edge.specifier,
                        fixed,
                        row.id,
                        row.title,
                        row.sources,
                    )
                )
    return tuple(found)


def _replaced(
    catalog: Catalog, chosen: Mapping[str, _Chosen], extras: Mapping[str, Sequence[str]]
) -> Tuple[Override, ...]:
    """The metadata edges that the request itself breaks."""
    request = catalog.request
    title = f"the maintainers install {request.profile} so"
    return tuple(
        Override(
            name,
            str(chosen[name].candidate.version),
            root.name,
            specifier,
            str(chosen[root.name].candidate.version),
            f"profile {request.profile}",
            title,
            (Source(request.origin),),
        )
        for name in sorted(chosen)
        for root, specifier in catalog.broken(name, chosen[name].candidate, extras.get(name, ()))
        if root.name in chosen
    )


def _reasons(
    name: str,
    problem: Problem,
    bits: Dict[str, int],
    catalog: Catalog,
    overrides: Sequence[Override],
) -> List[Reason]:
    """Why this package, and why not a better release of it."""
    reasons = [
        Reason("asked", f"asked for: {root.text}", requirement=root.text)
        for root in catalog.request.roots
        if root.name == name
    ]
    broken = [override for override in overrides if override.name == name]
    admitted = problem.tables[name].all
    for edge in problem.edges:
        if (
            edge.name.partition("[")[0] != name
            or not bits[edge.requirer] & edge.bits
            or edge.requirer.partition("[")[0] == name
        ):
            continue
        requirer, _, extra = edge.requirer.partition("[")
        release = problem.tables[requirer].at(bits[requirer]).version
        shown = f"{requirer}{'[' + extra if extra else ''} {release}"
        if any(override.requirer == requirer for override in broken):
            continue
        reason = Reason(
            "required",
            f"{shown} requires {edge.specifier or 'it'}",
            requirer=edge.requirer,
            requirement=edge.specifier,
        )
        if edge.name == name and reason not in reasons:
            reasons.append(reason)
        admitted &= edge.allowed
    if not reasons and not broken:
        reasons += _asked_by_rows(name, problem, bits, catalog)
    for override in broken:
        text = (
            f"overrides {override.requirer} {override.requirer_version}, which asks for "
            f"{override.specifier}: {override.title}"
        )
        reasons.append(Reason("override", text, override.row, override.sources))
    if not broken:
        for root in catalog.request.roots:
            if root.name == name:
                admitted &= problem.tables[name].mask(root.specifier)
        refused = _refused(name, problem, bits, admitted, catalog)
        rows = [reason.row for reason in refused]
        reasons += refused + [
            reason
            for reason in _avoided(name, problem, bits, admitted, catalog)
            if reason.row not in rows
        ]
    candidate = problem.tables[name].at(bits[name])
    if candidate.release.yanked:
        reasons.append(Reason("yanked", "this release was yanked; nothing else meets the request"))
    if candidate.from_source:
        reasons.append(
            Reason("source-build", "the index has no wheel of it: it is built when it is installed")
        )
    reasons += [Reason("inferred", item.text) for item in candidate.inferred]
    if candidate.index_name != "pypi":
        reasons.append(Reason("index", f"a build from the index {candidate.index_name}"))
    return reasons


def _asked_by_rows(
    name: str, problem: Problem, bits: Mapping[str, int], catalog: Catalog
) -> List[Reason]:
    """The rows that what is chosen would violate without this package: no metadata asks for it."""
    number, absent = problem.nodes.index(name), problem.tables[name].absent
    found = []
    for nogood in problem.nogoods:
        why: Why = nogood.why
        masks = dict(nogood.terms)
        others = all(
            bits[problem.nodes[other]] & mask for other, mask in masks.items() if other != number
        )
        if (
            why.kind in ("row", "cost")
            and why.row is not None
            and masks.get(number, 0) & absent
            and others
        ):
            row = catalog.matrix.complete(why.row)
            found.append(Reason("row", row.title, row.id, row.sources))
    return found[:2]


def _refused(
    name: str, problem: Problem, bits: Dict[str, int], admitted: int, catalog: Catalog
) -> List[Reason]:
    """Return why the best release that the requirers admit was not taken, where a row about the
    targets or a build says so.
    """
    number = problem.nodes.index(name)
    better = admitted & problem.variables[number].domain & (bits[name] - 1)
    for bit in bits_of(better):
        # What the targets refuse comes before what only follows from another choice.
        for nogood in sorted(problem.nogoods, key=lambda nogood: not nogood.why.limits):
            why: Why = nogood.why
            if why.kind not in ("row", "build") or why.row is None:
                continue
            masks = dict(nogood.terms)
            if (
                number in masks
                and masks[number] & bit
                and all(
                    bits[problem.nodes[other]] & mask
                    for other, mask in masks.items()
                    if other != number
                )
            ):
                row = why.row if why.kind == "build" else catalog.matrix.complete(why.row)
                return [
                    Reason(
                        "refused",
                        f"not {problem.tables[name].at(bit).version}: {row.title}",
                        row.id,
                        row.sources,
                    )
                ]
        break
    return []


def _avoided(
    name: str, problem: Problem, bits: Mapping[str, int], admitted: int, catalog: Catalog
) -> List[Reason]:
    """Return the row that does not bind and for whose sake a better release was not taken."""
    number = problem.nodes.index(name)
    better = admitted & problem.variables[number].domain & (bits[name] - 1)
    hit: List[Tuple[int, Row]] = []
    for nogood in problem.nogoods:
        masks = dict(nogood.terms)
        row = nogood.why.row
        if nogood.why.kind != "cost" or row is None or not masks.get(number, 0) & better:
            continue
        if all(
            bits[problem.nodes[other]] & mask for other, mask in masks.items() if other != number
        ):
            hit.append(((masks[number] & better).bit_length(), row))
    if not hit:
        return []
    # The one that reaches down to what was taken.
    worst, row = max(hit, key=lambda entry: (entry[0], entry[1].id))
    complete = catalog.matrix.complete(row)
    return [
        Reason(
            "refused",
            f"not {problem.tables[name].at(1 << worst - 1).version}: {complete.title}",
            row.id,
            complete.sources,
        )
    ]


def _kinds_of_devices(problem: Problem) -> List[Subject]:
    """Return the devices of all targets, each kind once and in one order."""
    kinds = {
        tuple(sorted((key, str(value)) for key, value in device.attributes.items())): device
        for target in problem.targets
        for device in target.gpus or ()
    }
    return [kinds[key] for key in sorted(kinds)]


def _warnings(catalog: Catalog, problem: Problem, subjects: Dict[str, Subject]) -> List[Reason]:
    """Return the rows that the chosen set violates on a target without being blocked by them."""
    found: Dict[str, Reason] = {}
    for row in catalog.matrix.rows_about(sorted(subjects)):
        if row.effect == "note" or (row.effect == "blocks" and row.trust == "established"):
            continue
        for target in problem.targets:
            own = with_packages(target, subjects)._replace(variable=target.variable)
            if row.id not in found and bind(row, own).outcome == "violated":
                complete = catalog.matrix.complete(row)
                found[row.id] = Reason(row.effect, complete.title, row.id, complete.sources)
    return [found[key] for key in sorted(found)]


def target_words(facts: Facts) -> str:
    """Return a target in words: its name, devices, driver and glibc, as far as they are known."""
    parts: List[str] = []
    counts: Dict[str, int] = {}
    for device in facts.value("gpus") or ():
        if device.visible is not False:
            counts[device.name or "GPU"] = counts.get(device.name or "GPU", 0) + 1
    parts += [f"{count} × {name}" if count > 1 else name for name, count in counts.items()]
    if facts.value("driver.release"):
        parts.append(f"driver {facts.value('driver.release')}")
    if facts.value("glibc.version"):
        parts.append(f"glibc {facts.value('glibc.version')}")
    return ", ".join(parts) or "a machine of which nothing is known"


def applied(found: Resolution, facts: Facts) -> Facts:
    """Return a target as it will be with the pins installed and the settings made: what ``check``
    has to accept.
    """
    here = Evidence("resolution")
    installed = {line.name: Distribution(line.name, line.version) for line in found.closure.lines}
    installed.update({pin.name: Distribution(pin.name, str(pin.version)) for pin in found.pins})
    python = facts.value("python.version") or found.request.python
    # The pins replace what is installed; a cluster that runs here now is not what a lock is for.
    replaced = fields_of(*PACKAGE_GROUPS, "cluster")
    return Facts(
        {
            **{field: fact for field, fact in facts if field not in replaced},
            "os.platform": Known(found.request.platform, here),
            "os.architecture": Known(found.request.architecture, here),
            "python.version": Known(
                python if str(python).startswith(found.requires.python) else found.request.python,
                here,
            ),
            "distributions": Known(installed, here),
            "distributions.complete": Known(True, here),
            "variables": Known({**(facts.value("variables") or {}), **found.settings}, here),
        }
    )
