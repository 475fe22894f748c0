"""Limits of containers and processes, and what programs believe about them: ED501 to ED508.

A limit alone is no fault: each rule asks who would run into it (Ray, vLLM, NCCL between several GPUs, RDMA), and says
so. Where that is not known, the finding is a warning that names the condition.
"""

from __future__ import annotations

from ..model.evidence import Absent, Evidence, Known, Unknown
from ..model.facts import Facts
from ..model.finding import Finding, Remedy, severity_rank
from ..model.record import NamedTuple
from ..model.row import Source
from ..model.versions import parse_version, try_version
from .rule import Context, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Optional, Sequence, Tuple

__all__ = ["RULES_HERE"]

_MIB = 1 << 20
_GIB = 1 << 30

_KERNEL_V2 = Source(
    "https://docs.kernel.org/admin-guide/cgroup-v2.html", "memory.max: memory usage hard limit … the OOM killer is invoked in the cgroup"
)
_RAY_MEMORY = Source(
    "https://github.com/ray-project/ray/blob/master/python/ray/_common/utils.py",
    "get_system_memory() reads /sys/fs/cgroup/memory/memory.limit_in_bytes or /sys/fs/cgroup/memory.max, else MemTotal",
)
_RAY_OOM = Source("https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html", "RAY_memory_usage_threshold, default 0.95")
_JVM = Source(
    "https://github.com/openjdk/jdk/pull/20646",
    "8322420: [Linux] cgroup v2: Limits in parent nested control groups are not detected (from JDK 24 on)",
)
_PSUTIL = Source("https://github.com/giampaolo/psutil/issues/2584", "virtual_memory() does not know control groups")
_NCCL_MEMORY = Source(
    "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/runtime_and_mpi_issues.html",
    "If insufficient shared memory is available, NCCL will fail to initialize … --shm-size=1g --ulimit memlock=-1",
)
_NCCL_SEGMENTS = Source("https://github.com/NVIDIA/nccl/issues/342", "64 MB under Docker; segment of 9637888 bytes: No space left on device")
_VLLM_DOCKER = Source(
    "https://docs.vllm.ai/en/latest/deployment/docker.html",
    "use the ipc=host flag or --shm-size; vLLM uses PyTorch, which uses shared memory, particularly for tensor parallel inference",
)
_TORCH_DOCKER = Source(
    "https://github.com/pytorch/pytorch#docker-image", "the default shared memory segment size … is not enough: --ipc=host or --shm-size"
)
_RAY_STORE = Source(
    "https://github.com/ray-project/ray/blob/master/python/ray/_private/services.py",
    "The object store is using /tmp instead of /dev/shm … more than 30% of available RAM",
)
_NCCL_MEMLOCK = Source(
    "https://github.com/NVIDIA/nccl-tests/issues/206", "ibv_reg_mr_iova2 failed with error Cannot allocate memory; ulimit -l unlimited"
)
_IB_LOCK = Source(
    "https://github.com/torvalds/linux/blob/master/drivers/infiniband/core/umem.c",
    "if (new_pinned > lock_limit && !capable(CAP_IPC_LOCK)) return -ENOMEM",
)
_RAY_FILES = Source(
    "https://github.com/ray-project/ray/blob/master/python/ray/_private/worker.py",
    "File descriptor limit is too low for production servers … At least 8192 is recommended; raised to min(hard, 65536) in ray.init",
)
_NEMO_FILES = Source("https://github.com/NVIDIA-NeMo/RL/issues/988", "raylet: Too many open files with ulimit -Sn 1024; 65535 before ray start")
_VLLM_FILES = Source(
    "https://github.com/vllm-project/vllm/blob/main/vllm/utils/system_utils.py",
    "set_ulimit(target_soft_limit=65535): failed to automatically increase … OSError: [Errno 24] Too many open files",
)
_VERL_THREADS = Source(
    "https://github.com/verl-project/verl/issues/719", "pthread_create failed: Resource temporarily unavailable; ulimit -u 16384 cured it"
)
_RAY_THREADS = Source("https://github.com/ray-project/ray/issues/54021", "too many threads in each worker process")
_VLLM_CPUS = Source(
    "https://docs.vllm.ai/en/latest/configuration/optimization/#cpu-resources-for-gpu-deployments",
    "always at least 2 + N processes competing for CPU time … significantly degrade throughput and latency",
)
_KERNEL_CPU = Source(
    "https://docs.kernel.org/scheduler/sched-bwc.html", "threads … will be throttled and not be able to run again until the next period"
)

#: What starts processes that talk through NCCL or torch's shared memory.
_TORCH_USERS = ("torch", "vllm", "sglang", "verl", "openrlhf", "deepspeed", "ray", "lightning")
_NCCL_WHEELS = ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11")
#: The smallest NCCL segment in reports (nccl-tests#166: 5967872; nccl#342: 9637888): one per GPU at the least.
_NCCL_SEGMENT = 5_967_872
#: From 2.24 on NCCL may take cuMem host allocations in place of /dev/shm (NCCL_CUMEM_HOST_ENABLE).
_NCCL_CUMEM_HOST = parse_version("2.24")


def _installed(facts: Facts, *names: str) -> Optional[bool]:
    """Tell whether one of some distributions is installed; None where the list is not complete enough to say."""
    found = [facts.distribution(name) for name in names]
    if any(isinstance(fact, Known) for fact in found):
        return True
    return None if any(isinstance(fact, Unknown) for fact in found) else False


def _gpu_count(facts: Facts) -> Optional[int]:
    devices = facts.value("gpus")
    return None if devices is None else sum(1 for device in devices if device.visible is not False)


def _bytes(size: float) -> str:
    for unit, factor in (("TiB", 1 << 40), ("GiB", _GIB), ("MiB", _MIB), ("KiB", 1024)):
        if size >= factor:
            number = f"{size / factor:.1f}"
            return f"{number[:-2] if number.endswith('.0') else number} {unit}"
    return f"{size:.0f} bytes"


def _evidence(facts: Facts, *fields: str) -> Tuple[Evidence, ...]:
    found = (facts.evidence(field) for field in fields)
    return tuple(evidence for evidence in found if evidence is not None)


def check_memory_belief(context: Context) -> Iterator[Finding]:
    """Ray, psutil or the JVM takes the machine's memory for its own, where the kernel enforces less.

    What it checks:
        The smallest memory limit on the way from this process's control group to the root, against what Ray computes
        from two fixed paths, what psutil reads from /proc/meminfo, and what the Java that is found here reads of its
        control group. Where no limit is visible but the scheduler granted an amount, against that.

    Why it matters:
        Ray sizes its object store (30 % of memory) and its schedulable memory by that number, and its memory monitor
        acts at 95 % of it. Believing more, it never acts: the kernel kills a worker, or the raylet, with SIGKILL and
        without a word in Ray's logs. This happens under Slurm, docker --cgroup-parent, pods whose limit is on the pod,
        and systemd slices, because the limit is not in the file that Ray reads.

    How to fix:
        Give Ray the true numbers: ray start --memory=BYTES --object-store-memory=BYTES, or ray.init(_memory=…,
        object_store_memory=…). Or set the limit on the container itself (docker run --memory) so that it shows at the
        mount's root. Libraries that ask psutil (accelerate's device_map, offloading) need an explicit max_memory, and
        Java (Spark, HDFS clients) an explicit -Xmx.

    References:
        Ray: python/ray/_common/utils.py get_system_memory; docs.ray.io ray-oom-prevention. psutil issue 2584.
        OpenJDK JDK-8322420, JDK-8343191.
        Kernel: Documentation/admin-guide/cgroup-v2.rst.
    """
    facts = context.facts
    limit, granted = facts.value("memory.limit"), facts.value("memory.scheduler_limit")
    if limit is not None:
        enforced, field, verb = limit, "memory.limit", "the kernel enforces"
    elif granted is not None and isinstance(facts.get("memory.limit"), Unknown):
        enforced, field, verb = granted, "memory.scheduler_limit", "the scheduler granted"
    else:
        return
    yield from _jvm_misread(facts, enforced, field, verb)
    ray = _installed(facts, "ray")
    belief = facts.value("memory.ray_belief")
    if ray is not False and belief is not None and belief > enforced * 1.02:
        store = int(enforced * 0.3)
        yield Finding(
            "ED501",
            "host-memory",
            "limit-misread",
            "warning" if ray else "advice",
            f"Ray will believe {_bytes(belief)} of memory, but {verb} {_bytes(enforced)}: its memory monitor will not act before the kernel kills.",
            evidence=_evidence(facts, field, "memory.ray_belief"),
            sources=(_RAY_MEMORY, _RAY_OOM, _KERNEL_V2),
            remedies=(
                Remedy(
                    "Tell Ray how much memory there is; object store and tasks together must fit the limit.",
                    (f"ray start --head --memory={int(enforced * 0.6)} --object-store-memory={store}",),
                    "safe",
                ),
                Remedy(
                    "Set the limit on the container itself, so that it shows where Ray looks (docker run --memory, resources.limits).",
                    (),
                    "changes-host",
                ),
            ),
        )
        return
    belief = facts.value("memory.psutil_belief")
    if belief is not None and belief > enforced * 1.02 and _installed(facts, "accelerate", "deepspeed", "vllm"):
        yield Finding(
            "ED501",
            "host-memory",
            "limit-misread",
            "advice",
            f"psutil will report {_bytes(belief)} of memory, but {verb} {_bytes(enforced)}: offloading sized by it can be killed.",
            subject="psutil",
            evidence=_evidence(facts, field, "memory.psutil_belief"),
            sources=(_PSUTIL, _KERNEL_V2),
            remedies=(Remedy("Give max_memory={'cpu': …}, swap space and offload sizes explicitly, below the limit.", (), "safe"),),
        )


def _jvm_misread(facts: Facts, enforced: int, field: str, verb: str) -> Iterator[Finding]:
    belief, version = facts.value("memory.jvm_belief"), facts.value("java.version")
    if belief is None or version is None or belief <= enforced * 1.02:
        return
    heap = belief // 4  # MaxRAMPercentage=25
    outcome = "more than all that there is" if heap > enforced else "of memory that other processes need too"
    yield Finding(
        "ED501",
        "host-memory",
        "limit-misread",
        "warning" if heap > enforced else "advice",
        f"Java {version} will believe {_bytes(belief)} of memory, but {verb} {_bytes(enforced)}: "
        f"by default its heap may take {_bytes(heap)}, {outcome}.",
        subject="jvm",
        evidence=_evidence(facts, field, "memory.jvm_belief", "java.version"),
        sources=(_JVM, _KERNEL_V2),
        remedies=(Remedy("Size its heap by hand.", (f"export JAVA_TOOL_OPTIONS=-Xmx{max(64, enforced // 4 // _MIB)}m",), "safe"),),
    )


class _Reason(NamedTuple):
    severity: str
    text: str
    wanted: int
    sources: Tuple[Source, ...]


def check_shared_memory(context: Context) -> Iterator[Finding]:
    """/dev/shm is too small for what will use it.

    What it checks:
        Size and free space of /dev/shm, against NCCL between several GPUs (NVIDIA advises 1 GiB), Ray's object store by
        Ray's own arithmetic, and the shared memory of PyTorch's DataLoader workers and vLLM's processes. Docker's and
        Kubernetes' default is 64 MiB. With --ipc=host the host's /dev/shm is used, and nothing is said.

    Why it matters:
        NCCL allocates its segments at once and fails with "Error while creating shared memory segment /dev/shm/nccl-…";
        a DataLoader worker dies with "Bus error … insufficient shared memory (shm)"; Ray silently moves its object
        store to the disk below /tmp. It is an error only where the space cannot hold one of the smallest segments for
        each GPU and NCCL has no other way (below 2.24): NVLink machines start within 64 MiB, PCIe ones with four GPUs
        do not.

    How to fix:
        docker run --shm-size=16g (or --ipc=host); Kubernetes: an emptyDir with medium Memory at /dev/shm. It counts
        against the memory limit. On a host: mount -o remount,size=16G /dev/shm. Remove leaked files of dead jobs.

    References:
        NCCL user guide, Runtime and MPI issues; NCCL issues 342 and 525; vLLM deployment with Docker; PyTorch README,
        Docker image; Ray python/ray/_private/services.py.
    """
    facts = context.facts
    size = facts.value("shm.size")
    if size is None or facts.value("container.ipc_host") is True or _installed(facts, *_TORCH_USERS) is False:
        return
    available = facts.value("shm.available", size)
    reasons = [reason for reason in (_nccl_reason(facts, size), _store_reason(facts, available), _worker_reason(facts, size)) if reason is not None]
    held = _shm_contents(facts)
    if not reasons and size >= _GIB and available < 64 * _MIB and (_gpu_count(facts) or 0) > 1 and available < size:
        used = f"only {_bytes(available)} of {_bytes(size)} are free; " + (
            held or "files of dead jobs (nccl-*, plasma*, psm_*) stay until someone removes them"
        )
        reasons.append(_Reason("warning", used, 0, (_NCCL_MEMORY,)))
    elif reasons and held and available < size // 2:
        reasons.append(_Reason("advice", held, 0, ()))
    if not reasons:
        return
    reasons.sort(key=lambda reason: severity_rank(reason.severity))
    wanted = max(_GIB, *(reason.wanted for reason in reasons))
    sources: List[Source] = []
    for reason in reasons:
        sources.extend(source for source in reason.sources if source not in sources)
    yield Finding(
        "ED502",
        "/dev/shm",
        "shm-too-small",
        reasons[0].severity,
        f"/dev/shm has {_bytes(size)}: " + "; ".join(reason.text for reason in reasons) + ".",
        evidence=_evidence(facts, "shm.size", "shm.available", "shm.files", "gpus"),
        sources=tuple(sources),
        remedies=_shm_remedies(facts, wanted),
    )


def _shm_contents(facts: Facts) -> str:
    """Say what takes the space: what no process holds that is visible here, and who holds the rest; "" where nothing is known."""
    files = facts.value("shm.files", ())
    parts = []
    left = [file for file in files if file.holders == ()]
    if left:
        parts.append(f"{_bytes(sum(file.memory_size for file in left))} in files that no process visible here holds ({_few([f.name for f in left])})")
    by_holder: Dict[str, int] = {}
    for file in files:
        if file.holders:
            by_holder[file.holders[0]] = by_holder.get(file.holders[0], 0) + file.memory_size
    largest = sorted(by_holder.items(), key=lambda pair: -pair[1])[:2]
    parts += [f"{_bytes(size)} held by process {holder}" for holder, size in largest]
    return ", ".join(parts)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _nccl_reason(facts: Facts, size: int) -> Optional[_Reason]:
    count = _gpu_count(facts)
    if (
        count is None
        or count < 2
        or size >= _GIB
        or facts.variable("NCCL_SHM_DISABLE") == Known("1", Evidence("environment variable NCCL_SHM_DISABLE"))
    ):
        return None
    version = next((found for found in (try_version(facts.version_of(name)) for name in _NCCL_WHEELS) if found is not None), None)
    needs = count * _NCCL_SEGMENT
    if size < needs and version is not None and version < _NCCL_CUMEM_HOST:
        text = f"NCCL {version} needs a segment of several MiB there for each of {count} GPUs, {_bytes(needs)} at the least, and will fail to start"
        return _Reason("error", text, _GIB, (_NCCL_MEMORY, _NCCL_SEGMENTS))
    text = f"NCCL keeps its segments for {count} GPUs there, and NVIDIA advises 1 GiB"
    return _Reason("warning", text, _GIB, (_NCCL_MEMORY, _NCCL_SEGMENTS))


def _store_reason(facts: Facts, available: int) -> Optional[_Reason]:
    """Ray's arithmetic of resolve_object_store_memory and determine_plasma_store_config, with its defaults."""
    if not _installed(facts, "ray"):
        return None
    belief, used = facts.value("memory.ray_belief"), facts.value("memory.ray_usage")
    if belief is None:
        return None
    if used is None:
        free = facts.value("memory.available")
        used = belief - free if free is not None and free < belief else 0
    wanted = min(int((belief - used) * 0.3), 200 * 10**9, max(10**10, int(available * 0.95)))
    if wanted <= available:
        return None
    text = f"Ray wants {_bytes(wanted)} there for its object store and will put it below /tmp"
    return _Reason("warning", text, int(wanted * 1.1), (_RAY_STORE,))


def _worker_reason(facts: Facts, size: int) -> Optional[_Reason]:
    count = _gpu_count(facts)
    if size >= _GIB or (count is not None and count > 1):
        return None
    known = _installed(facts, *_TORCH_USERS)
    if known is None and count is None and size > 64 * _MIB:
        return None
    text = "PyTorch's DataLoader workers and vLLM's processes share tensors there, and NCCL its buffers where there are several GPUs"
    return _Reason("advice", text, _GIB, (_TORCH_DOCKER, _VLLM_DOCKER))


def _shm_remedies(facts: Facts, wanted: int) -> Tuple[Remedy, ...]:
    gib = max(1, -(-wanted // _GIB))
    runtime = facts.value("container.runtime")
    docker = Remedy(
        "Start the container with more shared memory, or with the host's.",
        (f"docker run --shm-size={gib}g …", "docker run --ipc=host …"),
        "changes-host",
    )
    pod = Remedy(f"Mount an emptyDir with medium: Memory and sizeLimit: {gib}Gi at /dev/shm; it counts against the memory limit.", (), "changes-host")
    host = Remedy("Raise the size of the tmpfs.", (f"mount -o remount,size={gib}G /dev/shm",), "changes-host")
    if runtime == "kubernetes":
        return (pod,)
    if runtime in ("docker", "podman"):
        return (docker,)
    if isinstance(facts.get("container.runtime"), Absent):
        return (host,)
    return (docker, pod, host)


def check_locked_memory(context: Context) -> Iterator[Finding]:
    """The limit of locked memory is too low for RDMA.

    What it checks:
        RLIMIT_MEMLOCK (ulimit -l) where it is finite and below 1 GiB, unless the process holds CAP_IPC_LOCK, for which
        the kernel does not ask it. A warning where the kernel shows RDMA devices or where that is not known; nothing
        where there are none or NCCL_IB_DISABLE=1 is set.

    Why it matters:
        NCCL over InfiniBand or RoCE, GPUDirect RDMA and NVSHMEM register (pin) their buffers, and every pinned page
        counts. With the usual 64 KiB or 8 MiB the run dies with "ibv_reg_mr failed … Cannot allocate memory". One
        machine without RDMA does not need it.

    How to fix:
        docker run --ulimit memlock=-1 (with --cap-add=IPC_LOCK); limits.d: "* - memlock unlimited"; systemd units
        (slurmd, containerd): LimitMEMLOCK=infinity.

    References:
        nccl-tests issue 206; NCCL user guide, Runtime and MPI issues; Linux drivers/infiniband/core/umem.c.
    """
    facts = context.facts
    limit = facts.value("rlimit.memlock")
    if limit is None or limit < 0 or limit >= _GIB:
        return
    if "ipc_lock" in facts.value("process.capabilities", ()):
        return
    disabled = facts.variable("NCCL_IB_DISABLE")
    devices = facts.value("rdma.devices")
    if (isinstance(disabled, Known) and disabled.value.strip() == "1") or devices == ():
        return
    where = f"RDMA ({', '.join(devices)})" if devices else "RDMA (NCCL over InfiniBand or RoCE), where it is used,"
    yield Finding(
        "ED503",
        "rlimit-memlock",
        "too-small",
        "warning",
        f"The limit of locked memory is {_bytes(limit)}; {where} must pin its buffers and needs it unlimited.",
        evidence=_evidence(facts, "rlimit.memlock", "rdma.devices"),
        sources=(_NCCL_MEMLOCK, _NCCL_MEMORY, _IB_LOCK),
        remedies=(
            Remedy("Lift the limit where the process is started.", ("docker run --ulimit memlock=-1 …", "ulimit -l unlimited"), "changes-host"),
            Remedy("For Slurm and other services: LimitMEMLOCK=infinity in the unit of slurmd or containerd.", (), "changes-host"),
        ),
    )


def check_open_files(context: Context) -> Iterator[Finding]:
    """The limit of open files is too low for Ray or a vLLM server.

    What it checks:
        RLIMIT_NOFILE (ulimit -n). Ray: a soft limit below 4096 is a warning (Ray's own words: too low for production),
        below 65536 advice. vLLM raises its soft limit to 65535 itself, so only a hard limit below that counts. Where the
        installed packages are not known, a soft limit below 4096 is a warning that says for whom.

    Why it matters:
        Every worker, every connection between nodes and every open object costs descriptors. The raylet is started
        by "ray start" with the limit of that shell and does not raise it: "Too many open files", lost nodes.

    How to fix:
        ulimit -n 65536 in the shell or batch script before ray start; docker run --ulimit nofile=65536:65536; in units
        LimitNOFILE=65536.

    References:
        Ray python/ray/_private/worker.py and issue 11239; NeMo-RL issue 988; vLLM set_ulimit.
    """
    facts = context.facts
    soft = facts.value("rlimit.nofile")
    if soft is None or soft < 0 or soft >= 65536:
        return
    hard = facts.value("rlimit.nofile_hard")
    ray, vllm = _installed(facts, "ray"), _installed(facts, "vllm", "sglang")
    sources: Tuple[Source, ...]
    if ray:
        severity, who, sources = ("warning" if soft < 4096 else "advice"), "Ray's daemons want 65536", (_RAY_FILES, _NEMO_FILES)
    elif vllm and hard is not None and 0 <= hard < 65535:
        severity, who, sources = "warning", f"vLLM wants 65535 and cannot raise it above the hard limit of {hard}", (_VLLM_FILES,)
    elif ray is None and soft < 4096:
        severity, who, sources = "warning", "Ray's daemons, where they are used, want 65536", (_RAY_FILES, _NEMO_FILES)
    else:
        return
    raises = hard is None or hard < 0 or hard >= 65536
    remedies = [Remedy("Raise the soft limit in the shell or batch script that starts it.", ("ulimit -n 65536",), "safe")] if raises else []
    if not raises or facts.value("container.runtime") is not None:
        remedies.append(
            Remedy("Raise the hard limit where the container or service is started.", ("docker run --ulimit nofile=65536:65536 …",), "changes-host")
        )
    yield Finding(
        "ED504",
        "rlimit-nofile",
        "too-small",
        severity,
        f"The soft limit of open files is {soft}; {who}.",
        evidence=_evidence(facts, "rlimit.nofile", "rlimit.nofile_hard"),
        sources=sources,
        remedies=tuple(remedies),
    )


def check_processes(context: Context) -> Iterator[Finding]:
    """The limit of processes and threads is too low for Ray or a multi-process server.

    What it checks:
        The smallest pids.max of this process's control groups, and RLIMIT_NPROC (ulimit -u) unless the process runs as
        the machine's root or holds CAP_SYS_ADMIN or CAP_SYS_RESOURCE, for which the kernel does not ask it. Below 4096
        is a warning with Ray, vLLM or SGLang, below 1024 advice with torch alone.

    Why it matters:
        Threads count. One Ray worker has dozens to hundreds, and Ray starts one for each CPU that it sees; OpenBLAS and
        OpenMP add one for each CPU and process. Then: "pthread_create failed: Resource temporarily unavailable", a
        hang, or a core dump far from the cause.

    How to fix:
        ulimit -u 65536; docker run --pids-limit=-1 (podman's default is 2048); kubelet podPidsLimit. Or fewer threads:
        ray start --num-cpus=N, OMP_NUM_THREADS=1.

    References:
        verl issue 719; Ray issue 54021; getrlimit(2), RLIMIT_NPROC.
    """
    facts = context.facts
    heavy = _installed(facts, "ray", "vllm", "sglang", "verl", "openrlhf")
    threshold = 4096 if heavy else 1024
    if not heavy and _installed(facts, "torch") is False:
        return
    exempt = facts.value("process.uid") == 0 or bool({"sys_admin", "sys_resource"} & set(facts.value("process.capabilities", ())))
    limits = [("pids.limit", "pids-limit", facts.value("pids.limit"), "The control group allows {} processes and threads")]
    if not exempt:
        limits.append(("rlimit.nproc", "rlimit-nproc", facts.value("rlimit.nproc"), "The user may have {} processes and threads (ulimit -u)"))
    for field, component, limit, text in limits:
        if limit is None or not 0 <= limit < threshold:
            continue
        flag = "docker run --pids-limit=-1 …" if field == "pids.limit" else "ulimit -u 65536"
        who = "Ray and multi-process servers start thousands" if heavy else "training with several workers can start more"
        yield Finding(
            "ED505",
            component,
            "too-small",
            "warning" if heavy else "advice",
            f"{text.format(limit)}; {who}.",
            evidence=_evidence(facts, field),
            sources=(_VERL_THREADS, _RAY_THREADS),
            remedies=(
                Remedy("Raise the limit.", (flag,), "changes-host"),
                Remedy("Or start fewer threads.", ("export OMP_NUM_THREADS=1", "ray start --num-cpus=N …"), "safe"),
            ),
        )


def check_cpu_quota(context: Context) -> Iterator[Finding]:
    """The CPU quota is far below the CPUs that programs count.

    What it checks:
        The smallest CPU bandwidth of this process's control groups. With vLLM, a warning where quota or CPUs are fewer
        than its processes on this machine (2 + one for each GPU). Else advice where the quota is below half of the
        CPUs that programs count, unless OMP_NUM_THREADS is set.

    Why it matters:
        Thread pools are sized by the CPUs that are visible, not by the quota. All of them run at once, use up the quota
        early in each period of 100 ms, and then all of them stand still: the GPUs wait.

    How to fix:
        Raise the quota (resources.limits.cpu, docker run --cpus), or set OMP_NUM_THREADS and the number of workers to it.

    References:
        vLLM, Optimization and Tuning, CPU resources for GPU deployments; Linux Documentation/scheduler/sched-bwc.rst.
    """
    facts = context.facts
    quota, count = facts.value("cpu.quota"), facts.value("cpu.count")
    gpus = _gpu_count(facts)
    cores = min((number for number in (quota, count) if number is not None), default=None)
    if cores is not None and gpus and _installed(facts, "vllm") and cores < 2 + gpus:
        what = "The CPU quota is" if quota is not None and cores == quota else "The CPUs that this process may use are"
        yield Finding(
            "ED506",
            "cpu-quota",
            "too-small",
            "warning",
            f"{what} {cores:g}, but vLLM runs at least {2 + gpus} busy processes with {gpus} GPU{'s' if gpus > 1 else ''}.",
            evidence=_evidence(facts, "cpu.quota", "cpu.count", "gpus"),
            sources=(_VLLM_CPUS, _KERNEL_CPU),
            remedies=(Remedy("Raise the CPU limit of the container or job.", (f"docker run --cpus={2 * (2 + gpus)} …",), "changes-host"),),
        )
        return
    if quota is None or count is None or quota >= count / 2 or not _installed(facts, *_TORCH_USERS):
        return
    if isinstance(facts.variable("OMP_NUM_THREADS"), Known):
        return
    threads = max(1, int(quota))
    yield Finding(
        "ED506",
        "cpu-quota",
        "too-small",
        "advice",
        f"The CPU quota is {quota:g} cores, but programs count {count} CPUs and start a thread for each.",
        evidence=_evidence(facts, "cpu.quota", "cpu.count"),
        sources=(_KERNEL_CPU,),
        remedies=(Remedy("Set the number of threads to the quota.", (f"export OMP_NUM_THREADS={threads}",), "safe"),),
    )


def check_hidden_limit(context: Context) -> Iterator[Finding]:
    """A memory limit above this container cannot be seen from inside it.

    What it checks:
        cgroup v2 in a namespace, or a mount of a part of the hierarchy, where no directory that is visible has a limit.
        v1 tells its ancestors' limits even there, so this is said of v2 only.

    Why it matters:
        A limit on the pod, the Slurm step or the slice is enforced all the same, and a program is killed at a size that
        nothing inside the container shows.

    How to fix:
        Ask outside: systemd-cgtop, scontrol show job, kubectl get pod -o yaml. Tell envdoctor with --assume memory=SIZE.

    References:
        Linux Documentation/admin-guide/cgroup-v2.rst, Namespace; enroot issue 169.
    """
    facts = context.facts
    if facts.value("memory.limit_hidden") is not True or not isinstance(facts.get("memory.limit"), Unknown):
        return
    if facts.value("memory.scheduler_limit") is not None:
        return
    yield Finding(
        "ED507",
        "host-memory",
        "limit-misread",
        "advice",
        "No memory limit is visible here, but one that is set outside of this container cannot be excluded.",
        verdict="undetermined",
        subject="hidden",
        evidence=_evidence(facts, "memory.limit_hidden"),
        sources=(Source("https://docs.kernel.org/admin-guide/cgroup-v2.html", "Namespace"), Source("https://github.com/NVIDIA/enroot/issues/169")),
        remedies=(Remedy("Look outside of the container (kubectl, scontrol show job), and say what it is: --assume memory=SIZE.", (), "safe"),),
        missing="memory.limit",
    )


def check_oom_history(context: Context) -> Iterator[Finding]:
    """Processes of this control group were killed for memory already, or little is left below the limit.

    What it checks:
        The kernel's count of OOM kills from this process's control group up to the limiting one, and use less
        reclaimable pages against the limit (above 90 %).

    Why it matters:
        "exit code 137", a vanished worker or "connection reset" was then the kernel, and it will happen again. A count is
        history, not proof of the run at hand.

    How to fix:
        Raise the limit or use less host memory: smaller object store, fewer DataLoader workers, no CPU offload. What
        lies in /dev/shm counts too and cannot be reclaimed without swap.

    References:
        Linux Documentation/admin-guide/cgroup-v2.rst (memory.events), cgroup-v1/memory.rst (memory.oom_control).
    """
    facts = context.facts
    kills, limit = facts.value("memory.oom_kills"), facts.value("memory.limit")
    if kills:
        yield Finding(
            "ED508",
            "host-memory",
            "host-oom",
            "warning" if limit is not None else "advice",
            f"The kernel has killed {kills} process{'es' if kills > 1 else ''} of this control group for memory"
            + (f" (limit {_bytes(limit)})." if limit is not None else "."),
            subject="oom-kills",
            evidence=_evidence(facts, "memory.oom_kills", "memory.limit"),
            sources=(_KERNEL_V2,),
            remedies=(Remedy("Raise the memory limit, or plan less host memory.", (), "changes-host"),),
        )
    usage, reclaimable = facts.value("memory.usage"), facts.value("memory.reclaimable")
    if limit and usage is not None and reclaimable is not None and usage - reclaimable > 0.9 * limit:
        yield Finding(
            "ED508",
            "host-memory",
            "host-oom",
            "warning",
            f"{_bytes(usage - reclaimable)} of the {_bytes(limit)} that the kernel allows are in use and cannot be reclaimed.",
            subject="nearly-full",
            evidence=_evidence(facts, "memory.usage", "memory.reclaimable", "memory.limit"),
            sources=(_KERNEL_V2,),
            remedies=(Remedy("Stop what uses it, remove leaked files in /dev/shm, or raise the limit.", (), "changes-host"),),
        )


RULES_HERE: Tuple[Rule, ...] = (
    Rule("ED501", "memory-belief", "limit-misread", "Ray, psutil or the JVM believes more memory than the kernel enforces", check_memory_belief),
    Rule("ED502", "shared-memory", "shm-too-small", "/dev/shm is too small", check_shared_memory),
    Rule("ED503", "locked-memory", "too-small", "The limit of locked memory is too low for RDMA", check_locked_memory),
    Rule("ED504", "open-files", "too-small", "The limit of open files is too low", check_open_files),
    Rule("ED505", "processes", "too-small", "The limit of processes and threads is too low", check_processes),
    Rule("ED506", "cpu-quota", "too-small", "The CPU quota is far below the CPUs that programs count", check_cpu_quota),
    Rule("ED507", "hidden-limit", "limit-misread", "An outer memory limit cannot be seen", check_hidden_limit),
    Rule("ED508", "oom-history", "host-oom", "Processes were killed for memory already", check_oom_history),
)
