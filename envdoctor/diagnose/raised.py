"""The exception that a run failed with: which of those in its logs it is, and what facts say of it.

It is the last that nothing caught, of the process that failed first. What says only that another
process failed (a launcher, a pool, a peer that waits for it) is none where another is there, and
neither is what came after the run had been stopped from outside.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from ..matrix.signatures import distribution_of
from ..model.finding import Finding
from ..model.log import PLACES_OF_LINE, Event, Frame, Raised
from ..model.pattern import pattern
from ..rules.rule import Context
from .trace_draft import TraceDraft, code_of_log, fill, finding_of, groups_of, remedies_of
from .why_raised import why_raised

__all__ = [
    "INSTALLED",
    "STANDARD",
    "Failure",
    "doubt",
    "failure_of",
    "has_failed",
    "join_failure",
    "packages_raising",
    "packages_run",
    "split_passed",
    "split_survived",
    "tell_of_last",
    "tells_of_stop",
    "trust_complaint",
    "without_survived",
]

#: Lines behind an exception that nothing caught, as far as other lines do not say that the run
#: failed: the summary of a logger, the epilogue of a scheduler.
_RUNS = 3  # that fail one after the other
_FEW_BEHIND = 200
_LAST_WORDS = 3  # lines behind an exception that was logged, and that nothing came after
_LAST_LINES = 40  # behind an exception that was logged
_FAR = 2000  # lines between an exception and what it brought down
_ANNOUNCED = 3  # lines above a traceback in which its writer says that something failed
_ABOVE = 5  # lines above a traceback in which another program says what it did not do
#: What is printed of a process that ended without a word of its own.
_DEADLY = ("shell", "kernel", "container", "slurm")
_STOPS = (
    "keyboard-interrupt",
    "interrupt-raised",
    "stop-received",
    "torchrun-stopped",
    "slurm-cancelled",
    "slurm-step-cancelled",
    "slurm-time-limit",
)
#: Signatures of what an import raises: a program that goes on after it does without.
_IMPORTS = ("import-name", "module-attribute", "module-missing", "module-part-missing")
_CRASHED = "Fatal Python error"
#: What pip says of a build that failed, before and behind what the build wrote, and the files that
#: a build runs.
_BUILDS = ("pip-build-requirements", "wheel-build-failed")
_BUILDING = pattern(r"(?:^|/)(?:setup|build_meta|_in_process)\.py$")
#: Exceptions that say all by their name, or by the line of source that raised them.
_TELLING_BARE = frozenset(("AssertionError", "MemoryError", "NotImplementedError", "TimeoutError"))
_PROGRAM = pattern(r"^([\w.-]{1,100}\.py): error: ")
_STOPPING = pattern(r"(?:^|\.)KeyboardInterrupt$")
_SIGNALLED = pattern(r"got signal: (?:2|15)\b|Signals\.SIG(?:TERM|INT)\b")

#: Exceptions of which the message, or the name alone, says that another process failed.
_OF_ANOTHER = pattern(
    r"(?:^|\.)(?:ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException"
    r"|BrokenProcessPool|BrokenBarrierError|BrokenPipeError|CancelledError|TaskCancelledError"
    r"|ActorDiedError|RayActorError|ActorUnavailableError|WorkerCrashedError|RayTaskError"
    r"|OwnerDiedError|ObjectLostError|NodeDiedError|LocalRayletDiedError|SignalException|SystemExit"
    r"|(?:Async|MQ)?EngineDeadError|AsyncEngineDeadError|ExceptionGroup|BaseExceptionGroup"
    r"|ConnectionResetError|ConnectionAbortedError|ConnectionRefusedError|ConnectError"
    r"|APIConnectionError|APITimeoutError|ServerDisconnectedError|RemoteProtocolError)$"
)
_SAYS_ANOTHER = pattern(
    r"Connection (?:closed|reset) by (?:remote )?peer|remote process (?:has )?exited|Broken pipe"
    r"|[Ee]ngine (?:core initialization failed|process failed to start|loop (?:is not|has) )"
    r"|WorkerProc initialization failed|See (?:root cause|stack trace) above"
    r"|DataLoader worker \(pid.{0,40}\) (?:exited unexpectedly|is killed by signal)"
    r"|NCCL communicator was aborted|Stop_waiting response is expected|failed to recv, got 0 bytes"
    r"|[Ss]erver (?:launch|start(?:up)?|initiali[sz]ation) failed|[Ff]ailed to (?:launch|start) "
    r"(?:the )?server\b|Rank \d+ scheduler (?:is dead|died)"
    r"|(?:[Ss]ubprocess|[Ww]orker|[Cc]hild) (?:process )?(?:died|exited|failed|is dead)"
    r"|worker process has died"
)
#: What says that something else did not come in time: where it failed before, that is the reason.
_WAITED = pattern(
    r"(?i)\btimed? ?out (?:while )?waiting (?:for|on)\b"
    r"|\bdid(?: not|n't) (?:start|respond|connect|answer|(?:be)?come (?:ready|up))\b.{0,40}\b"
    r"(?:in|within|after) "
)
#: What says that something was tried in vain, and not what.
_TRIED = pattern(
    r"(?i)\b(?:retry|retries|attempts|tries)\b.{0,30}\b(?:exceed|exhaust|fail)\w*"
    r"|\b(?:exceed|exhaust|fail)\w*\b.{0,30}\b(?:retries|attempts|tries)\b"
)
#: All that is left of an exception of another process, where Ray's traceback was cut.
_OF_TASK = pattern(r"ray::([\w.:]{1,200}?)\(\)? ?\(?(?:pid=[^\n]*)?$")
_CONNECTIONS = "multiprocessing/connection.py"

#: What a program says of what to do.
_ADVISING = (
    "add|check(?! failed)|consider|decrease|disable|downgrade|enable|ensure|if you|increase|install"
    "|lower|make sure|pass|please|reduce|run|set|specify|to (?:avoid|fix|resolve)|try|upgrade|use"
    "|you (?:can|may|must|need|should)"
)
_REST = r"\b[^\n]{3,300}?)(?=[.;!](?:\s|$)|\n|$)"
_ADVICE = pattern(rf"(?i)(?:^|(?<=[.;!?:] )|(?<=\n))\s*((?:{_ADVISING}){_REST}")
_ADVICE_WITHIN = pattern(rf"\b((?:[Pp]lease|[Yy]ou (?:must|need to)){_REST}")
#: What asks for a report, or helps to look into it, and no check that failed.
_CURES_NOTHING = pattern(
    r"(?i)^(?:check|run) failed\b"
    r"|^(?:please )?(?:see|refer to|look at|consult|visit|contact|report)\b"
    r"|\b(?:file|open|submit|create|raise) (?:an?|the|your) (?:bug|issue|ticket)\b"
    r"|^(?:please )?check (?:the |our |your )?(?:root cause|logs?\b|above|docs?\b|output|full )"
    r"|\bmore (?:info\w*|details?)\b|\bstack ?trace\b|\bbugs?\b|\bdebug(?:ging)?\b"
    r"|_DEBUG\b|_VERBOSE\b|_TRACEBACK_\w|\bCUDA_LAUNCH_BLOCKING\b|\bTORCH_(?:LOGS|USE_CUDA_DSA)\b"
)
#: The beginning of what a server was sent, and sends back: its words are no program's.
_ECHOED = pattern(r"['\"](?:input|content|prompt|loc)['\"]: ")
_SHOWN = 400  # characters of a message
#: A file that somebody works on: pip unpacks what it builds into folders that it removes.
_IN_FOLDER = pattern(r"^(?!.*/(?:pip-install-|pip-req-build-|pip-build-env-|builds-v0/)).*/")
#: What looks up an attribute for the line that asks for it.
_LOOKING_UP = ("__getattr__", "__getattribute__")
_LONGEST_CODE = 120
#: The place inside an installed package, and that of Python's own library.
INSTALLED = pattern(r"(?:site|dist)-packages/(.+)$")
STANDARD = pattern(
    r"/lib(?:64)?/python3\.\d+t?/(?!site-packages|dist-packages)(.+)$"
    r"|^[A-Z]:/(?i:.{0,300}(?:python|conda|forge)[^/]{0,40}(?:/envs/[^/]{1,80})?)"
    r"/Lib/(?!site-packages)(.+)$|^<(frozen .+)>$"
)


class Failure:
    """The exception that a run failed with, or was stopped by.

    outer: what was raised on in its place, where that tells nothing itself; else the same.
    is_certain: nothing caught it, and the run did not go on. stopped: the place in the order of
    lines from which on the run was being stopped.
    """

    def __init__(
        self,
        outer: Optional[Raised],
        is_certain: bool,
        stopped: Optional[int],
        raised: Sequence[Raised] = (),
    ) -> None:
        self.outer = outer
        self.raised = None if outer is None else _fullest(_telling(outer), raised)
        self.is_certain = is_certain
        self.stopped = stopped


def failure_of(
    raised: Sequence[Raised], events: Sequence[Event], drafts: Sequence[TraceDraft]
) -> Failure:
    """Return the exception that a run failed with, as far as there is one."""
    stopped = _stopped(raised, events)
    before = [entry for entry in raised if stopped is None or entry.order < stopped]
    living = [entry for entry in before if entry.fate != "passed" and not _is_stop(entry)]
    own = [entry for entry in living if not of_another(_telling(entry))]
    signs = _signs_of_end(living, drafts)
    certain = _without_waits([entry for entry in own if _ended_run(entry, signs)])
    if certain:
        last = _of_most_runs(certain, living) or _first_process(certain)
        return Failure(last, True, stopped, raised)
    logged = [entry for entry in own if _was_last_word(entry, signs)]
    if logged and logged[-1].fate == "said" and any(map(_is_sure, drafts)):
        return Failure(None, False, stopped)
    if logged:
        return Failure(logged[-1], _is_last_line(logged[-1]), stopped, raised)
    others = (entry for entry in living if _ended_run(entry, signs))
    return Failure(next(others, None), False, stopped)


def _without_waits(certain: Sequence[Raised]) -> Sequence[Raised]:
    """Return exceptions without those that only waited for what had failed before."""
    awaited = [entry for entry in certain if not _WAITED.search(entry.message)]
    first = min((entry.order for entry in awaited), default=0)
    return [entry for entry in certain if entry in awaited or not awaited or entry.order < first]


def _telling(raised: Raised) -> Raised:
    """Return the exception that tells what failed: of one that says only that another process, or
    every attempt, failed, or that has no word of its own, the one that it came of.
    """
    before = raised.before
    if before is None or not (of_another(raised) or _says_tried(raised) or _is_mute(raised)):
        return raised
    inner = _telling(before)
    return raised if of_another(inner) or _is_stop(inner) or _is_mute(inner) else inner


def _is_mute(raised: Raised) -> bool:
    return not raised.message.strip() and raised.kind not in _TELLING_BARE


def _says_tried(raised: Raised) -> bool:
    tried = raised.kind.endswith("RetryError") or _TRIED.search(raised.message) is not None
    return tried and "Caused by" not in raised.message


def _fullest(raised: Raised, others: Sequence[Raised]) -> Raised:
    """Return an exception with all its places, where the log shows it a second time with more."""
    words = (raised.kind, raised.message.partition("\n")[0])
    same = [entry for entry in others if (entry.kind, entry.message.partition("\n")[0]) == words]
    frames = max((entry.frames for entry in same), key=len, default=())
    return raised._replace(frames=frames) if len(frames) > len(raised.frames) else raised


def _is_sure(draft: TraceDraft) -> bool:
    return draft.role == "cause" and draft.certainty != "candidate"


def _signs_of_end(living: Sequence[Raised], drafts: Sequence[TraceDraft]) -> List[int]:
    """Return the places of what shows that something ended, in their order."""
    effects = [draft.order for draft in drafts if draft.role == "effect"]
    return sorted(effects + [entry.order for entry in living if entry.fate == "ended"])


def _is_last_line(raised: Raised) -> bool:
    """Tell whether an exception was logged, and nothing of weight came after it."""
    return raised.fate == "logged" and raised.behind <= (0 if raised.cut else _LAST_WORDS)


def of_another(raised: Raised) -> bool:
    """Tell whether an exception says no more than that another process failed."""
    if _OF_ANOTHER.search(raised.kind) or _SAYS_ANOTHER.search(raised.message):
        return True
    place = raised.frames[-1].file if raised.frames else ""
    return raised.kind == "EOFError" and place.endswith(_CONNECTIONS)


def _is_stop(raised: Raised) -> bool:
    signalled = raised.kind.endswith("SignalException") and _SIGNALLED.search(raised.message)
    return _STOPPING.search(raised.kind) is not None or bool(signalled)


def _is_stopping(draft: TraceDraft) -> bool:
    return draft.signature is not None and draft.signature.id in _STOPS


def tells_of_stop(finding: Finding) -> bool:
    """Tell whether a finding says no more than that a run was stopped from outside."""
    return finding.subject in _STOPS


def packages_raising(raised: Sequence[Raised], modules: Mapping[str, str]) -> FrozenSet[str]:
    """Return the packages in the tracebacks that ended something; torch, through which most calls
    go, where it raised itself.
    """
    packages: Set[str] = set()
    for entry in raised:
        if entry.fate == "passed":
            continue
        chain: Optional[Raised] = entry
        while chain is not None:
            names = [
                distribution_of(frame.file, modules)
                for frame in chain.frames
                if "-packages/" in frame.file
            ]
            packages.update(name for name in names[:-1] if name != "torch")
            packages.update(names[-1:])
            chain = chain.before
    return frozenset(packages)


#: Exceptions that may come of what did not load; others come of what did.
_OF_LOADING = pattern(
    r"(?:^|\.)(?:\w*Import\w*|ModuleNotFound|OS|Attribute|Name|NotImplemented)Error$"
)
_SAYS_LOADING = pattern(r"(?i)\boperators?\b|symbol|\.so\b|\b_C\b|\bload|\bimport")


def packages_run(raised: Sequence[Raised], modules: Mapping[str, str]) -> FrozenSet[str]:
    """Return the packages whose functions tracebacks go through, and which were imported so: where
    none of them may come of what did not load, and no import was under way.
    """
    packages: Set[str] = set()
    for entry in raised:
        chain: Optional[Raised] = entry
        while chain is not None:
            if _OF_LOADING.search(chain.kind) or _SAYS_LOADING.search(chain.message):
                return frozenset()
            if any(map(_is_importing, chain.frames, (None, *chain.frames))):
                return frozenset()
            packages.update(
                distribution_of(frame.file, modules)
                for frame in chain.frames
                if "-packages/" in frame.file and frame.function not in ("", "<module>")
            )
            chain = chain.before
    return frozenset(packages - {"torch"})


def _is_importing(frame: Frame, caller: Optional[Frame]) -> bool:
    """Tell whether a module of a package was being run that is not the program itself, as that
    behind runpy is (python -m).
    """
    is_program = caller is not None and "runpy" in caller.file
    return frame.function == "<module>" and "-packages/" in frame.file and not is_program


def _stopped(raised: Sequence[Raised], events: Sequence[Event]) -> Optional[int]:
    """Return from which place on the run was being stopped from outside, if it was."""
    places = [entry.order for entry in raised if _is_stop(entry) and entry.fate != "passed"]
    places += [event.order for event in events if event.pattern in _STOPS]
    return min(places, default=None)


def _ended_run(raised: Raised, signs: Sequence[int]) -> bool:
    """Tell whether an exception that nothing caught ended the run.

    One that comes again and again with other lines between does not end its process.
    """
    if raised.fate != "ended":
        return False
    after = _after(raised, signs)
    if after:
        return True
    return raised.behind <= _FEW_BEHIND and not _came_again(raised)


def _came_again(raised: Raised) -> bool:
    return raised.times > 1 and raised.before is None and raised.spread > _LAST_LINES


def _was_last_word(raised: Raised, signs: Sequence[int]) -> bool:
    return raised.behind <= _LAST_LINES or bool(_after(raised, signs))


def _after(raised: Raised, signs: Sequence[int]) -> List[int]:
    end = _end(raised)
    return [sign for sign in signs if end < sign <= end + _FAR * PLACES_OF_LINE]


def _end(raised: Raised) -> int:
    return raised.order + max(1, raised.until - raised.first.number + 1) * PLACES_OF_LINE


def _of_most_runs(certain: Sequence[Raised], living: Sequence[Raised]) -> Optional[Raised]:
    """Return the last exception of the kind that most runs of a sweep failed with; None where
    there is none, or no runner that says of each run that it failed.
    """
    runner = [entry for entry in living if of_another(entry) and entry.fate == "ended"]
    if sum(entry.times for entry in runner) < _RUNS or len({e.kind for e in runner}) > 1:
        return None
    if len({(entry.first.source, entry.first.process) for entry in certain}) > 1:
        return None  # ranks of one run
    counts = Counter({entry.kind: 0 for entry in certain})
    for entry in certain:
        counts[entry.kind] += entry.times
    kind, count = counts.most_common(1)[0]
    if count < _RUNS or 2 * count <= sum(counts.values()):
        return None
    return next(entry for entry in reversed(certain) if entry.kind == kind)


def _first_process(certain: Sequence[Raised]) -> Raised:
    """Return of the last exception of each process the first."""
    last: Dict[Tuple[str, str], Raised] = {}
    for raised in certain:
        last[raised.first.source, raised.first.process] = raised
    return min(last.values(), key=lambda raised: raised.order)


def tell_of_last(
    drafts: Sequence[TraceDraft], failure: Failure, modules: Mapping[str, str]
) -> None:
    """Let what is said of several lines of one form be that of the line that the run failed with:
    of earlier attempts, or of other processes, the values are others.
    """
    raised = failure.raised
    if raised is None:
        return
    for draft in drafts:
        groups = [groups_of(event, modules) for event in draft.events]
        last = [entry for event, entry in zip(draft.events, groups) if _is_of(event, raised)]
        if last and draft.signature is not None and len(last[0]) >= max(map(len, groups)):
            component = fill(draft.signature.component, last[0])
            draft.finding = finding_of(draft.signature, component, last[0], draft.certainty)


# --------------------------------------------------------------------------------------------------
# what it is the cause of


def join_failure(
    drafts: List[TraceDraft],
    failure: Failure,
    contexts: Sequence[Context],
    modules: Mapping[str, str],
) -> None:
    """Make the failure a root, under which what came after it stands."""
    raised = failure.raised
    if raised is None:
        _join_stop(drafts, failure)
        return
    known = _known(drafts, raised)
    if known is None:
        root = _draft_of(failure, raised, contexts, modules)
        root.parent = _came_before(drafts, raised)
        drafts.append(root)
    else:
        root = _root(known)
        known.quoted = [raised.line]
        if known.role == "cause" and failure.is_certain:
            _tell_own_place(known, raised)
        if known.role == "effect" or known.certainty == "candidate":
            why = why_raised(raised, contexts, modules)
            known.meaning = _joined(_where_it_died(raised, contexts, modules), why, known.meaning)
    _root(root).is_failure = failure.is_certain
    for draft in drafts:
        if draft.parent is None and not root.under(draft) and _is_consequence(draft, raised):
            draft.parent = root
            draft.suspects = []
            if draft.role == "cause":  # what ends that ends this
                draft.finding = draft.finding._replace(remedies=())


def _is_consequence(draft: TraceDraft, raised: Raised) -> bool:
    """Tell whether a draft says no more of a failure than that something ended by it."""
    first = draft.first
    if first is None or first.source != raised.first.source:
        return False
    if draft.signature is not None and draft.signature.id in _BUILDS:
        lines = first.number - raised.first.number
        return abs(lines) < _FAR and any(_BUILDING.search(frame.file) for frame in raised.frames)
    return draft.role == "effect" and first.number >= raised.first.number - _ANNOUNCED


def _tell_own_place(draft: TraceDraft, raised: Raised) -> None:
    """Say at which line of the user's own code a known failure came."""
    own = (
        frame
        for frame in reversed(raised.frames)
        if frame.line
        and _IN_FOLDER.search(frame.file)
        and _is_own(frame, INSTALLED.search(frame.file))
    )
    frame = next(own, None)
    message = draft.finding.message.rstrip(".")
    if frame is not None and frame.file not in message:
        place = f"It came at {frame.file}, line {frame.line}{_code(frame)}."
        draft.finding = draft.finding._replace(message=f"{message}. {place}")


def _where_it_died(raised: Raised, contexts: Sequence[Context], modules: Mapping[str, str]) -> str:
    """Say of a process that a signal ended where its Python code was."""
    if not raised.kind.startswith(_CRASHED):
        return ""
    package, place = _place(raised.frames, contexts, modules)
    if not place:
        return ""
    whose = f"compiled code that {package} called" if package else "compiled code"
    return f"It died in {whose}: the last place in Python is {place.partition(' ')[2]}."


def _known(drafts: Sequence[TraceDraft], raised: Raised) -> Optional[TraceDraft]:
    """Return what a signature says of an exception, or of the one that is its direct cause."""
    on_lines = [
        draft
        for draft in drafts
        # What says that something died is no part of a message: it stands behind it.
        if any(_is_of(event, raised, whole=draft.role == "cause") for event in draft.events)
    ]
    if on_lines:
        return min(
            on_lines, key=lambda draft: (draft.role != "cause", draft.certainty == "candidate")
        )
    if raised.before is not None and (raised.by_cause or _origin(raised) is not raised):
        return _known(drafts, raised.before)
    return None


def _is_of(event: Event, raised: Raised, whole: bool = True) -> bool:
    """Tell whether an event is one of the lines of an exception, ``whole`` with its message."""
    until = raised.until if whole else raised.line.number
    if event.times > 1 and event.first.number < raised.line.number < event.last.number:
        # Of many lines with the same words only the first and the last are kept.
        said = raised.message.partition("\n")[0].strip()
        if event.first.source == raised.line.source and said and said in event.first.text:
            return True
    return any(
        line.source == raised.line.source and raised.line.number <= line.number <= until
        for line in (event.first, event.last)
    )


def _root(draft: TraceDraft) -> TraceDraft:
    while draft.parent is not None:
        draft = draft.parent
    return draft


def _came_before(drafts: Sequence[TraceDraft], raised: Raised) -> Optional[TraceDraft]:
    """Return what had ended a process of the run already, or what another program, such as a
    compiler, said right above: where the same log says so.
    """
    before = [draft for draft in drafts if _is_before(draft, raised)]
    return min(before, key=lambda draft: draft.order, default=None)


def _is_before(draft: TraceDraft, raised: Raised) -> bool:
    first = draft.first
    if draft.signature is None or first is None or first.source != raised.first.source:
        return False
    lines = raised.first.number - first.number
    died = draft.signature.layer in _DEADLY or (
        # Ray tells of a worker's death; whoever waits for that worker fails later.
        draft.signature.layer == "ray" and draft.role == "effect" and _is_sure(_root(draft))
    )
    if died and _ANNOUNCED < lines < _FAR:
        return True
    is_said = draft.role == "cause" and draft.certainty != "candidate" and draft.parent is None
    return is_said and 0 < lines <= _ABOVE and not all(event.warned for event in draft.events)


def _join_stop(drafts: List[TraceDraft], failure: Failure) -> None:
    """Put what came while a run was being stopped under what says so."""
    stopped = failure.stopped
    if stopped is None:
        return
    near = [
        draft for draft in drafts if abs(draft.order - stopped) < _ANNOUNCED * 20 * PLACES_OF_LINE
    ]
    stops = [draft for draft in near if _is_stopping(draft)]
    if not stops:
        return
    root = min(stops, key=lambda draft: draft.order)
    for draft in drafts:
        if draft.parent is None and draft.order >= stopped and not root.under(draft):
            draft.parent = root
            draft.suspects = []


def doubt(drafts: Sequence[TraceDraft], raised: Sequence[Raised], failure: Failure) -> None:
    """Take back what is sure only by its words: a warning, or an exception that ended nothing, of
    which nothing came.
    """
    led = {id(draft.parent) for draft in drafts}
    passed = _passed(raised, failure)
    for draft in drafts:
        if draft.signature is None or draft.is_failure or id(draft) in led or not draft.events:
            continue
        if _is_only_warned(draft, passed):
            draft.certainty = "candidate"


def has_failed(drafts: Sequence[TraceDraft], failure: Failure) -> bool:
    """Tell whether an exception ended a run, or something died other than by being stopped."""
    return failure.raised is not None or any(_is_death(draft) for draft in drafts)


def split_survived(
    drafts: Sequence[TraceDraft],
    raised: Sequence[Raised],
    failure: Failure,
    lived: Mapping[str, int],
    complained_of: bool,
) -> Tuple[List[TraceDraft], List[TraceDraft]]:
    """Return what the logs say failed, and what they only tell of where nothing failed: what
    programs warn of, or worked on after.

    Args:
        drafts: What the lines say.
        raised: The exceptions of the logs.
        failure: Which of them the run failed with.
        lived: By log, the last line after which its program worked on.
        complained_of: Somebody shows these lines because something is wrong: a warning, then,
            unless its program worked on after it.
    """
    ended = has_failed(drafts, failure)
    passed = _passed(raised, failure)

    def is_note(draft: TraceDraft) -> bool:
        if ended or _is_stopping(draft):
            return False
        warned = _is_only_warned(draft, passed) and not complained_of
        return warned or _was_outlived(draft, lived)

    said = {id(_root(draft)) for draft in drafts if not is_note(draft)}
    return (
        [draft for draft in drafts if id(_root(draft)) in said],
        [draft for draft in drafts if id(_root(draft)) not in said],
    )


def split_passed(
    drafts: Sequence[TraceDraft], raised: Sequence[Raised], failure: Failure
) -> Tuple[List[TraceDraft], List[TraceDraft]]:
    """Return what may have led to the failure, and what the run had got past before it: imports
    that it went on without, arguments that a later start of the same program took.
    """
    passed = [draft for draft in drafts if _was_passed(draft, raised, failure)]
    return [draft for draft in drafts if draft not in passed], passed


def _was_passed(draft: TraceDraft, raised: Sequence[Raised], failure: Failure) -> bool:
    last = failure.raised
    if last is None or last.cut or draft.signature is None or draft.parent is not None:
        return False
    if not draft.events or not all(_is_above(event, last) for event in draft.events):
        return False
    programs = [_PROGRAM.match(event.first.text) for event in draft.events]
    if any(programs):
        files = {frame.file.rpartition("/")[2] for frame in last.frames}
        files.update(match.group(1) for match in [_PROGRAM.match(last.message)] if match)
        return all(match is not None and match.group(1) in files for match in programs)
    if draft.signature.id not in _IMPORTS:
        return False
    if all(event.warned for event in draft.events):
        return True
    return failure.is_certain and not any(
        _is_in_traceback(event, entry) for event in draft.events for entry in raised
    )


def _is_above(event: Event, raised: Raised) -> bool:
    """Tell whether an event is older than an exception and what it came of."""
    first = raised.first
    above = event.last.source == first.source and event.last.number < first.number
    return above and (raised.before is None or _is_above(event, raised.before))


def _is_in_traceback(event: Event, raised: Raised) -> bool:
    """Tell whether a line is one of an exception, or of one that it came of."""
    if _is_of(event, raised):
        return True
    return raised.before is not None and _is_in_traceback(event, raised.before)


def _passed(raised: Sequence[Raised], failure: Failure) -> List[Raised]:
    """Return the exceptions that ended nothing."""
    return [
        entry
        for entry in raised
        if entry is not failure.outer
        and entry.fate != "ended"
        and (failure.raised is not None or entry.fate == "passed" or entry.behind > _LAST_LINES)
    ]


def _is_only_warned(draft: TraceDraft, passed: Sequence[Raised]) -> bool:
    return bool(draft.events) and all(
        event.warned or any(_is_of(event, entry) for entry in passed) for event in draft.events
    )


def _was_outlived(draft: TraceDraft, lived: Mapping[str, int]) -> bool:
    return bool(draft.events) and all(
        event.last.number <= lived.get(event.last.source, 0) for event in draft.events
    )


def _is_death(draft: TraceDraft) -> bool:
    """Tell whether something died or was lost, other than by being stopped."""
    return draft.role == "effect" and not (_is_stopping(draft) or _is_only_warned(draft, ()))


def without_survived(
    raised: Sequence[Raised], lived: Mapping[str, int], drafts: Sequence[TraceDraft]
) -> List[Raised]:
    """Return the exceptions, as passed those after which their program worked on or ended as it
    should, where nothing died.

    Args:
        raised: what the logs hold.
        lived: by log, the last line after which its program worked on.
        drafts: what lines say.
    """
    survived = [entry for entry in raised if lived.get(entry.line.source, 0) >= entry.until]
    deaths = [draft.order for draft in drafts if _is_death(draft)]
    deaths += [
        entry.order for entry in raised if _is_fatal(entry) and not _is_among(entry, survived)
    ]
    return [
        entry._replace(fate="passed")
        if _is_among(entry, survived) and not _after(entry, deaths)
        else entry
        for entry in raised
    ]


def _is_fatal(raised: Raised) -> bool:
    return raised.fate == "ended" and not _is_stop(raised)


def _is_among(raised: Raised, others: Sequence[Raised]) -> bool:
    return any(raised is other for other in others)


def trust_complaint(drafts: Sequence[TraceDraft]) -> None:
    """Believe of lines that somebody shows because something is wrong the last that names a cause,
    where none of them is surer.
    """
    causes = [draft for draft in drafts if draft.role == "cause" and draft.parent is None]
    if any(draft.certainty != "candidate" for draft in causes):
        return
    doubted = [draft for draft in causes if draft.events and _is_grave(draft)]
    doubted = doubted or [draft for draft in causes if draft.quoted]
    if doubted:
        max(doubted, key=lambda draft: draft.order).certainty = "likely"


def _is_grave(draft: TraceDraft) -> bool:
    return draft.signature is not None and draft.signature.certainty != "candidate"


# --------------------------------------------------------------------------------------------------
# what is said of it


def _draft_of(
    failure: Failure, raised: Raised, contexts: Sequence[Context], modules: Mapping[str, str]
) -> TraceDraft:
    """Return the trace of an exception that no signature knows."""
    origin = _origin(raised)
    task = _OF_TASK.match(raised.message)
    package, place = ("", "") if task else _place(origin.frames, contexts, modules)
    component = package or "application"
    what = _worded(raised)
    if task is not None:
        what = (
            f"{raised.kind.rpartition('.')[2]} in {task.group(1)}, which Ray ran in another process"
            "; what that process printed is not in this log"
        )
    certainty = "established" if failure.is_certain else "candidate"
    unsure = "The log ends with an error:" if raised.fate == "said" else "The log holds"
    lead = "The run failed with" if failure.is_certain else unsure
    finding = Finding(
        code=code_of_log(component, "not-judged"),
        component=component,
        kind="not-judged",
        severity="error" if failure.is_certain else "warning",
        message=f"{lead} {what.rstrip('.')}{f', raised {place}' if place else ''}.",
        verdict="violated" if failure.is_certain else "undetermined",
        subject="raised",
        remedies=remedies_of(_advice(raised.message, contexts), ()),
    )
    draft = TraceDraft(None, finding, certainty, "cause", [])
    draft.quoted = [raised.line]
    draft.meaning = _joined(
        why_raised(origin, contexts, modules),
        _meaning(raised, contexts, modules),
        _passed_on(failure),
    )
    return draft


def _code(frame: Frame) -> str:
    """Return the line of source of a place, where the traceback shows it and it says more than that
    it raises.
    """
    code = frame.code.strip()
    says_nothing = code.startswith(("raise", "return self._call_impl", "sys.exit("))
    return "" if not code or says_nothing or len(code) > _LONGEST_CODE else f": {code}"


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _worded(raised: Raised) -> str:
    """Return name and message in one line; one that only leads to the next is joined with it."""
    said = ""
    for line in raised.message.split("\n"):
        said = f"{said} {line.strip()}".strip()
        if said and not said.endswith(":"):
            break
    said = said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"
    name = raised.kind.rpartition(".")[2]
    return f"{name}: {said}" if name and said else name or said


def _origin(raised: Raised) -> Raised:
    """Return the same exception where it was raised first: a pool raises it a second time."""
    before = raised.before
    again = before is not None and (before.kind, before.message) == (raised.kind, raised.message)
    return _origin(before) if before is not None and again else raised


def _place(
    frames: Sequence[Frame], contexts: Sequence[Context], modules: Mapping[str, str]
) -> Tuple[str, str]:
    """Return the distribution whose code raised, and where in words."""
    shown = [frame for frame in frames if frame.line and frame.file != "<unknown>"]
    while len(shown) > 1 and (shown[-1].function in _LOOKING_UP or shown[-1].file == "<string>"):
        shown.pop()
    if any(INSTALLED.search(frame.file) for frame in shown):
        # Cython's files are named as they lay where they were compiled.
        shown = [
            frame
            for frame in shown
            if not frame.file.endswith((".pyx", ".pxi", ".pxd")) or INSTALLED.search(frame.file)
        ]
    if not shown:
        return "", ""
    installed = [(frame, INSTALLED.search(frame.file)) for frame in shown]
    last, match = installed[-1]
    if match is not None:
        package = distribution_of(last.file, modules)
        version = next(filter(None, (_version(context, package) for context in contexts)), "")
        caller = next(
            (frame for frame, inside in reversed(installed) if _is_own(frame, inside)), None
        )
        name = f"{package} {version}".strip()
        return package, _called(f"by {name} at {match.group(1)}", last, caller)
    package = next(
        (distribution_of(frame.file, modules) for frame, inside in reversed(installed) if inside),
        "",
    )
    standard = STANDARD.search(last.file)
    if standard is None:
        return "", f"at {last.file}, line {last.line}{_code(last)}"
    shown = [frame for frame, _ in installed if frame.file != "<string>"]
    caller = next((frame for frame in reversed(shown) if not _is_standard(frame)), None)
    own = caller is not None and not INSTALLED.search(caller.file)
    name = next(filter(None, standard.groups()))
    return "" if own else package, _called(f"by Python's {name}", last, caller)


def _called(where: str, raising: Frame, caller: Optional[Frame]) -> str:
    """Return where something was raised and who called it, each with its line of source."""
    words = f"{where}, line {raising.line}{_code(raising)}"
    if caller is None:
        return words
    join = ";" if _code(raising) else ","
    return f"{words}{join} called at {caller.file}, line {caller.line}{_code(caller)}"


def _is_own(frame: Frame, inside: Optional[re.Match[str]]) -> bool:
    return inside is None and frame.file != "<string>" and not _is_standard(frame)


def _is_standard(frame: Frame) -> bool:
    return STANDARD.search(frame.file) is not None


def _version(context: Context, package: str) -> str:
    return context.facts.version_of(package) or ""


#: A package that a program wants to have installed, in any version.
_WANTS = pattern(
    r"(?i)\b(?:pip install|install|ensure|make sure)(?: that)?(?: the)? [`'\"]?([a-z][\w-]*)\b"
    r"(?![`'\"]?(?:\[| ?[<>=!~]))"
    r"(?= is installed|[`'\"]?(?:$|[.,;`'\"]| (?:to|and|first|via|with)\b))"
)


def _sentence_of(match: re.Match[str]) -> str:
    """Return an advice with what its sentence says before it."""
    before = re.split(r"[.;!?]\s|\n", match.string[: match.start(1)])[-1]
    return before + match.group(1) if before.strip() else match.group(1)


def _advice(message: str, contexts: Sequence[Context]) -> str:
    """Return what the program itself says is to be done; nothing where it wants a package that is
    there: why it was not found is the question then.
    """
    match = next(
        (
            match
            for form in (_ADVICE, _ADVICE_WITHIN)
            for match in form.finditer(message)
            if _CURES_NOTHING.search(_sentence_of(match)) is None
            and _ECHOED.search(message[: match.start()]) is None
        ),
        None,
    )
    if match is None:
        return ""
    words, rest = match.group(1).strip(), message[match.end() :].strip().split("\n")
    if words.endswith(":") and rest[0].strip():  # what is to be typed stands in a line of its own
        words = f"{words} {rest[0].strip()}"
    wants = _WANTS.search(words)
    name = wants.group(1).lower().replace("_", "-") if wants is not None else ""
    if any(name in context.distributions for context in contexts):
        return ""
    return f"The program itself says: {words}."


def _meaning(raised: Raised, contexts: Sequence[Context], modules: Mapping[str, str]) -> str:
    """Say what it came of, and where that was raised."""
    before = raised.before
    while before is not None and (before.kind, before.message) == (raised.kind, raised.message):
        before = before.before
    if before is None:
        return ""
    place = _place(before.frames, contexts, modules)[1]
    return f"Before it came {_worded(before).rstrip('.')}{f', raised {place}' if place else ''}."


def _passed_on(failure: Failure) -> str:
    """Say as what it was raised on."""
    outer, raised = failure.outer, failure.raised
    if outer is None or raised is None or outer.line == raised.line:
        return ""
    return f"It was raised on as {_worded(outer).rstrip('.')}."
