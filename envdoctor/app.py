"""Use cases: read facts from wherever they are, judge them. Never prints, never exits."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

from .errors import InputError, InternalFault
from .model.evidence import Evidence, Fact, Known, Unknown
from .model.facts import Facts
from .model.finding import SEVERITIES, Finding, severity_rank
from .model.record import NamedTuple
from .model.report import Ignore, Ignored, Report

if TYPE_CHECKING:
    from .actions.index_sources import IndexSources
    from .matrix.loader import Matrix
    from .memory.recording import Recording
    from .model.diagnosis import Diagnosis
    from .model.lock_file import Lock
    from .model.log import Reading
    from .model.request import Request, Root
    from .model.resolution import Explanation, Resolution

__all__ = [
    "FAIL_ON",
    "Options",
    "Sources",
    "check",
    "check_date",
    "close",
    "diagnose",
    "gather",
    "lock",
    "of_its_time",
    "probe",
    "read_lock",
    "read_text",
    "report_of",
    "suggest",
    "watch",
]

FAIL_ON = (*SEVERITIES, "undetermined", "never")

_SIZE_LIMIT = 64 << 20

# Facts about the Python environment: where a requirements file is the patient, those of the machine's own say nothing.
_ENVIRONMENT_FIELDS = (
    "distributions",
    "distributions.complete",
    "distributions.oddities",
    "binaries",
    "libraries",
    "ptxas.version",
    "shadowed_modules",
    "ray.module_path",
    "torch.version",
    "torch.cuda",
    "torch.hip",
    "torch.arch_list",
    "torch.cuda_available",
    "torch.cxx11abi",
)


class Sources(NamedTuple):
    """Where facts come from. Without ``facts`` and ``report`` it is this machine; ``requirements`` replaces the environment.

    ``lock`` is compared with it.
    """

    facts: Sequence[str] = ()
    report: Optional[str] = None
    requirements: Optional[str] = None
    assume: Sequence[str] = ()
    python_version: Optional[str] = None
    python: Optional[str] = None
    root: Optional[str] = None
    deep: bool = False
    lock: Optional[str] = None


class Options(NamedTuple):
    """What is reported, and from which level on the exit code is 1. ``only`` and ``skip`` hold codes, bands (ED3) and row ids."""

    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    ignores: Sequence[Ignore] = ()
    fail_on: str = "error"
    today: Optional[str] = None  # ISO date; the clock's where left out


def probe(*, python: Optional[str] = None, root: Optional[str] = None, deep: bool = False) -> Facts:
    """Read this machine. Nothing is changed, no network is used, the patient is never imported.

    Raises :class:`InputError` where ``python`` names nothing.

    Args:
        python: Interpreter whose environment is read; by default the one that runs envdoctor.
        root: An unpacked image or a mounted root to read instead of ``/``.
        deep: Also read what needs every file (damage, undefined symbols).
    """
    from .probes import probe_machine

    if python is not None:
        _check_python(python, root)
    return probe_machine(python=python, root=root, deep=deep)


def gather(sources: Sources) -> Tuple[Facts, ...]:
    """Read the facts of every target that ``sources`` name; raises :class:`InputError`."""
    _check_sources(sources)
    if sources.facts:
        from .model.serde import load_facts

        targets = [(path, load_facts(read_text(path), _where(path))) for path in sources.facts]
    elif sources.report is not None:
        from .intake import parse_report

        targets = [(sources.report, parse_report(read_text(sources.report, lenient=True)))]
    else:
        targets = [("", probe(python=sources.python, root=sources.root, deep=sources.deep))]
    overlay: Dict[str, Fact[Any]] = {}
    assumed: Dict[str, Fact[Any]] = {}
    if sources.requirements is not None:
        from .intake import parse_requirements

        overlay = {name: Unknown("not part of a requirements file") for name in _ENVIRONMENT_FIELDS}
        overlay.update(parse_requirements(read_text(sources.requirements), _where(sources.requirements)))
    if sources.lock is not None:
        from .intake.lock_file import lock_facts

        overlay.update(lock_facts(read_lock(sources.lock)))
    if sources.assume:
        from .intake.assumptions import parse_assumptions

        assumed.update(parse_assumptions(sources.assume))
    if sources.python_version is not None:
        assumed.update(_python_version(sources.python_version))
    if overlay:
        targets = [(path, Facts({**dict(facts), **overlay})) for path, facts in targets]
    if assumed:
        from .intake.assumptions import with_assumptions

        targets = [(path, with_assumptions(facts, assumed)) for path, facts in targets]
    return _named(targets) if len(targets) > 1 else (targets[0][1],)


def check(facts: Union[Facts, Sequence[Facts], None] = None, matrix: Optional[Matrix] = None, options: Optional[Options] = None) -> Report:
    """Judge one target, or several as the nodes of one cluster.

    Args:
        facts: What is known; by default this machine is read.
        matrix: What is known of versions and hardware; by default the one that envdoctor carries.
        options: What to report, and when it counts as failed.
    """
    from .rules import judge

    if matrix is None:
        from .matrix.loader import load_matrix

        matrix = load_matrix()
    options = options or Options()
    nodes: Tuple[Facts, ...] = (probe(),) if facts is None else (facts,) if isinstance(facts, Facts) else tuple(facts)
    _check_codes(options, matrix)
    found = judge(nodes[0], matrix) if len(nodes) == 1 else _judge_nodes(nodes, lambda node: judge(node, matrix, nodes=nodes))
    return report_of(found, nodes, str(matrix.date), options)


def diagnose(
    logs: Sequence[str],
    facts: Union[Facts, Sequence[Facts], None] = None,
    matrix: Optional[Matrix] = None,
    *,
    plan: Sequence[Finding] = (),
    facts_from: str = "what was given",
) -> Diagnosis:
    """Read logs in one pass and say what failed, what followed from it, how sure that is, and what would decide.

    Args:
        logs: Files, or ``-`` for standard input; gzip, bzip2 and xz are unpacked.
        facts: What is known of the machine and environment that wrote them, or of each node; by default what the logs themselves tell.
        matrix: What is known of versions, hardware and lines of logs; by default the one that envdoctor carries.
        plan: What the memory model finds of the run's configuration; it is joined as findings of a check are.
        facts_from: Where the facts come from, for the report.

    Raises:
        InputError: a log that cannot be read.
    """
    from .intake.log import read_logs
    from .matrix.derive import derive_target
    from .matrix.signatures import patterns_of, symptom_patterns
    from .model.diagnosis import Diagnosis
    from .rules import Context, judge
    from .rules.signatures import Knowledge, explain

    if matrix is None:
        from .matrix.loader import load_matrix

        matrix = load_matrix()
    signatures = matrix.signatures
    symptoms, rows_of = symptom_patterns(matrix.complete(row) for row in matrix.rows())
    patterns = [*patterns_of(signatures), *symptoms]
    reading = read_logs(logs, patterns)
    nodes = (facts,) if isinstance(facts, Facts) else tuple(facts or ())
    if not nodes:
        nodes = (_facts_of_log(reading),)
        facts_from = "the log" if any(True for _ in nodes[0]) else ""
    judged = judge(nodes[0], matrix) if len(nodes) == 1 else _judge_nodes(nodes, lambda node: judge(node, matrix, nodes=nodes))
    found = [*judged, *plan]
    contexts = [Context(node, matrix, derive_target(node, matrix), nodes[1:] and nodes, str(matrix.date), {}) for node in nodes]
    knowledge = Knowledge({signature.id: signature for signature in signatures}, rows_of, matrix.modules)
    traces, rest = explain(reading.events, knowledge, contexts, found)
    return Diagnosis(
        tuple(traces),
        tuple(finding for finding in rest if finding.verdict == "violated" and finding.severity != "advice"),
        reading.sources,
        reading.lines,
        reading.size,
        len(patterns),
        nodes,
        facts_from,
        str(matrix.date),
        1 if traces else 0,
    )


def _facts_of_log(reading: Reading) -> Facts:
    """Return what a report inside the log tells (a pasted collect_env), or no facts."""
    from .intake import parse_report

    try:
        return parse_report(reading.report) if reading.report else Facts()
    except InputError:  # nothing about an environment in it
        return Facts()


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
) -> Union[Resolution, Explanation]:
    """Choose versions that work together on all targets at once, or explain why there are none.

    Args:
        requirements: What is wanted, the most important first: "vllm>=0.8", "verl[vllm]".
        facts: The targets.
        matrix: What is known of versions and hardware; by default the one that envdoctor carries.
        python: Python that the lock is for; by default that of the targets.
        as_of: ISO date after which no release counts; "release": a month after the newest release that a requirement pins with ==, where there
            is one and it is not of today; None or "latest": no date.
        allow_index: Further indexes whose builds may be taken ("pytorch").
        profile: A framework ("verl": the newest of its requests that fits) or one of its requests ("verl:0.7-vllm"); its Python is that of
            the targets or the newest that it allows.
        others: Let pass what the matrix does not know; the resolution names it in ``request.others``.

    Raises:
        InputError: a request that means nothing, or targets that cannot share a lock.
        GaveUp: the search limit was reached; nothing is proven.
    """
    from .model.request import Request, parse_root
    from .model.resolution import Resolution
    from .solver import resolve

    if matrix is None:
        from .matrix.loader import load_matrix

        matrix = load_matrix()
    asked = tuple(parse_root(text) for text in requirements)
    if not asked and profile is None:
        raise InputError("expected at least one requirement, such as 'vllm>=0.8', or --profile NAME")
    known = frozenset(matrix.package_names)
    unknown = tuple(root for root in asked if root.name not in known) if others else ()
    roots = tuple(root for root in asked if root not in unknown)
    day, pinned = _day(as_of, roots, matrix)
    request = Request(
        roots,
        python or _common(facts, "python.version", "give --python-version", "3.12" if profile is not None else None),
        _common(facts, "os.platform", "one lock is for one platform", "linux"),
        _common(facts, "os.architecture", "one lock is for one architecture", "x86_64"),
        day,
        tuple(dict.fromkeys(allow_index)),
        others=unknown,
        of_the_time=bool(pinned),
    )
    notes: List[str] = []
    if profile is not None:
        found = _of_profile(profile, request, facts, matrix, python, as_of)
    else:
        found = resolve(request, facts, matrix)
    if pinned and not isinstance(found, Resolution) and profile is None:
        found = resolve(request._replace(as_of=None, of_the_time=False), facts, matrix)
        notes = [f"nothing of the time of {pinned} ({day}) meets the request: some packages are newer than it was ever tested with"]
    if not isinstance(found, Resolution):
        return found
    if found.request.of_the_time:
        told = found.request.profile or pinned
        notes = [f"the packages are of {found.request.as_of} or before, the time of {told}; --as-of latest takes the newest"]
    elif found.request.as_of is None and not notes:
        notes = _much_newer(found, matrix)
    notes += [reason.text for reason in found.passed]
    notes += [f"{root.text} is not judged by envdoctor: the matrix does not know it{suggest(root.name, known, 0.8)}" for root in unknown]
    found = found._replace(notes=tuple(notes))
    _verify(found, facts, matrix)
    return found


def _of_profile(
    profile: str, base: Request, facts: Sequence[Facts], matrix: Matrix, python: Optional[str], as_of: Optional[str]
) -> Union[Resolution, Explanation]:
    from .solver.profiles import find_wanted, resolve_profile

    return resolve_profile(find_wanted(profile, matrix), base, facts, matrix, python, of_its_time(as_of, matrix))


def of_its_time(as_of: Optional[str], matrix: Matrix) -> Callable[[Request], Request]:
    """Return what gives a request its as-of date; see :func:`lock`. What its maintainers tested counts like what it pins."""
    from .model.request import Root

    def dated(request: Request) -> Request:
        tested = (Root(name, (), f"=={version}") for name, version in request.prefer.items())
        day, pinned = _day(as_of, (*request.roots, *tested), matrix)
        return request._replace(as_of=day, of_the_time=bool(pinned))

    return dated


def close(
    found: Resolution,
    facts: Sequence[Facts],
    matrix: Matrix,
    sources: IndexSources,
    *,
    allow_build: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _words: None,
) -> Resolution:
    """Let uv add what a resolution needs besides its pins; how far that came says ``closure`` of the result.

    What uv adds is judged as well. Packages that the matrix does not know may ask for others than were chosen, which only uv can tell; then
    the core is chosen again with what they ask for.

    Args:
        found: The core pins.
        facts: The targets.
        matrix: What is known of versions and hardware.
        sources: Where packages come from.
        allow_build: Packages whose setup code uv may run to learn what they require.
        progress: Is told what happens, a line at a time.

    Raises:
        InputError: a request that neither the matrix nor an index knows.
    """
    from .actions.closure import UnknownName
    from .actions.closure import close as close_with_uv
    from .model.request import Root, parse_root
    from .model.resolution import Closure, Resolution
    from .solver import resolve
    from .solver.engine import GaveUp

    glibc = [str(entry.value("glibc.version")) for entry in facts if entry.value("glibc.version")]
    lowest = min(glibc, key=lambda text: [int(part) for part in text.split(".") if part.isdigit()]) if glibc else None
    core, brought = found, ()  # type: Resolution, Tuple[Root, ...]
    for _ in range(_CLOSING_ROUNDS):
        try:
            closure = close_with_uv(core, sources, glibc=lowest, later=_later(core, matrix), allow_build=allow_build, progress=progress)
        except UnknownName as error:
            raise InputError(f"{error}{suggest(error.name, matrix.package_names, 0.8)}") from error
        notes = (f"the date does not bind {', '.join(closure.late)}",) if closure.late else ()
        closed = core._replace(closure=closure, notes=(*found.notes, *notes))
        problems = _problems(closed, facts, matrix) if closure.is_closed else []
        if problems:
            unjudged = [line for line in closure.lines if any(name not in matrix.package_names for name in line.via)]
            learned = [Root(line.name) for line in unjudged if line.name in matrix.package_names and core.pin(line.name) is None]
            closed = found._replace(closure=Closure("refused", "check refuses what uv added to the pins", "\n".join(problems), tool=closure.tool))
        elif closure.state == "refused":
            learned = [parse_root(text) for text in closure.conflicts]
        else:
            return closed
        learned = [root for root in learned if root not in brought]
        brought = (*brought, *learned)
        if not learned:
            return closed
        try:
            again = resolve(core.request._replace(roots=(*found.request.roots, *brought)), facts, matrix)
        except GaveUp:  # what was found before stands, with uv's refusal
            return closed
        if not isinstance(again, Resolution):
            return closed
        progress(f"choosing again: what is not in the matrix needs {', '.join(root.text for root in learned)}")
        core = _as_asked(again, found, brought)
        _verify(core, facts, matrix)
    return closed


def _as_asked(again: Resolution, found: Resolution, brought: Sequence[Root]) -> Resolution:
    """A resolution with what closing taught as reasons, and the request as the user made it."""
    from .model.resolution import Reason

    taught = {f"asked for: {root.text}": f"what is not in the matrix requires {root.specifier or 'it'}" for root in brought}
    pins = tuple(
        pin._replace(reasons=tuple(Reason("required", taught[reason.text]) if reason.text in taught else reason for reason in pin.reasons))
        for pin in again.pins
    )
    return again._replace(pins=pins, request=found.request, notes=found.notes, passed=found.passed)


#: How often the core is chosen again with what uv says about packages that the matrix does not know.
_CLOSING_ROUNDS = 6
#: Days after a release within which its dependencies may have been released to count as of its time: it was tested before it came out,
#: and what it needed fixed came soon after (research: vllm 0.8.5 with transformers of its month, 4.51.3, and of today, 5.23.0).
_GRACE = 30
_MUCH_NEWER = 365  # days


def _day(as_of: Optional[str], roots: Sequence[Root], matrix: Matrix) -> Tuple[Optional[str], str]:
    """Return the as-of date, and the pinned requirement that it follows from (empty where it is the user's own or there is none)."""
    if as_of is None or as_of == "latest":
        return None, ""
    if as_of != "release":
        check_date(as_of)
        return as_of, ""
    dated = [
        (day, root.text)
        for root in roots
        if root.specifier.startswith("==")
        for day in [_released(root.name, root.specifier.lstrip("="), matrix)]
        if day
    ]
    if not dated:
        return None, ""
    newest, text = max(dated)
    day = _plus_days(newest, _GRACE)
    return (day, text) if day < str(matrix.date) else (None, "")


def _released(name: str, version: str, matrix: Matrix) -> Optional[str]:
    from .model.versions import try_version

    package, parsed = matrix.package(name), try_version(version)
    release = package.release(parsed) if package is not None and parsed is not None else None
    return release.released if release is not None else None


def _plus_days(day: str, days: int) -> str:
    from datetime import date, timedelta

    return (date(*map(int, day.split("-"))) + timedelta(days)).isoformat()


def _later(found: Resolution, matrix: Matrix) -> List[str]:
    """The pins that the as-of date does not bind."""
    day = found.request.as_of
    return [pin.name for pin in found.pins if day is not None and (_released(pin.name, pin.version, matrix) or "") > day]


def _much_newer(found: Resolution, matrix: Matrix) -> List[str]:
    """Say where what is asked for is much older than what is taken with it: nobody has tested that."""
    asked = {root.name for root in found.request.roots}
    dated = [(day, pin) for pin in found.pins for day in [_released(pin.name, pin.version, matrix)] if day]
    old = max(((day, pin) for day, pin in dated if pin.name in asked), default=None)
    if old is None:
        return []
    limit = _plus_days(old[0], _MUCH_NEWER)
    newer = [pin for day, pin in dated if day > limit]
    if not newer:
        return []
    shown = ", ".join(f"{pin.name} {pin.version}" for pin in newer[:3]) + (" ..." if len(newer) > 3 else "")
    advice = f"--as-of {_plus_days(old[0], _GRACE)} takes what there was then"
    return [f"{old[1].name} {old[1].version} is of {old[0]}, but {shown} came more than a year later; {advice}"]


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
    shown = {".".join(value.split(".")[:2]) if field == "python.version" else value for value in known}
    if len(shown) > 1:
        raise InputError(f"the targets differ in {field} ({', '.join(sorted(shown))}); {advice}")
    if not shown:
        if default is None:
            raise InputError(f"no target tells its {field}; {advice}")
        return default
    return known[0]


def _verify(found: Resolution, facts: Sequence[Facts], matrix: Matrix) -> None:
    """Judge every target with the pins installed: an error that the target does not have anyway is a fault of ours."""
    for problem in _problems(found, facts, matrix):
        raise InternalFault(f"check refuses what was resolved: {problem}")


def _problems(found: Resolution, facts: Sequence[Facts], matrix: Matrix) -> List[str]:
    """What check finds on the targets with everything installed, beside what they have anyway."""
    from .rules import judge
    from .solver.objective import applied

    problems: Dict[str, None] = {}
    for entry in facts:
        own = {finding.key for finding in judge(entry, matrix, today=str(matrix.date))}
        for finding in judge(applied(found, entry), matrix, today=str(matrix.date)):
            if finding.severity == "error" and finding.verdict == "violated" and finding.key not in own:
                problems[f"{finding.code} {finding.message}"] = None
    return list(problems)


def watch(**options: Any) -> Recording:
    """Watch the memory of a run until it ends; see :func:`envdoctor.actions.watch.watch` for the options."""
    from .actions.watch import watch as record

    return record(**options)


def read_lock(folder: str) -> Lock:
    """Read the lock that ``envdoctor lock -o DIR`` wrote, from its folder or the file itself; raises :class:`InputError`."""
    from .intake.lock_file import parse_lock

    path = os.path.join(folder, "envdoctor.lock.json") if os.path.isdir(folder) else folder
    return parse_lock(read_text(path), path)


def read_text(path: str, lenient: bool = False) -> str:
    """Read a text file, or standard input for ``-``; raises :class:`InputError`.

    UTF-8, or UTF-16 with a byte order mark (what PowerShell's ``>`` writes). ``lenient`` replaces what does not decode.
    """
    where = _where(path)
    try:
        if path == "-":
            if sys.stdin is None:
                raise InputError("standard input is closed, so '-' cannot be read")
            data = sys.stdin.buffer.read(_SIZE_LIMIT + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(_SIZE_LIMIT + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{where}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > _SIZE_LIMIT:
        raise InputError(f"{where}: larger than {_SIZE_LIMIT >> 20} MiB, so this is hardly the file that was meant")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding, "replace" if lenient else "strict")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: expected UTF-8 text, found the byte 0x{data[error.start]:02x} at offset {error.start}") from error


def suggest(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return " (did you mean …?)" with the nearest of ``known``, or nothing; ``least`` is how alike they have to be, 0..1."""
    from difflib import get_close_matches

    spelled = {entry.lower(): entry for entry in known}
    near = [spelled[entry] for entry in get_close_matches(word.lower(), sorted(spelled), 3, least)]
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _where(path: str) -> str:
    return "standard input" if path == "-" else path


def _check_sources(sources: Sources) -> None:
    if sources.facts and sources.report is not None:
        raise InputError("--facts and --report both name the target; give one of them")
    for option, value in (("--python", sources.python), ("--root", sources.root)):
        if value is not None and (sources.facts or sources.report is not None):
            raise InputError(f"{option} says what to read on this machine, but the facts come from {'--facts' if sources.facts else '--report'}")
    read_once = [path for path in (*sources.facts, sources.report, sources.requirements) if path == "-"]
    if len(read_once) > 1:
        raise InputError("standard input ('-') can be read only once")
    if sources.root is not None and not os.path.isdir(sources.root):
        raise InputError(f"--root {sources.root}: expected a directory, found {'a file' if os.path.exists(sources.root) else 'nothing'}")


def _check_python(python: str, root: Optional[str]) -> None:
    """Raise :class:`InputError` where there is no such interpreter: an empty environment would look healthy."""
    from .probes import Machine
    from .probes.interpreter import find_executable

    machine = Machine(root or "")
    if find_executable(machine, python) is not None:
        return
    where = f" in {root}" if root else "" if "/" in python else " on PATH"
    found = "a folder without bin/python" if machine.isdir(python if root else os.path.abspath(python)) else "nothing"
    raise InputError(f"--python {python}: expected an interpreter or the folder of an environment{where}, found {found}")


def _python_version(text: str) -> Dict[str, Fact[Any]]:
    parts = text.split(".")
    if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--python-version: expected X.Y such as 3.11, found {text!r}")
    evidence = Evidence("--python-version")
    return {"python.version": Known(text, evidence), "python.abi": Known(f"cp{parts[0]}{parts[1]}", evidence)}


def _named(targets: Sequence[Tuple[str, Facts]]) -> Tuple[Facts, ...]:
    """Give every node a name of its own: emulated and cloned nodes share their host's name."""
    taken: Set[str] = set()
    named = []
    for number, (path, facts) in enumerate(targets, 1):
        name = facts.value("node.name") or os.path.splitext(os.path.basename(path))[0] or f"node{number}"
        if name in taken:
            name = f"{name}#{number}"
        taken.add(name)
        named.append(facts if facts.value("node.name") == name else facts.updated({"node.name": Known(name, Evidence(_where(path)))}))
    return tuple(named)


def _judge_nodes(nodes: Sequence[Facts], judge: Callable[[Facts], List[Finding]]) -> List[Finding]:
    """Judge every node; what is found alike on several is one finding that names them, what compares nodes comes once.

    The order is that of ``judge``: roots first, the gravest before the others, each followed by its consequences, then what is open.
    """
    merged: Dict[Tuple[str, str], Finding] = {}
    # The root of a finding is that of the node where it was met first: another node may have other words for the same key.
    roots: Dict[Tuple[str, str], Optional[Tuple[str, str]]] = {}
    for node in nodes:
        name = (node.value("node.name", "?"),)
        found = judge(node)
        identities = {finding.key: (finding.key, finding.message) for finding in found if finding.verdict == "violated"}
        for finding in found:
            identity = (finding.key, finding.message)
            known = merged.get(identity)
            if known is None:
                merged[identity] = finding._replace(nodes=finding.nodes or name)
                roots[identity] = identities.get(finding.caused_by or "")
            elif not set(name) <= set(known.nodes) and not finding.nodes:
                merged[identity] = known._replace(nodes=known.nodes + name)
    return _under_roots(merged, roots)


def _under_roots(findings: Dict[Tuple[str, str], Finding], roots: Dict[Tuple[str, str], Optional[Tuple[str, str]]]) -> List[Finding]:
    """Order findings by severity, and among equals as they come, with each one's consequences right after it."""
    under: Dict[Optional[Tuple[str, str]], List[Tuple[str, str]]] = {}
    for identity in sorted(findings, key=lambda identity: severity_rank(findings[identity].severity)):
        if findings[identity].verdict == "violated":
            root = roots[identity]
            under.setdefault(root if root is not None and findings[root].verdict == "violated" else None, []).append(identity)
    ordered: List[Finding] = []
    waiting = under.get(None, [])[::-1]
    while waiting:
        identity = waiting.pop()
        ordered.append(findings[identity])
        waiting.extend(under.get(identity, [])[::-1])
    open_questions = [finding for finding in findings.values() if finding.verdict != "violated"]
    return ordered + sorted(open_questions, key=lambda finding: (finding.missing, severity_rank(finding.severity)))


def _check_codes(options: Options, matrix: Matrix) -> None:
    """Raise :class:`InputError` for a code or row id that does not exist: a misspelt --skip would hide nothing, silently."""
    if options.fail_on not in FAIL_ON:
        raise InputError(f"fail_on: expected one of {', '.join(FAIL_ON)}, found {options.fail_on!r}")
    if not (options.only or options.skip or options.ignores):
        return
    from .rules import RULES

    known = {rule.code for rule in RULES}
    for row in matrix.rows():
        known.update((row.code, row.id))
    for option, patterns in (("--only", options.only), ("--skip", options.skip)):
        for pattern in patterns:
            if not any(_selects(pattern, code) for code in known):
                raise InputError(f"{option} {pattern}: no such code, band or row{suggest(pattern, known)}")
    for entry in options.ignores:
        if entry.pattern not in known and entry.pattern.split(":", 1)[0] not in known:
            raise InputError(f"{entry.origin or 'ignore'}: {entry.pattern}: no such code or row{suggest(entry.pattern.split(':', 1)[0], known)}")


def _selects(pattern: str, code: str) -> bool:
    """``ED304`` selects itself, ``ED3`` and ``ED3xx`` the band; a row id selects itself."""
    if pattern == code:
        return True
    band = pattern[:-2] if pattern.endswith("xx") else pattern
    return band[:2] == "ED" and band[2:].isdigit() and len(band) < 5 and code.startswith(band)


def report_of(found: Sequence[Finding], nodes: Tuple[Facts, ...], date: str, options: Options) -> Report:
    """Sort findings into those that count, open questions, and what is accepted; ``date`` is that of the matrix."""
    today = options.today
    if today is None and options.ignores:
        import time

        today = time.strftime("%Y-%m-%d")
    kept: List[Finding] = []
    undetermined: List[Finding] = []
    ignored: List[Ignored] = []
    expired: List[Ignored] = []
    for finding in found:
        if options.only and not any(_selects(pattern, finding.code) or pattern == finding.row for pattern in options.only):
            continue
        if any(_selects(pattern, finding.code) or pattern == finding.row for pattern in options.skip):
            continue
        entries = [entry for entry in options.ignores if entry.covers(finding)]
        valid = [entry for entry in entries if today is not None and entry.until >= today]
        if valid:
            ignored.append(Ignored(finding, valid[0]))
            continue
        if entries:
            expired.append(Ignored(finding, entries[0]))
        (undetermined if finding.verdict == "undetermined" else kept).append(finding)
    return Report(tuple(kept), tuple(undetermined), tuple(ignored), tuple(expired), nodes, date, _exit_code(kept, undetermined, options.fail_on))


def _exit_code(found: Sequence[Finding], undetermined: Sequence[Finding], fail_on: str) -> int:
    if fail_on == "never":
        return 0
    if fail_on == "undetermined":
        return 1 if found or undetermined else 0
    return 1 if any(severity_rank(finding.severity) <= severity_rank(fail_on) for finding in found) else 0
