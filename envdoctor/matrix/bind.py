"""The meaning of a row: ``truth`` of one term, ``bind`` of a whole row.

Check and the solver call these and nothing else.
"""

from __future__ import annotations

from ..model.record import NamedTuple
from ..model.row import Row, Term
from ..model.versions import VersionSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple

    from ..model.row import Mitigation

__all__ = ["Binding", "Subject", "Target", "bind", "truth"]

_NOTHING: Mapping[str, Any] = {}


class Subject(NamedTuple):
    """What a term speaks of: a candidate, a device, the host, a variable or the request.

    present: True, False, or None where that is not known. attributes: values by name; a missing
    name is not known. Versions are :class:`packaging.version.Version`, or a :class:`VersionSet`
    where only a range is known; sets of labels are frozensets of strings.
    """

    present: Optional[bool] = None
    attributes: Mapping[str, Any] = _NOTHING


class Target(NamedTuple):
    """One target of binding.

    gpus: one subject for each kind of visible device; empty is a machine without devices, None is
    not known.
    environment: distribution name -> candidate; None leaves env terms free (the solver's question).
    """

    host: Subject
    gpus: Optional[Tuple[Subject, ...]]
    variable: Callable[[str], Subject]
    request: Callable[[str], Subject]
    environment: Optional[Callable[[str], Subject]] = None


class Binding(NamedTuple):
    """What became of a row. ``outcome``: satisfied, violated, undetermined or residual.

    missing: the terms that could not be judged (undetermined). residual: the env terms that all
    have to hold for a violation (residual). gpu: index of the device for which the outcome holds.
    """

    outcome: str
    missing: Tuple[Term, ...] = ()
    residual: Tuple[Term, ...] = ()
    gpu: Optional[int] = None


_SATISFIED = Binding("satisfied")


def truth(term: Term, subject: Subject) -> Optional[bool]:
    """Judge one term: True, False, or None where the subject does not tell.

    A ``lacks`` term holds of an absent subject; every other operator does not. Cost: one look-up
    and one membership test.
    """
    if term.operator == "present":
        return None if subject.present is None else subject.present is term.argument
    if subject.present is not True:
        return None if subject.present is None else term.operator == "lacks"
    value = subject.attributes.get(term.attribute)
    if value is None:
        return None
    argument = term.argument
    if isinstance(argument, VersionSet):
        if isinstance(value, VersionSet):
            # Only a range is known: it tells where it lies wholly inside or outside.
            common = value & argument
            if common and common != value:
                return None
            holds = bool(common)
        else:
            holds = value in argument
    elif isinstance(argument, frozenset):
        holds = value in argument if isinstance(value, str) else not argument.isdisjoint(value)
    else:
        return None
    return holds is not (term.operator == "lacks")


def bind(row: Row, target: Target) -> Binding:
    """Apply a row to a target.

    Any term False: satisfied. All True: violated. Else undetermined; where only env terms are free
    and the target leaves the environment open: residual, the nogood over packages that the solver
    takes. A constant that is not known never becomes a residual: unknown hardware does not
    constrain. All gpu terms bind to the same device, each kind of device is tried, and the worst
    outcome counts.
    """
    device_terms = [term for term in row.terms if term.scope == "gpu"]
    residual = []
    missing = []
    for term in row.terms:
        if term.scope == "gpu":
            continue
        if term.scope == "env" and target.environment is None:
            residual.append(term)
            continue
        holds = truth(term, _subject(term, target))
        if holds is False:
            return _SATISFIED
        if holds is None:
            missing.append(term)
    if any(_is_set(mitigation, target) for mitigation in row.mitigations):
        return _SATISFIED
    if not device_terms:
        return _finish(missing, residual, None)
    if target.gpus is None:
        return _finish([*missing, *device_terms], residual, None)
    bindings = [
        _finish(missing + unknown, residual, index)
        for index, unknown in _devices_in(device_terms, target.gpus)
    ]
    decided = [binding for binding in bindings if binding.outcome != "undetermined"]
    return next(iter([*decided, *bindings]), _SATISFIED)


def _subject(term: Term, target: Target) -> Subject:
    """Return what a term of any scope but ``gpu`` speaks of."""
    if term.scope == "host":
        return target.host
    if term.scope == "var":
        return target.variable(term.component)
    if term.scope == "env" and target.environment is not None:
        return target.environment(term.component)
    return target.request(term.component)


def _is_set(mitigation: Mitigation, target: Target) -> bool:
    variable = target.variable(mitigation.component)
    return bool(variable.present) and variable.attributes.get("value") == mitigation.value


def _devices_in(
    terms: Sequence[Term], devices: Sequence[Subject]
) -> Iterator[Tuple[int, List[Term]]]:
    """Yield each device of which no term is False, with the terms that it leaves unknown."""
    for index, device in enumerate(devices):
        answers = [truth(term, device) for term in terms]
        if False not in answers:
            yield index, [term for term, holds in zip(terms, answers) if holds is None]


def _finish(missing: Any, residual: Any, gpu: Optional[int]) -> Binding:
    if missing:
        return Binding("undetermined", tuple(missing), tuple(residual), gpu)
    if residual:
        return Binding("residual", (), tuple(residual), gpu)
    return Binding("violated", (), (), gpu)
