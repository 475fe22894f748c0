"""Use cases: read facts from wherever they are, judge them. Never prints, never exits."""

from __future__ import annotations

import os
import sys
from functools import partial

from .errors import InputError, suggest
from .model.evidence import Evidence, Fact, Known, Unknown
from .model.facts import PACKAGE_GROUPS, Facts, fields_of
from .model.finding import SEVERITIES, Finding, findings_tree, severity_rank
from .model.record import NamedTuple
from .model.report import Examined, Ignore, Ignored, Judged, Report
from .model.sizes import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

    from .matrix.loader import Matrix
    from .model.diagnosis import Diagnosis, Trace
    from .model.lock_file import Lock
    from .model.log import Reading
    from .model.memory_plan import PlanResult
    from .model.workload import Workload
    from .watch.recording import Recording

__all__ = [
    "FAIL_ON",
    "Options",
    "Sources",
    "check",
    "diagnose",
    "gather",
    "judge",
    "plan",
    "probe",
    "read_assumptions",
    "read_lock",
    "read_text",
    "report_of",
    "watch",
]

FAIL_ON = (*SEVERITIES, "undetermined", "never")

_SIZE_LIMIT = 64 << 20


class Sources(NamedTuple):
    """Where facts come from.

    Without ``facts`` and ``report`` it is this machine; ``requirements`` replaces the environment.

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
    """What is reported, and from which level on the exit code is 1.

    ``only`` and ``skip`` hold codes, bands (ED3) and row ids.
    """

    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    ignores: Sequence[Ignore] = ()
    fail_on: str = "error"
    today: Optional[str] = None  # ISO date; the clock's where left out


def probe(*, python: Optional[str] = None, root: Optional[str] = None, deep: bool = False) -> Facts:
    """Read this machine. Nothing is changed, no network is used, the patient is never imported.

    Raises :class:`InputError` where ``python`` names nothing, or ``root`` holds nothing to judge.

    Args:
        python: Interpreter whose environment is read; by default the one that runs envdoctor.
        root: An unpacked image or a mounted root to read instead of ``/``.
        deep: Also read what needs every file (damage, undefined symbols).
    """
    from .probes import probe_machine

    if python is not None:
        _check_python(python, root)
    facts = probe_machine(python=python, root=root, deep=deep)
    if (
        root is not None
        and facts.value("distributions") is None
        and not os.path.isdir(os.path.join(root, "etc"))
    ):
        raise InputError(
            f"--root {root}: expected an unpacked image or a mounted root, found neither etc nor "
            "an interpreter in a usual place; "
            f"an environment is judged with --python {root}"
        )
    return facts


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

        # Where a requirements file is the patient, what is installed here says nothing.
        overlay = {
            name: Unknown("not part of a requirements file") for name in fields_of(*PACKAGE_GROUPS)
        }
        overlay.update(
            parse_requirements(read_text(sources.requirements), _where(sources.requirements))
        )
    if sources.lock is not None:
        from .intake.lock_reader import lock_facts

        overlay.update(lock_facts(read_lock(sources.lock)))
    assumed.update(read_assumptions(sources.assume))
    if sources.python_version is not None:
        assumed.update(_python_version(sources.python_version))
    if overlay:
        targets = [(path, Facts({**dict(facts), **overlay})) for path, facts in targets]
    if assumed:
        from .intake.assumptions import with_assumptions

        targets = [(path, with_assumptions(facts, assumed)) for path, facts in targets]
    return _named(targets) if len(targets) > 1 else (targets[0][1],)


def check(
    facts: Union[Facts, Sequence[Facts], None] = None,
    matrix: Optional[Matrix] = None,
    options: Optional[Options] = None,
    *,
    run: Sequence[str] = (),
    framework: Optional[str] = None,
) -> Report:
    """Judge one target, or several as the nodes of one cluster.

    Args:
        facts: What is known; by default this machine is read.
        matrix: What is known of versions and hardware; by default the one that envdoctor carries.
        options: What to report, and when it counts as failed.
        run: A launch script, configuration files or a command: what it takes of memory is judged
            too.
        framework: "verl" or "verl==0.4.1", where the run does not tell it.
    """
    if matrix is None:
        from .matrix.loader import load_matrix

        matrix = load_matrix()
    options = options or Options()
    nodes: Tuple[Facts, ...] = (
        (probe(),) if facts is None else (facts,) if isinstance(facts, Facts) else tuple(facts)
    )
    _check_codes(options, matrix)
    from .rules.commands import addressed

    judged: Set[Judged] = set()
    found = _judge_all(nodes, matrix, run, framework, judged)
    report = report_of(addressed(found, nodes), nodes, str(matrix.date), options)
    return report._replace(examined=_examined(judged, options))


def _examined(judged: Set[Judged], options: Options) -> Examined:
    """Count what was judged and may be reported; a row that asks for a GPU is in vain where no
    node has one.
    """
    counted = {entry for entry in judged if _is_wanted(entry.code, entry.rule, options)}
    rows = {entry.rule for entry in counted if entry.is_row}
    met = {entry.rule for entry in counted if entry.is_row and not entry.without_gpu}
    checks = {entry.rule for entry in counted if not entry.is_row}
    return Examined(len(checks), len(rows), len(rows - met))


def _judge_all(
    nodes: Sequence[Facts],
    matrix: Matrix,
    run: Sequence[str],
    framework: Optional[str],
    examined: Optional[Set[Judged]] = None,
) -> List[Finding]:
    """Judge one node or several, with what a run takes of their memory where there is one."""
    if run:
        judge_node = _judge_of_run(run, framework, matrix, nodes, examined)
    else:
        others = nodes if len(nodes) > 1 else ()
        judge_node = partial(judge, matrix=matrix, nodes=others, examined=examined)
    if len(nodes) == 1:
        return judge_node(nodes[0])
    from .rules.causes import arrange_nodes

    return arrange_nodes([(node.value("node.name", "?"), judge_node(node)) for node in nodes])


def _judge_of_run(
    run: Sequence[str],
    framework: Optional[str],
    matrix: Matrix,
    nodes: Sequence[Facts],
    examined: Optional[Set[Judged]],
) -> Callable[[Facts], List[Finding]]:
    """Return what judges a node together with the memory plan of a run."""
    from .plan.frameworks import read_workload
    from .plan.memory.result import plan_run
    from .plan.memory.run_facts import with_workload
    from .rules import judge as judge_facts

    def judge_node(facts: Facts) -> List[Finding]:
        workload = read_workload(run, framework=framework, facts=facts, environ=os.environ)
        planned = plan_run(workload, facts, matrix, (), _model_files(workload))
        return judge_facts(
            with_workload(facts, workload),
            matrix,
            nodes=nodes if len(nodes) > 1 else (),
            also=planned.findings,
            examined=examined,
        )

    return judge_node


def judge(
    facts: Facts,
    matrix: Matrix,
    *,
    nodes: Sequence[Facts] = (),
    examined: Optional[Set[Judged]] = None,
) -> List[Finding]:
    """Return what is wrong with one target: rows and rules, and what the launch settings of a
    report ask of its memory.
    """
    from .plan.memory import SETTINGS
    from .rules import judge as judge_facts

    stated = facts.value("request")
    if stated is None or SETTINGS.isdisjoint(stated.settings()):
        return judge_facts(facts, matrix, nodes=nodes, examined=examined)
    from .plan.memory.stated_settings import findings_of_settings

    also = findings_of_settings(facts, matrix)
    return judge_facts(facts, matrix, nodes=nodes, also=also, examined=examined)


def plan(
    run: Sequence[str],
    facts: Facts,
    matrix: Optional[Matrix] = None,
    *,
    framework: Optional[str] = None,
    changes: Sequence[str] = (),
) -> Tuple[PlanResult, int]:
    """Say what a training run takes of the memory of a target, and whether that fits; returns the
    exit code too.

    Args:
        run: A launch script, configuration files, or the words of a command.
        facts: The target.
        matrix: What is known of models and GPUs; by default the one that envdoctor carries.
        framework: "verl" or "verl==0.4.1", where the run does not tell it.
        changes: "key=value", in the framework's words or in those of the workload.

    Raises:
        InputError: a run that cannot be read, or a change that means nothing.
    """
    from .plan.frameworks import read_workload
    from .plan.memory.result import plan_run
    from .plan.memory.run_facts import with_workload
    from .rules import judge as judge_facts
    from .rules.commands import addressed

    if matrix is None:
        from .matrix.loader import load_matrix

        matrix = load_matrix()
    workload = read_workload(run, framework=framework, facts=facts, environ=os.environ)
    result = plan_run(workload, facts, matrix, changes, _model_files(workload))
    # What no arithmetic covers (leaks of one version) is a row of the matrix, and asks for settings
    # that the run has.
    rows = [
        finding
        for finding in judge_facts(with_workload(facts, result.workload), matrix)
        if finding.row and finding.verdict == "violated"
    ]
    findings = [finding for finding in rows if finding.severity != "advice"]
    findings = addressed([*findings, *result.findings], (facts,))
    result = result._replace(
        findings=tuple(sorted(findings, key=lambda finding: finding.severity != "error"))
    )
    return result, 1 if any(finding.severity == "error" for finding in result.findings) else 0


def _model_files(workload: Workload) -> Dict[str, Dict[str, Any]]:
    """Read config.json and the safetensors index of models that lie in a folder of this machine."""
    import json

    from .model.workload import ROLES

    files: Dict[str, Dict[str, Any]] = {}
    for name in {
        str(workload.value(f"{role}.model")) for role in ROLES if workload.value(f"{role}.model")
    }:
        folder = os.path.expanduser(name)
        for key, file_name in (
            (name, "config.json"),
            (f"{name}#index", "model.safetensors.index.json"),
        ):
            path = os.path.join(folder, file_name)
            if not os.path.isfile(path):
                continue
            try:
                content = json.loads(read_text(path))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}: is no JSON: {error}") from error
            if isinstance(content, dict):
                files[key] = content
    return files


def diagnose(
    logs: Sequence[str],
    facts: Union[Facts, Sequence[Facts], None] = None,
    matrix: Optional[Matrix] = None,
    *,
    run: Sequence[str] = (),
    framework: Optional[str] = None,
    facts_from: str = "what was given",
) -> Diagnosis:
    """Read logs in one pass and say what failed, what followed from it, how sure that is, and what
    would decide.

    Args:
        logs: Files, or ``-`` for standard input; gzip, bzip2 and xz are unpacked.
        facts: What is known of the machine and environment that wrote them, or of each node; by
            default what the logs themselves tell.
        matrix: What is known of versions, hardware and lines of logs; by default the one that
            envdoctor carries.
        run: The launch script or configuration of the run that wrote them; what the memory model
            finds of it is joined.
        framework: The framework of ``run``, where it does not tell.
        facts_from: Where the facts come from, for the report.

    Raises:
        InputError: a log that cannot be read.
    """
    from .diagnose.draft import Knowledge
    from .diagnose.failure import explain
    from .intake.log_reader import read_logs
    from .matrix.derive import derive_target
    from .matrix.signatures import patterns_of, symptom_patterns
    from .model.diagnosis import Diagnosis
    from .rules import Context
    from .rules.commands import addressed

    if matrix is None:
        from .matrix.loader import load_matrix

        matrix = load_matrix()
    signatures = matrix.signatures
    symptoms, rows_of = symptom_patterns(
        (matrix.complete(row) for row in matrix.rows()), matrix.modules
    )
    patterns = [*patterns_of(signatures), *symptoms]
    reading = read_logs(logs, patterns)
    nodes = (facts,) if isinstance(facts, Facts) else tuple(facts or ())
    if not nodes:
        nodes = (_facts_of_log(reading),)
        facts_from = "the log" if any(True for _ in nodes[0]) else ""
    findings = _judge_all(nodes, matrix, run, framework)
    contexts = [
        Context(
            node, matrix, derive_target(node, matrix), nodes[1:] and nodes, str(matrix.date), {}
        )
        for node in nodes
    ]
    knowledge = Knowledge(
        {signature.id: signature for signature in signatures}, rows_of, matrix.modules
    )
    traces, rest = explain(reading.events, knowledge, contexts, findings)
    return Diagnosis(
        tuple([_addressed_trace(trace, nodes) for trace in traces]),
        tuple(
            finding
            for finding in addressed(rest, nodes)
            if finding.verdict == "violated" and finding.severity != "advice"
        ),
        reading.sources,
        reading.lines,
        reading.size,
        len(patterns),
        nodes,
        facts_from,
        str(matrix.date),
        1 if traces else 0,
    )


def _addressed_trace(trace: Trace, nodes: Sequence[Facts]) -> Trace:
    from .rules.commands import addressed, addressed_remedies

    return trace._replace(
        finding=addressed([trace.finding], nodes)[0],
        suspects=tuple(
            suspect._replace(remedies=addressed_remedies(suspect.remedies, nodes))
            for suspect in trace.suspects
        ),
    )


def _facts_of_log(reading: Reading) -> Facts:
    """Return what a report inside the log tells (a pasted collect_env), or no facts."""
    from .intake import parse_report

    try:
        return parse_report(reading.report) if reading.report else Facts()
    except InputError:  # nothing about an environment in it
        return Facts()


def watch(**options: Any) -> Recording:
    """Watch the memory of a run until it ends; see :func:`envdoctor.watch.sampling.watch` for the
    options.
    """
    from .watch.sampling import watch as record

    return record(**options)


def read_lock(folder: str) -> Lock:
    """Read the lock that ``envdoctor lock -o DIR`` wrote, from its folder or the file itself;
    raises :class:`InputError`.
    """
    from .intake.lock_reader import parse_lock

    path = os.path.join(folder, "envdoctor.lock.json") if os.path.isdir(folder) else folder
    if path != "-" and not os.path.isfile(path):  # a pipe would be waited for
        there = "what is no regular file" if os.path.exists(path) else "nothing"
        raise InputError(
            f"{path}: expected envdoctor.lock.json, as 'envdoctor lock -o DIR' writes it, found "
            f"{there}"
        )
    return parse_lock(read_text(path), path)


def read_text(path: str, lenient: bool = False) -> str:
    """Read a text file, or standard input for ``-``; raises :class:`InputError`.

    UTF-8, or UTF-16 with a byte order mark (what PowerShell's ``>`` writes). ``lenient`` replaces
    what does not decode.
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
        raise InputError(
            f"{where}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error
    if len(data) > _SIZE_LIMIT:
        raise InputError(
            f"{where}: larger than {size_text(_SIZE_LIMIT)}, so this is hardly the file that was "
            "meant"
        )
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding, "replace" if lenient else "strict")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: expected UTF-8 text, found the byte 0x{data[error.start]:02x} at offset "
            f"{error.start}"
        ) from error


def _where(path: str) -> str:
    return "standard input" if path == "-" else path


def read_assumptions(assumptions: Sequence[str]) -> Dict[str, Fact[Any]]:
    """Return the facts that ``KEY=VALUE`` texts state; raises :class:`InputError`.

    A GPU that nobody has described constrains nothing: a misspelt one would make everything fit,
    silently.
    """
    if not assumptions:
        return {}
    from .intake.assumptions import parse_assumptions

    assumed = parse_assumptions(assumptions)
    gpus = assumed.get("gpus")
    if isinstance(gpus, Known) and gpus.value:
        from .matrix.loader import load_matrix

        matrix = load_matrix()
        for name in dict.fromkeys(device.name or "" for device in gpus.value):
            if matrix.gpu(name, None) is None:
                near = suggest(name, [model.name for model in matrix.gpus])
                raise InputError(
                    f"--assume gpu={name}: no such GPU is known{near}; 'envdoctor matrix list "
                    "gpus' names all"
                )
    return assumed


def _check_sources(sources: Sources) -> None:
    if sources.facts and sources.report is not None:
        raise InputError("--facts and --report both name the target; give one of them")
    for option, value in (("--python", sources.python), ("--root", sources.root)):
        if value is not None and (sources.facts or sources.report is not None):
            raise InputError(
                f"{option} says what to read on this machine, but the facts come from "
                f"{'--facts' if sources.facts else '--report'}"
            )
    read_once = [
        path for path in (*sources.facts, sources.report, sources.requirements) if path == "-"
    ]
    if len(read_once) > 1:
        raise InputError("standard input ('-') can be read only once")
    if sources.root is not None and not os.path.isdir(sources.root):
        raise InputError(
            f"--root {sources.root}: expected a directory, found "
            f"{'a file' if os.path.exists(sources.root) else 'nothing'}"
        )


def _check_python(python: str, root: Optional[str]) -> None:
    """Raise :class:`InputError` where there is no such interpreter: an empty environment would look
    healthy.
    """
    from .probes import Machine
    from .probes.interpreter import find_executable

    machine = Machine(root or "")
    if find_executable(machine, python) is not None:
        return
    where = f" in {root}" if root else "" if "/" in python else " on PATH"
    shown = (
        "a folder without bin/python"
        if machine.isdir(python if root else os.path.abspath(python))
        else "nothing"
    )
    raise InputError(
        f"--python {python}: expected an interpreter or the folder of an environment{where}, found "
        f"{shown}"
    )


def _python_version(text: str) -> Dict[str, Fact[Any]]:
    parts = text.split(".")
    if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--python-version: expected X.Y such as 3.11, found {text!r}")
    evidence = Evidence("--python-version")
    return {
        "python.version": Known(text, evidence),
        "python.abi": Known(f"cp{parts[0]}{parts[1]}", evidence),
    }


def _named(targets: Sequence[Tuple[str, Facts]]) -> Tuple[Facts, ...]:
    """Give every node a name of its own: emulated and cloned nodes share their host's name."""
    taken: Set[str] = set()
    named = []
    for number, (path, facts) in enumerate(targets, 1):
        name = (
            facts.value("node.name")
            or os.path.splitext(os.path.basename(path))[0]
            or f"node{number}"
        )
        if name in taken:
            name = f"{name}#{number}"
        taken.add(name)
        named.append(
            facts
            if facts.value("node.name") == name
            else facts.updated({"node.name": Known(name, Evidence(_where(path)))})
        )
    return tuple(named)


def _check_codes(options: Options, matrix: Matrix) -> None:
    """Raise :class:`InputError` for a code or row id that does not exist: a misspelt --skip would
    hide nothing, silently.
    """
    if options.fail_on not in FAIL_ON:
        raise InputError(
            f"fail_on: expected one of {', '.join(FAIL_ON)}, found {options.fail_on!r}"
        )
    if not (options.only or options.skip or options.ignores):
        return
    from .rules.codes import CODES

    known = set(CODES)
    for row in matrix.rows():
        known.update((row.code, row.id))
    for option, patterns in (("--only", options.only), ("--skip", options.skip)):
        for pattern in patterns:
            if not any(_selects(pattern, code) for code in known):
                raise InputError(
                    f"{option} {pattern}: no such code, band or row{suggest(pattern, known)}"
                )
    for entry in options.ignores:
        if entry.pattern not in known and entry.pattern.split(":", 1)[0] not in known:
            raise InputError(
                f"{entry.origin or 'ignore'}: {entry.pattern}: no such code or "
                f"row{suggest(entry.pattern.split(':', 1)[0], known)}"
            )


def _selects(pattern: str, code: str) -> bool:
    """``ED304`` selects itself, ``ED3`` and ``ED3xx`` the band; a row id selects itself."""
    if pattern == code:
        return True
    band = pattern[:-2] if pattern.endswith("xx") else pattern
    return band[:2] == "ED" and band[2:].isdigit() and len(band) < 5 and code.startswith(band)


def _is_wanted(code: str, rule: str, options: Options) -> bool:
    """Tell whether --only and --skip leave what this rule finds in the report."""

    def named(patterns: Sequence[str]) -> bool:
        return any(pattern == rule or _selects(pattern, code) for pattern in patterns)

    return (not options.only or named(options.only)) and not named(options.skip)


def report_of(
    findings: Sequence[Finding], nodes: Tuple[Facts, ...], date: str, options: Options
) -> Report:
    """Sort findings into those that count, open questions, and what is accepted; ``date`` is that
    of the matrix.
    """
    today = options.today
    if today is None and options.ignores:
        import time

        today = time.strftime("%Y-%m-%d")
    kept: List[Finding] = []
    undetermined: List[Finding] = []
    ignored: List[Ignored] = []
    expired: List[Ignored] = []
    for finding in findings:
        if not _is_wanted(finding.code, finding.rule, options):
            continue
        entries = [entry for entry in options.ignores if entry.covers(finding)]
        valid = [entry for entry in entries if today is not None and entry.until >= today]
        if valid:
            ignored.append(Ignored(finding, valid[0]))
            continue
        if entries:
            expired.append(Ignored(finding, entries[0]))
        (undetermined if finding.verdict == "undetermined" else kept).append(finding)
    return Report(
        tuple([finding for finding, _ in findings_tree(kept)]),
        tuple(undetermined),
        tuple(ignored),
        tuple(expired),
        nodes,
        date,
        _exit_code(kept, undetermined, options.fail_on),
    )


def _exit_code(violated: Sequence[Finding], undetermined: Sequence[Finding], fail_on: str) -> int:
    if fail_on == "never":
        return 0
    if fail_on == "undetermined":
        return 1 if violated or undetermined else 0
    return (
        1
        if any(severity_rank(finding.severity) <= severity_rank(fail_on) for finding in violated)
        else 0
    )
