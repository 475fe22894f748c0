"""Events of logs, joined with facts: what failed first, what followed from it, how sure that is,
and what would decide.

The words come from ``matrices/signatures.toml`` and from the rows' symptoms; this module only
weighs them. A line that says itself what is wrong is a cause. An effect (a process died, a peer is
gone) is put under the nearest cause before it that can have led to it; where there is none, the
causes that may stand behind it are suspects: one that the facts confirm is named, one that they
refute is left out, the others are listed with what would decide.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..matrix.bind import bind
from ..matrix.schema import default_code
from ..matrix.signatures import distribution_of, packages_of
from ..model.cause_tree import cause_tree
from ..model.diagnosis import Suspect, Trace
from ..model.evidence import Absent, Evidence, Known
from ..model.finding import Finding, Remedy
from ..model.log import Event, LogLine
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.row import Row
from ..model.signature import CONFIDENCES, Condition, Hypothesis, Signature
from ..rules.matrix_rows import remedies_of_row
from ..rules.rule import Context

__all__ = ["Knowledge", "code_of", "explain"]

_SEVERITY = {
    "established": ("error", "violated"),
    "likely": ("warning", "violated"),
    "candidate": ("warning", "undetermined"),
}
_SHOWN_LINES = 3
_SLACK = 90.0  # seconds by which the clocks of two writers may differ
_SEGMENT = pattern(r"\[([^\[\]]*)\]")
_GROUP = pattern(r"\{([\w|@]+)\}")
_MODULE_GROUPS = ("frame", "library", "module", "name")
#: Findings of a check that explain any binary that does not fit, whichever it is about.
_ABOUT_ALL = ("ED304", "ED203", "ED201", "ED202", "ED204", "ED205", "ED207", "ED208")
_MEMORY_KINDS = ("host-oom", "gpu-oom", "kv-cache-too-small", "swap-space-too-large")
_SPECIFIC = 24  # characters from which a symptom that all its rows share is likely theirs


class Knowledge(NamedTuple):
    """What lines mean: signatures by id, the rows of symptoms by pattern, and what installs a
    module of another name.
    """

    signatures: Mapping[str, Signature]
    symptoms: Mapping[str, Tuple[str, ...]]
    modules: Mapping[str, str]


def explain(
    events: Sequence[Event],
    knowledge: Knowledge,
    contexts: Sequence[Context],
    findings: Sequence[Finding],
) -> Tuple[List[Trace], List[Finding]]:
    """Return the traces, roots first and each with its consequences behind it, and the findings of
    which no line speaks.

    Args:
        events: what was found in the logs, in the order in which it was read.
        knowledge: what the patterns mean.
        contexts: facts and matrix of each node; what holds on one of them may be the cause, what is
            refuted is so on all.
        findings: what a check of these facts found.
    """
    drafts = _drafts(events, knowledge)
    _join_rows(drafts, events, knowledge, contexts, findings)
    _join_findings(drafts, knowledge, findings)
    _weigh_causes(drafts, contexts, findings, knowledge.modules)
    _link(drafts)
    _merge(drafts)
    traces = _arranged(drafts)
    spoken = {trace.finding.key for trace in traces}
    return traces, [
        finding
        for finding in findings
        if finding.key not in spoken and finding.caused_by not in spoken
    ]


class _Draft:
    """A trace in the making."""

    def __init__(
        self,
        signature: Optional[Signature],
        finding: Finding,
        certainty: str,
        role: str,
        events: List[Event],
    ) -> None:
        self.signature = signature
        self.finding = finding
        self.certainty = certainty
        self.role = role
        self.events = events
        self.parent: Optional[_Draft] = None
        self.suspects: List[Suspect] = []

    @property
    def order(self) -> int:
        return min((event.order for event in self.events), default=0)

    @property
    def first(self) -> Optional[LogLine]:
        return min(self.events, key=lambda event: event.order).first if self.events else None

    def under(self, other: _Draft) -> bool:
        """Tell whether this draft is ``other`` or one of its consequences."""
        current: Optional[_Draft] = self
        while current is not None:
            if current is other:
                return True
            current = current.parent
        return False


# --------------------------------------------------------------------------------------------------
# from events


def _drafts(events: Sequence[Event], knowledge: Knowledge) -> List[_Draft]:
    """Make one draft for each signature and each component that its lines name."""
    found: Dict[Tuple[str, str], _Draft] = {}
    for event in events:
        signature = knowledge.signatures.get(event.pattern)
        if signature is None:
            continue
        groups = _groups(event, knowledge.modules)
        component = fill(signature.component, groups)
        known = found.get((signature.id, component))
        if known is not None:
            if len(groups) > max(len(_groups(other, knowledge.modules)) for other in known.events):
                # The fullest of its lines is the one to be quoted: Ray says first that it killed,
                # and then with which numbers.
                known.finding = _finding(signature, component, groups, known.certainty)
            known.events.append(event)
            continue
        certainty = signature.certainty or "candidate"
        found[signature.id, component] = _Draft(
            signature,
            _finding(signature, component, groups, certainty),
            certainty,
            signature.role,
            [event],
        )
    return list(found.values())


def _groups(event: Event, modules: Mapping[str, str]) -> Dict[str, str]:
    """The groups of an event; a trailing digit tells alternatives of one group apart, and the path
    of a library becomes its distribution.
    """
    groups: Dict[str, str] = {}
    for name, value in event.groups.items():
        groups.setdefault(name.rstrip("23"), value)
    return {
        **groups,
        **{
            f"@{name}": distribution_of(groups[name], modules)
            for name in _MODULE_GROUPS
            if name in groups
        },
    }


def fill(text: str, groups: Mapping[str, str]) -> str:
    """Fill {group}s in, {one|other} with the first that is there; a [part] is left out where one of
    its groups is not there.
    """

    def value(names: str) -> Optional[str]:
        return next((groups[name] for name in names.split("|") if name in groups), None)

    def part(match: re.Match[str]) -> str:
        return (
            match.group(1)
            if all(value(names) is not None for names in _GROUP.findall(match.group(1)))
            else ""
        )

    return _GROUP.sub(lambda match: value(match.group(1)) or "?", _SEGMENT.sub(part, text))


def _finding(
    signature: Signature, component: str, groups: Mapping[str, str], certainty: str
) -> Finding:
    # The component of a signature that says "{library}" is what installs it.
    component = fill(
        _GROUP.sub(
            lambda match: (
                "{" + "|".join(f"@{name}|{name}" for name in match.group(1).split("|")) + "}"
            ),
            signature.component,
        ),
        groups,
    )
    severity, verdict = _SEVERITY[certainty]
    kind = signature.kind or "not-judged"
    return Finding(
        code=_code(component, kind),
        component=component or signature.layer,
        kind=kind,
        severity=severity,
        message=f"{fill(signature.title, groups)}.",
        verdict=verdict,
        subject=signature.id,
        sources=(signature.source,),
        remedies=_remedies(fill(signature.fix, groups), signature.commands),
        trust=signature.trust,
    )


def code_of(signature: Signature) -> str:
    """Return the code under which a signature is reported, as far as no group of its line
    decides.
    """
    return _code(signature.component, signature.kind or "not-judged")


def _code(component: str, kind: str) -> str:
    """The code of what a log says: that of its family, ending in 95."""
    if kind in _MEMORY_KINDS:
        return "ED695"
    if kind == "version-mismatch-across-nodes" or component == "ray":
        return "ED795"
    return f"{default_code(component, kind)[:3]}95"


def _remedies(fix: str, commands: Tuple[str, ...]) -> Tuple[Remedy, ...]:
    return (Remedy(fix, commands),) if fix or commands else ()


# --------------------------------------------------------------------------------------------------
# rows and findings


def _join_rows(
    drafts: List[_Draft],
    events: Sequence[Event],
    knowledge: Knowledge,
    contexts: Sequence[Context],
    findings: Sequence[Finding],
) -> None:
    """Rows whose symptom stands in a log: what the facts say of them decides."""
    for event in events:
        rows = [
            row
            for row in (
                contexts[0].matrix.row(name) for name in knowledge.symptoms.get(event.pattern, ())
            )
            if row is not None
        ]
        if not rows:
            continue
        refuted = {
            row.id
            for row in rows
            if all(bind(row, context.target).outcome == "satisfied" for context in contexts)
        }
        here = [
            draft for draft in drafts if any(_same_line(event, other) for other in draft.events)
        ]
        beside = [draft for draft in here if draft.role == "cause"]
        violated = [
            finding
            for finding in findings
            if finding.verdict == "violated" and any(_speaks_for(finding, row) for row in rows)
        ]
        if violated:
            for draft in (_confirm(drafts, finding, [event]) for finding in violated):
                _put_under(beside, draft)
            continue
        open_rows = [row for row in rows if row.id not in refuted]
        if not open_rows:
            continue
        named = [row for row in open_rows if event.near is None or packages_of(row) <= event.near]
        only = (
            named[0]
            if len(named) == 1
            and named[0].trust == "established"
            and named[0].effect in ("blocks", "degrades")
            else None
        )
        # An effect on this line has its own suspects: then the symptom is too common to tell.
        if (
            only is not None
            and beside == here
            and len(event.pattern) - len("symptom:") >= _SPECIFIC
        ):
            _put_under(beside, _of_row(drafts, only, event))
        else:
            open_rows = named or open_rows
            for draft in here or [_of_row(drafts, open_rows[0], event, "candidate")]:
                draft.suspects += [_suspect_of_row(row, bool(named)) for row in open_rows[:4]]


def _speaks_for(finding: Finding, row: Row) -> bool:
    return row.id == finding.row or row.id in finding.rows


def _same_line(first: Event, second: Event) -> bool:
    return (first.first.source, first.first.number) == (second.first.source, second.first.number)


def _put_under(drafts: Iterable[_Draft], root: _Draft) -> None:
    for draft in drafts:
        if draft is not root and draft.parent is None and not root.under(draft):
            draft.parent = root


def _confirm(drafts: List[_Draft], finding: Finding, events: Iterable[Event]) -> _Draft:
    """Return the draft of a finding of the check, made where there is none, with these lines."""
    for draft in drafts:
        if draft.finding.key == finding.key:
            draft.events += [event for event in events if event not in draft.events]
            return draft
    certainty = "established" if finding.severity == "error" else "likely"
    made = _Draft(None, finding._replace(caused_by=None), certainty, "cause", list(events))
    drafts.append(made)
    return made


def _of_row(drafts: List[_Draft], row: Row, event: Event, certainty: str = "likely") -> _Draft:
    """Make a draft of a row of which the facts do not tell whether it holds, but whose very symptom
    stands in the log.
    """
    severity, verdict = _SEVERITY[certainty]
    finding = Finding(
        row.code,
        row.component,
        row.kind,
        severity,
        f"{row.title}: its symptom is in the log; the facts do not tell the versions."
        if certainty == "likely"
        else f"The log says: {event.pattern[8:]}.",
        verdict,
        sources=row.sources,
        remedies=remedies_of_row(row) if certainty == "likely" else (),
        row=row.id,
        trust=row.trust,
        packages=row.packages,
    )
    for draft in drafts:
        if draft.finding.key == finding.key:
            draft.events.append(event)
            return draft
    made = _Draft(None, finding, certainty, "cause", [event])
    drafts.append(made)
    return made


def _suspect_of_row(row: Row, named: bool) -> Suspect:
    names = sorted(packages_of(row))
    collect = (
        (f"the version{'s' if len(names) > 1 else ''} of {', '.join(names)}",) if names else ()
    )
    confidence = "medium" if named and row.trust == "established" else "low"
    return Suspect(
        row.title, row.component, row.kind, confidence, remedies_of_row(row), collect, row.id
    )


def _join_findings(drafts: List[_Draft], knowledge: Knowledge, findings: Sequence[Finding]) -> None:
    """Findings of the check that say of the environment what a line says of the run: they are the
    root of that line.
    """
    for draft in list(drafts):
        signature = draft.signature
        if signature is None or not signature.codes or draft.parent is not None:
            continue
        matching = [
            finding
            for finding in findings
            if finding.verdict == "violated"
            and _says_the_same(finding, draft, signature, knowledge)
        ]
        if not matching:
            continue
        # The nearest first: the same component, then the gravest.
        matching.sort(
            key=lambda finding: (
                finding.component != draft.finding.component,
                finding.severity != "error",
            )
        )
        root = _confirm(drafts, matching[0], draft.events)
        for other in matching[1:]:
            also = _confirm(drafts, other, draft.events)
            if also is not root and also.parent is None and other.caused_by == matching[0].key:
                also.parent = root
        if root is not draft:
            draft.parent = root


def _says_the_same(
    finding: Finding, draft: _Draft, signature: Signature, knowledge: Knowledge
) -> bool:
    if finding.severity == "advice" or not _has_code(finding, signature.codes):
        return False
    if "{" not in signature.component or finding.code in _ABOUT_ALL:
        return True
    names = {draft.finding.component.lower()}
    for event in draft.events:
        groups = _groups(event, knowledge.modules)
        names |= {groups[f"@{name}"].lower() for name in _MODULE_GROUPS if f"@{name}" in groups}
    about = f" {finding.component} {finding.subject} {finding.message} ".lower()
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", about) for name in names if name)


def _has_code(finding: Finding, codes: Iterable[str]) -> bool:
    return any(
        finding.code == code
        or finding.key.startswith(f"{code}:")
        or f"{finding.key}:".startswith(f"{code}:")
        for code in codes
    )


# --------------------------------------------------------------------------------------------------
# hypotheses


def _weigh_causes(
    drafts: List[_Draft],
    contexts: Sequence[Context],
    findings: Sequence[Finding],
    modules: Mapping[str, str],
) -> None:
    """Judge the hypotheses of each signature: confirmed ones become roots, refuted ones go, the
    rest are suspects.
    """
    for draft in list(drafts):
        signature = draft.signature
        if signature is None or draft.parent is not None:
            continue
        groups = {
            name: value for event in draft.events for name, value in _groups(event, modules).items()
        }
        refuted: List[Hypothesis] = []
        left: List[Hypothesis] = []
        for hypothesis in sorted(
            signature.causes, key=lambda entry: CONFIDENCES.index(entry.confidence)
        ):
            state, by, missing, context = _state_of_nodes(hypothesis, contexts, findings)
            if state is False:
                refuted.append(hypothesis)
                continue
            if state is None:
                left.append(hypothesis)
                draft.suspects.append(
                    Suspect(
                        fill(hypothesis.text, groups),
                        fill(hypothesis.component, groups),
                        hypothesis.kind,
                        hypothesis.confidence,
                        _remedies(fill(hypothesis.fix, groups), hypothesis.commands),
                        tuple(dict.fromkeys((*missing, *hypothesis.collect))),
                    )
                )
                continue
            if by is not None:
                root = _confirm(drafts, by, draft.events)
            else:
                root = _of_hypothesis(drafts, draft, hypothesis, groups, context)
            if draft.role == "cause" and root.certainty == "established":
                root.certainty = (
                    "likely"  # it explains why the line came about, and need not be all of it
                )
            if draft.parent is None and not root.under(draft):
                draft.parent = root
        if (
            draft.parent is None
            and draft.role == "effect"
            and refuted
            and len(left) == 1
            and left[0].confidence != "low"
        ):
            # The facts leave one of the known causes: likely, since a cause that nobody wrote down
            # cannot be excluded.
            draft.suspects = []
            draft.parent = _of_hypothesis(drafts, draft, left[0], groups, context)


def _of_hypothesis(
    drafts: List[_Draft],
    draft: _Draft,
    hypothesis: Hypothesis,
    groups: Mapping[str, str],
    context: Context,
) -> _Draft:
    component = fill(hypothesis.component, groups)
    evidence = tuple(
        entry
        for condition in hypothesis.facts
        for entry in context.evidence(
            condition.field.split(".")[0]
            if condition.field.startswith("request.")
            else condition.field
        )
    )
    held = ", ".join(str(condition) for condition in hypothesis.facts)
    finding = Finding(
        _code(component, hypothesis.kind),
        component,
        hypothesis.kind,
        "warning",
        f"{fill(hypothesis.text, groups)}{f' (the facts agree: {held})' if held else ''}.",
        evidence=evidence,
        remedies=_remedies(fill(hypothesis.fix, groups), hypothesis.commands),
    )
    for known in drafts:
        if known.finding.key == finding.key:
            return known
    made = _Draft(None, finding, "likely", "cause", list(draft.events))
    drafts.append(made)
    return made


def _state_of_nodes(
    hypothesis: Hypothesis, contexts: Sequence[Context], findings: Sequence[Finding]
) -> Tuple[Optional[bool], Optional[Finding], Tuple[str, ...], Context]:
    """Return what ``_state`` says of the first node on which it holds, else of one where it is
    open, else that it is refuted.
    """
    states = [(*_state(hypothesis, context, findings), context) for context in contexts]
    return min(states, key=lambda entry: (True, None, False).index(entry[0]))


def _state(
    hypothesis: Hypothesis, context: Context, findings: Sequence[Finding]
) -> Tuple[Optional[bool], Optional[Finding], Tuple[str, ...]]:
    """Return True, False or None (open), the finding that confirms, and what is missing."""
    for finding in findings:
        if finding.verdict != "violated" or finding.severity == "advice":
            continue
        named = any(
            fnmatchcase(row, name)
            for name in hypothesis.rows
            for row in (finding.row, *finding.rows)
            if row
        )
        if named or (
            _has_code(finding, hypothesis.codes)
            and _same_family(finding.component, hypothesis.component)
        ):
            return True, finding, ()
    rows = _rows(hypothesis.rows, context)
    bindings = [bind(row, context.target) for row in rows]
    if rows and all(binding.outcome == "satisfied" for binding in bindings):
        return False, None, ()
    held: List[Optional[bool]] = [_holds(condition, context) for condition in hypothesis.facts]
    if hypothesis.when:
        made = Row(
            "when", "note", "reported", hypothesis.when, "", "", "", "", "", "", (), (), (), (), ""
        )
        held.append({"violated": True, "satisfied": False}.get(bind(made, context.target).outcome))
    if False in held:
        # What a counter does not show may have happened elsewhere: only conditions on versions and
        # devices refute.
        return (False if hypothesis.when and held[-1] is False else None), None, ()
    if hypothesis.facts and None not in held and not rows:
        return True, None, ()
    return (
        None,
        None,
        tuple(
            dict.fromkeys(
                str(term)
                for binding in bindings
                for term in binding.missing
                if term.scope in ("gpu", "host")
            )
        )[:0],
    )


def _rows(names: Sequence[str], context: Context) -> List[Row]:
    """Return rows by id; ``code-for-*:vllm`` stands for those of every compute capability."""
    found: List[Row] = []
    for name in names:
        if "*" in name:
            found += [
                row
                for row in context.matrix.rows_about([name.rpartition(":")[2]])
                if fnmatchcase(row.id, name)
            ]
        else:
            row = context.matrix.row(name)
            found += [row] if row is not None else []
    return found


def _same_family(first: str, second: str) -> bool:
    """Tell whether a finding's component may be what a hypothesis speaks of: always, unless both
    are packages of their own.
    """
    packages = ("torch", "vllm", "flash-attn", "sgl-kernel", "xformers")
    return first == second or second not in packages or first not in packages or second == "torch"


def _holds(condition: Condition, context: Context) -> Optional[bool]:
    wanted = condition.value
    if condition.field.startswith("request."):
        workload = context.facts.value("request")
        stated = workload.setting(condition.field[len("request.") :]) if workload else None
        return (
            None
            if stated is None
            else (stated.lower() == str(wanted).lower()) is (condition.operator == "==")
        )
    fact = context.facts.get(condition.field)
    if isinstance(fact, Absent):
        return False
    if not isinstance(fact, Known):
        return None
    value = fact.value
    if isinstance(value, bool) or isinstance(wanted, (bool, str)):
        return (value == wanted) is (condition.operator == "==")
    if not isinstance(value, (int, float)) or not isinstance(wanted, float):
        return None
    return {
        "<": value < wanted,
        "<=": value <= wanted,
        "==": value == wanted,
        "!=": value != wanted,
        ">=": value >= wanted,
        ">": value > wanted,
    }[condition.operator]


# --------------------------------------------------------------------------------------------------
# what followed from what


def _link(drafts: List[_Draft]) -> None:
    """Put each consequence under the nearest thing before it that can have led to it, a cause
    before an effect.
    """
    for draft in sorted(drafts, key=lambda entry: entry.order):
        if draft.signature is None or draft.parent is not None or not draft.signature.after:
            continue
        able = [
            other
            for other in drafts
            if other is not draft and _may_follow(draft.signature, other) and not other.under(draft)
        ]
        before = [other for other in able if _precedes(other, draft)]
        chosen = (
            [other for other in before if other.role == "cause"]
            or before
            or [other for other in able if other.role == "cause"]
        )
        if chosen:
            nearest = (
                max(chosen, key=lambda other: other.order)
                if before
                else min(chosen, key=lambda other: other.order)
            )
            draft.parent = nearest
            draft.suspects = []


def _may_follow(signature: Signature, other: _Draft) -> bool:
    if other.signature is not None:
        names = (other.signature.id, f"{other.signature.layer}:*")
        return any(name in signature.after for name in names)
    # A finding of the check stands for the lines that it explains.
    return False


def _precedes(first: _Draft, second: _Draft) -> bool:
    one, two = first.first, second.first
    if one is None or two is None:
        return False
    if one.clock is not None and two.clock is not None and one.clock.kind == two.clock.kind:
        if abs(one.clock.seconds - two.clock.seconds) > _SLACK:
            return one.clock.seconds < two.clock.seconds
    elif one.source != two.source:
        return True  # no common clock: a record of the kernel beside a program's log
    return first.order <= second.order


def _merge(drafts: List[_Draft]) -> None:
    """Drop a draft that says of the same lines what its root says: one sentence is enough."""
    for draft in list(drafts):
        parent = draft.parent
        if parent is None or draft.role != "cause":
            continue
        same = (draft.finding.component, draft.finding.kind) == (
            parent.finding.component,
            parent.finding.kind,
        )
        if same and parent.signature is None:
            parent.events += [event for event in draft.events if event not in parent.events]
            for other in drafts:
                if other.parent is draft:
                    other.parent = parent
            drafts.remove(draft)


def _arranged(drafts: Sequence[_Draft]) -> List[Trace]:
    """Roots: those with consequences first, then the surer ones, then the earlier ones; each
    followed by its consequences in time.
    """
    with_consequences = {id(draft.parent) for draft in drafts}

    def weight(root: _Draft) -> Tuple[bool, bool, bool, int]:
        return (
            root.certainty == "candidate",
            id(root) not in with_consequences,
            root.certainty != "established",
            root.order,
        )

    roots = sorted((draft for draft in drafts if draft.parent is None), key=weight)
    effects = sorted(
        (draft for draft in drafts if draft.parent is not None), key=lambda draft: draft.order
    )
    tree = cause_tree(
        [*roots, *effects], id, lambda draft: None if draft.parent is None else id(draft.parent)
    )
    return [_trace(draft) for draft, _ in tree]


def _trace(draft: _Draft) -> Trace:
    events = sorted(draft.events, key=lambda event: event.order)
    lines = [event.first for event in events[:_SHOWN_LINES]]
    last = max(
        (event.last for event in events), key=lambda line: (line.source, line.number), default=None
    )
    if last is not None and last not in lines and sum(event.times for event in events) > 1:
        lines.append(last)
    signature = draft.signature
    evidence = tuple(Evidence(f"{line.source}:{line.number}", line.text) for line in lines)
    severity, verdict = (
        _SEVERITY[draft.certainty]
        if signature is not None or draft.finding.verdict != "violated"
        else (draft.finding.severity, "violated")
    )
    finding = draft.finding._replace(
        severity=severity,
        verdict=verdict,
        evidence=evidence
        + tuple(entry for entry in draft.finding.evidence if entry not in evidence),
        caused_by=None if draft.parent is None else draft.parent.finding.key,
        missing="; ".join(
            dict.fromkeys(step for suspect in draft.suspects for step in suspect.collect)
        )
        if verdict == "undetermined"
        else "",
    )
    certainty = draft.certainty if draft.parent is None or draft.role == "cause" else "established"
    if draft.parent is not None and draft.role == "effect":
        finding = finding._replace(severity="advice", verdict="violated")
    return Trace(
        finding,
        certainty,
        draft.role,
        tuple(lines),
        sum(event.times for event in events),
        signature.meaning if signature is not None else "",
        tuple(draft.suspects),
        signature.collect if signature is not None else (),
    )
