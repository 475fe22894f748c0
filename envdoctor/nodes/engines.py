"""How each engine names the nodes of a cluster and starts a program on one of them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from contextlib import suppress
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..errors import InputError
from ..model.host_names import expand
from ..model.node_answers import NodeAnswer
from ..model.redaction import redact
from ..text_files import read_text
from .collection import FAILED_MARK, MOST_OUTPUT, NAMES_MARK, SEPARATOR, Job
from .payload import LAUNCH, MARK

__all__ = ["ENGINES", "Asked", "NodeRequest", "engine_here", "jobs_of"]

#: Slurm's words for a node on which nothing can be started (slurm.conf(5), sinfo(1)).
_DOWN = ("down", "drained", "draining", "drain", "fail", "failing", "unknown", "powered_down")
_LIST_DEADLINE = 20.0
#: What a kubelet mounts into a pod, and kubectl takes there.
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


class NodeRequest(NamedTuple):
    """Whom to ask, and how.

    engine: a key of ``ENGINES``. where: what it takes: an address of Ray, a label selector, a host
    file, hosts. partition, nodes: of Slurm. namespace, container: of Kubernetes. python: the
    interpreter on the nodes whose environment is judged. deadline: seconds per node. arguments: of
    the program, by node: only these are asked then; empty: all are, without one.
    """

    engine: str
    where: str = ""
    partition: str = ""
    nodes: str = ""
    namespace: str = ""
    container: str = ""
    python: str = ""
    deadline: float = 30.0
    arguments: Mapping[str, str] = {}


class Asked(NamedTuple):
    """What is to be run, and what is known of nodes on which nothing can be."""

    jobs: Tuple[Job, ...]
    failed: Tuple[NodeAnswer, ...] = ()


def engine_here(environment: Mapping[str, str]) -> Optional[str]:
    """Return the engine that this process runs under: a job of Slurm's, a cluster of Ray's, a pod.

    Raises:
        InputError: it is a pod without kubectl.
    """
    for engine, variable in (("slurm", "SLURM_JOB_ID"), ("ray", "RAY_ADDRESS")):
        if environment.get(variable):
            return engine
    if not os.path.exists(_SERVICE_ACCOUNT):
        return None
    if shutil.which("kubectl") is None:
        raise InputError(
            f"this is a pod ({_SERVICE_ACCOUNT}), whose siblings kubectl would ask, but kubectl is "
            "not on PATH: put it into the image, or name the nodes with --ssh, --mpi or --facts"
        )
    return "kubectl"


def jobs_of(request: NodeRequest) -> Asked:
    """Return what asks every node; raises :class:`InputError` where an engine cannot name them."""
    asked = ENGINES[request.engine](request)
    if not asked.jobs and not asked.failed:
        raise InputError(f"--{request.engine}: no nodes were found")
    if not request.arguments:
        return asked
    wanted = [job for job in asked.jobs if not job.node or job.node in request.arguments]
    return Asked(tuple(wanted), asked.failed)


def _launch(request: NodeRequest, node: str) -> Tuple[str, ...]:
    argument = request.arguments.get(node)
    more = () if argument is None else (argument,)
    return ("sh", "-c", LAUNCH, "sh", request.python, *more)


def _ssh(request: NodeRequest) -> Asked:
    """One connection per host, without a question: keys or an agent have to be there."""
    options = ("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={max(1, int(request.deadline))}")
    hosts = expand(request.where, "--ssh")
    return Asked(
        tuple(
            [
                Job(("ssh", *options, "--", host, shlex.join(_launch(request, host))), host)
                for host in hosts
            ]
        )
    )


#: mpirun binds the only process of a host to one core, where it sees one CPU: Open MPI 4 and 5,
#: MPICH, Intel MPI.
_UNBOUND = {
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "HYDRA_BINDING": "none",
    "I_MPI_PIN": "0",
}


def _mpi(request: NodeRequest) -> Asked:
    """One process per host of a host file (``host slots=8``), each by an mpirun of its own, so that
    one that hangs holds up no other.
    """
    lines = [line.partition("#")[0].split() for line in read_text(request.where).splitlines()]
    text = ",".join([words[0].partition(":")[0] for words in lines if words])
    hosts = expand(text, f"--mpi {request.where}")
    return Asked(
        tuple(
            [
                Job(
                    ("mpirun", "-np", "1", "--host", host, *_launch(request, host)),
                    host,
                    {**os.environ, **_UNBOUND},
                )
                for host in hosts
            ]
        )
    )


def _slurm(request: NodeRequest) -> Asked:
    """One step per node in the job that this is, else a job of its own for each node."""
    job = os.environ.get("SLURM_JOB_ID", "")
    if job and not request.partition:
        wanted = request.nodes or os.environ.get("SLURM_JOB_NODELIST", "")
        names = expand(wanted, "SLURM_JOB_NODELIST")
        states = dict.fromkeys(names, "")
        place = ("--overlap", f"--jobid={job}")
    else:
        states = _slurm_states(request)
        partition = (f"--partition={request.partition}",) if request.partition else ()
        place = (*partition, f"--immediate={max(1, int(request.deadline))}", "--time=5")
    one = ("--nodes=1", "--ntasks=1", "-Q")
    jobs = [
        Job(("srun", *place, *one, f"--nodelist={name}", *_launch(request, name)), name)
        for name, state in states.items()
        if not state
    ]
    failed = [
        NodeAnswer(name, failed=f"Slurm says: {state}") for name, state in states.items() if state
    ]
    return Asked(tuple(jobs), tuple(failed))


def _slurm_states(request: NodeRequest) -> Dict[str, str]:
    """Return the nodes that Slurm has, with the state of those on which nothing can be started."""
    command = ["sinfo", "--noheader", "--Node", "--format=%N %T"]
    command += [f"--partition={request.partition}"] if request.partition else []
    command += [f"--nodes={request.nodes}"] if request.nodes else []
    states = {}
    for line in _output(command, "--slurm").splitlines():
        name, _, state = line.strip().partition(" ")
        word = state.strip().rstrip("*~#!%$@^-+").lower()
        if name:
            states[name] = state.strip() if word in _DOWN or state.strip().endswith("*") else ""
    return states


def _kubectl(request: NodeRequest) -> Asked:
    """One ``kubectl exec`` per running pod that a label selector names; without one, per pod that
    the controller of this pod has made.
    """
    space = ("--namespace", request.namespace) if request.namespace else ()
    selector = ("--selector", request.where) if request.where else ()
    text = _output(["kubectl", *space, "get", "pods", *selector, "--output", "json"], "--kubectl")
    try:
        pods = json.loads(text)["items"]
        if not selector:
            pods = _siblings(pods, os.environ.get("HOSTNAME", ""))
        named = [
            (str(pod["metadata"]["name"]), pod["status"].get("phase"), _digest(pod, request))
            for pod in pods
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"--kubectl: expected a list of pods from kubectl, found something else ({error!r})"
        ) from error
    chosen = ("--container", request.container) if request.container else ()
    exec_ = ("kubectl", *space, "exec", "--stdin", *chosen)
    return Asked(
        tuple(
            [
                Job((*exec_, name, "--", *_launch(request, name)), name, None, known)
                for name, at, known in named
                if at == "Running"
            ]
        ),
        tuple(
            [
                NodeAnswer(name, failed=f"the pod is {at}")
                for name, at, _ in named
                if at != "Running"
            ]
        ),
    )


def _siblings(pods: Sequence[Mapping[str, Any]], name: str) -> List[Mapping[str, Any]]:
    """Return the pods with the controller of the one of this name, a Job for example; raises
    :class:`InputError` where that has none.
    """
    controllers = {
        pod["metadata"]["name"]: owner["uid"]
        for pod in pods
        for owner in pod["metadata"].get("ownerReferences", ())
        if owner.get("controller")
    }
    if name not in controllers:
        raise InputError(
            f"--kubectl: the pod {name or 'of this process'} has no controller that kubectl shows; "
            "name the pods by their labels: --kubectl app=verl"
        )
    own = controllers[name]
    return [pod for pod in pods if controllers.get(pod["metadata"]["name"]) == own]


def _digest(pod: Mapping[str, Any], request: NodeRequest) -> Dict[str, Any]:
    """Return as a fact the image that a pod's container really runs: its first one's, unless one
    was named; none where the kubelet has not said it yet.
    """
    for status in pod["status"].get("containerStatuses", ()):
        if status["name"] == request.container or not request.container:
            # "docker.io/library/x@sha256:…"; the tag may have moved since.
            digest = str(status.get("imageID", "")).rpartition("@")[2]
            if digest:
                return {"image.digest": {"value": redact(digest)[:200], "source": "kubectl"}}
            break
    return {}


def _ray(request: NodeRequest) -> Asked:
    """One process that joins the cluster and has a task run on each of its nodes."""
    python = request.python or _python_with_ray()
    driver = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ray_driver.py")
    with open(driver, encoding="utf-8") as file:
        source = file.read()
    address = request.where or os.environ.get("RAY_ADDRESS", "")
    # Its own start takes seconds; it ends before the deadline, so that what came is said.
    seconds = f"{max(request.deadline - 2, 1):g}"
    marks = json.dumps([NAMES_MARK, MARK, FAILED_MARK, SEPARATOR])
    arguments = json.dumps(request.arguments)
    given = (address, seconds, str(MOST_OUTPUT), marks, arguments)
    return Asked((Job((python, "-c", source, *given), title=f"ray {address}".strip()),))


def _python_with_ray() -> str:
    """Return a Python that has ray: that of ``ray`` on PATH, which the cluster was started with."""
    script = shutil.which("ray")
    if script is not None:
        with suppress(OSError, UnicodeDecodeError), open(script, encoding="utf-8") as file:
            first = file.readline()
            if first.startswith("#!"):
                return first[2:].split()[0]
    return sys.executable


def _output(command: Sequence[str], option: str) -> str:
    """Return what a client of an engine prints; raises :class:`InputError`."""
    import subprocess

    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIST_DEADLINE,
            check=False,
        )
    except FileNotFoundError as error:
        raise InputError(f"{option}: {command[0]} is not on PATH") from error
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise InputError(f"{option}: {command[0]}: {redact(str(error))[:300]}") from error
    if done.returncode != 0:
        lines: List[str] = [line for line in done.stderr.strip().split("\n") if line.strip()]
        said = redact(lines[-1])[:300] if lines else f"exit code {done.returncode}"
        raise InputError(f"{option}: {command[0]} could not name the nodes: {said}")
    return done.stdout


#: Name of an engine, which is its option, and what it asks.
ENGINES = {"ray": _ray, "slurm": _slurm, "kubectl": _kubectl, "mpi": _mpi, "ssh": _ssh}
