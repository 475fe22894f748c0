"""ED701 to ED709 and ED711: nodes that differ, and what that breaks."""

from __future__ import annotations

from ..matrix.derive import driver_branch
from ..model.calls import InstallerCall
from ..model.evidence import Evidence, Known
from ..model.facts import Facts
from ..model.finding import Finding, Remedy
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.versions import try_version
from .rule import Context, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Tuple

__all__ = ["RULES_HERE"]

_RAY = Source(
    "https://github.com/ray-project/ray/blob/master/python/ray/_private/utils.py",
    "check_version_info: RuntimeError 'Version mismatch' unless Ray and Python versions are equal",
)
_RAY_PATCH = Source(
    "https://github.com/ray-project/ray/issues/50511",
    "Python 3.10.14 and 3.10.15: the node does not join",
)
_NCCL = Source(
    "https://github.com/NVIDIA/nccl/blob/v2.23.4-1/src/init.cc",
    "initTransportsRank: 'Mismatched NCCL version detected', then ncclInvalidUsage",
)
#: The first NCCL that compares its release, patch number included, with that of every rank.
_NCCL_COMPARES = (2, 23, 4)
_NCCL_CHOICE = Source(
    "https://github.com/NVIDIA/nccl/issues/1136",
    "ranks that choose another algorithm or protocol for the same collective hang",
)
_NCCL_VARIABLES = Source("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html")


def check_ray_cluster(context: Context) -> Iterator[Finding]:
    """Ray or Python of the joining process differ from the cluster's.

    What it checks:
        The versions of Ray and Python that the cluster was started with against those of this
        process (from Ray's own message or as given).

    Why it matters:
        Ray compares both, Python with its patch number, and refuses: "Version mismatch: The cluster
        was started with …".

    How to fix:
        Run the same Ray and the same Python, patch number included, on all nodes: one image, or
        pinned versions.

    References:
        https://github.com/ray-project/ray/issues/50511
    """
    pairs = (
        (
            "ray",
            "Ray",
            "ray.cluster_version",
            "ray.process_version",
            context.facts.version_of("ray"),
        ),
        (
            "python",
            "Python",
            "ray.cluster_python",
            "ray.process_python",
            context.facts.value("python.version"),
        ),
    )
    for component, word, cluster_field, process_field, installed in pairs:
        cluster = context.facts.value(cluster_field)
        process = context.facts.value(process_field) or installed
        if cluster is None or process is None or _same(cluster, process):
            continue
        patch_only = component == "python" and cluster.split(".")[:2] == process.split(".")[:2]
        yield Finding(
            code="ED709",
            component=component,
            kind="version-mismatch-across-nodes",
            severity="error",
            subject="cluster",
            message=(
                f"The Ray cluster was started with {word} {cluster}, this process runs {word} "
                f"{process}: Ray refuses to let it join"
            )
            + (", although only the patch number differs." if patch_only else "."),
            evidence=context.evidence(cluster_field, process_field),
            sources=(_RAY_PATCH,) if patch_only else (_RAY,),
            remedies=(
                Remedy(
                    f"Install Ray {cluster} on this node.",
                    (InstallerCall("install", (f"ray=={cluster}",)),),
                )
                if component == "ray"
                else Remedy(f"Run this node with Python {cluster}, or one image on all nodes."),
            ),
            packages=("ray",),
        )


def _same(first: str, second: str) -> bool:
    versions = try_version(first), try_version(second)
    return first == second if None in versions else versions[0] == versions[1]


class _Difference(NamedTuple):
    """One thing to compare: how it is read, how grave a difference is, and what it breaks."""

    code: str
    component: str
    word: str
    read: Callable[[Facts], Optional[str]]
    judge: Callable[[List[Facts], List[str]], Tuple[str, str]]
    sources: Tuple[Source, ...] = ()


def _installed(name: str) -> Callable[[Facts], Optional[str]]:
    return lambda facts: facts.version_of(name)


def _value(field: str) -> Callable[[Facts], Optional[str]]:
    def read(facts: Facts) -> Optional[str]:
        value = facts.value(field)
        return value if isinstance(value, str) else None

    return read


def _ray(facts: Facts) -> Optional[str]:
    return facts.version_of("ray") or facts.value("ray.process_version")


def _torch(facts: Facts) -> Optional[str]:
    version: Optional[str] = facts.value("torch.version") or facts.version_of("torch")
    return version


def _nccl(facts: Facts) -> Optional[str]:
    if facts.value("gpus") == ():
        return None  # a node without a GPU has no rank of NCCL
    for library in facts.value("libraries", ()):
        if library.loaded and library.name == "libnccl" and library.version:
            return str(library.version)
    for name in ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11"):
        version = facts.version_of(name)
        if version is not None:
            return version
    return None


def _gpu_kinds(facts: Facts) -> Optional[str]:
    devices = facts.value("gpus")
    if devices is None:
        return None
    counts: Dict[str, int] = {}
    for device in devices:
        name = device.name or device.pci_id or "GPU"
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in sorted(counts.items())) or "none"


def _uses_ray(nodes: List[Facts]) -> bool:
    return any(
        isinstance(facts.distribution("ray"), Known)
        or facts.value("ray.cluster_version") is not None
        for facts in nodes
    )


def _judge_ray(_nodes: List[Facts], _values: List[str]) -> Tuple[str, str]:
    return "error", "Ray refuses to let nodes of another version join"


def _judge_python(nodes: List[Facts], values: List[str]) -> Tuple[str, str]:
    if _uses_ray(nodes):
        return (
            "error",
            "Ray compares Python with its patch number and refuses to let such nodes join",
        )
    if len({".".join(value.split(".")[:2]) for value in values}) > 1:
        return (
            "warning",
            "pickled objects and compiled packages do not carry over between Python minors",
        )
    return "advice", "only the patch number differs"


def _have_gpus(nodes: List[Facts]) -> bool:
    return all(facts.value("gpus") for facts in nodes)


def _minors(values: List[str]) -> int:
    return len(
        {tuple(version.release[:2]) for version in map(try_version, values) if version is not None}
    )


def _judge_torch(_nodes: List[Facts], values: List[str]) -> Tuple[str, str]:
    if _minors(values) > 1:
        return (
            "warning",
            (
                "collectives and checkpoints between torch minors are untested, and each brings "
                "another NCCL"
            ),
        )
    return "advice", "builds of one minor differ"


def _judge_engine(_nodes: List[Facts], _values: List[str]) -> Tuple[str, str]:
    return (
        "warning",
        "workers of one engine exchange internal objects, which change with every release",
    )


def _judge_nccl(nodes: List[Facts], values: List[str]) -> Tuple[str, str]:
    releases = {version.release[:3] for version in map(try_version, values) if version is not None}
    if len(releases) > 1 and min(releases) >= _NCCL_COMPARES and _have_gpus(nodes):
        return (
            "error",
            (
                "NCCL compares its release with that of every rank, patch number included, and "
                "ends with 'Mismatched NCCL version detected'"
            ),
        )
    if _minors(values) > 1:
        return (
            "warning",
            "ranks with different NCCL releases may hang or fail when the communicator is set up",
        )
    return "advice", "only the patch number differs"


def _judge_driver(_nodes: List[Facts], values: List[str]) -> Tuple[str, str]:
    if len({driver_branch(value) for value in values}) > 1:
        return (
            "warning",
            "what the newer driver runs (a CUDA major, PTX) may not start on the older one",
        )
    return "advice", "all are of one branch"


def _judge_gpus(_nodes: List[Facts], _values: List[str]) -> Tuple[str, str]:
    return (
        "advice",
        "tensor and pipeline ranks wait for the slowest device and are sized by the smallest",
    )


def _judge_glibc(_nodes: List[Facts], _values: List[str]) -> Tuple[str, str]:
    return "advice", "binaries built on the newer one do not load on the older one"


_DIFFERENCES: Tuple[_Difference, ...] = (
    _Difference("ED701", "nvidia-driver", "NVIDIA driver", _value("driver.release"), _judge_driver),
    _Difference(
        "ED702", "python", "Python", _value("python.version"), _judge_python, (_RAY_PATCH,)
    ),
    _Difference("ED703", "ray", "Ray", _ray, _judge_ray, (_RAY,)),
    _Difference("ED704", "torch", "torch", _torch, _judge_torch),
    _Difference("ED705", "vllm", "vllm", _installed("vllm"), _judge_engine),
    _Difference("ED705", "sglang", "sglang", _installed("sglang"), _judge_engine),
    _Difference("ED706", "nccl", "NCCL", _nccl, _judge_nccl, (_NCCL,)),
    _Difference("ED707", "gpu", "GPUs", _gpu_kinds, _judge_gpus),
    _Difference("ED708", "glibc", "glibc", _value("glibc.version"), _judge_glibc),
)


#: Those of them that are distributions.
_COMPARED = frozenset(["ray", "torch", "vllm", "sglang"])


def _compare(context: Context, code: str) -> Iterator[Finding]:
    """Compare the nodes in what one code stands for, those of which it is known."""
    for difference in _DIFFERENCES:
        if difference.code != code:
            continue
        readings = _readings(context, difference)
        values = _nodes_by_value(readings)
        if len(values) >= 2:
            yield _differing(difference, readings, values)


class _Reading(NamedTuple):
    facts: Facts
    node: str
    value: str


def _readings(context: Context, difference: _Difference) -> List[_Reading]:
    readings = []
    for number, facts in enumerate(context.nodes, 1):
        value = difference.read(facts)
        if value is not None:
            node = facts.value("node.name") or f"node {number}"
            readings.append(_Reading(facts, node, value))
    return readings


def _nodes_by_value(readings: List[_Reading]) -> Dict[str, List[str]]:
    """Return the names of the nodes by what they have, versions spelt differently under one."""
    values: Dict[str, List[str]] = {}
    for reading in readings:
        value = next((known for known in values if _same(known, reading.value)), reading.value)
        values.setdefault(value, []).append(reading.node)
    return values


def _differing(
    difference: _Difference, readings: List[_Reading], values: Dict[str, List[str]]
) -> Finding:
    from ..model.host_names import unfold

    severity, why = difference.judge([reading.facts for reading in readings], list(values))
    shown = "; ".join(f"{value} on {_node_names(names)}" for value, names in values.items())
    verb = "differ" if difference.word == "GPUs" else "differs"
    return Finding(
        code=difference.code,
        component=difference.component,
        kind="version-mismatch-across-nodes",
        severity=severity,
        message=f"{difference.word} {verb} between nodes ({shown}): {why}.",
        evidence=tuple(
            Evidence(unfold(names[0])[0], f"{difference.word} {value}")
            for value, names in values.items()
        ),
        sources=difference.sources,
        remedies=_one_version(difference.component, _counts(readings, values)),
        nodes=tuple(reading.node for reading in readings),
        packages=(difference.component,) if difference.component in _COMPARED else (),
    )


def _node_names(names: List[str]) -> str:
    if len(names) <= _FEW:
        return ", ".join(names)
    from ..model.host_names import fold_names, unfold_all

    return fold_names(unfold_all(names))


def _counts(readings: List[_Reading], values: Dict[str, List[str]]) -> Dict[str, int]:
    """Return how many nodes have each value."""
    counted = {reading.node: _count(reading.facts) for reading in readings}
    return {value: sum(counted[name] for name in names) for value, names in values.items()}


def _count(facts: Facts) -> int:
    """Return how many nodes these facts stand for."""
    return int(facts.value("node.count", 1))


def _one_version(component: str, counts: Dict[str, int]) -> Tuple[Remedy, ...]:
    if component == "gpu":
        return ()
    most, second = sorted(counts, key=lambda value: -counts[value])[:2]
    text = "Bring all nodes to one version"
    if counts[most] > counts[second]:
        text += f"; most have {most}"
    if component == "nvidia-driver":
        return (Remedy(f"{text}.", safety="changes-host"),)
    return (Remedy(f"{text}; one container image does it."),)


def check_drivers(context: Context) -> Iterator[Finding]:
    """Nodes have different NVIDIA drivers.

    What it checks:
        The driver release of every node.

    Why it matters:
        A build that starts on the newest driver may not start on the oldest: a CUDA major or PTX
        that it does not know.

    How to fix:
        Bring the drivers to one branch, or choose builds by the oldest.

    References:
        https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    return _compare(context, "ED701")


def check_pythons(context: Context) -> Iterator[Finding]:
    """Nodes have different Python versions.

    What it checks:
        The full Python version of every node, patch number included.

    Why it matters:
        Ray refuses to let a node join whose Python differs, even in the patch number.

    How to fix:
        Use one image or one pinned interpreter everywhere.

    References:
        https://github.com/ray-project/ray/issues/50511
    """
    return _compare(context, "ED702")


def check_rays(context: Context) -> Iterator[Finding]:
    """Nodes have different Ray versions.

    What it checks:
        The Ray version of every node.

    Why it matters:
        Ray refuses to let a node of another version join: "Version mismatch".

    How to fix:
        Pin ray to one version on all nodes.

    References:
        https://github.com/ray-project/ray/blob/master/python/ray/_private/utils.py
    """
    return _compare(context, "ED703")


def check_torches(context: Context) -> Iterator[Finding]:
    """Nodes have different torch versions.

    What it checks:
        The torch version of every node, its CUDA build included.

    Why it matters:
        Ranks of one job then run different collectives, NCCL releases and serialisation.

    How to fix:
        Pin torch to one build on all nodes.

    References:
        https://pytorch.org/docs/stable/distributed.html
    """
    return _compare(context, "ED704")


def check_engines(context: Context) -> Iterator[Finding]:
    """Nodes have different versions of the inference engine.

    What it checks:
        The versions of vllm and sglang on every node.

    Why it matters:
        Their workers exchange internal objects that change with every release.

    How to fix:
        Pin the engine to one version on all nodes.

    References:
        https://docs.vllm.ai/en/latest/serving/distributed_serving.html
    """
    return _compare(context, "ED705")


def check_nccls(context: Context) -> Iterator[Finding]:
    """Nodes have different NCCL versions.

    What it checks:
        The NCCL that will be loaded, or the NCCL wheel, on every node.

    Why it matters:
        From 2.23.4 on NCCL refuses a communicator of ranks whose releases differ, patch number
        included; older ones may hang while it is set up. Nodes without a GPU have no rank.

    How to fix:
        Use the NCCL of one torch build everywhere.

    References:
        https://github.com/NVIDIA/nccl/blob/v2.23.4-1/src/init.cc
    """
    return _compare(context, "ED706")


def check_gpus(context: Context) -> Iterator[Finding]:
    """Nodes have different GPUs.

    What it checks:
        Number and model of the GPUs on every node.

    Why it matters:
        Parallel ranks are sized by the smallest device and wait for the slowest.

    How to fix:
        Schedule a job on nodes of one kind.

    References:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/
    """
    return _compare(context, "ED707")


def check_glibcs(context: Context) -> Iterator[Finding]:
    """Nodes have different glibc versions.

    What it checks:
        The glibc of every node.

    Why it matters:
        An environment that is shared between nodes (NFS) holds binaries that the older glibc may
        not load.

    How to fix:
        Use one image, or build on the oldest.

    References:
        https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
    """
    return _compare(context, "ED708")


#: Variables by which ranks decide how they talk to each other, so that all have to decide alike.
_AGREED = (
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_IB_DISABLE",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MNNVL_ENABLE",
    "NCCL_NET",
    "NCCL_NET_PLUGIN",
    "NCCL_NTHREADS",
    "NCCL_NVLS_ENABLE",
    "NCCL_PROTO",
)
#: Of those, lists from which every rank takes one entry for each collective.
_CHOICES = frozenset(["NCCL_ALGO", "NCCL_PROTO"])
_COMPARED_FAMILIES = ("NCCL_", "UCX_", "VLLM_", "SGLANG_", "NVSHMEM_")
#: Of those, what names the node itself.
_OF_NODE = ("_IP", "_HOST_IP", "_PORT", "_HOSTID", "_RANK", "_ADDR", "_UUID", "_FILE", "_ID")


def check_variables(context: Context) -> Iterator[Finding]:
    """Nodes have different variables of NCCL, UCX or the engine.

    What it checks:
        Variables of these families on every node whose variables were read, but for those that name
        the node itself.

    Why it matters:
        Ranks that choose algorithm, protocol or transport by other settings may wait for each other
        for ever.

    How to fix:
        Set them in one place for all nodes: the job script, the runtime environment, the image.

    References:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    nodes = [
        facts
        for facts in context.nodes
        if facts.value("variables") is not None and facts.value("variables.complete", True)
    ]
    names = {name for facts in nodes for name in facts.value("variables") if _is_compared(name)}
    for name in sorted(names):
        nodes_by_value: Dict[str, List[Facts]] = {}
        for facts in nodes:
            nodes_by_value.setdefault(facts.value("variables").get(name, ""), []).append(facts)
        if len(nodes_by_value) > 1:
            yield _differing_variable(name, nodes_by_value)


def _is_compared(name: str) -> bool:
    return name.startswith(_COMPARED_FAMILIES) and not name.endswith(_OF_NODE)


def _judge_variable(name: str, nodes_by_value: Mapping[str, List[Facts]]) -> Tuple[str, str]:
    if name not in _AGREED:
        return "advice", "what one node does with it the others do not"
    if name in _CHOICES and all(map(_have_gpus, nodes_by_value.values())):
        choices = [_choices(value) for value in nodes_by_value]
        if None not in choices and not frozenset.intersection(*filter(None, choices)):
            return "error", "no entry is in all of these lists, so ranks wait for each other"
    return "warning", "ranks that choose differently may wait for each other for ever"


def _choices(value: str) -> Optional[FrozenSet[str]]:
    """Return the entries of a plain list; None where NCCL would choose itself or by collective."""
    if not value or any(sign in value for sign in "^:;"):
        return None
    return frozenset(entry.strip().lower() for entry in value.split(","))


def _differing_variable(name: str, nodes_by_value: Mapping[str, List[Facts]]) -> Finding:
    from ..model.host_names import unfold  # no start of a container compares nodes

    severity, why = _judge_variable(name, nodes_by_value)
    names_by_value = {
        value: [facts.value("node.name", "?") for facts in nodes]
        for value, nodes in nodes_by_value.items()
    }
    values = "; ".join(
        f"{value or 'not set'} on {_node_names(names)}" for value, names in names_by_value.items()
    )
    sources = (_NCCL_VARIABLES,) if name.startswith("NCCL_") else ()
    return Finding(
        code="ED711",
        component=name,
        kind=_KIND,
        severity=severity,
        message=f"{name} differs between nodes ({values}): {why}.",
        evidence=tuple(
            Evidence(unfold(names[0])[0], f"{name}={value}" if value else f"{name} is not set")
            for value, names in names_by_value.items()
        ),
        sources=(_NCCL_CHOICE, *sources) if severity == "error" else sources,
        remedies=(Remedy(f"Set {name} in one place for all nodes."),),
        nodes=tuple(node for names in names_by_value.values() for node in names),
    )


_KIND = "version-mismatch-across-nodes"
_FEW = 4

RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED709", "ray-cluster", _KIND, "Ray or Python differ from the cluster's", check_ray_cluster
    ),
    Rule("ED701", "node-drivers", _KIND, "Nodes have different drivers", check_drivers),
    Rule("ED702", "node-pythons", _KIND, "Nodes have different Python versions", check_pythons),
    Rule("ED703", "node-rays", _KIND, "Nodes have different Ray versions", check_rays),
    Rule("ED704", "node-torches", _KIND, "Nodes have different torch versions", check_torches),
    Rule("ED705", "node-engines", _KIND, "Nodes have different engine versions", check_engines),
    Rule("ED706", "node-nccls", _KIND, "Nodes have different NCCL versions", check_nccls),
    Rule("ED707", "node-gpus", _KIND, "Nodes have different GPUs", check_gpus),
    Rule("ED708", "node-glibcs", _KIND, "Nodes have different glibc versions", check_glibcs),
    Rule("ED711", "node-variables", _KIND, "Nodes have different variables", check_variables),
)
