"""Events of logs, joined with facts: what failed first, what followed, and how sure that is.

``trace_draft`` says what the lines say; this module only weighs it. A line that says itself what is
wrong is a cause. An effect (a process died, a peer is gone) is put under the nearest cause before
it that can have led to it; where there is none, the causes that may stand behind it are suspects:
one that the facts confirm is named, one that they refute is left out, the others are listed with
what would decide.
"""

from __future__ import annotations

import operator
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..matrix.bind import bind
from ..matrix.signatures import packages_of
from ..model.calls import InstallerCall
from ..model.diagnosis import Suspect, Trace
from ..model.evidence import Absent, Known
from ..model.finding import Finding
from ..model.log import Event, Reading
from ..model.requirement import try_requirement
from ..model.row import Row
from ..model.signature import CONFIDENCES, Condition, Hypothesis, Signature
from ..model.versions import canonicalize_name
from ..rules.matrix_rows import remedies_of_row
from ..rules.observations import AT_WORK, REFUTED_BY
from ..rules.remedy_bounds import bounds_of, contradict
from ..rules.rule import Context, is_for_other_vendor
from .architectures import tell_architectures
from .checkpoint_keys import tell_checkpoint_keys
from .collectives import tell_collectives
from .conflicting_requirements import tell_conflicts
from .device_features import tell_lacking_features
from .failure_draft import advise, join_failure, tell_of_last
from .hidden_modules import tell_hidden_modules
from .hub_access import tell_hub_access
from .index_files import tell_index_files
from .lacking_builds import tell_lacking_builds
from .last_start import ends_of_earlier, of_last_start
from .loading_progress import tell_loading_progress
from .missing_names import doubt_builds, tell_histories
from .missing_symbols import tell_symbols
from .numbers_and_settings import relate_numbers
from .pip_ends import join_refused_installs, name_what_stopped_pip
from .raised import failure_of, was_stopped
from .refused_types import tell_refused_types
from .releases_in_text import tell_releases_in_text
from .sonames import tell_sonames
from .stated_beside import state_beside
from .stated_ranges import tell_stated_ranges
from .survived import (
    doubt,
    has_failed,
    split_passed,
    split_survived,
    trust_complaint,
    without_survived,
)
from .trace_draft import (
    Knowledge,
    TraceDraft,
    advice_of,
    code_of_log,
    confirm,
    draft_row,
    drafts_of,
    fill,
    groups_of,
    modules_named,
    remedies_of,
    traces_of,
)
from .traceback_places import tell_places
from .two_packages import tell_two_packages

if TYPE_CHECKING:
    from ..model.calls import Call

__all__ = ["explain"]

#: What pip says of two releases that are there.
_CONFLICTS = ("pip-conflict-line", "pip-conflict-installed")
_SLACK = 90.0  # seconds by which the clocks of two writers may differ
#: What a text gives as the reason of what failed.
_REASONS_OF_FAILURE = "ED908"
#: What a text says of a release that fails and one that works.
_COMPARED = "ED312"
_RAN = "The log shows a run that worked in this environment."
#: Findings of a check that explain any binary that does not fit, whichever it is about.
_ABOUT_ALL = ("ED304", "ED203", "ED201", "ED202", "ED204", "ED205", "ED207", "ED208")
#: Effects of rows by which no exception is raised.
_NOTHING_RAISED = ("wrong-results", "note")
#: Libraries of the system, of whose lack no row explains that does not speak of them.
_OF_SYSTEM = ("glibc", "libstdc++")
_SPECIFIC = 24  # characters from which a symptom that all its rows share is likely theirs
_FEW_ROWS = 4
_QUOTED = re.compile(r"'(\w+)'")


def explain(
    reading: Reading,
    knowledge: Knowledge,
    contexts: Sequence[Context],
    findings: Sequence[Finding],
    complained_of: bool = False,
) -> Tuple[List[Trace], List[Finding], List[Finding]]:
    """Return the traces, each root followed by its consequences, what logs only tell of, and what
    they show to have worked, as advice, and the findings without a line.

    Args:
        reading: what was found in the logs, in the order in which it was read.
        knowledge: what the patterns mean.
        contexts: facts and matrix of each node; what holds on one of them may be the cause, what is
            refuted is so on all.
        findings: what a check of these facts found.
        complained_of: somebody chose these lines to show what is wrong.
    """
    lived = _lived(reading, knowledge)
    whole = reading
    reading = of_last_start(whole, lived)
    events = [_toned(event, knowledge) for event in reading.events]
    drafts = [
        draft
        for draft in drafts_of(events, knowledge)
        if not draft.is_done_without
        and not _is_mended(draft, contexts[0], knowledge)
        and not _asks_for_cuda(draft, contexts)
    ]
    stepped = reading.stepped if was_stopped(reading.raised, reading.events) else {}
    raised = without_survived(reading.raised, lived, drafts, stepped)
    tell_of_last(drafts, failure_of(raised, events, drafts), knowledge.modules)
    tell_histories(drafts, raised, knowledge.modules, contexts)
    doubt_builds(drafts, knowledge.modules, contexts)
    tell_symbols(drafts, knowledge.modules, contexts[0])
    tell_sonames(drafts, knowledge.modules, contexts[0], reading.report)
    tell_collectives(drafts)
    tell_hub_access(drafts, raised)
    tell_architectures(drafts, knowledge.modules, contexts[0])
    tell_places(drafts, raised, knowledge.modules, contexts[0], reading.report)
    tell_loading_progress(drafts, reading.report)
    violated = [finding for finding in findings if finding.verdict == "violated"]
    _join_rows(drafts, events, knowledge, contexts, violated)
    _join_findings(drafts, knowledge, violated, contexts[0])
    _weigh_causes(drafts, contexts, violated, knowledge.modules)
    failure = failure_of(raised, events, drafts)
    drafts, passed = split_passed(drafts, raised, failure)
    join_refused_installs(drafts, events, knowledge.modules, contexts[0])
    _link(drafts)
    _merge(drafts)
    name_what_stopped_pip(drafts, reading.report)
    join_failure(drafts, failure, contexts, knowledge.modules)
    _leave_out_unknown(drafts, contexts[0])
    tell_lacking_builds(drafts, failure.raised, reading.report, contexts, knowledge.modules)
    tell_two_packages(drafts, raised, contexts, knowledge.modules)
    tell_stated_ranges(drafts, failure.raised, contexts[0], knowledge.modules)
    _join_comparisons(drafts, violated)
    tell_lacking_features(drafts, failure.raised, reading.report, contexts[0])
    tell_refused_types(drafts, failure.raised, contexts[0])
    tell_index_files(drafts, knowledge.modules, reading.report, contexts[0])
    tell_conflicts(drafts, reading.report)
    tell_checkpoint_keys(drafts, failure.raised)
    tell_hidden_modules(drafts, failure.raised, knowledge.modules)
    tell_releases_in_text(drafts, knowledge.modules, contexts[0], reading.report)
    relate_numbers(drafts, failure.raised, reading.report, contexts[0])
    doubt(drafts, raised, failure, reading.report)
    drafts, survived = split_survived(drafts, raised, failure, lived, complained_of)
    if complained_of:
        trust_complaint(drafts)
    state_beside(drafts, contexts[0], failure.raised, reading.report)
    advise(drafts, failure)
    traces = _with_starts(traces_of(drafts), reading.restarted, whole)
    spoken = {trace.finding.key for trace in traces}
    rest = [
        finding
        for finding in findings
        if finding.key not in spoken and finding.caused_by not in spoken
    ]
    known = {*spoken, *(finding.key for finding in rest)}
    notes = [advice for advice in advice_of([*passed, *survived]) if advice.key not in known]
    failed = has_failed(drafts, failure) or any(map(_is_complaint, drafts))
    if not failed and all(lived.get(name) for name in reading.sources):
        outweighed = [finding for finding in rest if _is_outweighed(finding)]
        rest = [
            finding
            for finding in rest
            if finding not in outweighed and finding.code != _REASONS_OF_FAILURE
        ]
        notes += [
            finding._replace(severity="advice", message=f"{finding.message} {_RAN}")
            for finding in outweighed
        ]
    return traces, notes, rest


def _with_starts(traces: List[Trace], restarted: Mapping[str, int], whole: Reading) -> List[Trace]:
    """Say with what is told first that only the last of several starts is told of, and what the
    others ended with.
    """
    if not traces or not traces[0].lines:
        return traces
    source = traces[0].lines[0].source
    number = restarted.get(source)
    if number is None:
        return traces
    words = f"The log holds several starts: this is of the last one, from line {number} on."
    others = ends_of_earlier(whole, source, number)
    meaning = " ".join(filter(None, (traces[0].meaning, words, others)))
    return [traces[0]._replace(meaning=meaning), *traces[1:]]


def _leave_out_unknown(drafts: Sequence[TraceDraft], context: Context) -> None:
    """Leave out commands that install what a line names, where that is nothing that an index is
    known to have (CUDA), or there already.
    """
    for draft in drafts:
        commands = draft.signature.commands if draft.signature is not None else ()
        if any(
            "{" in package
            for call in commands
            if isinstance(call, InstallerCall)
            for package in call.packages
        ):
            remedies = [
                remedy._replace(
                    commands=tuple([call for call in remedy.commands if _is_known(call, context)])
                )
                for remedy in draft.finding.remedies
            ]
            draft.finding = draft.finding._replace(remedies=tuple(remedies))


def _is_known(call: Call, context: Context) -> bool:
    if not isinstance(call, InstallerCall):
        return True
    known, there = context.matrix.packages_known, context.distributions
    requirements = list(map(try_requirement, call.packages))
    return all(
        entry is not None
        and (entry.specifier or entry.extras if entry.name in there else entry.name in known)
        for entry in requirements
    )


def _join_comparisons(drafts: List[TraceDraft], findings: Sequence[Finding]) -> None:
    """Put what does not say its own cause under the releases of which a text says that one fails
    and another works: who compared them has found it. So what a line of the machine mostly comes
    of, where releases of its kernel, driver or the like were compared.
    """
    compared = next((finding for finding in findings if finding.code == _COMPARED), None)
    if compared is None:
        return
    for draft in list(drafts):
        says_nothing = draft.role == "effect" or draft.finding.kind == "not-judged"
        is_guess = draft.certainty == "likely" and draft.signature is not None
        if is_guess and not (draft.finding.packages or compared.packages):
            says_nothing |= draft.finding.component != compared.component
        if draft.parent is None and says_nothing and draft.finding.code != _COMPARED:
            draft.parent = confirm(drafts, compared, [])
            draft.suspects = []


def _asks_for_cuda(draft: TraceDraft, contexts: Sequence[Context]) -> bool:
    """Tell whether what a line says comes of NVIDIA's driver and devices, where the builds are for
    those of another maker: what it would send its reader to is not there.
    """
    is_of_cuda = draft.signature is not None and draft.signature.layer == "cuda"
    return is_of_cuda and draft.role == "effect" and all(map(is_for_other_vendor, contexts))


def _is_mended(draft: TraceDraft, context: Context, knowledge: Knowledge) -> bool:
    """Tell whether what pip says of a release that does not fit was so before another release of
    that package was installed.
    """
    if draft.signature is None or draft.signature.id not in _CONFLICTS:
        return False
    groups = groups_of(draft.events[0], knowledge.modules)
    version = context.facts.version_of(canonicalize_name(groups.get("installed", "")))
    return version is not None and version != groups.get("found")


def _toned(event: Event, knowledge: Knowledge) -> Event:
    """Return an event as a warning, or none, where its signature says so for every line."""
    signature = knowledge.signatures.get(event.pattern)
    if signature is None or not signature.tone:
        return event
    return event._replace(warned=signature.tone == "warning")


def _is_complaint(draft: TraceDraft) -> bool:
    """Tell whether a line says that something was not done at all, of which no end is printed."""
    return draft.is_sure and draft.signature is not None and draft.signature.layer == "slurm"


def _is_outweighed(finding: Finding) -> bool:
    """Tell whether a run that worked says more than a finding."""
    grave = finding.verdict == "violated" and finding.severity != "advice"
    return grave and AT_WORK in REFUTED_BY.get(finding.code, ())


def _lived(reading: Reading, knowledge: Knowledge) -> Mapping[str, int]:
    """Return by log the last line after which its program worked on, or ended as it should."""
    lived = dict(reading.at_work)
    for event in reading.events:
        signature = knowledge.signatures.get(event.pattern)
        if signature is not None and signature.role == "well":
            source = event.last.source
            lived[source] = max(lived.get(source, 0), event.last.number - 1)
    return lived


# --------------------------------------------------------------------------------------------------
# rows and findings


def _join_rows(
    drafts: List[TraceDraft],
    events: Sequence[Event],
    knowledge: Knowledge,
    contexts: Sequence[Context],
    findings: Sequence[Finding],
) -> None:
    """Join rows whose symptom is in a log: the facts decide, where they can."""
    for event in events:
        rows = _rows(knowledge.symptoms.get(event.pattern, ()), contexts[0])
        if not rows:
            continue
        on_line = [draft for draft in drafts if _is_on_line(draft, event)]
        confirmed = [finding for finding in findings if _speaks_for_one(finding, rows)]
        for finding in confirmed:
            _put_under(_causes(on_line), confirm(drafts, finding, [event]))
        undecided = _one_of_each([row for row in rows if not _is_refuted(row, contexts)])
        if undecided and not confirmed:
            _join_undecided(drafts, event, undecided, on_line)


def _is_refuted(row: Row, contexts: Sequence[Context]) -> bool:
    return all(bind(row, context.target).outcome == "satisfied" for context in contexts)


def _one_of_each(rows: Sequence[Row]) -> Sequence[Row]:
    """Leave out rows that were measured of packages of which a written row speaks too."""
    written = [packages_of(row) for row in rows if row.origin != "derived"]
    return [row for row in rows if row.origin != "derived" or packages_of(row) not in written]


def _causes(drafts: Iterable[TraceDraft]) -> List[TraceDraft]:
    return [draft for draft in drafts if draft.role == "cause"]


def _join_undecided(
    drafts: List[TraceDraft], event: Event, rows: Sequence[Row], on_line: Sequence[TraceDraft]
) -> None:
    """Join rows that the facts leave open: one alone is likely the cause, several are suspects."""
    named = [row for row in rows if event.near is None or packages_of(row) <= event.near]
    # An effect on this line has its own suspects: then the symptom is too common to tell.
    telling = _is_specific(event) and len(_causes(on_line)) == len(on_line)
    if telling and len(named) == 1 and _is_serious(named[0]):
        _put_under(on_line, draft_row(drafts, named[0], event))
        return
    suspected = named or rows
    for draft in on_line or [draft_row(drafts, suspected[0], event, "candidate")]:
        draft.suspects += [_suspect_of_row(row, bool(named)) for row in suspected[:_FEW_ROWS]]


def _is_specific(event: Event) -> bool:
    return len(event.pattern) - len("symptom:") >= _SPECIFIC


def _speaks_for_one(finding: Finding, rows: Iterable[Row]) -> bool:
    return any(row.id == finding.row or row.id in finding.rows for row in rows)


def _is_on_line(draft: TraceDraft, event: Event) -> bool:
    place = (event.first.source, event.first.number)
    return any((other.first.source, other.first.number) == place for other in draft.events)


def _is_serious(row: Row) -> bool:
    return row.trust == "established" and row.effect in ("blocks", "degrades")


def _put_under(drafts: Iterable[TraceDraft], root: TraceDraft) -> None:
    for draft in drafts:
        if draft is not root and draft.parent is None and not root.under(draft):
            draft.parent = root


def _suspect_of_row(row: Row, named: bool) -> Suspect:
    names = sorted(packages_of(row))
    collect = (
        (f"the version{'s' if len(names) > 1 else ''} of {', '.join(names)}",) if names else ()
    )
    confidence = "medium" if named and row.trust == "established" else "low"
    return Suspect(
        row.title, row.component, row.kind, confidence, remedies_of_row(row), collect, row.id
    )


def _join_findings(
    drafts: List[TraceDraft], knowledge: Knowledge, findings: Sequence[Finding], context: Context
) -> None:
    """Make findings of the check the root of the lines that say of the run what they say."""
    for draft in list(drafts):
        signature = draft.signature
        if signature is None or not signature.codes or draft.parent is not None:
            continue
        if draft.is_of_another_run:
            continue
        matching = [
            finding
            for finding in findings
            if _says_the_same(finding, draft, signature, knowledge)
            and not _names_another(finding, draft, knowledge, context)
            and not _asks_for_another(finding, draft, context)
        ]
        # The nearest first: the same component, then the gravest.
        matching.sort(
            key=lambda finding: (
                finding.component != draft.finding.component,
                finding.severity != "error",
            )
        )
        if matching:
            _put_under_findings(drafts, draft, matching)


def _put_under_findings(
    drafts: List[TraceDraft], draft: TraceDraft, findings: Sequence[Finding]
) -> None:
    """Put a draft under the first finding, which those that it caused follow."""
    nearest, *others = findings
    root = confirm(drafts, nearest, draft.events)
    for finding in others:
        other = confirm(drafts, finding, draft.events)
        if other is not root and other.parent is None and finding.caused_by == nearest.key:
            other.parent = root
    if root is not draft:
        draft.parent = root


def _says_the_same(
    finding: Finding, draft: TraceDraft, signature: Signature, knowledge: Knowledge
) -> bool:
    if not _has_code(finding, signature.codes) or finding.effect in _NOTHING_RAISED:
        return False
    if finding.row and signature.component in _OF_SYSTEM:
        return signature.component in (finding.component, *finding.packages)
    is_of_package = bool(finding.packages) and finding.code.startswith("ED3")
    if ("{" not in signature.component and not is_of_package) or finding.code in _ABOUT_ALL:
        return True
    names = {
        name.lower() for name in (draft.finding.component, *modules_named(draft, knowledge.modules))
    }
    about = " ".join((finding.component, finding.subject or "", *finding.packages)).lower()
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", about) for name in names if name)


def _names_another(
    finding: Finding, draft: TraceDraft, knowledge: Knowledge, context: Context
) -> bool:
    """Tell whether a row is of a name, by the message that it leads to, and a line of another."""
    row = context.matrix.row(finding.row) if finding.row else None
    names = _QUOTED.findall(row.symptom) if row is not None and row.symptom else []
    of_line = {groups_of(event, knowledge.modules).get("name", "") for event in draft.events}
    return bool(names) and "" not in of_line and of_line.isdisjoint(names)


def _asks_for_another(finding: Finding, draft: TraceDraft, context: Context) -> bool:
    """Tell whether a finding asks for releases of a package none of which has what a line misses:
    it is so besides, and not why.
    """
    wanted = [bounds_of(remedy) for remedy in draft.finding.remedies[:1]]
    offered = [bounds_of(remedy) for remedy in finding.remedies[:1]]
    return any(contradict(one, other, context.matrix) for one in wanted for other in offered)


def _has_code(finding: Finding, codes: Iterable[str]) -> bool:
    """Tell whether a code, or the beginning of a key, names this finding."""
    return any(f"{finding.key}:".startswith(f"{code}:") for code in codes)


# --------------------------------------------------------------------------------------------------
# hypotheses


def _weigh_causes(
    drafts: List[TraceDraft],
    contexts: Sequence[Context],
    findings: Sequence[Finding],
    modules: Mapping[str, str],
) -> None:
    """Make confirmed hypotheses of signatures roots, drop refuted ones, and suspect the rest."""
    for draft in list(drafts):
        if draft.signature is not None and draft.parent is None:
            groups: Dict[str, str] = {}
            for event in draft.events:
                groups.update(groups_of(event, modules))
            _weigh(draft.signature, draft, drafts, groups, contexts, findings)


def _weigh(
    signature: Signature,
    draft: TraceDraft,
    drafts: List[TraceDraft],
    groups: Mapping[str, str],
    contexts: Sequence[Context],
    findings: Sequence[Finding],
) -> None:
    some_refuted = False
    undecided: List[Hypothesis] = []
    for hypothesis in sorted(
        signature.causes, key=lambda entry: CONFIDENCES.index(entry.confidence)
    ):
        state, finding, context = _state_of_nodes(hypothesis, contexts, findings)
        if state is False:
            some_refuted = True
        elif state is None:
            undecided.append(hypothesis)
            draft.suspects.append(_suspect_of_hypothesis(hypothesis, groups))
        elif finding is not None:
            _put_under_root(draft, confirm(drafts, finding, draft.events))
        else:
            _put_under_root(draft, _of_hypothesis(drafts, draft, hypothesis, groups, context))
    if (
        draft.parent is None
        and draft.role == "effect"
        and some_refuted
        and len(undecided) == 1
        and undecided[0].confidence != "low"
        and not undecided[0].facts
    ):
        # The facts leave one of the known causes: likely, since a cause that nobody wrote down
        # cannot be excluded. One that has a sign of its own waits for it.
        draft.suspects = []
        draft.parent = _of_hypothesis(drafts, draft, undecided[0], groups, context)


def _put_under_root(draft: TraceDraft, root: TraceDraft) -> None:
    if draft.role == "cause" and root.certainty == "established":
        root.certainty = "likely"  # it explains why the line came about, and need not be all of it
    if draft.parent is None and not root.under(draft):
        draft.parent = root


def _suspect_of_hypothesis(hypothesis: Hypothesis, groups: Mapping[str, str]) -> Suspect:
    return Suspect(
        fill(hypothesis.text, groups),
        fill(hypothesis.component, groups),
        hypothesis.kind,
        hypothesis.confidence,
        remedies_of(fill(hypothesis.fix, groups), hypothesis.commands),
        tuple(dict.fromkeys(hypothesis.collect)),
    )


def _of_hypothesis(
    drafts: List[TraceDraft],
    draft: TraceDraft,
    hypothesis: Hypothesis,
    groups: Mapping[str, str],
    context: Context,
) -> TraceDraft:
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
        code_of_log(component, hypothesis.kind),
        component,
        hypothesis.kind,
        "warning",
        f"{fill(hypothesis.text, groups)}{f' (the facts agree: {held})' if held else ''}.",
        evidence=evidence,
        remedies=remedies_of(fill(hypothesis.fix, groups), hypothesis.commands),
    )
    known = next((other for other in drafts if other.finding.key == finding.key), None)
    if known is not None:
        return known
    made = TraceDraft(None, finding, "likely", "cause", list(draft.events))
    drafts.append(made)
    return made


def _state_of_nodes(
    hypothesis: Hypothesis, contexts: Sequence[Context], findings: Sequence[Finding]
) -> Tuple[Optional[bool], Optional[Finding], Context]:
    """Return ``_state`` of the first node where it holds, else where it is open, else of any."""
    states = [(*_state(hypothesis, context, findings), context) for context in contexts]
    return min(states, key=lambda entry: (True, None, False).index(entry[0]))


def _state(
    hypothesis: Hypothesis, context: Context, findings: Sequence[Finding]
) -> Tuple[Optional[bool], Optional[Finding]]:
    """Return True, False or None (open), and the finding that confirms."""
    confirming = next((finding for finding in findings if _confirms(finding, hypothesis)), None)
    if confirming is not None:
        return True, confirming
    rows = _rows(hypothesis.rows, context)
    if rows and all(_is_refuted(row, [context]) for row in rows):
        return False, None
    holds = _conditions_hold(hypothesis, context)
    return (None if holds and rows else holds), None


def _conditions_hold(hypothesis: Hypothesis, context: Context) -> Optional[bool]:
    """Tell whether the facts are as a hypothesis says; None where that is open.

    What a counter does not show may have happened elsewhere: only conditions on versions and
    devices refute.
    """
    held = [_holds(condition, context) for condition in hypothesis.facts]
    if hypothesis.when:
        outcome = bind(_row_when(hypothesis), context.target).outcome
        if outcome == "satisfied":
            return False
        held.append(outcome == "violated")
    return True if hypothesis.facts and all(held) else None


def _confirms(finding: Finding, hypothesis: Hypothesis) -> bool:
    """Tell whether a finding is one of a row, or has a code, that a hypothesis names."""
    named = any(
        fnmatchcase(row, name)
        for name in hypothesis.rows
        for row in (finding.row, *finding.rows)
        if row
    )
    return named or (
        finding.effect not in _NOTHING_RAISED
        and _has_code(finding, hypothesis.codes)
        and _same_family(finding.component, hypothesis.component)
    )


def _row_when(hypothesis: Hypothesis) -> Row:
    """Return the conditions of a hypothesis as a row, which ``bind`` takes."""
    return Row(
        "when", "note", "reported", hypothesis.when, "", "", "", "", "", "", (), (), (), (), ""
    )


def _rows(names: Sequence[str], context: Context) -> List[Row]:
    """Return rows by id; ``code-for-*:vllm`` stands for those of every compute capability."""
    rows: List[Optional[Row]] = []
    for name in names:
        if "*" not in name:
            rows.append(context.matrix.row(name))
            continue
        about = context.matrix.rows_about([name.rpartition(":")[2]])
        rows += [row for row in about if fnmatchcase(row.id, name)]
    return [row for row in rows if row is not None]


def _same_family(first: str, second: str) -> bool:
    """Tell whether a finding may be about a hypothesis; not where both name other packages."""
    packages = ("torch", "vllm", "flash-attn", "sgl-kernel", "xformers")
    return first == second or second not in packages or first not in packages or second == "torch"


_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def _holds(condition: Condition, context: Context) -> Optional[bool]:
    equal = condition.operator == "=="
    wanted = condition.value
    if condition.field.startswith("request."):
        stated = _stated(condition.field[len("request.") :], context)
        return None if stated is None else (stated.lower() == str(wanted).lower()) is equal
    fact = context.facts.get(condition.field)
    if isinstance(fact, Absent):
        return False
    if not isinstance(fact, Known):
        return None
    value = len(fact.value) if isinstance(fact.value, tuple) else fact.value  # of GPUs the number
    if isinstance(value, bool) or isinstance(wanted, (bool, str)):
        return (value == wanted) is equal
    if not isinstance(value, (int, float)) or not isinstance(wanted, float):
        return None
    return _COMPARISONS[condition.operator](value, wanted)


def _stated(setting: str, context: Context) -> Optional[str]:
    """Return what the launch settings say, None where they say nothing."""
    workload = context.facts.value("request")
    stated: Optional[str] = workload.setting(setting) if workload else None
    return stated


# --------------------------------------------------------------------------------------------------
# what followed from what


def _link(drafts: List[TraceDraft]) -> None:
    """Put each consequence under what can have led to it, a cause rather than an effect."""
    for draft in sorted(drafts, key=lambda entry: entry.order):
        if draft.signature is None or draft.parent is not None:
            continue
        nearest = _nearest(draft, draft.signature, drafts)
        if nearest is not None:
            draft.parent = nearest
            draft.suspects = []
            if draft.role == "cause":  # what ends that ends this
                draft.finding = draft.finding._replace(remedies=())


def _nearest(
    draft: TraceDraft, signature: Signature, drafts: List[TraceDraft]
) -> Optional[TraceDraft]:
    """Return the last thing before a draft that can have led to it, else the first cause after."""
    able = [
        other
        for other in drafts
        if other is not draft and _may_follow(signature, other) and not other.under(draft)
    ]
    before = [other for other in able if _precedes(other, draft)]
    if before:
        return max(_causes(before) or before, key=lambda other: other.order)
    return min(_causes(able), key=lambda other: other.order, default=None)


def _may_follow(signature: Signature, other: TraceDraft) -> bool:
    if other.signature is not None:
        names = (other.signature.id, f"{other.signature.layer}:*")
        return any(name in signature.after for name in names)
    # A finding of the check stands for the lines that it explains.
    return False


def _precedes(first: TraceDraft, second: TraceDraft) -> bool:
    one, two = first.first, second.first
    if one is None or two is None:
        return False
    if one.clock is not None and two.clock is not None and one.clock.kind == two.clock.kind:
        if abs(one.clock.seconds - two.clock.seconds) > _SLACK:
            return one.clock.seconds < two.clock.seconds
    elif one.source != two.source:
        return True  # no common clock: a record of the kernel beside a program's log
    return first.order <= second.order


def _merge(drafts: List[TraceDraft]) -> None:
    """Drop a draft that says of the same lines what its root says: one sentence is enough."""
    for draft in list(drafts):
        parent = draft.parent
        if parent is None or draft.role != "cause":
            continue
        same = (draft.finding.component, draft.finding.kind) == (
            parent.finding.component,
            parent.finding.kind,
        )
        if same and (parent.signature is None or draft.certainty == "candidate"):
            parent.events += [event for event in draft.events if event not in parent.events]
            for other in drafts:
                if other.parent is draft:
                    other.parent = parent
            drafts.remove(draft)
