"""Matrix rows that the facts violate, as findings.

What a row means is ``matrix.bind``'s to say; this module only words it.
"""

from __future__ import annotations

from ..matrix.bind import Binding, Subject, bind
from ..model.evidence import Evidence
from ..model.finding import Finding, Remedy, severity_rank
from ..model.record import NamedTuple
from ..model.report import Judged
from ..model.row import Row, Term
from ..model.versions import VersionSet
from .presumption import Presumption, presume, presumed_of, with_unset_variables
from .rule import Context, distribution_evidence, is_unindexed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Tuple

__all__ = ["SEVERITY_OF_EFFECT", "findings_of_rows", "remedies_of_row"]

#: Severity by effect of an established row; what was only reported never is an error.
SEVERITY_OF_EFFECT = {
    "blocks": "error",
    "degrades": "warning",
    "wrong-results": "warning",
    "note": "advice",
}

_HOST_FIELDS = {
    "driver": "driver.release",
    "cuda": "driver.release",
    "ptx": "driver.release",
    "glibc": "glibc.version",
    "python": "python.version",
    "toolkit": "toolkit.version",
    "platform": "os.platform",
    "architecture": "os.architecture",
    "container": "container.runtime",
}
_HOST_WORDS = {
    "driver": "driver",
    "cuda": "driver",
    "ptx": "driver",
    "glibc": "glibc",
    "python": "Python",
    "toolkit": "CUDA toolkit",
}

#: Pins on what pip does not install.
_HOST_PINS = frozenset(["nvidia-driver", "nvidia-fabricmanager", "cuda-compat", "python", "glibc"])


class _Hit(NamedTuple):
    row: Row
    finding: Finding
    packages: Tuple[str, ...]  # "torch 2.11.0+cu130", as the message names them


def findings_of_rows(context: Context) -> Iterator[Finding]:
    """Bind every row that speaks of something present, and yield what is violated or lacks one
    single fact.

    A row that lacks something is bound again with what may be presumed (``presumption``): if that
    violates it, it is a warning.
    """
    hits: List[_Hit] = []
    gaps: Dict[Tuple[str, ...], List[_Hit]] = {}
    unset = context._replace(target=with_unset_variables(context.target))
    presumed = presume(context)
    names = list(context.distributions)
    if presumed is not None:
        names += [
            name for name in presumed.context.distributions if name not in context.distributions
        ]
    complete = context.facts.value("distributions.complete") is True and presumed is None
    rows = context.matrix.rows_about(names, complete)
    if context.examined is not None:
        without_gpu = context.target.gpus == ()
        for row in rows:
            in_vain = without_gpu and any(term.scope == "gpu" for term in row.terms)
            context.examined.add(Judged(row.code, row.id, True, in_vain))
    for row in rows:
        binding = bind(row, unset.target)
        if binding.outcome == "violated":
            hits.append(_violated(unset, context.matrix.complete(row), binding))
            continue
        if binding.outcome != "undetermined":
            continue
        where = unset
        if presumed is not None and (
            row.effect == "blocks" or (row.effect == "degrades" and row.trust == "established")
        ):
            again = bind(row, presumed.context.target)
            if again.outcome == "violated":
                hits.append(_presumed(presumed, context.matrix.complete(row), again))
                continue
            if again.outcome == "satisfied":
                continue
            where, binding = presumed.context, again
        missing = _single_gap(row, binding, where)
        if missing is not None:
            hit = _undetermined(where, context.matrix.complete(row), binding, missing)
            # Rows made for every GPU generation or CUDA major ask one question, not one for each.
            question = (
                (hit.finding.code, hit.finding.component, hit.finding.kind, hit.finding.missing)
                if _is_derived(hit.row)
                else (hit.row.id,)
            )
            gaps.setdefault(question, []).append(hit)
    yield from _merged(hits)
    for group in gaps.values():
        yield _one_question(group)


def _single_gap(row: Row, binding: Binding, context: Context) -> Optional[Term]:
    """Return the one term that is missing and worth asking for, where a package or a device is
    known to meet the rest of the row.

    Not worth it: packages and launch settings that nobody mentioned (every row would be
    "undetermined"), and whether a driver knows a GPU that it lists.
    """
    subjects = {_subject_key(term) for term in binding.missing}
    if len(subjects) != 1:
        return None
    if not any(term.scope in ("env", "gpu") and term not in binding.missing for term in row.terms):
        return None
    first = binding.missing[0]
    if (
        first.scope in ("var", "request")
        or row.code == "ED109"
        or (first.scope == "env" and first.component not in context.distributions)
    ):
        return None
    return first


def _subject_key(term: Term) -> Tuple[str, str, str]:
    """Terms about the same fact are one gap: ``driver`` below one and above another bound, all
    attributes of the GPUs.
    """
    if term.scope == "gpu":
        return ("gpu", "", "")
    return (term.scope, term.component, "" if term.scope == "env" else term.attribute)


def _violated(context: Context, row: Row, binding: Binding) -> _Hit:
    """Word a violated row: its title, then every value that made it apply."""
    severity = (
        SEVERITY_OF_EFFECT[row.effect]
        if row.trust == "established"
        else "advice"
        if row.effect == "note"
        else "warning"
    )
    own = _builds_of_ones_own(context, row)
    if severity == "error" and own:
        severity = "warning"
    values, evidence, packages = _values(context, row, binding)
    message = f"{row.title}: found {', '.join(values)}." if values else f"{row.title}."
    if own:
        message += (
            f" {' and '.join(own)} {'is a build' if len(own) == 1 else 'are builds'} that "
            "no index has, and may differ from the release."
        )
    finding = Finding(
        code=row.code,
        component=row.component,
        kind=row.kind,
        severity=severity,
        message=message,
        evidence=tuple(evidence),
        sources=row.sources,
        remedies=remedies_of_row(row),
        row=row.id,
        trust=row.trust,
        packages=row.packages,
    )
    return _Hit(row, finding, tuple(packages))


def _presumed(presumption: Presumption, row: Row, binding: Binding) -> _Hit:
    """Word a row that a presumption completes: never an error, and the presumption is named."""
    hit = _violated(presumption.context, row, binding)
    named = presumed_of(row.packages, presumption.why)
    tail = (
        f" (presumed: {'; '.join(named)})."
        if named
        else " (presumed: a machine with x86_64 processors)."
    )
    finding = hit.finding._replace(
        severity="warning" if hit.finding.severity == "error" else hit.finding.severity,
        message=hit.finding.message[:-1] + tail,
    )
    return _Hit(row, finding, hit.packages)


def _is_derived(row: Row) -> bool:
    return row.origin == "derived" or ":" in row.id


def _one_question(group: List[_Hit]) -> Finding:
    """Make one finding of the undetermined rows that wait for the same fact about the same
    thing.
    """
    finding = group[0].finding
    if len(group) == 1:
        return finding
    packages = list(dict.fromkeys(package for hit in group for package in hit.packages))
    shown = ", ".join(packages) or finding.component
    return finding._replace(
        row="",
        subject="",
        message=f"Whether {shown} {'fits' if len(packages) < 2 else 'fit'} depends on "
        f"{finding.missing}, which is not known.",
        severity=min((hit.finding.severity for hit in group), key=severity_rank),
        evidence=_union([hit.finding.evidence for hit in group]),
        sources=_union([hit.finding.sources for hit in group]),
        remedies=(),
        packages=_union([hit.finding.packages for hit in group]),
    )


def _undetermined(context: Context, row: Row, binding: Binding, missing: Term) -> _Hit:
    values, evidence, packages = _values(context, row, binding)
    known = f" found {', '.join(values)};" if values else ""
    finding = Finding(
        code=row.code,
        component=row.component,
        kind=row.kind,
        severity=SEVERITY_OF_EFFECT[row.effect] if row.trust == "established" else "advice",
        message=f"{row.title}:{known} whether it applies depends on {_name_of(missing)}, which is "
        "not known.",
        verdict="undetermined",
        evidence=tuple(evidence),
        sources=row.sources,
        remedies=remedies_of_row(row),
        row=row.id,
        trust=row.trust,
        missing=_name_of(missing),
        packages=row.packages,
    )
    return _Hit(row, finding, tuple(packages))


def _builds_of_ones_own(context: Context, row: Row) -> List[str]:
    """Return the distributions that no index has and the order of whose version decides this row:
    rows are made of what was published.
    """
    found = []
    for term in row.terms:
        if (
            term.scope == "env"
            and term.attribute == "version"
            and term.operator in ("in", "lacks")
            and term.component not in found
        ):
            installed = context.distributions.get(term.component)
            if installed is not None and is_unindexed(installed):
                found.append(term.component)
    return found


def _values(
    context: Context, row: Row, binding: Binding
) -> Tuple[List[str], List[Evidence], List[str]]:
    """Return the values behind the terms that hold, their evidence, and those of them that are
    packages.
    """
    values: List[str] = []
    evidence: List[Evidence] = []
    packages: List[str] = []

    def add(value: str, *sources: Optional[Evidence]) -> None:
        if value not in values:
            values.append(value)
            evidence.extend(
                source for source in sources if source is not None and source not in evidence
            )

    details: Dict[str, List[str]] = {}
    for term in row.terms:
        if (
            term.scope == "env"
            and term not in binding.missing
            and term.attribute not in ("version",)
            and term.operator != "present"
        ):
            text = _detail(context, term)
            if text and text not in details.setdefault(term.component, []):
                details[term.component].append(text)
    for term in row.terms:
        if term in binding.missing:
            continue
        if term.scope == "env":
            found = context.distributions.get(term.component)
            if found is None:
                add(f"no {term.component}", context.facts.evidence("distributions"))
                continue
            extra = details.get(term.component)
            text = f"{found.name} {found.version}" if found.version else found.name
            text += f" ({', '.join(extra)})" if extra else ""
            add(text, distribution_evidence(context.facts, found))
            if text not in packages:
                packages.append(text)
        elif term.scope == "gpu":
            add(_devices(context, row, binding), context.facts.evidence("gpus"))
        elif term.scope == "host":
            field = _HOST_FIELDS.get(term.attribute, "")
            value = context.facts.value(field) if field else None
            if value is not None:
                add(
                    f"{_HOST_WORDS.get(term.attribute, term.attribute)} {value}",
                    context.facts.evidence(field),
                )
        elif term.scope == "var":
            variable = context.target.variable(term.component)
            shown = (
                f"{term.component}={variable.attributes.get('value')}"
                if variable.present
                else f"{term.component} not set"
            )
            add(shown, Evidence(f"environment variable {term.component}"))
        else:
            asked = context.target.request(term.component)
            if asked.present:
                add(
                    f"{term.component}={asked.attributes.get('value')}",
                    context.facts.evidence("request"),
                )
    return values, evidence, packages


def _detail(context: Context, term: Term) -> str:
    """Word one attribute of a build: what it was compiled with, or what it has no code for."""
    if context.target.environment is None:
        return ""
    value = context.target.environment(term.component).attributes.get(term.attribute)
    if value is None:
        return ""
    if term.attribute == "cuda":
        return f"CUDA {value}"
    if term.attribute == "ptx_cuda":
        return f"PTX of CUDA {value}"
    if term.attribute == "torch":
        return f"built for torch {value}"
    if term.attribute == "glibc":
        return f"needs glibc {value}"
    if term.attribute == "cxx11abi":
        return f"C++11 ABI {value}"
    if term.attribute == "code":
        return "code for " + " ".join(
            sorted(
                (
                    name.replace("sass:", "sm_").replace(".", "").replace("ptx:", "ptx_")
                    for name in value
                ),
                key=_sm_order,
            )
        )
    return "" if isinstance(value, (frozenset, VersionSet)) else f"{term.attribute} {value}"


def _sm_order(name: str) -> Tuple[int, str]:
    digits = "".join(letter for letter in name if letter.isdigit())
    return (int(digits or 0), name)


def _devices(context: Context, row: Row, binding: Binding) -> str:
    """Name every kind of visible device on which the row holds, not only the first."""
    devices = context.target.gpus or ()
    if binding.outcome == "violated" and len(devices) > 1:
        hit = [
            device
            for device in devices
            if bind(row, context.target._replace(gpus=(device,))).outcome == "violated"
        ]
    else:
        hit = (
            [devices[binding.gpu]]
            if binding.gpu is not None and binding.gpu < len(devices)
            else list(devices)
        )
    return ", ".join(sorted({_device(device) for device in hit})) or "the GPU"


def _device(device: Subject) -> str:
    attributes: Any = device.attributes
    sm = attributes.get("sm")
    name = attributes.get("model") or "GPU"
    return f"{name} (sm_{str(sm).replace('.', '')})" if sm else str(name)


def _name_of(term: Term) -> str:
    """Name a missing fact the way a person would ask for it."""
    if term.scope == "env":
        return (
            f"the version of {term.component}"
            if term.attribute == "version" or term.operator == "present"
            else f"the build of {term.component}"
        )
    if term.scope == "gpu":
        return "the GPU"
    if term.scope == "host":
        return {
            "driver": "the NVIDIA driver release",
            "cuda": "the NVIDIA driver release",
            "ptx": "the NVIDIA driver release",
            "glibc": "the glibc version",
            "python": "the Python version",
            "toolkit": "the CUDA toolkit version",
        }.get(term.attribute, f"the host's {term.attribute}")
    if term.scope == "var":
        return f"the environment variable {term.component}"
    return f"the launch setting {term.component}"


def _pin_name(pin: str) -> str:
    end = next(
        (
            place
            for place, sign in enumerate(pin)
            if not (sign.isascii() and sign.isalnum()) and sign not in "._-"
        ),
        len(pin),
    )
    return pin[:end]


def remedies_of_row(row: Row) -> Tuple[Remedy, ...]:
    """Return a row's fix with the commands that carry it out, and its mitigations as further
    ways.
    """
    remedies = []
    if row.fix or row.pins:
        text = row.fix or f"Install {', '.join(row.pins)}."
        if row.overrides:
            edges = ", ".join(edge.replace(" -> ", "'s requirement on ") for edge in row.overrides)
            text += f" This overrides {edges}; pip will warn of it, and envdoctor accepts it."
        pins = [pin for pin in row.pins if _pin_name(pin) not in _HOST_PINS]
        commands = ("pip install " + " ".join(f"'{pin}'" for pin in pins),) if pins else ()
        on_host = (
            not pins
            and (row.pins or row.code[:3] in ("ED1", "ED5"))
            and not _is_about_a_package(row)
        )
        remedies.append(
            Remedy(text, commands, "changes-host" if on_host else "changes-environment")
        )
    for mitigation in row.mitigations:
        setting = f"{mitigation.component}={mitigation.value}"
        remedies.append(
            Remedy(
                f"{'Or set' if remedies else 'Set'} {setting}; with it this problem does "
                "not occur.",
                (f"export {setting}",),
                "safe",
            )
        )
    return tuple(remedies)


def _merged(hits: List[_Hit]) -> Iterator[Finding]:
    """Yield one finding for rows that name the same cause outside the packages.

    Six packages of CUDA 13 on one old driver are one old driver. Rows whose component is one of
    their own packages stay apart, as each has its own remedy, but for a special case of another.
    """
    groups: Dict[Tuple[str, str, str, str], List[_Hit]] = {}
    rows = [hit.row for hit in hits]
    for hit in hits:
        row = hit.row
        own = _is_about_a_package(row) or row.code.endswith("90")
        general = _general_row(row, rows).id if own else ""
        groups.setdefault((row.code, row.component, row.kind, general), []).append(hit)
    for group in groups.values():
        # The gravest speaks for all; among equals the highest CUDA (ids end in versions), and torch
        # before what rests on it.
        group.sort(key=lambda hit: (not hit.row.id.endswith(":torch"), hit.row.id))
        group.sort(key=lambda hit: hit.row.id.partition(":")[0], reverse=True)
        group.sort(key=lambda hit: severity_rank(hit.finding.severity))
        first = group[0]
        others = [hit for hit in group if hit is not first]
        if not others:
            yield first.finding
            continue
        named = set(first.packages)
        also: List[str] = []
        for hit in others:
            also.extend(
                package for package in hit.packages if package not in named and package not in also
            )
        finding = first.finding
        yield finding._replace(
            message=finding.message + (f" The same holds for {', '.join(also)}." if also else ""),
            evidence=_union([hit.finding.evidence for hit in (first, *others)]),
            sources=_union([hit.finding.sources for hit in (first, *others)]),
            remedies=_union([hit.finding.remedies for hit in (first, *others)]),
            rows=tuple(hit.row.id for hit in others if hit.finding.severity == finding.severity),
            packages=_union([hit.finding.packages for hit in (first, *others)]),
        )


def _general_row(row: Row, rows: List[Row]) -> Row:
    """Return the row of which this one is a special case: of the same fault and source, and with
    fewer terms; itself where there is none.
    """

    def includes(other: Row) -> bool:
        return (
            (row.code, row.component, row.kind) == (other.code, other.component, other.kind)
            and _first_address(row) == _first_address(other)
            and len(other.terms) < len(row.terms)
            and all(term in row.terms for term in other.terms)
        )

    return next(filter(includes, rows), row)


def _first_address(row: Row) -> str:
    return row.sources[0].address if row.sources else row.id


def _is_about_a_package(row: Row) -> bool:
    return any(term.scope == "env" and term.component == row.component for term in row.terms)


def _union(groups: List[Any]) -> Tuple[Any, ...]:
    found: List[Any] = []
    for group in groups:
        found.extend(entry for entry in group if entry not in found)
    return tuple(found)
