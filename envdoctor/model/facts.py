"""Facts: everything that was read about one target, as a flat table from field name to fact.

``FIELDS`` is the one list of fields. ``--assume``, the reports and the grouping of undetermined
findings come from it, the tests hold the JSON Schema to it, and a probe or parser that sets an
undeclared field fails at once.
"""

from __future__ import annotations

from .evidence import Absent, Evidence, Fact, Known, Unknown
from .record import NamedTuple
from .versions import canonicalize_name, find_variant, try_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

__all__ = [
    "FIELDS",
    "SCHEMA_VERSION",
    "Binary",
    "Distribution",
    "Facts",
    "Field",
    "Gpu",
    "Library",
    "Oddity",
    "SharedFile",
    "Toolkit",
    "is_unindexed",
]

SCHEMA_VERSION = 1


class Gpu(NamedTuple):
    """One device, as NVML, nvidia-smi or a report names it. Sizes are bytes; None is not known."""

    name: Optional[str] = None
    pci_id: Optional[str] = None  # vendor and device, "10de:2329"
    pci_bus: Optional[str] = None
    uuid: Optional[str] = None
    compute_capability: Optional[str] = None  # "9.0"
    memory_total: Optional[int] = None
    memory_used: Optional[int] = None
    mig_mode: Optional[bool] = None
    ecc_mode: Optional[bool] = None
    ecc_uncorrected: Optional[int] = None
    persistence_mode: Optional[bool] = None
    fabric_state: Optional[str] = None  # "completed", "in progress", "not started", "not supported"
    remapped_pending: Optional[bool] = None
    remapped_failed: Optional[bool] = None
    visible: Optional[bool] = None  # after CUDA_VISIBLE_DEVICES
    fault: Optional[str] = (
        # why the driver refuses the device: "GPU is lost", "GPU requires reset", an NVML error
        None
    )


class Toolkit(NamedTuple):
    """A CUDA toolkit on disk: its folder, its version, and how it was found (PATH, CUDA_HOME,
    /usr/local).
    """

    path: str
    version: Optional[str] = None
    found_via: str = ""
    nvcc: bool = False


class Library(NamedTuple):
    """A CUDA library that the loader would map, or one more copy of it that lies around."""

    name: str  # "libcublas"
    soname: str  # "libcublas.so.12"
    path: str
    version: Optional[str] = None
    # "wheel:nvidia-cublas-cu12", "LD_LIBRARY_PATH", "ld.so.cache", "rpath", "LD_PRELOAD", "conda"
    origin: str = ""
    loaded: bool = True  # False: a copy that is not the one loaded
    needed_by: str = ""


class Distribution(NamedTuple):
    """One installed distribution.

    ``version`` keeps its local label; ``requires`` are its own METADATA lines.
    """

    name: str  # canonical
    version: Optional[str]
    location: str = ""
    requires: Optional[Tuple[str, ...]] = None  # None: METADATA not read
    requires_python: Optional[str] = None
    tags: Tuple[str, ...] = ()
    installer: str = ""
    editable: bool = False
    direct_url: str = ""  # without credentials
    provides_extras: Tuple[str, ...] = ()
    build: str = (
        ""  # conda build string, or the CUDA build ("cu130") where the version is not known
    )
    constraint: str = ""  # version is None, but it is known to lie in this range (">=4.48.1")


class Oddity(NamedTuple):
    """Something wrong with how a distribution lies on disk.

    ``kind``: duplicate, leftover, no-metadata, unreadable-metadata, name-mismatch, missing-files,
    altered-files, overlapping-files, dangling-link, not-a-directory, hidden (another copy lies
    earlier on the search path).
    """

    kind: str
    name: str
    path: str
    detail: str = ""


class Binary(NamedTuple):
    """One compiled file of a distribution, read from its ELF header.

    ``torch_abi``: what its undefined symbols tell.
    """

    path: str
    distribution: str
    needed: Tuple[str, ...] = ()
    glibc: Optional[str] = None  # highest GLIBC_x.y it asks for
    glibcxx: Optional[str] = None
    cxx11abi: Optional[bool] = None
    missing: Tuple[str, ...] = ()  # sonames that the loader would not find
    undefined: Tuple[str, ...] = ()  # c10/torch symbols that the installed torch does not define


class SharedFile(NamedTuple):
    """What takes space in /dev/shm: a file, or a deleted one that a process still holds."""

    name: str
    memory_size: int  # bytes that it occupies
    uid: Optional[int] = None
    holders: Optional[Tuple[str, ...]] = (
        None  # "1234 python3"; None: not known, () none that is visible here
    )
    deleted: bool = False


class Field(NamedTuple):
    """The type, unit and meaning of one field."""

    type: str  # str, int, float, bool, strings, variables, or a record's name
    doc: str
    assume: bool = False  # may be set by --assume


FIELDS: Mapping[str, Field] = {
    # machine
    "node.name": Field("str", "Name of the node; tells several fact files apart."),
    "os.platform": Field("str", "sys.platform: linux, darwin, win32.", True),
    "os.name": Field("str", "Name and version of the operating system as it names itself."),
    "os.kernel": Field("str", "Kernel release (uname -r)."),
    "os.architecture": Field("str", "Machine architecture: x86_64, aarch64.", True),
    "os.wsl": Field("bool", "Windows Subsystem for Linux.", True),
    "os.sandbox": Field("str", "gvisor, firecracker, kvm … where it shows.", False),
    "glibc.version": Field("str", "glibc of the target, '2.35'.", True),
    "glibcxx.version": Field(
        "str", "Newest GLIBCXX of the libstdc++ that a process with torch loads, '3.4.30'."
    ),
    # interpreter
    "python.version": Field("str", "Full version of the target's interpreter, '3.10.12'.", True),
    "python.implementation": Field("str", "cpython, pypy."),
    "python.abi": Field("str", "ABI tag, 'cp310'."),
    "python.executable": Field("str", "The interpreter that was judged."),
    "python.prefix": Field("str", "sys.prefix."),
    "python.search_path": Field("strings", "Directories in which distributions were looked for."),
    "python.environment": Field("str", "venv, conda, system, uv, unknown."),
    "python.working_directory": Field(
        "str", "Directory from which Python is started; it comes first on sys.path."
    ),
    # NVIDIA driver
    "driver.release": Field(
        "str", "Kernel driver release, '570.86.15'; the best of the sources below.", True
    ),
    "driver.flavor": Field("str", "Kernel module: open or proprietary."),
    "driver.nvml_release": Field(
        "str", "Driver release that the NVML library reports (user space)."
    ),
    "driver.libcuda_release": Field(
        "str", "Release in the file name of the libcuda.so.1 that will be loaded."
    ),
    "driver.libcuda_path": Field("str", "Resolved path of the libcuda.so.1 that will be loaded."),
    "driver.cuda_version": Field(
        "str", "Driver CUDA version, '12.4' (cuDriverGetVersion, nvidia-smi header).", True
    ),
    "driver.init_error": Field("int", "Result of cuInit: 0, 100 no device, 802, 803, 804, 999 …"),
    "driver.nvml_error": Field("str", "Why NVML could not be used (loader text or NVML error)."),
    "driver.loaded": Field("bool", "The NVIDIA kernel module is loaded on the host."),
    "driver.exposed": Field("bool", "Device nodes and libcuda are visible to this process."),
    "driver.unversioned_libcuda": Field(
        "bool", "A libcuda.so without version suffix is found (linkers need it)."
    ),
    "driver.fabric_manager": Field("str", "Release of nvidia-fabricmanager.", True),
    "driver.fabric_manager_running": Field("bool", "nvidia-fabricmanager runs."),
    "driver.nouveau": Field("bool", "The nouveau module is loaded."),
    "compat.release": Field(
        "str", "Release of the cuda-compat libcuda that the loader would take.", True
    ),
    "compat.path": Field("str", "Where that cuda-compat library lies."),
    "compat.cuda_version": Field("str", "CUDA version of the cuda-compat package, '13.0'.", True),
    "image.cuda_version": Field(
        "str", "CUDA version of the container image (CUDA_VERSION, image name)."
    ),
    "image.name": Field("str", "Container image, where it shows."),
    # GPUs
    "gpus": Field("gpus", "Devices that the driver shows; none is an empty list.", True),
    "gpus.expected": Field(
        "strings", "Names of GPUs that the host has, where the container shows none."
    ),
    "gpus.other": Field(
        "strings",
        "Accelerators of other makers on the PCI bus, 'AMD 1002:74a1': named, not judged.",
    ),
    # CUDA toolkits
    "toolkit.version": Field(
        "str", "Version of the nvcc that a build would use (PATH, CUDA_HOME).", True
    ),
    "toolkits": Field("toolkits", "All toolkits found on disk."),
    "ptxas.version": Field("str", "CUDA version of the ptxas that Triton would call."),
    # CUDA libraries
    "libraries": Field("libraries", "CUDA libraries that torch would load, and further copies."),
    "cudnn.system_version": Field("str", "cuDNN outside the wheels, on the loader's path."),
    # torch, read without importing it
    "torch.version": Field("str", "torch/version.py: '2.6.0+cu124'."),
    "torch.cuda": Field(
        "str", "CUDA version that torch was built with, '12.4'; Absent for a CPU build."
    ),
    "torch.hip": Field("str", "ROCm version that torch was built with."),
    "torch.arch_list": Field("strings", "torch.cuda.get_arch_list(), where a report has it."),
    "torch.cuda_available": Field("bool", "torch.cuda.is_available() in a report."),
    "torch.cxx11abi": Field("bool", "C++ ABI flag of the installed torch."),
    # distributions
    "distributions": Field("distributions", "Installed distributions by canonical name."),
    "distributions.complete": Field(
        "bool", "The list is whole, so that what is not in it is absent."
    ),
    "distributions.oddities": Field("oddities", "Duplicates, leftovers, damage."),
    "binaries": Field("binaries", "Compiled extension modules, read from their ELF headers."),
    "shadowed_modules": Field(
        "strings", "Modules of the working directory that hide an installed package."
    ),
    # memory (bytes)
    "memory.total": Field("int", "MemTotal of the machine, bytes.", True),
    "memory.available": Field("int", "MemAvailable, bytes."),
    "memory.limit": Field(
        "int", "Memory limit that the kernel enforces on this process, bytes.", True
    ),
    "memory.limit_hidden": Field("bool", "An outer limit cannot be excluded (cgroup namespace)."),
    "memory.high": Field("int", "memory.high throttle, bytes."),
    "memory.usage": Field("int", "Current use charged to the limiting cgroup, bytes."),
    "memory.reclaimable": Field("int", "Reclaimable file pages in that use, bytes."),
    "memory.oom_kills": Field("int", "OOM kills counted so far in this cgroup."),
    "memory.scheduler_limit": Field(
        "int", "Memory granted by the scheduler (Slurm variables, downward API), bytes."
    ),
    "memory.ray_belief": Field("int", "Total memory that Ray will believe, bytes."),
    "memory.ray_usage": Field(
        "int", "Memory in use as Ray will count it, bytes; Absent where it asks psutil."
    ),
    "memory.psutil_belief": Field("int", "Total memory that psutil will believe, bytes."),
    "memory.jvm_belief": Field(
        "int", "Total memory that the JVM will believe, bytes; Absent where no Java is found."
    ),
    "java.version": Field("str", "Java that a program would start (JAVA_HOME, PATH), '17.0.15'."),
    "swap.total": Field("int", "SwapTotal, bytes."),
    "swap.limit": Field("int", "Swap limit of the cgroup, bytes."),
    "shm.size": Field("int", "Size of /dev/shm, bytes.", True),
    "shm.available": Field("int", "Free space of /dev/shm, bytes."),
    "shm.files": Field(
        "shared_files", "The largest files in /dev/shm, and deleted ones that processes still hold."
    ),
    # other limits; unlimited is -1
    "cgroup.version": Field("str", "v1, v2, hybrid, none."),
    "cpu.count": Field("int", "CPUs this process may run on."),
    "cpu.quota": Field("float", "CPU quota in cores.", True),
    "pids.limit": Field("int", "Process limit of the cgroup; -1 is unlimited.", True),
    "rlimit.nofile": Field("int", "Soft limit of open files; -1 is unlimited.", True),
    "rlimit.nofile_hard": Field("int", "Hard limit of open files; -1 is unlimited."),
    "rlimit.memlock": Field("int", "Soft limit of locked memory, bytes; -1 is unlimited.", True),
    "rlimit.nproc": Field("int", "Soft limit of processes; -1 is unlimited.", True),
    "rlimit.stack": Field("int", "Soft limit of the stack, bytes; -1 is unlimited."),
    "rlimit.core": Field("int", "Soft limit of core files, bytes; -1 is unlimited."),
    "process.uid": Field("int", "User id as the machine's own user namespace counts it."),
    "process.capabilities": Field(
        "strings", "Effective capabilities that lift limits: ipc_lock, sys_resource, sys_admin."
    ),
    "rdma.devices": Field(
        "strings", "RDMA devices (InfiniBand, RoCE, EFA) that the kernel shows.", True
    ),
    "numa.nodes": Field("int", "NUMA nodes that memory may come from."),
    "container.runtime": Field(
        "str", "docker, podman, kubernetes, apptainer, enroot, lxc; Absent outside a container."
    ),
    "container.ipc_host": Field("bool", "--ipc=host."),
    "container.gpus_requested": Field("bool", "--gpus or an NVIDIA runtime was asked for.", True),
    "pcie.acs_iommu": Field("bool", "PCIe ACS or the IOMMU redirects peer traffic."),
    # environment variables (allow-list) and schedulers
    "variables": Field("variables", "Environment variables of the allow-list, redacted."),
    "variables.complete": Field(
        "bool",
        "The variables were read whole, so that what is not among them is not set; not so in a "
        "pasted report.",
    ),
    "slurm.job": Field("variables", "Slurm variables of this job (allow-list)."),
    "kubernetes.pod": Field("bool", "Runs in a Kubernetes pod."),
    "ray.cluster_version": Field("str", "Ray version of the cluster to be joined."),
    "ray.cluster_python": Field("str", "Python version of the Ray cluster."),
    "ray.process_version": Field("str", "Ray version of the joining process."),
    "ray.process_python": Field("str", "Python version of the joining process."),
    "ray.module_path": Field("str", "Where 'import ray' would find its module."),
    # a requirements file that stands for the environment
    "requirements.unpinned": Field(
        "strings", "Distributions that the file asks for without one version."
    ),
    # a lock that the environment is compared with
    "lock.asked": Field("strings", "What the lock was asked for: 'vllm>=0.8'."),
    "lock.pins": Field("variables", "Versions that the lock pins, by distribution."),
    "lock.requires": Field(
        "variables",
        "What the lock requires of a machine: driver, glibc, python (lowest), sm, platform, "
        "architecture.",
    ),
    "lock.overrides": Field(
        "strings",
        "Metadata that the lock contradicts on purpose: 'torch -> nvidia-cublas-cu12==12.3.4.1 "
        "[row]'.",
    ),
    # what is asked of the stack: in memory a Workload, in JSON the settings by name
    "request": Field(
        "settings", "Launch settings by name: tensor_parallel_size, engine, attention_backend …"
    ),
}

_NOT_READ = Unknown("not read")


class Facts:
    """An immutable table of facts about one target. Missing fields are ``Unknown("not read")``."""

    __slots__ = ("_table",)

    def __init__(self, table: Optional[Mapping[str, Fact[Any]]] = None) -> None:
        self._table: Dict[str, Fact[Any]] = {}
        for name, fact in (table or {}).items():
            if name not in FIELDS:
                raise KeyError(f"no such field: {name}")
            self._table[name] = fact

    def get(self, field: str) -> Fact[Any]:
        """Return the fact of a declared field."""
        found = self._table.get(field)
        if found is None:
            if field not in FIELDS:
                raise KeyError(f"no such field: {field}")
            return _NOT_READ
        return found

    def value(self, field: str, default: Any = None) -> Any:
        """Return the value where it is known, else ``default``."""
        found = self.get(field)
        return found.value if isinstance(found, Known) else default

    def evidence(self, field: str) -> Optional[Evidence]:
        """Return where the field was read, or None where nothing was learned."""
        found = self.get(field)
        return None if isinstance(found, Unknown) else found.evidence

    def __iter__(self) -> Iterator[Tuple[str, Fact[Any]]]:
        """Yield the set fields in the order of ``FIELDS``."""
        return ((name, self._table[name]) for name in FIELDS if name in self._table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and dict(self) == dict(other)

    def __hash__(self) -> int:
        return hash(tuple(self._table))

    def updated(self, other: Mapping[str, Fact[Any]]) -> Facts:
        """Return facts in which ``other``'s known and absent fields replace these; Unknown never
        replaces.
        """
        table = dict(self._table)
        for name, fact in other.items():
            if not isinstance(fact, Unknown) or name not in table:
                table[name] = fact
        return Facts(table)

    def distribution(self, name: str) -> Fact[Distribution]:
        """Return one distribution: Absent only where the list of distributions is complete."""
        listed = self.get("distributions")
        if isinstance(listed, Known):
            found = listed.value.get(canonicalize_name(name))
            if found is not None:
                return Known(found, listed.evidence)
            if self.value("distributions.complete"):
                return Absent(listed.evidence)
        return Unknown(f"no complete list of distributions names {name}")

    def version_of(self, name: str) -> Optional[str]:
        """Return the installed version of a distribution where it is known."""
        found = self.distribution(name)
        return found.value.version if isinstance(found, Known) else None

    def variable(self, name: str) -> Fact[str]:
        """Return one environment variable: Absent where the variables were read whole and it is not
        among them.
        """
        listed = self.get("variables")
        if isinstance(listed, Known):
            if name in listed.value:
                return Known(listed.value[name], Evidence(f"environment variable {name}"))
            if self.value("variables.complete", True):
                return Absent(listed.evidence)
            return Unknown(f"the environment variables that were read do not show {name}")
        return Unknown("environment variables were not read")


def is_unindexed(found: Distribution) -> bool:
    """Tell whether no index knows this build: NGC's ``2.6.0a0+ecf3bae40a.nv25.01``, a nightly, a
    source or editable install.

    Such a build may hold what a later release brought, or lack what its number promises, so the
    order of its version alone decides nothing.
    """
    if found.editable:
        return True
    version = try_version(found.version)
    if version is None:
        return False
    if version.is_devrelease:
        return True
    return (
        version.local is not None and version.local != "cpu" and find_variant(version.local) is None
    )
