"""ED611 to ED616: what stops a run before or between its steps, beside memory: paths, the disk for
its checkpoints, ports, the hub, GPUs, the step that it goes on from.

An error only where every fact that could refute it was read: the run starts on this machine, in no
container, and nothing before it in its script could make what is missing.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Optional, Tuple

from ..model.evidence import ASSUMED, Evidence, Known
from ..model.facts import Facts
from ..model.finding import Finding, Remedy
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.run_places import RunPlaces, step_of
from ..model.sizes import gib_text
from ..model.workload import Workload
from .rule import Rule

__all__ = ["RULES_HERE", "Preflight", "preflight_findings"]

_OFFLINE = Source(
    "https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",
    "HF_HUB_OFFLINE: no HTTP calls … only cached files will be accessed",
)
_GATED = Source(
    "https://huggingface.co/docs/hub/models-gated", "users must log in and be granted access"
)
#: Repositories whose owners let nobody in without a request.
_GATED_NAMES = re.compile(r"meta-llama/|google/gemma-(?:[23]|2b|7b)", re.IGNORECASE)
#: They save at the last step, whatever their interval is.
_SAVES_LAST = frozenset(["verl", "easyr1", "tinyzero", "simplerl", "openrlhf"])
#: The key of the GPUs of a node where a launcher starts one process for each.
_PROCESSES_OF_A_NODE = "--nproc_per_node"
_SPARE = 3  # checkpoints of a run that keeps all: fewer than these are soon too few


class Preflight(NamedTuple):
    """A run, the machine that it is planned for, and what that machine has of its places (None: it
    is another one). written: bytes of one checkpoint on a node's disk, at least and at the most.
    """

    workload: Workload
    facts: Facts
    places: Optional[RunPlaces] = None
    written: Tuple[int, int] = (0, 0)

    @property
    def is_here(self) -> bool:
        """Whether the run starts on this machine for certain, in no container."""
        elsewhere = self.workload.get("launch.elsewhere")
        return self.places is not None and isinstance(elsewhere, Known) and not elsewhere.value

    @property
    def is_alone(self) -> bool:
        """Whether nothing before the run in its script could make a file."""
        prepares = self.workload.get("launch.prepares")
        return isinstance(prepares, Known) and not prepares.value

    @property
    def in_container(self) -> bool:
        """Whether its paths and ports are a container's."""
        wrapper = self.workload.value("launch.elsewhere")
        return bool(self.workload.value("container.image")) or wrapper == "container"

    def place(self, field: str) -> Tuple[Evidence, ...]:
        """Return where a field was set."""
        evidence = self.workload.place(field)
        return (evidence,) if evidence is not None else ()


def preflight_findings(run: Preflight) -> List[Finding]:
    """Return what stops a run beside memory."""
    return [finding for rule in RULES_HERE for finding in rule.function(run)]


def check_paths(run: Preflight) -> Iterator[Finding]:
    """A path that the run reads does not exist.

    What it checks:
        Absolute paths of models, data and the checkpoint to go on from, on the machine that the run
        starts on; not where it runs in a container. An error where nothing in the script could make
        them and the run has one node; what the hub has by name is no path.

    Why it matters:
        FileNotFoundError, or "Repo id must be in the form …" of a path that is taken for a name of
        the hub: after the workers have started.

    How to fix:
        Correct the path, mount what it is on, or download it before.

    References:
        huggingface_hub utils/_validators.py (HFValidationError).
    """
    if run.places is None or run.in_container:
        return
    sure = run.is_here and run.is_alone and run.workload.value("nodes") == 1
    for path in run.places.paths:
        if path.exists is not False:
            continue
        key = run.workload.key_of(path.field)
        yield Finding(
            "ED611",
            "configuration",
            "missing",
            "error" if sure else "warning",
            f"{key} is {path.path}, which does not exist on this machine.",
            subject=path.path,
            evidence=run.place(path.field),
            remedies=(Remedy(f"Correct {key}, or create {path.path} before the run.", (), "safe"),),
        )


def check_checkpoint_disk(run: Preflight) -> Iterator[Finding]:
    """The disk has no room for the checkpoints of the run.

    What it checks:
        Bytes of one checkpoint (weights, and the optimizer unless only weights are saved), times
        those that are kept, against what this user may write where they go; or against
        checkpoint.disk, where that is stated for another machine.

    Why it matters:
        A save fails hours into the run ("No space left on device"), and may leave half a
        checkpoint that nothing can go on from.

    How to fix:
        Keep fewer checkpoints, save without the optimizer, save less often, or write elsewhere.

    References:
        arXiv:1910.02054: 2 bytes of weights and 12 of optimizer for each parameter.
    """
    stated = run.workload.value("checkpoint.disk")
    disk = _Disk("the disk", stated, True)
    if stated is None:
        if run.places is None or run.in_container:
            return
        disk = _Disk(run.places.disk, run.places.free, run.is_here and run.places.fresh)
    low, high = run.written
    shortage = _shortage(run, disk) if high else None
    if shortage is None:
        return
    severity, text = shortage
    keys = (run.workload.key_of("checkpoint.limit"), run.workload.key_of("checkpoint.model_only"))
    yield Finding(
        "ED612",
        "disk",
        "too-small",
        severity,
        f"A checkpoint takes {_range_gib(low, high)} GiB, and {disk.name} has "
        f"{gib_text(disk.free or 0)} GiB left: {text}.",
        evidence=(
            *run.place("checkpoint.disk"),
            *run.place("checkpoint.folder"),
            *run.place("checkpoint.save_freq"),
            *run.place("checkpoint.limit"),
        ),
        remedies=(
            Remedy(f"Keep fewer ({keys[0]}), or save only the weights ({keys[1]}).", (), "safe"),
        ),
    )


class _Disk(NamedTuple):
    """Where checkpoints go. free: bytes, None where that is not known; empty: nothing of an earlier
    run lies there, which a save could replace.
    """

    name: str
    free: Optional[int]
    empty: bool


def _shortage(run: Preflight, disk: _Disk) -> Optional[Tuple[str, str]]:
    """Return how grave it is, and in words, that the checkpoints of a run do not fit; None where
    they do, or that is not known.
    """
    low, high = run.written
    if disk.free is None or disk.free < 0:
        return None
    if low > disk.free:
        saves = run.workload.value("framework") in _SAVES_LAST
        return "error" if disk.empty and saves else "warning", "not even one fits"
    count = int(run.workload.value("checkpoint.limit") or 0) or _saves(run.workload)
    if (count or _SPARE) * high <= disk.free:
        return None
    kept = f"of the {count} that are kept" if count else "all are kept, and"
    return "warning", f"{kept} {_range(disk.free, low, high)} fit"


def _saves(workload: Workload) -> int:
    """Return how many checkpoints a run writes; 0 where its length is not known."""
    steps, every = workload.value("steps"), workload.value("checkpoint.save_freq")
    return int(steps) // int(every) if steps and every and every > 0 and steps > 0 else 0


def _range(free: int, low: int, high: int) -> str:
    fewest, most = free // high, free // max(low, 1)
    return str(fewest) if fewest == most else f"{fewest} to {most}" if low else f"{fewest} or more"


def _range_gib(low: int, high: int) -> str:
    return "..".join(dict.fromkeys((gib_text(low), gib_text(high))))


def check_port(run: Preflight) -> Iterator[Finding]:
    """The port of the run is taken.

    What it checks:
        The port that a server or a launcher is told, or 29500 where torchrun, accelerate or
        deepspeed is told none, against those on which something listens on this machine. A
        warning: what listens may be the last run, which ends before this one.

    Why it matters:
        "Address already in use" (EADDRINUSE), after the model was loaded where a server binds late.

    How to fix:
        End what listens (ss -ltnp says what it is), or take another port.

    References:
        bind(2), EADDRINUSE.
    """
    port = run.workload.value("port")
    ports = run.places.ports if run.places is not None else None
    if not port or ports is None or port not in ports or run.in_container:
        return
    yield Finding(
        "ED613",
        "network",
        "conflict",
        "warning",
        f"{run.workload.key_of('port')} is {port}, and something is already listening there.",
        evidence=run.place("port"),
        remedies=(
            Remedy("Choose another port, or stop what is listening there.", ("ss -ltnp",), "safe"),
        ),
    )


def check_hub(run: Preflight) -> Iterator[Finding]:
    """A model of the hub cannot be fetched.

    What it checks:
        Models that the run names by their place on the hub and that lie in no folder here: offline,
        whether the hub's cache has a snapshot of them; of gated ones, whether a token is set or
        stored. Whether the token is let in is not known, and nothing of it is read.

    Why it matters:
        "Can't load the configuration of …", LocalEntryNotFoundError, or "401 … Access to model … is
        restricted", on every worker.

    How to fix:
        Fetch the model into the cache before (hf download NAME), or sign in (hf auth login).

    References:
        huggingface.co: huggingface_hub environment variables; gated models.
    """
    places = run.places
    if places is None or run.in_container:
        return
    sure = run.is_here and run.is_alone and run.workload.value("nodes") == 1
    for model in places.hub:
        key = run.workload.key_of(model.field)
        if model.cached is not False:
            continue
        if places.offline:
            yield Finding(
                "ED614",
                "hub",
                "missing",
                "error" if sure else "warning",
                f"{key} is {model.name}, {places.offline} keeps the client from the network, and "
                f"{places.cache} has no snapshot of it.",
                subject=model.name,
                evidence=run.place(model.field),
                sources=(_OFFLINE,),
                remedies=(Remedy("Fetch it before.", (f"hf download {model.name}",), "safe"),),
            )
        elif places.token is False and _GATED_NAMES.match(model.name):
            yield Finding(
                "ED614",
                "hub",
                "missing",
                "warning",
                f"{key} is {model.name}, a gated repository: access has to be requested, and no "
                "token is set or stored for this user.",
                subject=model.name,
                evidence=run.place(model.field),
                sources=(_GATED,),
                remedies=(Remedy("Sign in.", ("hf auth login",), "safe"),),
            )


def check_gpu_count(run: Preflight) -> Iterator[Finding]:
    """The run uses more GPUs per node than the machine has.

    What it checks:
        GPUs of a node by the settings of the run, against those that are visible, and processes
        against the GPUs that CUDA_VISIBLE_DEVICES of their own script names. An error where a
        launcher of this machine starts one process for each; a warning where a cluster of Ray or a
        scheduler may find others.

    Why it matters:
        "invalid device ordinal", or a placement group that waits for ever.

    How to fix:
        Ask for as many processes as there are GPUs, or start it where there are more.

    References:
        torch.distributed.run --nproc-per-node; Ray placement groups.
    """
    asked = run.workload.value("gpus_per_node")
    devices = run.facts.value("gpus")
    evidence = run.facts.evidence("gpus")
    by_processes = run.workload.key_of("gpus_per_node") == _PROCESSES_OF_A_NODE
    shown = _shown_gpus(run.workload)
    if asked and shown is not None and by_processes and int(asked) > shown:
        yield Finding(
            "ED615",
            "gpu",
            "exceeds-gpu-count",
            "error",
            f"The run starts {asked} processes, each with a GPU of its own, and its "
            f"CUDA_VISIBLE_DEVICES names {shown}.",
            evidence=(*run.place("gpus_per_node"), *run.place("variables")),
            remedies=(Remedy("Name as many GPUs, or start fewer processes.", (), "safe"),),
        )
        return
    if not asked or not devices or run.in_container:
        return
    count = sum(1 for device in devices if device.visible is not False)
    is_assumed = evidence is not None and evidence.source == ASSUMED
    if int(asked) <= count or (is_assumed and count == 1):  # "gpu=H100" names the kind
        return
    stages = 1 if by_processes else int(run.workload.value("rollout.pipeline_parallel") or 1)
    if stages > 1 and not run.is_here and int(asked) <= count * stages:
        return  # stages are for several nodes, and nobody said that this is one
    sure = by_processes and run.is_here and run.workload.value("nodes") == 1
    yield Finding(
        "ED615",
        "gpu",
        "exceeds-gpu-count",
        "error" if sure else "warning",
        f"The run uses {asked} GPUs per node, but the machine has {count}.",
        evidence=(*run.place("gpus_per_node"), *((evidence,) if evidence is not None else ())),
        remedies=(Remedy(f"Lower {run.workload.key_of('gpus_per_node')}.", (), "safe"),),
    )


def _shown_gpus(workload: Workload) -> Optional[int]:
    """Return how many GPUs the run's own CUDA_VISIBLE_DEVICES names; None where it names none."""
    variables = workload.value("variables") or {}
    names = [name for name in str(variables.get("CUDA_VISIBLE_DEVICES", "")).split(",") if name]
    return len(names) if names and all(name.strip().isdecimal() for name in names) else None


def check_resume(run: Preflight) -> Iterator[Finding]:
    """The run resumes at or after its last step.

    What it checks:
        The step of the checkpoint that is named, or of the newest one in the folder where the
        framework goes on by itself, against the steps of the run.

    Why it matters:
        The run loads everything, does nothing and ends with success.

    How to fix:
        Raise the number of steps, or name another folder.

    References:
        verl trainer/ppo/ray_trainer.py, _load_checkpoint; transformers trainer_utils.py,
        get_last_checkpoint.
    """
    named = str(run.workload.value("checkpoint.resume") or "")
    step = step_of(named)
    if named == "auto" and run.places is not None and not run.in_container:
        step = run.places.step
    steps = run.workload.value("steps")
    if not step or not steps or steps < 1 or step < steps:
        return
    yield Finding(
        "ED616",
        "configuration",
        "misconfigured",
        "warning",
        f"The run resumes at step {step} and ends at step {steps}: nothing is left to train.",
        evidence=(*run.place("checkpoint.resume"), *run.place("steps")),
        remedies=(Remedy(f"Raise {run.workload.key_of('steps')}.", (), "safe"),),
    )


RULES_HERE: Tuple[Rule, ...] = (
    Rule("ED611", "run-paths", "missing", "A path of the run does not exist", check_paths),
    Rule(
        "ED612",
        "checkpoint-disk",
        "too-small",
        "The disk has no room for the checkpoints",
        check_checkpoint_disk,
    ),
    Rule("ED613", "run-port", "conflict", "The port of the run is taken", check_port),
    Rule("ED614", "hub-access", "missing", "A model of the hub cannot be fetched", check_hub),
    Rule(
        "ED615",
        "gpu-count",
        "exceeds-gpu-count",
        "The run uses more GPUs per node than the machine has",
        check_gpu_count,
    ),
    Rule(
        "ED616",
        "resume-step",
        "misconfigured",
        "The run resumes at or after its last step",
        check_resume,
    ),
)
