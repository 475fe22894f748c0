"""What the NVIDIA driver says of itself and of its devices: its sources asked, and joined to facts.

Whatever loads a library, or reads a file behind which the driver may hang, runs in a child. The
children run side by side, so that the probe takes as long as the slowest of them.
"""

from __future__ import annotations

import json
import os
import re

from ..model.evidence import Absent, Evidence, Fact, Known, Unknown
from ..model.facts import Gpu
from ..model.record import NamedTuple
from .isolation import no_child, run_command, run_isolated, start_isolated
from .nvidia_calls import init_libcuda, read_libcuda, read_nvml, read_proc
from .nvidia_files import (
    COMPAT_FIELDS,
    compat_facts,
    default_folders,
    expected_gpus,
    find_libraries,
    release_in_name,
)
from .nvidia_text import (
    is_compat_path,
    is_release,
    parse_fabric_version,
    parse_smi_gpus,
    visible_by_variable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Callable,
        Dict,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        Tuple,
    )

    from .isolation import Child, ChildOutcome
    from .machine import Machine
    from .nvidia_files import Traces

__all__ = ["CHILD_DEADLINE", "ask_driver"]

CHILD_DEADLINE = 4.0
"""Seconds for NVML and cuInit.

Eight GPUs without persistence mode take 24-30 s (aks-gpu#105): then they are unknown.
"""

_SMI_DEADLINE = 2.0
_FABRIC_DEADLINE = 1.0
_INIT_PID_NAMESPACE = "pid:[4026531836]"  # include/linux/proc_ns.h: PROC_PID_INIT_INO
_PROC_VERSION = Evidence("/proc/driver/nvidia/version")


def ask_driver(machine: Machine, traces: Traces) -> Dict[str, Fact[Any]]:
    """Ask every source of a machine that shows a trace of the driver."""
    with _Children(machine) as children:
        children.start("proc", read_proc)
        children.start("nvml", lambda: read_nvml(not machine.brief))
        children.start("libcuda", read_libcuda)
        children.start("init", lambda: init_libcuda(machine.environment))
        kernel = children.wait("proc", "/proc/driver/nvidia")
        cuda = children.wait("libcuda", "libcuda")
        nvml = children.wait("nvml", "NVML")
        init = children.wait("init", "cuInit")
    sources = _Sources(machine, traces, kernel, nvml, cuda, init, _ask_smi(machine, nvml))
    facts: Dict[str, Fact[Any]] = dict(_kernel_facts(sources))
    facts.update(_nvml_facts(sources))
    facts.update(_libcuda_facts(sources))
    facts["driver.exposed"] = _exposed(sources)
    facts.update(_gpu_facts(sources))
    facts.update(_fabric_facts(machine))
    facts["pcie.acs_iommu"] = _iommu(machine, facts["gpus"])
    return facts


# --- asking


class _Answer(NamedTuple):
    """A child's answer, or why there is none."""

    table: Mapping[str, Any]
    failure: Optional[Unknown] = None


class _Children:
    """The children of one probe run: started side by side, waited for once."""

    def __init__(self, machine: Machine) -> None:
        self._deadline = machine.remaining(CHILD_DEADLINE)
        self._children: Dict[str, Child] = {}
        self._refused: Dict[str, ChildOutcome] = {}

    def start(self, name: str, function: Callable[[], bytes]) -> None:
        try:
            self._children[name] = start_isolated(function, self._deadline)
        except OSError as error:
            self._refused[name] = no_child(error)

    def wait(self, name: str, title: str) -> _Answer:
        return _answer(
            self._refused.get(name) or self._children.pop(name).wait(self._deadline), title
        )

    def __enter__(self) -> _Children:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():  # only after an exception
            child.wait(0.0)


def _answer(outcome: ChildOutcome, title: str) -> _Answer:
    if outcome.reason:
        return _Answer({}, _failed(title, outcome.reason))
    try:
        return _Answer(json.loads(outcome.text))
    except ValueError:
        return _Answer({}, _failed(title, "its answer could not be read"))


def _failed(what: str, reason: str) -> Unknown:
    """Say that what this probe asked failed, and why."""
    return Unknown(f"{what}: {reason}", "nvidia")


class _Sources(NamedTuple):
    """What each source answered."""

    machine: Machine
    traces: Traces
    kernel: _Answer
    nvml: _Answer
    cuda: _Answer
    init: _Answer
    smi: _Answer


# --- kernel module and NVML


def _kernel_facts(sources: _Sources) -> Iterator[Tuple[str, Fact[Any]]]:
    kernel = sources.kernel
    release = _release(sources)
    yield "driver.release", release
    if kernel.table.get("flavor"):
        yield "driver.flavor", Known(kernel.table["flavor"], _PROC_VERSION)
    elif isinstance(release, Absent):
        yield "driver.flavor", release
    else:
        yield "driver.flavor", kernel.failure or Unknown("no /proc/driver/nvidia/version")
    yield "driver.loaded", _is_loaded(sources)


def _release(sources: _Sources) -> Fact[Any]:
    """The driver's release, from the first source that names it."""
    kernel, nvml, smi = sources.kernel, sources.nvml, sources.smi
    module = sources.machine.read_text("/sys/module/nvidia/version", 256) or ""
    for release, evidence in (
        (module.strip(), Evidence("/sys/module/nvidia/version")),
        (kernel.table.get("release"), _PROC_VERSION),
        (nvml.table.get("release"), Evidence("NVML", "nvmlSystemGetDriverVersion")),
        (smi.table.get("release"), Evidence("nvidia-smi")),
    ):
        if is_release(release):
            return Known(release, evidence)
    failure = kernel.failure or nvml.failure
    if failure is not None:
        return failure
    sign = _sign_of_driver(sources)
    if sign:
        error = nvml.table.get("error") or "NVML does not report it"
        return Unknown(f"{sign}, but nothing names the driver's release: {error}")
    if sources.traces.module_is_absent:
        return Absent(Evidence("/sys/module", "no nvidia"))
    return Unknown("no source names the driver's release")


def _is_loaded(sources: _Sources) -> Fact[Any]:
    for shows, evidence in (
        (sources.traces.loaded, Evidence("/sys/module/nvidia")),
        (sources.kernel.table.get("release"), _PROC_VERSION),
        ("release" in sources.nvml.table, Evidence("NVML", "it answers")),
    ):
        if shows:
            return Known(True, evidence)
    sign = _sign_of_driver(sources)
    if sign:
        return Unknown(f"{sign}, but /sys/module shows no nvidia")
    if sources.traces.module_is_absent:
        return Known(False, Evidence("/sys/module", "no nvidia"))
    return Unknown("no /sys/module, and NVML does not answer")


def _sign_of_driver(sources: _Sources) -> str:
    """Return what speaks for a driver although /sys/module shows no module "nvidia", or "".

    Tegra's module has another name. NVML's word that no driver is loaded counts for more than a
    library of a package that lies around, and cuda-compat is no driver's.
    """
    if sources.init.table.get("code") == 0:
        return "cuInit succeeds"
    if not sources.nvml.table.get("loader"):
        return ""
    if sources.machine.exists("/proc/driver/nvidia"):
        return "there is /proc/driver/nvidia"
    path = sources.cuda.table.get("path")
    return "libcuda.so.1 can be loaded" if path and not is_compat_path(path) else ""


def _nvml_facts(sources: _Sources) -> Iterator[Tuple[str, Fact[Any]]]:
    nvml = sources.nvml
    evidence = Evidence("NVML", "libnvidia-ml.so.1")
    if nvml.failure:
        yield "driver.nvml_release", nvml.failure
        yield "driver.nvml_error", nvml.failure
        return
    release, error = nvml.table.get("release"), nvml.table.get("error")
    if release:
        yield "driver.nvml_release", Known(release, evidence)
    else:
        yield "driver.nvml_release", Unknown(error or "NVML does not report it")
    yield "driver.nvml_error", Known(error, evidence) if error else Absent(evidence)


# --- libcuda and cuda-compat


def _libcuda_facts(sources: _Sources) -> Iterator[Tuple[str, Fact[Any]]]:
    machine, cuda = sources.machine, sources.cuda
    path = cuda.table.get("path") or None
    how = "the file that the loader mapped"
    if path is None and sources.traces.libcuda and (cuda.failure or "path" in cuda.table):
        path, how = machine.realpath(sources.traces.libcuda[0]), "first in the loader's folders"
    yield from _compat_and_cuda(sources, path)
    yield "driver.init_error", _init_error(sources)
    if path is None:
        error = cuda.table.get("error") or "not loaded"
        nothing: Fact[Any] = cuda.failure or Absent(Evidence("libcuda.so.1", error))
        yield "driver.libcuda_release", nothing
        yield "driver.libcuda_path", nothing
        yield "driver.unversioned_libcuda", nothing
        return
    evidence = Evidence(path, how)
    yield "driver.libcuda_path", Known(path, evidence)
    yield "driver.libcuda_release", release_in_name(path, evidence)
    unversioned = _unversioned_libcuda(machine)
    if unversioned is not None:
        yield "driver.unversioned_libcuda", Known(True, Evidence(unversioned))
    else:
        missing = Evidence("the loader's folders", "no libcuda.so")
        yield "driver.unversioned_libcuda", Known(False, missing)


def _init_error(sources: _Sources) -> Fact[Any]:
    init = sources.init
    if "code" not in init.table:
        return init.failure or Unknown(init.table.get("error") or "cuInit returned no code")
    shown = sources.machine.environment.get("CUDA_VISIBLE_DEVICES")
    detail = "" if shown is None else f"with CUDA_VISIBLE_DEVICES={shown}"[:200]
    return Known(init.table["code"], Evidence("cuInit", detail))


def _unversioned_libcuda(machine: Machine) -> Optional[str]:
    """The libcuda.so that a linker takes."""
    for folder in machine.environment.get("LIBRARY_PATH", "").split(":"):
        path = f"{folder.rstrip('/')}/libcuda.so"
        if folder.startswith("/") and machine.isfile(path):
            return path
    paths = find_libraries(machine, "libcuda.so")
    return paths[0] if paths else None


def _compat_and_cuda(sources: _Sources, path: Optional[str]) -> Iterator[Tuple[str, Fact[Any]]]:
    cuda = sources.cuda
    if path is not None and is_compat_path(path):
        yield from compat_facts(path, cuda.table.get("cuda"), "the file that the loader takes")
        yield "driver.cuda_version", _cuda_behind_compat(sources)
        return
    nothing: Fact[Any] = Absent(
        Evidence(path or "libcuda.so.1", "the loader takes no cuda-compat library")
    )
    if path is None and cuda.failure:
        nothing = cuda.failure
    for name in COMPAT_FIELDS:
        yield name, nothing
    yield "driver.cuda_version", _cuda_version(sources, path or "libcuda.so.1")


def _cuda_version(sources: _Sources, path: str) -> Fact[Any]:
    cuda, nvml = sources.cuda, sources.nvml
    if cuda.table.get("cuda"):
        return Known(cuda.table["cuda"], Evidence("cuDriverGetVersion", path))
    if nvml.table.get("cuda"):
        return Known(nvml.table["cuda"], Evidence("NVML", "nvmlSystemGetCudaDriverVersion"))
    error = cuda.table.get("error") or "neither libcuda nor NVML reports it"
    return cuda.failure or Unknown(error)


def _cuda_behind_compat(sources: _Sources) -> Fact[Any]:
    """Ask the driver's own libcuda, which cuda-compat hides: its name has the kernel's release."""
    machine = sources.machine
    release = sources.kernel.table.get("release")
    for folder in default_folders() if release else ():
        path = f"{folder}/libcuda.so.{release}"
        if machine.isfile(path):
            # B023: the function is called at once.
            outcome = run_isolated(lambda: read_libcuda(path), machine.remaining(1.0))  # noqa: B023
            answer = _answer(outcome, path)
            if answer.table.get("cuda"):
                return Known(answer.table["cuda"], Evidence("cuDriverGetVersion", path))
    return Unknown("the loader takes cuda-compat, which hides the driver's own libcuda")


def _exposed(sources: _Sources) -> Fact[Any]:
    cuda = sources.cuda
    if not sources.traces.has_usable_device and not sources.nvml.table.get("gpus"):
        return Known(False, Evidence("/dev", "no nvidia device nodes"))
    if cuda.failure:
        return cuda.failure
    evidence = Evidence("/dev and libcuda.so.1", cuda.table.get("error") or "")
    return Known(bool(cuda.table.get("path") or "cuda" in cuda.table), evidence)


# --- devices


class _GpuList(NamedTuple):
    """Devices, in the order in which their source lists them."""

    gpus: Sequence[Gpu]
    evidence: Evidence
    mig: Sequence[Sequence[str]] = ()  # UUIDs of MIG instances, by device


def _gpu_facts(sources: _Sources) -> Iterator[Tuple[str, Fact[Any]]]:
    nvml = sources.nvml
    gpu_list = _list_gpus(sources)
    if gpu_list is None:
        error = nvml.table.get("error") or "NVML does not list devices"
        yield "gpus", nvml.failure or Unknown(error)
    else:
        shown = zip(gpu_list.gpus, _visible(sources, gpu_list))
        gpus = tuple([gpu._replace(visible=visible) for gpu, visible in shown])
        yield "gpus", Known(gpus, gpu_list.evidence)
    if gpu_list is not None and gpu_list.gpus:
        shown_by = Evidence(gpu_list.evidence.source, "devices are shown")
        yield "gpus.expected", Absent(shown_by)
    else:
        entries = sources.kernel.table.get("gpus") or ()
        models = [entry["model"] for entry in entries if entry.get("model")]
        yield "gpus.expected", expected_gpus(sources.traces.devices, models)


def _list_gpus(sources: _Sources) -> Optional[_GpuList]:
    """The devices by the first source that lists them; None where none does."""
    nvml, smi = sources.nvml, sources.smi
    if "gpus" in nvml.table:
        entries = [dict(entry) for entry in nvml.table["gpus"]]
        mig = [entry.pop("mig", []) for entry in entries]
        return _GpuList([Gpu(**entry) for entry in entries], Evidence("NVML"), mig)
    if "gpus" in smi.table:
        return _GpuList([_smi_gpu(row) for row in smi.table["gpus"]], Evidence("nvidia-smi"))
    if sources.kernel.table.get("gpus"):
        evidence = Evidence("/proc/driver/nvidia/gpus", "those with a device node")
        return _GpuList(_proc_gpus(sources), evidence)
    if not sources.traces.has_device:
        return _GpuList([], Evidence("/dev", "no nvidia device nodes"))
    return None


def _visible(sources: _Sources, gpu_list: _GpuList) -> List[Optional[bool]]:
    """CUDA's own answer where cuInit worked, else what the variable says."""
    gpus, mig = gpu_list.gpus, gpu_list.mig
    buses = sources.init.table.get("buses")
    if isinstance(buses, list) and all(gpu.pci_bus for gpu in gpus if not gpu.fault):
        shown = {_short_bus(bus) for bus in buses}
        return [gpu.pci_bus is not None and _short_bus(gpu.pci_bus) in shown for gpu in gpus]
    environment = sources.machine.environment
    return visible_by_variable(
        gpus, environment.get("CUDA_VISIBLE_DEVICES"), environment.get("CUDA_DEVICE_ORDER"), mig
    )


def _short_bus(bus: str) -> str:
    """NVML writes the PCI domain with eight digits, CUDA and sysfs with four."""
    domain, _, rest = bus.lower().partition(":")
    return f"{domain.lstrip('0').rjust(4, '0')}:{rest}"


def _proc_gpus(sources: _Sources) -> List[Gpu]:
    """The devices of /proc/driver/nvidia that have a node here."""
    ids = {device.bus.lower(): device.pci_id for device in sources.traces.devices or ()}
    return [
        Gpu(
            name=entry.get("model"),
            pci_bus=entry.get("bus"),
            uuid=entry.get("uuid"),
            pci_id=ids.get(entry.get("bus", "").lower()),
        )
        for entry in sources.kernel.table["gpus"]
        if f"nvidia{entry.get('minor')}" in sources.traces.nodes
    ]


# --- nvidia-smi, the last source


_SMI_NAMES = (
    "driver_version",
    "name",
    "pci.bus_id",
    "pci.device_id",
    "uuid",
    "memory.total",
    "memory.used",
    "mig.mode.current",
    "ecc.mode.current",
    "persistence_mode",
    "compute_cap",
)


def _ask_smi(machine: Machine, nvml: _Answer) -> _Answer:
    """Run nvidia-smi where this process could not load NVML; else it knows no more.

    That is so with another C library, and without the binding.
    """
    command = _on_path(machine, "nvidia-smi") if nvml.table.get("loader") else None
    if command is None:
        return _Answer({})
    # compute_cap is not known before R510 and fails the whole query.
    for names in (_SMI_NAMES, _SMI_NAMES[:-1]):
        query = [command, "--query-gpu=" + ",".join(names), "--format=csv,noheader,nounits"]
        outcome = run_command(query, machine.remaining(_SMI_DEADLINE), limit=1 << 20)
        if outcome.reason:
            return _Answer({}, _failed("nvidia-smi", outcome.reason))
        rows = parse_smi_gpus(outcome.text, names)
        if outcome.status == 0 and rows:
            return _Answer({"release": rows[0].get("driver_version"), "gpus": rows})
    return _Answer({})


def _on_path(machine: Machine, name: str) -> Optional[str]:
    for folder in [*machine.environment.get("PATH", "").split(":"), "/usr/bin", "/usr/lib/wsl/lib"]:
        path = f"{folder.rstrip('/')}/{name}"
        if (
            folder.startswith("/")
            and machine.isfile(path)
            and machine.use(lambda host: os.access(host, os.X_OK), path)
        ):
            return path
    return None


def _smi_gpu(row: Mapping[str, str]) -> Gpu:
    device = row.get("pci.device_id", "")
    known = re.fullmatch(r"0x([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})", device)
    capability = row.get("compute_cap", "")
    return Gpu(
        name=row.get("name"),
        pci_id=f"{known.group(2)}:{known.group(1)}".lower() if known else None,
        pci_bus=row.get("pci.bus_id"),
        uuid=row.get("uuid"),
        compute_capability=capability if re.fullmatch(r"[0-9]{1,2}\.[0-9]", capability) else None,
        memory_total=_mebibytes(row.get("memory.total")),
        memory_used=_mebibytes(row.get("memory.used")),
        mig_mode=_enabled(row.get("mig.mode.current")),
        ecc_mode=_enabled(row.get("ecc.mode.current")),
        persistence_mode=_enabled(row.get("persistence_mode")),
    )


def _mebibytes(text: Optional[str]) -> Optional[int]:
    return (
        int(text) << 20 if text and text.isascii() and text.isdigit() and len(text) < 12 else None
    )


def _enabled(text: Optional[str]) -> Optional[bool]:
    return {"Enabled": True, "Disabled": False}.get(text or "")


# --- fabric manager, IOMMU


def _fabric_facts(machine: Machine) -> Iterator[Tuple[str, Fact[Any]]]:
    """Fabric manager belongs to the host: from a container its absence tells nothing."""
    on_host = machine.readlink("/proc/self/ns/pid") == _INIT_PID_NAMESPACE
    paths = ("/usr/bin/nv-fabricmanager", "/usr/sbin/nv-fabricmanager")
    path = next((path for path in paths if machine.isfile(path)), None)
    if path is not None:
        yield "driver.fabric_manager", _fabric_release(machine, path)
    elif on_host:
        yield "driver.fabric_manager", Absent(Evidence(paths[0]))
    else:
        services = "in a container, where the host's services are not visible"
        yield "driver.fabric_manager", Unknown(services)
    running: Fact[Any]
    if not on_host:
        running = Unknown("in a container, where the host's processes are not visible")
    elif path is None:
        running = Known(False, Evidence(paths[0], "not installed"))
    else:
        running = _fabric_running(machine)
    yield "driver.fabric_manager_running", running


def _fabric_release(machine: Machine, path: str) -> Fact[Any]:
    deadline = machine.remaining(_FABRIC_DEADLINE)
    outcome = run_command([path, "--version"], deadline, limit=65536, stderr=True)
    release = None if outcome.reason else parse_fabric_version(outcome.text)
    if release:
        return Known(release, Evidence(f"{path} --version"))
    return _failed(path, outcome.reason or "it reports no release")


def _fabric_running(machine: Machine) -> Fact[Any]:
    name = "nv-fabricmanager"[:15]  # comm holds 15 characters
    for pid in machine.listdir("/proc") or ():
        if pid.isdigit() and (machine.read_text(f"/proc/{pid}/comm", 64) or "").strip() == name:
            return Known(True, Evidence(f"/proc/{pid}"))
    return Known(False, Evidence("/proc", "no process nv-fabricmanager"))


def _iommu(machine: Machine, gpus: Fact[Any]) -> Fact[Any]:
    """Tell whether the IOMMU translates the GPUs' addresses.

    That redirects traffic between peers through the root complex.
    """
    devices = gpus.value if isinstance(gpus, Known) else ()
    folders = [f"/sys/bus/pci/devices/{_short_bus(gpu.pci_bus)}" for gpu in devices if gpu.pci_bus]
    if not folders:
        return Unknown("no devices are listed")
    if not all(map(machine.exists, folders)):
        return Unknown("the devices are not visible in sysfs")
    kinds = sorted({_iommu_kind(machine, folder) for folder in folders})
    if any(kind.startswith("DMA") for kind in kinds):
        evidence = Evidence("/sys/bus/pci/devices/*/iommu_group/type", ", ".join(kinds))
        return Known(True, evidence)
    # Without an IOMMU, or with identity mapping, ACS of a PCIe switch could still redirect: that
    # needs config space.
    return Unknown("the IOMMU does not translate addresses; the switches' ACS is not read")


def _iommu_kind(machine: Machine, folder: str) -> str:
    return (machine.read_text(f"{folder}/iommu_group/type", 64) or "").strip() or "none"
