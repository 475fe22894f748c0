"""``envdoctor prove``."""

from __future__ import annotations

import argparse
import tempfile

from ..app import check, diagnose
from ..errors import InputError
from ..model.requirement import is_for_extra, try_requirement
from ..sources import Sources, gather
from .command import Command
from .engine_options import add_engines, named_engine, request_of
from .output import PROGRESS, view
from .shared_options import TEXT_FORMATS, add_format, add_general, add_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

    from ..matrix.loader import Matrix
    from ..model.facts import Facts, Gpu
    from ..model.finding import Finding
    from ..model.node_answers import Answers, NodeAnswer
    from ..model.proof import Proof, TrialStep
    from ..nodes.engines import NodeRequest

    #: A name, and what runs it: it takes an interpreter and a deadline in seconds.
    Trial = Tuple[str, Callable[[str, float], List[TrialStep]]]

__all__ = ["COMMAND"]

_BUSY = 1 << 30  # bytes: a context of CUDA alone takes half of that
_COPIED = 256 << 20  # bytes
_REDUCED = (1 << 20, 16 << 20)  # bytes
_PROCESSES = 4  # of a collective without GPUs


def _configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is tried (default: --imports)")
    group.add_argument(
        "--imports",
        metavar="NAME",
        nargs="*",
        help="import these distributions, each in a process of its own (default: what --lock was "
        "asked for, else torch, ray and what requires torch)",
    )
    group.add_argument(
        "--gpu",
        action="store_true",
        help="multiply matrices of every type on every GPU, copy within and between GPUs",
    )
    group.add_argument(
        "--kernels",
        action="store_true",
        help="compile a kernel with nvcc and one of Triton's; run one of flash-attn and of vllm, "
        "where they are there",
    )
    group.add_argument(
        "--nccl",
        action="store_true",
        help="all-reduce over the GPUs of this machine (with fewer than two: over four processes, "
        "by gloo); with an engine: over all nodes",
    )
    group = parser.add_argument_group("on which nodes (default: this machine; --nccl alone)")
    add_engines(group)
    group.add_argument(
        "--per-node",
        metavar="N",
        type=int,
        default=0,
        help="processes on each node (default: one for each visible GPU, or 1 without a GPU)",
    )
    group = parser.add_argument_group("where and how")
    add_options(group, "python", "lock")
    group.add_argument(
        "--deadline",
        metavar="S",
        type=float,
        default=120.0,
        help="seconds per trial (default: 120)",
    )
    group.add_argument("--busy", action="store_true", help="also use GPUs whose memory is in use")
    group = parser.add_argument_group("what is reported")
    add_format(group, {**TEXT_FORMATS, "json": "for programs (schemas/prove.schema.json)"})
    add_options(group, "output", "matrix")
    add_general(parser, "show every step, and what failing ones wrote")


def _execute(options: argparse.Namespace) -> Tuple[str, int]:
    from ..matrix.loader import load_matrix
    from ..model.proof import Proof
    from ..prove.judging import compare, known_gpus
    from ..rules.addressing import judged_interpreter

    if not 1 <= options.deadline <= 3600:
        raise InputError(f"--deadline: expected 1 to 3600 seconds, found {options.deadline:g}")
    matrix = load_matrix(options.matrix)
    engine = named_engine(options)
    if engine is not None:
        return _shown(_prove_across(engine, options, matrix), options)
    (facts,) = gather(Sources(python=options.python, lock=options.lock))
    python = judged_interpreter(facts)
    if python is None:
        raise InputError("no interpreter is known that could run a trial; name one with --python")
    trials, skipped = _trials(options, facts)
    report = check(facts, matrix)
    steps: List[TrialStep] = []
    for name, run in trials:
        PROGRESS.say(f"trying {name}")
        steps += run(python, options.deadline)
    compared = compare(
        steps,
        (*report.findings, *report.undetermined),
        lambda text: _explain(text, facts, matrix),
        known_gpus(facts),
    )
    return _shown(Proof(tuple(compared), report, tuple(skipped)), options)


def _shown(proof: Proof, options: argparse.Namespace) -> Tuple[str, int]:
    from importlib import import_module

    module = "proof_json" if options.format == "json" else "proof_text"
    text: str = import_module(f"..report.{module}", __package__).render(proof, view(options))
    return text, proof.exit_code


_START = 30.0  # seconds that engines have beside the trial: a job of Slurm's, a driver of Ray's


def _prove_across(engine: Tuple[str, str], options: argparse.Namespace, matrix: Matrix) -> Proof:
    """Have all nodes of an engine reduce together, and hold that against what a check of them
    finds.
    """
    from ..app import check_cluster
    from ..model.node_answers import Answers, facts_of
    from ..model.proof import Proof
    from ..nodes.payload import program_text
    from ..prove.judging import compare

    if not options.nccl or options.gpu or options.kernels or options.imports is not None:
        raise InputError(
            f"--{engine[0]}: expected --nccl and none of --imports, --gpu and --kernels: those are "
            "tried on one machine, by 'envdoctor prove' there"
        )
    request = request_of(engine, options)
    judged = None if request.engine == "ray" else options.python
    answers = Answers()
    PROGRESS.say("asking the nodes")
    asked = list(_ask(request, program_text(judged, meeting=True), answers))
    failed = [f"{one.node}: {one.failed}" for one in asked if one.host is None]
    present = [one for one in asked if one.host is not None]
    if failed or len(present) < 2:
        words = "; ".join(failed[:4]) or f"{len(present)} answered"
        raise InputError(f"--{engine[0]}: expected answers of all nodes, two or more: {words}")
    nodes = [facts_of(one, answers.environments) for one in present]
    report = check_cluster(present, answers.environments, matrix).sections[0].report
    steps = _reduce_across(request, present, nodes, options, judged)
    findings = (*report.findings, *report.undetermined)
    compared = compare(steps, findings, lambda text: _explain(text, nodes[0], matrix))
    return Proof(tuple(compared), report)


def _ask(request: NodeRequest, program: str, answers: Answers) -> Iterator[NodeAnswer]:
    from ..nodes.collection import collect
    from ..nodes.engines import jobs_of

    asked = jobs_of(request)
    yield from asked.failed
    count = max(len(asked.jobs), 1)
    yield from collect(asked.jobs, program, answers, deadline=request.deadline, at_once=count)


def _reduce_across(
    request: NodeRequest,
    present: Sequence[NodeAnswer],
    nodes: Sequence[Facts],
    options: argparse.Namespace,
    judged: Optional[str],
) -> List[TrialStep]:
    """Run one collective in processes of all nodes, and return their steps."""
    from ..model.node_answers import Answers
    from ..nodes.payload import trial_text

    devices = [_devices(facts, options.busy) for facts in nodes]
    backend = "nccl" if all(devices) else "gloo"
    counts = _processes(devices, backend, options.per_node)
    subject = f"{backend} over {sum(counts)} processes on {len(nodes)} nodes"
    head, most = present[0], max(counts)
    parameters = {
        "devices": [f"cuda:{n}" for n in range(most)] if backend == "nccl" else ["cpu"] * most,
        "backend": backend,
        "store": f"tcp://{head.said.get('address')}:{head.said.get('port')}",
        "seconds": options.deadline,
        "bytes": _REDUCED,
    }
    program = trial_text(judged, "collective", parameters, options.deadline, subject)
    arguments = {
        one.node: f"[{sum(counts[:number])}, {counts[number]}, {sum(counts)}]"
        for number, one in enumerate(present)
    }
    PROGRESS.say(f"trying {subject}")
    request = request._replace(arguments=arguments, deadline=options.deadline + _START)
    steps = [
        step
        for answer in _ask(request, program, Answers())
        if answer.node in arguments
        for step in _steps_of(answer, subject, every=answer.node == head.node)
    ]
    return _beside_expected(steps, nodes, backend)


def _beside_expected(
    steps: Sequence[TrialStep], nodes: Sequence[Facts], backend: str
) -> List[TrialStep]:
    """Return the steps, those that measure a bandwidth with what the hardware carries."""
    from ..prove.expectation import expected_bandwidth

    bound = expected_bandwidth(nodes, backend)
    if bound is None:
        return list(steps)
    return [
        step._replace(expected=bound[0], expected_by=bound[1])
        if step.unit.startswith("GB/s")
        else step
        for step in steps
    ]


def _processes(devices: Sequence[Sequence[str]], backend: str, asked: int) -> List[int]:
    """Return how many processes each node starts: as many as are asked for, else one for each GPU,
    and without GPUs one.
    """
    if backend != "nccl":
        return [asked or 1] * len(devices)
    if asked and any(asked > len(on_node) for on_node in devices):
        raise InputError(f"--per-node {asked}: a node has fewer visible GPUs")
    return [asked or len(on_node) for on_node in devices]


def _steps_of(answer: NodeAnswer, subject: str, *, every: bool) -> Iterator[TrialStep]:
    """Yield what the first process of a node told. One node's steps are enough where they work;
    of the others only those that fail are told. every: this is that node.
    """
    from ..model.proof import TrialStep

    if answer.host is None:
        yield TrialStep("collective", subject, "start", "fails", answer.failed, node=answer.node)
    for table in answer.said.get("steps", ()):
        step = TrialStep(**table)._replace(node=answer.node)
        if every or step.outcome != "works":
            yield step


def _explain(text: str, facts: Facts, matrix: Matrix) -> List[Finding]:
    """Return what the words of a failing trial tell, as the diagnosis of a log."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".log") as file:
        file.write(text)
        file.flush()
        traces = diagnose([file.name], facts, matrix).traces
    # What only repeats the exception explains nothing.
    explaining = [trace.finding for trace in traces if trace.finding.remedies or trace.finding.row]
    return [_of_the_trial(finding, file.name) for finding in explaining]


def _of_the_trial(finding: Finding, path: str) -> Finding:
    """Return the finding without places in the file that only the diagnosis read."""
    places = [place for place in finding.evidence if not place.source.startswith(path)]
    return finding._replace(evidence=tuple(places))


def _trials(options: argparse.Namespace, facts: Facts) -> Tuple[List[Trial], List[str]]:
    """Return the trials by name, and what is not tried, with the reason."""
    trials: List[Trial] = []
    skipped: List[str] = []
    on_devices = options.gpu or options.kernels or options.nccl
    if options.imports is not None or not on_devices:
        names = options.imports or _distributions(facts)
        if not names:
            skipped.append("imports: nothing is installed that a run would import")
        trials += [_trial("imports", name, {"distribution": name}) for name in names]
    devices = _devices(facts, options.busy) if on_devices else []
    if options.gpu:
        trials += _gpu_trials(devices)
        if not devices:
            skipped.append("GPUs: none is visible")
    if options.kernels and devices:
        trials.append(_kernels(devices[0], facts))
    elif options.kernels:
        skipped.append("kernels: they need a GPU, and none is visible")
    if options.nccl:
        trials.append(_collective(devices, facts))
    return trials, skipped


def _gpu_trials(devices: Sequence[str]) -> List[Trial]:
    trials = []
    for device in devices:
        trials.append(_trial("arithmetic", device, {"device": device}))
        trials.append(_trial("memory", device, {"device": device, "bytes": _COPIED}))
    if len(devices) > 1:
        trials.append(_trial("peers", "GPUs", {"devices": devices, "bytes": _COPIED}))
    return trials


def _kernels(device: str, facts: Facts) -> Trial:
    packages = [name for name in ("triton", "flash-attn", "vllm") if facts.version_of(name)]
    values = {"device": device, "folder": "{folder}", "packages": packages, "nvcc": _nvcc(facts)}
    return _trial("kernels", device, values)


def _nvcc(facts: Facts) -> str:
    """Return the nvcc that a build would use, or nothing."""
    toolkits = facts.value("toolkits") or ()
    return next((f"{one.path}/bin/nvcc" for one in toolkits if one.nvcc), "")


def _trial(trial: str, subject: str, parameters: Dict[str, Any]) -> Trial:
    from ..prove.running import run_trial

    def run(python: str, deadline: float) -> List[TrialStep]:
        return run_trial(python, trial, parameters, deadline, subject)

    return f"{trial} of {subject}", run


def _collective(devices: Sequence[str], facts: Facts) -> Trial:
    from ..prove.running import run_together

    backend = "nccl" if len(devices) > 1 else "gloo"
    used = list(devices) if len(devices) > 1 else ["cpu"] * _PROCESSES

    def run(python: str, deadline: float) -> List[TrialStep]:
        parameters = {
            "devices": used,
            "backend": backend,
            "store": "{folder}/store",
            "seconds": deadline,
            "bytes": _REDUCED,
        }
        steps = run_together(python, "collective", parameters, deadline, len(used), backend)
        return _beside_expected(steps, [facts], backend)

    return f"{backend} over {len(used)} processes", run


def _devices(facts: Facts, busy: bool) -> List[str]:
    """Return the visible GPUs as torch names them.

    Raises:
        InputError: one of them is in use.
    """
    visible: List[Gpu] = [gpu for gpu in facts.value("gpus", ()) if gpu.visible is not False]
    used = [
        f"{number} ({gpu.name or 'GPU'}, {gpu.memory_used / (1 << 30):.1f} GiB)"
        for number, gpu in enumerate(visible)
        if gpu.memory_used is not None and gpu.memory_used > _BUSY
    ]
    if used and not busy:
        raise InputError(
            f"memory is in use on GPU {', '.join(used)}: a trial there may end somebody's run; "
            "choose others with CUDA_VISIBLE_DEVICES, or give --busy"
        )
    return [f"cuda:{number}" for number in range(len(visible))]


def _distributions(facts: Facts) -> List[str]:
    """Return what the lock was asked for, else torch, ray, and what cannot do without torch."""
    asked = [try_requirement(line) for line in facts.value("lock.asked", ())]
    if asked:
        return [requirement.name for requirement in asked if requirement is not None]
    installed = facts.value("distributions", {})
    return [name for name in installed if name in ("torch", "ray") or _needs_torch(installed[name])]


def _needs_torch(distribution: Any) -> bool:
    return any(_names(distribution.requires or ()))


def _names(lines: Sequence[str]) -> Iterator[bool]:
    for line in lines:
        requirement = None if is_for_extra(line) else try_requirement(line)
        yield requirement is not None and requirement.name == "torch"


COMMAND = Command(_configure, _execute, doing="trying", has_children=True)
